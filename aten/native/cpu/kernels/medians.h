// The median of a row.
#pragma once

#include <cstdint>

namespace taeda {

struct MedianTable {
  // The place of the lower median of n >= 1 numbers, `step` apart: of equal
  // ones the first that the order of places leaves. The first NaN where there
  // is one and they are not skipped, or where there is nothing else. `keys` has
  // room for n and 31 more.
  int64_t (*place)(
      const float* in, int64_t step, int64_t n, bool skip_nan, int32_t* keys);
};

namespace isa_default {
extern const MedianTable kMedianTable;
}
namespace isa_avx2 {
extern const MedianTable kMedianTable;
}
namespace isa_avx512 {
extern const MedianTable kMedianTable;
}

}  // namespace taeda
