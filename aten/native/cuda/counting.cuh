// Elements that are counted or taken apart.
#pragma once

#include <taeda/aten/native/cuda/products.cuh>

namespace taeda {

// Adds 1 to the bin of element i, where it has one. In double, as on the CPU.
template <class G>
__device__ inline void count_at(const G& g, Long i) {
  const double x = static_cast<double>(g.self.flat(i));
  const double low = g.low.real(), high = g.high.real();
  if (!(x >= low && x <= high)) return;
  const Long bins = g.result.numel();
  const double scale = static_cast<double>(bins) / (high - low);
  const Long bin = static_cast<Long>((x - low) * scale);
  g.result.add(bin < bins ? bin : bins - 1, 1);
}

// self = mantissa * 2^exponent with a mantissa in [0.5, 1); what is not finite
// and 0 are their own mantissa.
template <class G>
__device__ inline void frexp_at(const G& g, Long i) {
  double x = static_cast<double>(g.self.flat(i));
  int exponent = 0;
  if (x != 0 && x - x == 0) {
    constexpr unsigned long long kField = 0x7ffull << 52;
    unsigned long long bits = math::to_bits(x);
    if ((bits & kField) == 0) {  // a subnormal number
      bits = math::to_bits(x * 0x1p54);
      exponent = -54;
    }
    exponent += static_cast<int>((bits & kField) >> 52) - 1022;
    x = math::from_bits((bits & ~kField) | (1022ull << 52));
  }
  g.mantissa.write(i, x);
  g.exponent.write(i, static_cast<Long>(exponent));
}

// The exclusive or of a row's elements, as the bits of double or of an integer.
template <class G>
__device__ inline void hash_row(const G& g, Long row) {
  using V = typename decltype(g.self)::Value;
  const Long count = g.count.integer();
  unsigned long long bits = 0;
  for (Long i = 0; i < count; ++i) {
    const V value = g.self.flat(row * count + i);
    if constexpr (math::kIsSame<V, Long>) {
      bits ^= static_cast<unsigned long long>(value);
    } else {
      bits ^= math::to_bits(static_cast<double>(value));
    }
  }
  g.result.data()[row] = bits;
}

}  // namespace taeda
