// Sizes of windows of planes.
#pragma once

#include <taeda/aten/iter/spec.h>

#include <array>
#include <cstdint>
#include <string_view>

namespace taeda::native {

// Two spatial dims; `count` windows in each.
template <class I>
struct Windows {
  std::array<I, 2> size, count;
  std::array<int64_t, 2> kernel, dilation, padding, stride;
  I columns() const { return count[0] * count[1]; }
  int64_t kernel_size() const { return kernel[0] * kernel[1]; }
};

template <class I>
Windows<I> make_windows(std::string_view op,
                        ArrayRef<I> size,
                        IntArrayRef kernel,
                        IntArrayRef dilation,
                        IntArrayRef padding,
                        IntArrayRef stride) {
  Windows<I> w;
  auto fill = [&](std::array<int64_t, 2>& to,
                  const char* name,
                  IntArrayRef from,
                  int64_t least) {
    TAEDA_CHECK(from.size() == 2,
                "It is expected ",
                name,
                " equals to 2, but got size ",
                static_cast<int64_t>(from.size()));
    to = {from[0], from[1]};
    TAEDA_CHECK(from[0] >= least && from[1] >= least,
                op,
                ": ",
                name,
                " should be ",
                least > 0 ? "greater than zero" : "non-negative",
                ", but got ",
                from);
  };
  w.size = {size[0], size[1]};
  fill(w.kernel, "kernel_size", kernel, 1);
  fill(w.dilation, "dilation", dilation, 1);
  fill(w.padding, "padding", padding, 0);
  fill(w.stride, "stride", stride, 1);
  for (size_t d = 0; d < 2; ++d) {
    I room =
        w.size[d] + 2 * w.padding[d] - (w.dilation[d] * (w.kernel[d] - 1) + 1);
    I short_of = w.stride[d] - 1 - room;  // rounds down where nothing fits
    w.count[d] = room < 0 ? 1 - short_of / w.stride[d] : room / w.stride[d] + 1;
  }
  for (size_t d = 0; d < 2; ++d) {
    TAEDA_CHECK(w.count[d] > 0,
                op,
                ": Given spatial size ",
                size,
                ", kernel_size=",
                kernel,
                ", dilation=",
                dilation,
                ", padding=",
                padding,
                ", stride=",
                stride,
                ", calculated shape of the array of sliding blocks as (",
                w.count[0],
                ", ",
                w.count[1],
                "), which is too small: its components must be at least one");
  }
  return w;
}

}  // namespace taeda::native
