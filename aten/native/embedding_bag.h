// Modes and counts of bags.
#pragma once

#include <taeda/aten/iter/spec.h>
#include <taeda/aten/native/argument_checks.h>

#include <cstdint>

namespace taeda::native {

enum BagMode : int64_t { kSum = 0, kMean = 1, kMax = 2 };

template <class T>
auto bags_of(const T& offsets, bool include_last_offset) {
  auto n = offsets.sizes()[0];
  if (!include_last_offset) return n;
  TAEDA_CHECK(n >= 1,
              "embedding_bag: include_last_offset: number of offsets should be "
              "at least 1");
  return n - 1;
}

}  // namespace taeda::native
