#include <taeda/c10/cuda/cudnn.h>

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
  FunctionFinder finder{library, "cuDNN", &made.error};
#define TAEDA_FIND(symbol, result, name, parameters) \
  finder.find(#symbol, &made.name);
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
