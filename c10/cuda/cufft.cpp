#include <taeda/c10/cuda/cufft.h>

namespace taeda::cuda {

namespace {

constexpr LibraryNames kNames{"TAEDA_CUDA_CUFFT",
                              "libcufft.so",
                              "nvidia-cufft (of CUDA 12: nvidia-cufft-cu12)",
                              nullptr,
                              1};

Cufft load() {
  Cufft made{};
  void* library = open_nvidia_library(kNames, &made.error);
  if (library == nullptr) return made;
  FunctionFinder finder{library, "cuFFT", &made.error};
#define TAEDA_FIND(symbol, name, parameters) finder.find(#symbol, &made.name);
  TAEDA_CUFFT_FUNCTIONS(TAEDA_FIND)
#undef TAEDA_FIND
  return made;
}

}  // namespace

const Cufft& cufft_library() {
  // Never destroyed: transforms may run while the process ends.
  static const Cufft& loaded = *new Cufft(load());
  return loaded;
}

}  // namespace taeda::cuda
