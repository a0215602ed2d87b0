// Matrix products in their plain form: a thread sums the products of one
// element, in the type that their dtype computes in.
#pragma once

#include <taeda/aten/native/cuda/formula.cuh>

namespace taeda {

// Row `row` of a with column `column` of b, in matrix `batch` of both.
template <class A, class B>
__device__ inline typename A::Value inner(
    const A& a, const B& b, Long batch, Long row, Long column) {
  using V = typename A::Value;
  const Long ra = a.rank() - 2, rb = b.rank() - 2;
  Long pa = row * a.stride(ra) + (ra > 0 ? batch * a.stride(0) : 0);
  Long pb = (rb >= 0 ? column * b.stride(rb + 1) : 0) +
            (rb > 0 ? batch * b.stride(0) : 0);
  const Long sa = a.stride(-1), sb = b.stride(rb >= 0 ? rb : 0);
  V sum = V(0);
  for (Long k = a.size(-1); k > 0; --k) {
    sum = static_cast<V>(sum + a.load(pa) * b.load(pb));
    pa += sa;
    pb += sb;
  }
  return sum;
}

// Element i of the result, of two axes or, with batches, of three.
template <class A, class B, class R>
__device__ inline typename A::Value product_at(const A& a,
                                               const B& b,
                                               const R& result,
                                               Long i) {
  const Long columns = b.rank() < 2 ? 1 : result.size(-1);
  const Long rows = a.size(-2);
  return inner(a, b, i / columns / rows, i / columns % rows, i % columns);
}

template <class V, class G>
__device__ inline V number_as(const G& number) {
  if constexpr (kIsComplex<V>) {
    return converted<V>(number.whole());
  } else if constexpr (math::kIsSame<V, Long>) {
    return number.integer();
  } else {
    return static_cast<V>(number.real());
  }
}

// beta * self + alpha * product; where beta is 0, self is not looked at.
template <class G, class V>
__device__ inline void write_sum(const G& g, Long i, V product) {
  V value = number_as<V>(g.alpha) * product;
  if (g.beta.truth()) {
    const Place e(g.result.slot, i);
    value = static_cast<V>(value + number_as<V>(g.beta) *
                                       g.self.broadcast(e, g.result.rank()));
  }
  g.result.write(i, value);
}

}  // namespace taeda
