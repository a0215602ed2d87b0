#include <taeda/c10/cuda/cublas.h>

#include <dlfcn.h>

#include <array>
#include <string>

namespace taeda::cuda {

namespace {

constexpr LibraryNames kNames{"TAEDA_CUDA_CUBLAS",
                              "libcublas.so",
                              "nvidia-cublas (of CUDA 12: nvidia-cublas-cu12)"};

template <class F>
void find(void* library, const char* symbol, F* found, std::string* error) {
  *found = reinterpret_cast<F>(dlsym(library, symbol));
  if (*found == nullptr) {
    *error = str_cat("cuBLAS is too old: it has no ", symbol);
  }
}

Cublas load() {
  Cublas made{};
  void* library = open_nvidia_library(kNames, &made.error);
  if (library == nullptr) return made;
  find(library, "cublasCreate_v2", &made.create, &made.error);
  find(library, "cublasSetStream_v2", &made.set_stream, &made.error);
  constexpr std::array<const char*, 4> kSolvers{
      "cublasStrsm_v2", "cublasDtrsm_v2", "cublasCtrsm_v2", "cublasZtrsm_v2"};
  for (size_t i = 0; i < kSolvers.size(); ++i) {
    find(library, kSolvers[i], &made.solve_triangle[i], &made.error);
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
