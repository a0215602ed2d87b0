// Rows of bytes, per ISA level.
#pragma once

#include <taeda/aten/native/cpu/kernels/isa.h>

#include <cstdint>

namespace taeda {

// Copies `rows` rows of `bytes` bytes, one after the other; the strides lead
// from a row to the next. What is read may not be written.
using CopyRowsFn = void (*)(char* to,
                            int64_t to_stride,
                            const char* from,
                            int64_t from_stride,
                            int64_t rows,
                            int64_t bytes);

namespace isa_default {
extern const CopyRowsFn kCopyRows;
}
namespace isa_avx2 {
extern const CopyRowsFn kCopyRows;
}
namespace isa_avx512 {
extern const CopyRowsFn kCopyRows;
}

}  // namespace taeda
