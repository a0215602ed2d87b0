// One stage of a Fourier transform of many lines at once.
#pragma once

#include <cstdint>

namespace taeda {

// Odd factors up to this one are stages; lengths with a larger prime factor are
// computed as a convolution.
inline constexpr int64_t kMostRadix = 61;

// A stage of radix `radix` (Stockham's, decimation in frequency): `parts` times
// `stride` butterflies, each over elements `parts * stride` apart, written
// `stride` apart. Real and imaginary parts lie in arrays of their own, so that
// the innermost loop runs over `stride` neighbours, which are lines and what
// earlier stages have made of them.
template <class T>
struct FftStage {
  int64_t radix = 0, parts = 0, stride = 0;
  // exp(-2 pi i p k / (radix * parts)) at [p * (radix - 1) + k - 1]: cosines,
  // then sines.
  const T *re = nullptr, *im = nullptr;
  // exp(-2 pi i k / radix), radix numbers, of generic stages.
  const T *root_re = nullptr, *root_im = nullptr;
};

template <class T>
using FftStageFunction = void (*)(const FftStage<T>& stage,
                                  const T* in_re,
                                  const T* in_im,
                                  T* out_re,
                                  T* out_im);

struct FftTable {
  FftStageFunction<float> f32;
  FftStageFunction<double> f64;
};

namespace isa_default {
extern const FftTable kFftTable;
}
namespace isa_avx2 {
extern const FftTable kFftTable;
}
namespace isa_avx512 {
extern const FftTable kFftTable;
}

}  // namespace taeda
