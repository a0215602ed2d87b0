// Random numbers into CPU memory, with PyTorch's CPU stream: the same words of
// the generator make the same elements, and the generator stands at the same
// place afterwards. Callers hold the generator's mutex, have checked arguments,
// and visit the elements of a tensor in memory order (dimensions by ascending
// stride), as PyTorch does for a non-contiguous one. Strides are in elements.
// T: float, double, Half or BFloat16, and for the discrete ones every integer
// type and bool too.
#pragma once

#include <taeda/c10/core/generator.h>

#include <cstdint>

namespace taeda::native {

/// Uniform on [from, to).
template <typename T>
void fill_uniform(T* out,
                  int64_t count,
                  int64_t stride,
                  double from,
                  double to,
                  CpuGeneratorImpl& generator);

/// Normal, for a whole contiguous tensor: sixteen or more elements are made in
/// groups of 16, fewer one at a time.
template <typename T>
void fill_normal(T* out,
                 int64_t count,
                 double mean,
                 double std,
                 CpuGeneratorImpl& generator);

/// Normal, one element at a time: for tensors that are not contiguous.
template <typename T>
void fill_normal_scalar(T* out,
                        int64_t count,
                        int64_t stride,
                        double mean,
                        double std,
                        CpuGeneratorImpl& generator);

/// What random_(from, to) draws from.
struct RandomRange {
  uint64_t range;
  int64_t base;
};

/// The range for `from` <= value < `to`, where floating types move a bound that
/// T would round out of the interval.
template <typename T>
RandomRange random_range(int64_t from, int64_t to);

/// Integers from `base` to `base + range - 1`; `range` 0 means any 64 bits.
template <typename T>
void fill_random_range(T* out,
                       int64_t count,
                       int64_t stride,
                       uint64_t range,
                       int64_t base,
                       CpuGeneratorImpl& generator);

/// random_() without bounds: integers from 0 to the largest of T, or to
/// 2^(mantissa bits) for floating types.
template <typename T>
void fill_random(T* out,
                 int64_t count,
                 int64_t stride,
                 CpuGeneratorImpl& generator);

/// A random permutation of 0 ... count - 1.
template <typename T>
void fill_permutation(T* out,
                      int64_t count,
                      int64_t stride,
                      CpuGeneratorImpl& generator);

/// 1 with probability p, else 0: two words an element. Dropout draws so too.
template <typename T>
void fill_bernoulli(T* out,
                    int64_t count,
                    int64_t stride,
                    double p,
                    CpuGeneratorImpl& generator);

/// The same with a probability per element: one word an element, two when P
/// is double. RuntimeError for a probability outside [0, 1].
template <typename T, typename P>
void fill_bernoulli(T* out,
                    int64_t stride,
                    const P* p,
                    int64_t p_stride,
                    int64_t count,
                    CpuGeneratorImpl& generator);

}  // namespace taeda::native
