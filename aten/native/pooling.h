// The geometry that pooling operators share: planes of up to three dims.
#pragma once

#include <taeda/aten/iter/spec.h>

#include <array>

namespace taeda::native {

// One to three spatial dims, filled up with ones in front; n and c become one
// count of planes.
template <class I>
struct PoolOver {
  I planes = 1;
  std::array<I, 3> in{1, 1, 1}, out{1, 1, 1};
  std::array<int64_t, 3> kernel{1, 1, 1}, stride{1, 1, 1};
  std::array<int64_t, 3> padding{0, 0, 0}, dilation{1, 1, 1};
  I in_size() const { return in[0] * in[1] * in[2]; }
  I out_size() const { return out[0] * out[1] * out[2]; }
};
using Pool = PoolOver<int64_t>;

// How many planes one thread takes at least.
int64_t pool_grain(const Pool& p);

// Checks the arguments of a pooling over the last `dims` dims. `stride` may be
// empty: the kernel's sizes. Made for int64_t and SymInt.
template <class I>
PoolOver<I> make_pool(std::string_view op,
                      const Spec<I>& input,
                      int64_t dims,
                      IntArrayRef kernel,
                      IntArrayRef stride,
                      IntArrayRef padding,
                      IntArrayRef dilation,
                      bool ceil_mode);
// Output bins of given sizes; only planes, in and out are set.
template <class I>
PoolOver<I> make_adaptive_pool(std::string_view op,
                               const Spec<I>& input,
                               int64_t dims,
                               ArrayRef<I> output_size);
// Refuses a size of 0 in dims beginning with `from`, those that are no batch.
template <class I>
void check_not_empty(std::string_view op,
                     const char* what,
                     ArrayRef<I> sizes,
                     int64_t from);
// The input's sizes with the pool's outputs as last dims.
template <class I>
Dims<I> pooled_sizes(const Spec<I>& input, const PoolOver<I>& p, int64_t dims);
// Of adaptive pooling over one dim.
void check_one_size(std::string_view op, IntArrayRef output_size);
// A list of plain sizes as a list of I.
template <class I>
Dims<I> dims_of(IntArrayRef sizes) {
  return Dims<I>(sizes.begin(), sizes.end());
}

// Bounds of adaptive bins (PyTorch's): floor(i n / m) to ceil((i + 1) n / m).
inline int64_t bin_start(int64_t i, int64_t in, int64_t out) {
  return i * in / out;
}
inline int64_t bin_end(int64_t i, int64_t in, int64_t out) {
  return ((i + 1) * in + out - 1) / out;
}

}  // namespace taeda::native
