#include <taeda/c10/core/gpu.h>

#include <dlfcn.h>
#include <unistd.h>

#include <atomic>
#include <mutex>

namespace taeda {

namespace {

constexpr const char* kFile = "libtaeda_cuda.so";

std::atomic<Gpu*> loaded{nullptr};
std::atomic<pid_t> loaded_in{0};

std::string file_beside_us() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<void*>(&file_beside_us), &info) == 0 ||
      info.dli_fname == nullptr) {
    return kFile;
  }
  std::string path = info.dli_fname;
  size_t slash = path.rfind('/');
  return slash == path.npos ? kFile : path.substr(0, slash + 1) + kFile;
}

[[noreturn]] void cannot_use(const std::string& why) {
  throw_error(ErrorKind::Assertion,
              str_cat("Taeda not compiled with CUDA enabled, or no GPU can be "
                      "used: ",
                      why));
}

Gpu* load() {
  std::string path = file_beside_us();
  if (access(path.c_str(), F_OK) != 0) {
    cannot_use(str_cat(path, " is not installed"));
  }
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) cannot_use(dlerror());
  auto* entry = reinterpret_cast<LoadGpu*>(dlsym(library, kLoadGpu));
  if (entry == nullptr) cannot_use(str_cat(path, " has no ", kLoadGpu));
  try {
    return entry();
  } catch (const Error& error) {
    cannot_use(error.message());
  }
}

}  // namespace

Gpu& gpu() {
  if (Gpu* found = loaded.load(std::memory_order_acquire)) return *found;
  // A failure is not kept: a device may be there at the next try.
  static std::mutex& mutex = *new std::mutex;
  std::lock_guard guard(mutex);
  if (loaded.load() == nullptr) {
    loaded_in.store(getpid());
    loaded.store(load(), std::memory_order_release);
  }
  return *loaded.load();
}

GpuOrigins gpu_origins;

bool gpu_is_loaded() {
  return loaded.load(std::memory_order_acquire) != nullptr;
}

bool gpu_is_lost_in_fork() {
  return gpu_is_loaded() && loaded_in.load() != getpid();
}

}  // namespace taeda
