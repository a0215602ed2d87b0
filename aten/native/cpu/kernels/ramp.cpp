// Loops of arange and linspace.
#include <taeda/aten/math/prim.h>
#include <taeda/aten/native/cpu/kernels/ramp.h>

#include <algorithm>

TAEDA_ISA_BEGIN

namespace {

TAEDA_FN float add_product(float a, float b, float c) {
  return __builtin_fmaf(b, c, a);
}
TAEDA_FN double add_product(double a, double b, double c) {
  return __builtin_fma(b, c, a);
}

// No machine below AVX-512 converts vectors of int64 to floats: places count
// from the start of a piece in int, which double holds with that start.
template <class T, class V>
void float_ramp(T* out, int64_t first, int64_t n, V base, V step) {
  constexpr int64_t kPiece = int64_t{1} << 30;
  for (int64_t at = 0; at < n; at += kPiece) {
    const auto start = static_cast<double>(first + at);
    const int count = static_cast<int>(std::min(kPiece, n - at));
    for (int i = 0; i < count; ++i) {
      const auto place = static_cast<V>(start + static_cast<double>(i));
      out[at + i] = static_cast<T>(add_product(base, step, place));
    }
  }
}

template <class T>
void int_ramp(T* out, int64_t first, int64_t n, int64_t base, int64_t step) {
  int64_t value = base + first * step;
  for (int64_t i = 0; i < n; ++i, value += step) {
    out[i] = static_cast<T>(value);
  }
}

}  // namespace

extern const RampTable kRampTable = {float_ramp<float, float>,
                                     float_ramp<float, double>,
                                     float_ramp<double, double>,
                                     int_ramp<int32_t>,
                                     int_ramp<int64_t>};

TAEDA_ISA_END
