// What is made of a loss's elements: the values of its argument `reduction`, as
// the Python layer gives them.
#pragma once

#include <cstdint>

namespace taeda::native {

inline constexpr int64_t kNoReduction = 0, kMeanReduction = 1,
                         kSumReduction = 2;

}  // namespace taeda::native
