// The arguments of searchsorted and histc.
#pragma once

#include <taeda/c10/util/check.h>

#include <optional>
#include <string_view>

namespace taeda::native {

using Side = std::optional<std::string_view>;

bool is_right(bool right, Side side);

// A range of one number is widened by one on both sides; others must be ranges.
inline void settle_histc_range(double& low, double& high) {
  if (low == high) {
    low -= 1;
    high += 1;
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
