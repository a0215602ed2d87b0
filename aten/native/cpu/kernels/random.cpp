// Words, uniform numbers and Box-Muller groups, per ISA level. The streams are
// those of PyTorch's CPU generator: which words make which element is fixed.
#include <taeda/aten/math/log.h>
#include <taeda/aten/math/trig.h>
#include <taeda/aten/native/cpu/kernels/isa.h>
#include <taeda/aten/native/cpu/kernels/random.h>

#include <cmath>

TAEDA_ISA_BEGIN

namespace {

// Elements handled at a time: temporaries stay in the first-level cache.
constexpr int64_t kChunk = 512;

void words(Mt19937& engine, uint32_t* __restrict out, int64_t count) {
  while (count > 0) {
    int64_t run = count;
    const uint32_t* raw = engine.take(run);
    for (int64_t i = 0; i < run; ++i) out[i] = Mt19937::temper(raw[i]);
    out += run;
    count -= run;
  }
}

// PyTorch's kernels fuse this multiply-add, so it is fused everywhere.
inline float fused(float a, float b, float c) {
#if TAEDA_MATH_HAS_FMA
  return __builtin_fmaf(a, b, c);
#else
  // The product is exact in double.
  return static_cast<float>(static_cast<double>(a) * b + c);
#endif
}

inline double fused(double a, double b, double c) {
  return __builtin_fma(a, b, c);
}

// A rounded result may reach the excluded upper end; then it is the lower one.
template <typename T>
void stretch(T* __restrict out, int64_t count, T from, T to) {
  const T range = to - from;
  for (int64_t i = 0; i < count; ++i) {
    const T value = fused(out[i], range, from);
    out[i] = value >= to ? from : value;
  }
}

void uniform_float(Mt19937& engine,
                   float* __restrict out,
                   int64_t count,
                   float from,
                   float to) {
  const bool unit = from == 0.0f && to == 1.0f;
  while (count > 0) {
    int64_t run = count;
    const uint32_t* raw = engine.take(run);
    for (int64_t i = 0; i < run; ++i) {
      const uint32_t bits = Mt19937::temper(raw[i]) & 0xffffffu;
      out[i] = static_cast<float>(static_cast<int32_t>(bits)) * 0x1p-24f;
    }
    if (!unit) stretch(out, run, from, to);
    out += run;
    count -= run;
  }
}

void uniform_double(Mt19937& engine,
                    double* __restrict out,
                    int64_t count,
                    double from,
                    double to) {
  const bool unit = from == 0.0 && to == 1.0;
  uint32_t pairs[2 * kChunk];
  while (count > 0) {
    const int64_t run = count < kChunk ? count : kChunk;
    words(engine, pairs, 2 * run);
    for (int64_t i = 0; i < run; ++i) {
      // The low 53 of the 64 bits; both parts and their sum are exact.
      const int32_t high = static_cast<int32_t>(pairs[2 * i] & 0x1fffffu);
      const uint32_t low = pairs[2 * i + 1];
      const double low_part =
          static_cast<double>(static_cast<int32_t>(low ^ 0x80000000u)) + 0x1p31;
      out[i] = (high * 0x1p32 + low_part) * 0x1p-53;
    }
    if (!unit) stretch(out, run, from, to);
    out += run;
    count -= run;
  }
}

// G. Box and M. Muller (1958): elements j and j + 8 of a group are a pair.
template <typename T>
void normal_pairs(const T* __restrict radius_uniform,
                  const T* __restrict angle_uniform,
                  T* __restrict cosines,
                  T* __restrict sines,
                  int64_t count) {
  constexpr T kTwoPi = static_cast<T>(6.283185307179586);
  for (int64_t i = 0; i < count; ++i) {
    const T radius = std::sqrt(T(-2) * math::log(T(1) - radius_uniform[i]));
    const auto angle = math::reduce_half_pi(kTwoPi * angle_uniform[i]);
    const T sine = math::sin_kernel(angle.high, angle.low);
    const T cosine = math::cos_kernel(angle.high, angle.low);
    using Bits = math::BitsOf<T>;
    constexpr int kSignShift = sizeof(T) * 8 - 2;
    const bool swap = (angle.quadrant & 1) != 0;
    const Bits sine_sign = (angle.quadrant & 2) << kSignShift;
    const Bits cosine_sign = ((angle.quadrant + 1) & 2) << kSignShift;
    const T s = swap ? cosine : sine;
    const T c = swap ? sine : cosine;
    sines[i] = radius * math::from_bits(math::to_bits(s) ^ sine_sign);
    cosines[i] = radius * math::from_bits(math::to_bits(c) ^ cosine_sign);
  }
}

template <typename T>
void normal_groups(T* data, int64_t groups, T mean, T std) {
  constexpr int64_t kMost = kChunk / 16;
  T first[kMost * 8], second[kMost * 8];
  T cosines[kMost * 8], sines[kMost * 8];
  while (groups > 0) {
    const int64_t run = groups < kMost ? groups : kMost;
    for (int64_t g = 0; g < run; ++g) {
      for (int j = 0; j < 8; ++j) {
        first[8 * g + j] = data[16 * g + j];
        second[8 * g + j] = data[16 * g + 8 + j];
      }
    }
    normal_pairs(first, second, cosines, sines, 8 * run);
    for (int64_t g = 0; g < run; ++g) {
      for (int j = 0; j < 8; ++j) {
        data[16 * g + j] = fused(cosines[8 * g + j], std, mean);
        data[16 * g + 8 + j] = fused(sines[8 * g + j], std, mean);
      }
    }
    data += 16 * run;
    groups -= run;
  }
}

}  // namespace

extern const RandomTable kRandomTable = {words,
                                         uniform_float,
                                         uniform_double,
                                         normal_groups<float>,
                                         normal_groups<double>};

TAEDA_ISA_END
