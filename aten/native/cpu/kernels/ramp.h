// Numbers at equal distances, per ISA level.
#pragma once

#include <taeda/aten/native/cpu/kernels/isa.h>

#include <cstdint>

namespace taeda {

// out[i] = base + step (first + i) for i in [0, n). Floats are computed in the
// type of base and step, whole numbers wrap.
template <class T, class V>
using RampFn = void (*)(T* out, int64_t first, int64_t n, V base, V step);

struct RampTable {
  RampFn<float, float> f32;
  RampFn<float, double> f32_by_f64;
  RampFn<double, double> f64;
  RampFn<int32_t, int64_t> i32;
  RampFn<int64_t, int64_t> i64;
};

namespace isa_default {
extern const RampTable kRampTable;
}
namespace isa_avx2 {
extern const RampTable kRampTable;
}
namespace isa_avx512 {
extern const RampTable kRampTable;
}

}  // namespace taeda
