// The factor of attention's scores.
#pragma once

#include <cmath>
#include <cstdint>
#include <optional>

namespace taeda::native {

// 1 / sqrt(width) where none is given. Scores of no width are sums of nothing,
// which infinity would make NaN.
inline double attention_scale(std::optional<double> given, int64_t width) {
  if (given) return *given;
  return width == 0 ? 1.0 : 1 / std::sqrt(static_cast<double>(width));
}

}  // namespace taeda::native
