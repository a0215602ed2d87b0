#include <taeda/csrc/profiler/finite.h>

#include <taeda/csrc/profiler/nan_guard.h>
#include <taeda/gen/ops/contiguous.h>
#include <taeda/gen/ops/resolve_conj.h>
#include <taeda/gen/ops/resolve_neg.h>

#include <cstring>

namespace taeda::profiler {

namespace {

// Of values whose exponent has all bits set, so NaN or an infinity. Written in
// the compiler's vectors, of a width that the machine has: wider ones become
// loops over elements, and at -O2 loops do not become vectors.
template <int kBytes, class Bits, Bits kExponent>
inline __attribute__((always_inline)) bool any_bad(const void* data,
                                                   int64_t n) {
  typedef Bits Vector __attribute__((vector_size(kBytes)));
  constexpr int64_t kLanes = sizeof(Vector) / sizeof(Bits);
  const auto* values = static_cast<const Bits*>(data);
  Vector hits = {};
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    Vector v;
    std::memcpy(&v, values + i, sizeof(v));
    hits |= reinterpret_cast<Vector>((v & kExponent) == kExponent);
  }
  bool bad = false;
  for (int64_t k = 0; k < kLanes; ++k) bad = bad || hits[k] != 0;
  for (; i < n; ++i) bad = bad || (values[i] & kExponent) == kExponent;
  return bad;
}

// Of n numbers, each of `parts` values; a complex one with a NaN is a NaN.
template <class Bits, Bits kExponent>
BadValues count(const void* data, int64_t n, int64_t parts) {
  constexpr Bits kFraction = kExponent & -kExponent;
  const auto* values = static_cast<const Bits*>(data);
  BadValues out;
  for (int64_t i = 0; i < n; ++i) {
    bool nan = false, infinite = false;
    for (int64_t k = i * parts; k < (i + 1) * parts; ++k) {
      if ((values[k] & kExponent) != kExponent) continue;
      ((values[k] & (kFraction - 1)) != 0 ? nan : infinite) = true;
    }
    if (nan || infinite) ++(nan ? out.nans : out.infinities);
  }
  return out;
}

template <int kBytes>
inline __attribute__((always_inline)) bool any_bad_of(ScalarType dtype,
                                                      const void* data,
                                                      int64_t n) {
  switch (dtype) {
    case kFloat:
      return any_bad<kBytes, uint32_t, 0x7F800000U>(data, n);
    case kDouble:
      return any_bad<kBytes, uint64_t, 0x7FF0000000000000U>(data, n);
    case kHalf:
      return any_bad<kBytes, uint16_t, 0x7C00U>(data, n);
    default:
      return any_bad<kBytes, uint16_t, 0x7F80U>(data, n);
  }
}

// An AVX2 machine reads 32 bytes a step.
#if defined(__x86_64__)
__attribute__((target("avx2"))) bool any_bad_avx2(ScalarType dtype,
                                                  const void* data,
                                                  int64_t n) {
  return any_bad_of<32>(dtype, data, n);
}
#endif

BadValues count_of(ScalarType dtype,
                   const void* data,
                   int64_t n,
                   int64_t parts) {
  switch (dtype) {
    case kFloat:
      return count<uint32_t, 0x7F800000U>(data, n, parts);
    case kDouble:
      return count<uint64_t, 0x7FF0000000000000U>(data, n, parts);
    case kHalf:
      return count<uint16_t, 0x7C00U>(data, n, parts);
    default:
      return count<uint16_t, 0x7F80U>(data, n, parts);
  }
}

// The values of a tensor in memory without gaps, as real numbers.
struct Reals {
  TensorBase held;
  ScalarType dtype = kByte;  // for none
  const void* data = nullptr;
  int64_t count = 0;
  int64_t parts = 1;  // 2 of complex numbers
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
    parts = real == t.dtype() ? 1 : 2;
    count = held.numel() * parts;
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
  return any_bad_of<16>(all.dtype, all.data, all.count);
}

BadValues count_bad(const TensorBase& t) {
  Reals all(t);
  return all.count == 0
             ? BadValues()
             : count_of(all.dtype, all.data, all.count / all.parts, all.parts);
}

}  // namespace taeda::profiler
