// Sizes of pools with windows at random steps.
#pragma once

#include <taeda/aten/iter/spec.h>
#include <taeda/aten/native/max_pool.h>

#include <cstdint>
#include <string_view>

namespace taeda::native {

// Windows of `kernel` elements; where they begin is drawn.
template <class I>
PoolOver<I> make_fractional_pool(std::string_view op,
                                 const Spec<I>& self,
                                 int64_t dims,
                                 IntArrayRef kernel,
                                 IntArrayRef output_size) {
  TAEDA_CHECK(static_cast<int64_t>(output_size.size()) == dims,
              op,
              ": output_size must either be a single Int or tuple of Ints");
  auto p = make_adaptive_pool<I>(op, self, dims, dims_of<I>(output_size));
  TAEDA_CHECK(static_cast<int64_t>(kernel.size()) == dims,
              op,
              ": kernel_size must either be a single Int or tuple of Ints");
  check_not_empty(op, "input", self.sizes(), 1);
  constexpr const char* kNames[] = {"time", "height", "width"};
  for (int64_t d = 0; d < dims; ++d) {
    size_t at = static_cast<size_t>(3 - dims + d);
    p.kernel[at] = kernel[static_cast<size_t>(d)];
    TAEDA_CHECK(
        p.kernel[at] > 0, op, "(): kernel_size must be positive, got ", kernel);
    TAEDA_CHECK(p.out[at] + p.kernel[at] - 1 <= p.in[at],
                op,
                "(): pool ",
                kNames[at],
                " ",
                p.kernel[at],
                " too large relative to input ",
                kNames[at],
                " ",
                p.in[at]);
  }
  return p;
}

}  // namespace taeda::native
