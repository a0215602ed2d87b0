// What a filter is asked for.
#pragma once

#include <taeda/aten/native/upsample_taps.h>

#include <concepts>
#include <optional>

namespace taeda::native {

struct Request {
  Filter filter;
  bool align_corners;
  SmallVector<double, 3> factors;  // of each dim, 0 where none was given
};

template <class T>
MemoryFormat format_of(const T& t) {
  return t.dim() > 3 ? t.suggest_memory_format() : MemoryFormat::Contiguous;
}

using Factor = std::optional<double>;

// Nearest filters know no corners.
Request request(Filter filter, std::same_as<Factor> auto... factors) {
  return {filter, /*align_corners=*/false, {factors.value_or(0)...}};
}

Request request(Filter filter,
                bool align_corners,
                std::same_as<Factor> auto... factors) {
  return {filter, align_corners, {factors.value_or(0)...}};
}

// X(operator, filter, arguments behind the sizes, their names) for every
// filter: corners where it knows them, and a factor of each dim.
#define TAEDA_PLAIN(...) __VA_ARGS__
#define TAEDA_NEAREST_FILTERS(X, PREFIX, FILTER)      \
  X(PREFIX##1d, FILTER, (Factor w), (w))              \
  X(PREFIX##2d, FILTER, (Factor h, Factor w), (h, w)) \
  X(PREFIX##3d, FILTER, (Factor d, Factor h, Factor w), (d, h, w))
#define TAEDA_PLANE_FILTER(X, NAME, FILTER) \
  X(NAME, FILTER, (bool corners, Factor h, Factor w), (corners, h, w))
#define TAEDA_UPSAMPLE_FILTERS(X)                                      \
  TAEDA_NEAREST_FILTERS(X, upsample_nearest, Nearest)                  \
  TAEDA_NEAREST_FILTERS(X, _upsample_nearest_exact, NearestExact)      \
  X(upsample_linear1d, Linear, (bool corners, Factor w), (corners, w)) \
  TAEDA_PLANE_FILTER(X, upsample_bilinear2d, Linear)                   \
  X(upsample_trilinear3d,                                              \
    Linear,                                                            \
    (bool corners, Factor d, Factor h, Factor w),                      \
    (corners, d, h, w))                                                \
  TAEDA_PLANE_FILTER(X, upsample_bicubic2d, Cubic)                     \
  TAEDA_PLANE_FILTER(X, _upsample_bilinear2d_aa, LinearAntialias)      \
  TAEDA_PLANE_FILTER(X, _upsample_bicubic2d_aa, CubicAntialias)        \
  TAEDA_PLANE_FILTER(X, _upsample_lanczos2d_aa, LanczosAntialias)

}  // namespace taeda::native
