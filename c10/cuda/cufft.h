// cuFFT, which computes Fourier transforms, as a table of function pointers;
// the interface is that of NVIDIA's cuFFT documentation (11.x and 12.x).
#pragma once

#include <taeda/c10/cuda/driver.h>
#include <taeda/c10/cuda/library.h>

namespace taeda::cuda {

namespace cufft {

using Status = int;  // cufftResult
using Plan = int;    // cufftHandle

// cudaDataType_t
enum DataType : int {
  kReal32 = 0,
  kReal64 = 1,
  kReal16 = 2,
  kComplex32 = 4,
  kComplex64 = 5,
  kComplex16 = 6,
};
inline constexpr int kForward = -1, kInverse = 1;

}  // namespace cufft

#define TAEDA_CUFFT_FUNCTIONS(X)                                    \
  X(cufftCreate, create, (cufft::Plan*))                            \
  X(cufftDestroy, destroy, (cufft::Plan))                           \
  X(cufftSetAutoAllocation, allocate_by_itself, (cufft::Plan, int)) \
  X(cufftXtMakePlanMany,                                            \
    make,                                                           \
    (cufft::Plan,                                                   \
     int rank,                                                      \
     long long* sizes,                                              \
     long long* in_sizes,                                           \
     long long in_stride,                                           \
     long long in_batch,                                            \
     cufft::DataType in,                                            \
     long long* out_sizes,                                          \
     long long out_stride,                                          \
     long long out_batch,                                           \
     cufft::DataType out,                                           \
     long long batches,                                             \
     size_t* workspace,                                             \
     cufft::DataType computes))                                     \
  X(cufftSetStream, set_stream, (cufft::Plan, StreamHandle))        \
  X(cufftSetWorkArea, set_workspace, (cufft::Plan, void*))          \
  X(cufftXtExec, execute, (cufft::Plan, void* in, void* out, int direction))

struct Cufft {
#define TAEDA_MEMBER(symbol, name, parameters) cufft::Status(*name) parameters;
  TAEDA_CUFFT_FUNCTIONS(TAEDA_MEMBER)
#undef TAEDA_MEMBER
  std::string error;  // why it cannot be used; empty where it can
};

// Loaded at the first call, of which the answer is kept.
const Cufft& cufft_library();

}  // namespace taeda::cuda
