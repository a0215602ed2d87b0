#include <taeda/csrc/profiler/finite.h>

#include <taeda/csrc/profiler/nan_guard.h>
#include <taeda/gen/ops/contiguous.h>
#include <taeda/gen/ops/resolve_conj.h>
#include <taeda/gen/ops/resolve_neg.h>

namespace taeda::profiler {

namespace {

// Of values whose exponent has all bits set, so NaN or an infinity. A block at
// a time, so that the inner loop has one exit and becomes vector code.
template <class Bits, Bits kExponent>
inline __attribute__((always_inline)) bool any_bad(const void* data,
                                                   int64_t n) {
  constexpr int64_t kBlock = 4096;
  const auto* values = static_cast<const Bits*>(data);
  for (int64_t from = 0; from < n; from += kBlock) {
    int64_t to = std::min(n, from + kBlock);
    Bits bad = 0;
    for (int64_t i = from; i < to; ++i) {
      Bits hit = (values[i] & kExponent) == kExponent ? 1 : 0;
      bad = static_cast<Bits>(bad | hit);
    }
    if (bad != 0) return true;
  }
  return false;
}

template <class Bits, Bits kExponent>
BadValues count(const void* data, int64_t n) {
  constexpr Bits kFraction = kExponent & -kExponent;
  const auto* values = static_cast<const Bits*>(data);
  BadValues out;
  for (int64_t i = 0; i < n; ++i) {
    if ((values[i] & kExponent) != kExponent) continue;
    bool nan = (values[i] & (kFraction - 1)) != 0;
    ++(nan ? out.nans : out.infinities);
  }
  return out;
}

inline __attribute__((always_inline)) bool any_bad_of(ScalarType dtype,
                                                      const void* data,
                                                      int64_t n) {
  switch (dtype) {
    case kFloat:
      return any_bad<uint32_t, 0x7F800000U>(data, n);
    case kDouble:
      return any_bad<uint64_t, 0x7FF0000000000000U>(data, n);
    case kHalf:
      return any_bad<uint16_t, 0x7C00U>(data, n);
    default:
      return any_bad<uint16_t, 0x7F80U>(data, n);
  }
}

// An AVX2 machine reads 32 bytes a step.
#if defined(__x86_64__)
__attribute__((target("avx2"))) bool any_bad_avx2(ScalarType dtype,
                                                  const void* data,
                                                  int64_t n) {
  return any_bad_of(dtype, data, n);
}
#endif

BadValues count_of(ScalarType dtype, const void* data, int64_t n) {
  switch (dtype) {
    case kFloat:
      return count<uint32_t, 0x7F800000U>(data, n);
    case kDouble:
      return count<uint64_t, 0x7FF0000000000000U>(data, n);
    case kHalf:
      return count<uint16_t, 0x7C00U>(data, n);
    default:
      return count<uint16_t, 0x7F80U>(data, n);
  }
}

// The values of a tensor in memory without gaps, as real numbers.
struct Reals {
  TensorBase held;
  ScalarType dtype = kByte;  // for none
  const void* data = nullptr;
  int64_t count = 0;
  explicit Reals(const TensorBase& t) {
    ScalarType real =
        is_complex(t.dtype()) ? real_type_of(t.dtype()) : t.dtype();
    bool known =
        real == kFloat || real == kDouble || real == kHalf || real == kBFloat16;
    constexpr DispatchKeySet kPlain{DispatchKey::CPU, DispatchKey::Autograd};
    constexpr DispatchKeySet kLazy{DispatchKey::Conjugate,
                                   DispatchKey::Negative};
    // Signs, which is what is lazy, do not matter.
    bool plain = (t.keys() - kPlain - kLazy).empty() &&
                 t.layout() == Layout::Strided && !t.impl()->is_symbolic();
    if (!known || !plain || t.numel() == 0) return;
    held = t;
    if (!t.is_non_overlapping_and_dense()) {
      BelowAutograd below;
      held = ops::contiguous(ops::resolve_neg(ops::resolve_conj(t)));
    }
    dtype = real;
    data = held.const_raw_data();
    count = held.numel() * (real == t.dtype() ? 1 : 2);
  }
};

}  // namespace

bool has_bad(const TensorBase& t) {
  Reals all(t);
  if (all.count == 0) return false;
#if defined(__x86_64__)
  static const bool has_avx2 = __builtin_cpu_supports("avx2") != 0;
  if (has_avx2) return any_bad_avx2(all.dtype, all.data, all.count);
#endif
  return any_bad_of(all.dtype, all.data, all.count);
}

BadValues count_bad(const TensorBase& t) {
  Reals all(t);
  return all.count == 0 ? BadValues()
                        : count_of(all.dtype, all.data, all.count);
}

}  // namespace taeda::profiler
