// Parameters of the kernel of select.cuh, for the host too.
#pragma once

namespace taeda {

inline constexpr int kSelectThreads = 512;

// Rows of `count` elements, of which the first `wanted` in order are written,
// in the order of the elements.
struct SelectCall {
  long long count;
  int wanted;
  int descending;
  const void* in;
  void* values;
  long long* indices;
};

}  // namespace taeda
