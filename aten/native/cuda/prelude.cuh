// What generated device kernels stand on. No system headers: NVRTC compiles it
// as it is, behind aten/math. Compiled as plain C++ behind the tests'
// host_device.h, the same text runs on the CPU.
#pragma once

#include <taeda/aten/math/math.h>
#include <taeda/c10/util/complex.h>

namespace taeda {

using Long = long long;
#ifdef __CUDACC_RTC__
using int64_t = Long;  // NVRTC has no <cstdint>
#endif

inline constexpr int kMaxDims = 8;

// Where the elements of one operand stand: strides in elements, innermost dim
// first. `contiguous` spares the division chain.
struct DeviceGeometry {
  int dims;
  int contiguous;
  Long sizes[kMaxDims];
  Long strides[kMaxDims];
};

__device__ inline Long offset_of(const DeviceGeometry& g, Long linear) {
  if (g.contiguous) return linear;
  Long offset = 0;
  for (int d = 0; d < g.dims; ++d) {
    Long next = linear / g.sizes[d];
    offset += (linear - next * g.sizes[d]) * g.strides[d];
    linear = next;
  }
  return offset;
}

// A bool tensor may be a view of other bytes: any but 0 is true.
template <class T>
__device__ inline T element(const T* in, Long i) {
  return in[i];
}
__device__ inline bool element(const bool* in, Long i) {
  return reinterpret_cast<const unsigned char*>(in)[i] != 0;
}

template <class T>
struct RealOfType {
  using type = T;
};
template <class T>
struct RealOfType<complex<T>> {
  using type = T;
};
template <class T>
using RealOf = typename RealOfType<T>::type;

// One block folds the `count` elements of one output.
inline constexpr int kReduceThreads = 256;

template <class P>
__device__ void reduce_one(const typename P::Element* in,
                           typename P::Result* out,
                           const DeviceGeometry& kept,
                           const DeviceGeometry& reduced,
                           Long count,
                           const typename P::Element* scalars) {
  using T = typename P::Element;
  alignas(16) __shared__ char memory[kReduceThreads * sizeof(T)];
  T* partial = reinterpret_cast<T*>(memory);
  Long base = offset_of(kept, blockIdx.x);
  T acc = P::init();
  for (Long i = threadIdx.x; i < count; i += blockDim.x) {
    acc = P::combine(
        acc, P::map_slots(element(in, base + offset_of(reduced, i)), scalars));
  }
  partial[threadIdx.x] = acc;
  __syncthreads();
  for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) {
      partial[threadIdx.x] =
          P::combine(partial[threadIdx.x], partial[threadIdx.x + half]);
    }
    __syncthreads();
  }
  if (threadIdx.x == 0) {
    out[blockIdx.x] =
        P::finish_slots(partial[0], static_cast<T>(count), scalars);
  }
}

}  // namespace taeda
