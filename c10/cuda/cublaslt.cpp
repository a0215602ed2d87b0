#include <taeda/c10/cuda/cublaslt.h>

namespace taeda::cuda {

namespace {

constexpr LibraryNames kNames{"TAEDA_CUDA_CUBLASLT",
                              "libcublasLt.so",
                              "nvidia-cublas (of CUDA 12: nvidia-cublas-cu12)"};

CublasLt load() {
  CublasLt made{};
  void* library = open_nvidia_library(kNames, &made.error);
  if (library == nullptr) return made;
  FunctionFinder finder{library, "cuBLASLt", &made.error};
#define TAEDA_FIND(symbol, name, parameters) finder.find(#symbol, &made.name);
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
