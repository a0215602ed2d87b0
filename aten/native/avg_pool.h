// What the shapes and the loops of average pools share.
#pragma once

#include <taeda/aten/iter/row_major.h>
#include <taeda/aten/iter/spec.h>

#include <cstdint>
#include <string_view>

namespace taeda::native {

inline constexpr int64_t kOne[] = {1};

template <class I>
ArrayRef<I> last_sizes(std::string_view op, const Spec<I>& t, int64_t dims) {
  TAEDA_CHECK(t.dim() >= dims,
              op,
              ": expected a gradient with at least ",
              dims,
              " dims, got ",
              t.sizes());
  return t.sizes().slice(static_cast<size_t>(t.dim() - dims));
}

}  // namespace taeda::native
