#include <taeda/c10/cuda/cublas.h>

#include <array>

namespace taeda::cuda {

namespace {

constexpr LibraryNames kNames{"TAEDA_CUDA_CUBLAS",
                              "libcublas.so",
                              "nvidia-cublas (of CUDA 12: nvidia-cublas-cu12)"};

Cublas load() {
  Cublas made{};
  void* library = open_nvidia_library(kNames, &made.error);
  if (library == nullptr) return made;
  FunctionFinder finder{library, "cuBLAS", &made.error};
  finder.find("cublasCreate_v2", &made.create);
  finder.find("cublasSetStream_v2", &made.set_stream);
  constexpr std::array<const char*, 4> kSolvers{
      "cublasStrsm_v2", "cublasDtrsm_v2", "cublasCtrsm_v2", "cublasZtrsm_v2"};
  for (size_t i = 0; i < kSolvers.size(); ++i) {
    finder.find(kSolvers[i], &made.solve_triangle[i]);
  }
  return made;
}

}  // namespace

const Cublas& cublas_library() {
  // Never destroyed: calls may run while the process ends.
  static const Cublas& loaded = *new Cublas(load());
  return loaded;
}

}  // namespace taeda::cuda
