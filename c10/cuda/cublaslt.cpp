#include <taeda/c10/cuda/cublaslt.h>

#include <dlfcn.h>

namespace taeda::cuda {

namespace {

constexpr LibraryNames kNames{"TAEDA_CUDA_CUBLASLT",
                              "libcublasLt.so",
                              "nvidia-cublas (of CUDA 12: nvidia-cublas-cu12)"};

CublasLt load() {
  CublasLt made{};
  void* library = open_nvidia_library(kNames, &made.error);
  if (library == nullptr) return made;
#define TAEDA_FIND(symbol, name, parameters)                               \
  made.name =                                                              \
      reinterpret_cast<lt::Status(*) parameters>(dlsym(library, #symbol)); \
  if (made.name == nullptr) {                                              \
    made.error = "cuBLASLt is too old: it has no " #symbol;                \
  }
  TAEDA_CUBLASLT_FUNCTIONS(TAEDA_FIND)
#undef TAEDA_FIND
  return made;
}

}  // namespace

const CublasLt& cublaslt() {
  // Never destroyed: products may run while the process ends.
  static const CublasLt& loaded = *new CublasLt(load());
  return loaded;
}

}  // namespace taeda::cuda
