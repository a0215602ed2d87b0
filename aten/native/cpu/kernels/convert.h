#pragma once

#include <taeda/aten/iter/copy.h>

namespace taeda {

// Direct loops exist between the types that arithmetic uses; the others (8-bit
// floats, wide unsigned integers, complex32) go through one of these.
inline constexpr ScalarType kDirectTypes[] = {kBool,
                                              kByte,
                                              kChar,
                                              kShort,
                                              kInt,
                                              kLong,
                                              kHalf,
                                              kBFloat16,
                                              kFloat,
                                              kDouble,
                                              kComplexFloat,
                                              kComplexDouble};
inline constexpr int kNumDirectTypes = 12;

using ConvertTable = ConvertFn[kNumDirectTypes][kNumDirectTypes];

namespace isa_default {
extern const ConvertTable kConvertTable;
}
namespace isa_avx2 {
extern const ConvertTable kConvertTable;
}
namespace isa_avx512 {
extern const ConvertTable kConvertTable;
}

}  // namespace taeda
