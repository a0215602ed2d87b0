// The geometry that pooling operators share: planes of up to three dims.
#pragma once

#include <taeda/aten/core/tensor_base.h>

#include <array>

namespace taeda::native {

// One to three spatial dims, filled up with ones in front; n and c become one
// count of planes.
struct Pool {
  int64_t planes = 1;
  std::array<int64_t, 3> in{1, 1, 1}, out{1, 1, 1};
  std::array<int64_t, 3> kernel{1, 1, 1}, stride{1, 1, 1};
  std::array<int64_t, 3> padding{0, 0, 0}, dilation{1, 1, 1};
  int64_t in_size() const { return in[0] * in[1] * in[2]; }
  int64_t out_size() const { return out[0] * out[1] * out[2]; }
  // How many outputs a plane has to have before planes are split.
  int64_t grain() const;
};

// Checks the arguments of a pooling over the last `dims` dims. `stride` may be
// empty: the kernel's sizes.
Pool make_pool(std::string_view op,
               const Tensor& input,
               int64_t dims,
               IntArrayRef kernel,
               IntArrayRef stride,
               IntArrayRef padding,
               IntArrayRef dilation,
               bool ceil_mode);
// Output bins of given sizes; only planes, in and out are set.
Pool make_adaptive_pool(std::string_view op,
                        const Tensor& input,
                        int64_t dims,
                        IntArrayRef output_size);
// Of adaptive pooling over one dim.
void check_one_size(std::string_view op, IntArrayRef output_size);
// The input's sizes with the pool's outputs as last dims.
DimVector pooled_sizes(const Tensor& input, const Pool& p, int64_t dims);

// Bounds of adaptive bins (PyTorch's): floor(i n / m) to ceil((i + 1) n / m).
inline int64_t bin_start(int64_t i, int64_t in, int64_t out) {
  return i * in / out;
}
inline int64_t bin_end(int64_t i, int64_t in, int64_t out) {
  return ((i + 1) * in + out - 1) / out;
}

}  // namespace taeda::native
