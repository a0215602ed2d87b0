// Which elements a resized line reads, and with which weights.
#pragma once

#include <taeda/c10/util/macros.h>

#include <cstdint>
#include <vector>

namespace taeda::native {

enum class Filter {
  Nearest,       // the element at floor(i * scale)
  NearestExact,  // at floor((i + 1/2) * scale)
  Linear,
  Cubic,
  // Filters as wide as the scale: what shrinks is averaged first.
  LinearAntialias,
  CubicAntialias,
  LanczosAntialias,
};

// How one dim is resized. `factor` is the output's size by the input's where
// the caller gave one, else 0.
struct LineResize {
  Filter filter;
  bool align_corners;
  double factor;
};

// Output i is the sum over k < count[i] of weight[i * width + k] times the
// input at[i * width + k].
template <class W>
struct Taps {
  int64_t in = 0, out = 0, width = 0;
  // uint8 lines have integer weights: `shift` binary digits behind the point.
  int shift = 0;
  std::vector<int64_t> count, at;
  std::vector<W> weight;
};

// W is float or double.
template <class W>
Taps<W> make_taps(const LineResize& how, int64_t in, int64_t out);
extern template TAEDA_API Taps<float> make_taps(const LineResize&,
                                                int64_t,
                                                int64_t);
extern template TAEDA_API Taps<double> make_taps(const LineResize&,
                                                 int64_t,
                                                 int64_t);

// With as many digits as 16-bit weights allow.
TAEDA_API Taps<int32_t> integer_taps(const Taps<double>& exact);

}  // namespace taeda::native
