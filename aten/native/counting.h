// The arguments of searchsorted and histc.
#pragma once

#include <taeda/c10/core/scalar_type.h>
#include <taeda/c10/util/check.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <string_view>

namespace taeda::native {

using Side = std::optional<std::string_view>;

bool is_right(bool right, Side side);

// To the next numbers of the type.
template <class T>
void widen(double& low, double& high) {
  using Limits = std::numeric_limits<T>;
  low = std::nextafter(static_cast<T>(low), Limits::lowest());
  high = std::nextafter(static_cast<T>(high), Limits::max());
}

// A range of one number is widened by one on both sides, or to the next number
// of `type` where one is less than that; others must be ranges.
inline void settle_histc_range(ScalarType type, double& low, double& high) {
  if (low == high && std::isfinite(low)) {
    double less = low - 1, more = high + 1;
    if (type == kFloat) widen<float>(low, high);
    if (type == kDouble) widen<double>(low, high);
    low = std::min(low, less);
    high = std::max(high, more);
  }
  TAEDA_CHECK(low - low == 0 && high - high == 0,
              "torch.histc: range of [",
              low,
              ", ",
              high,
              "] is not finite");
  TAEDA_CHECK(low < high,
              "torch.histc: max must be larger than min, got ",
              high,
              " and ",
              low);
}

}  // namespace taeda::native
