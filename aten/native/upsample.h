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

}  // namespace taeda::native
