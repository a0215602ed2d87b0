// The part of cuBLAS that cuBLASLt lacks, systems of triangles, as a table of
// function pointers; the interface is that of NVIDIA's cuBLAS documentation
// (12.x and 13.x).
#pragma once

#include <taeda/c10/cuda/driver.h>
#include <taeda/c10/cuda/library.h>

#include <array>

namespace taeda::cuda {

namespace cublas {

using Status = int;  // cublasStatus_t
using Handle = struct HandleObject*;

}  // namespace cublas

struct Cublas {
  cublas::Status (*create)(cublas::Handle*);
  cublas::Status (*set_stream)(cublas::Handle, StreamHandle);
  // Of float, double, complex64, complex128; sides, triangles and turns have
  // the numbers of namespace cusolver, `unit` is 1 for a diagonal of ones.
  std::array<cublas::Status (*)(cublas::Handle,
                                int side,
                                int triangle,
                                int turn,
                                int unit,
                                int m,
                                int n,
                                const void* alpha,
                                const void* a,
                                int lda,
                                void* b,
                                int ldb),
             4>
      solve_triangle;
  std::string error;  // why it cannot be used; empty where it can
};

// Loaded at the first call, of which the answer is kept.
const Cublas& cublas_library();

}  // namespace taeda::cuda
