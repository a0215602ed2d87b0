#include <taeda/c10/cuda/library.h>

#include <taeda/c10/cuda/driver.h>

#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>
#include <mutex>

namespace taeda::cuda {

namespace {

namespace fs = std::filesystem;

// Folders that were added; under the lock.
struct Folders {
  std::mutex mutex;
  std::vector<std::string> list;
};
Folders& folders() {
  static auto& all = *new Folders;
  return all;
}

// site-packages/nvidia/*/lib, where this library is
// site-packages/taeda/lib/libtaeda_cuda.so.
std::vector<std::string> folders_beside_us() {
  std::vector<std::string> found;
  Dl_info info{};
  if (dladdr(reinterpret_cast<void*>(&folders_beside_us), &info) == 0 ||
      info.dli_fname == nullptr) {
    return found;
  }
  std::error_code ignored;
  fs::path ours = fs::absolute(info.dli_fname, ignored);
  fs::path packages = ours.parent_path().parent_path().parent_path();
  for (const auto& entry :
       fs::directory_iterator(packages / "nvidia", ignored)) {
    fs::path folder = entry.path() / "lib";
    if (fs::is_directory(folder, ignored)) found.push_back(folder.string());
  }
  return found;
}

// ".13", ".12": what a driver runs; the file without a number comes last.
std::vector<std::string> versions(const LibraryNames& names) {
  if (names.number != nullptr) return {names.number, ""};
  int driver_version = 0;
  check(driver().version(&driver_version), "cuDriverGetVersion");
  std::vector<std::string> all;
  for (int major = driver_version / 1000; major >= 12; --major) {
    all.push_back(str_cat(".", major - names.behind));
  }
  all.emplace_back("");
  return all;
}

void* open(const std::string& path, std::string* reasons) {
  if (void* found = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) return found;
  const char* reason = dlerror();
  if (!reasons->empty()) reasons->append("; ");
  reasons->append(reason != nullptr ? reason : "unknown error");
  return nullptr;
}

void* open_version(const std::string& file, std::string* reasons) {
  std::error_code ignored;
  for (const std::string& folder : library_folders()) {
    fs::path path = fs::path(folder) / file;
    if (!fs::exists(path, ignored)) continue;
    if (void* found = open(path.string(), reasons)) return found;
  }
  return open(file, reasons);
}

}  // namespace

void* open_nvidia_library(const LibraryNames& names, std::string* error) {
  std::string reasons;
  const char* given = std::getenv(names.variable);
  void* found = nullptr;
  if (given != nullptr && *given != '\0') {
    found = open(given, &reasons);
  } else {
    for (const std::string& version : versions(names)) {
      found = open_version(names.stem + version, &reasons);
      if (found != nullptr) break;
    }
  }
  if (found == nullptr) {
    *error = str_cat(names.stem,
                     " was not found: install the package ",
                     names.package,
                     " or CUDA's toolkit, or let ",
                     names.variable,
                     " name the file (",
                     reasons,
                     ")");
  }
  return found;
}

std::vector<std::string> library_folders() {
  static const auto& beside =
      *new std::vector<std::string>(folders_beside_us());
  std::vector<std::string> all = beside;
  std::lock_guard guard(folders().mutex);
  all.insert(all.end(), folders().list.begin(), folders().list.end());
  return all;
}

void add_library_folder(std::string folder) {
  std::lock_guard guard(folders().mutex);
  folders().list.push_back(std::move(folder));
}

void* FunctionFinder::address(const char* symbol) const {
  return dlsym(library, symbol);
}

void FunctionFinder::say_missing(const char* symbol) const {
  *error = str_cat(name, " is too old: it has no ", symbol);
}

}  // namespace taeda::cuda
