// How grid_sampler reads: the numbers of its modes.
#pragma once

#include <cstdint>

namespace taeda::native {

struct Sampling {
  enum Interpolation : int64_t { kLinear = 0, kNearest = 1, kCubic = 2 };
  enum Beyond : int64_t { kZeros = 0, kBorder = 1, kReflection = 2 };
  int64_t interpolation, beyond;
  bool align_corners;
};

}  // namespace taeda::native
