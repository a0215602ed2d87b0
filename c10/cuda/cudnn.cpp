#include <taeda/c10/cuda/cudnn.h>

#include <dlfcn.h>

namespace taeda::cuda {

namespace {

constexpr LibraryNames kNames{
    "TAEDA_CUDA_CUDNN",
    "libcudnn.so",
    "nvidia-cudnn-cu13 (of CUDA 12: nvidia-cudnn-cu12)",
    ".9"};

Cudnn load() {
  Cudnn made{};
  void* library = open_nvidia_library(kNames, &made.error);
  if (library == nullptr) return made;
#define TAEDA_FIND(symbol, result, name, parameters)                           \
  made.name = reinterpret_cast<result(*) parameters>(dlsym(library, #symbol)); \
  if (made.name == nullptr) {                                                  \
    made.error = "cuDNN is too old: it has no " #symbol;                       \
  }
  TAEDA_CUDNN_FUNCTIONS(TAEDA_FIND)
#undef TAEDA_FIND
  return made;
}

}  // namespace

const Cudnn& cudnn_library() {
  // Never destroyed: convolutions may run while the process ends.
  static const Cudnn& loaded = *new Cudnn(load());
  return loaded;
}

}  // namespace taeda::cuda
