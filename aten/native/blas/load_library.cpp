#include <taeda/aten/native/blas/load_library.h>

#include <dlfcn.h>
#include <unistd.h>

#include <string>

#include <taeda/c10/util/check.h>

namespace taeda::blas {
namespace {

std::string own_folder() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<void*>(&load_library), &info) == 0 ||
      info.dli_fname == nullptr) {
    return "";
  }
  const std::string path = info.dli_fname;
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "" : path.substr(0, slash + 1);
}

}  // namespace

void* load_library(const char* file, const char* purpose) {
  // Where a file is beside us but broken, its own error must be the one shown.
  const std::string beside = own_folder() + file;
  const bool here = access(beside.c_str(), F_OK) == 0;
  void* library = dlopen(here ? beside.c_str() : file, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* reason = dlerror();
    TAEDA_CHECK(false,
                "taeda: cannot load ",
                file,
                ", which is needed for ",
                purpose,
                " (looked for ",
                beside,
                ", then in the system's folders): ",
                reason != nullptr ? reason : "unknown error");
  }
  return library;
}

void* find_symbol(void* library, const char* symbol) {
  return dlsym(library, symbol);
}

}  // namespace taeda::blas
