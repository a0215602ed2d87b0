#include <taeda/aten/native/cpu/kernels/attention.h>

#include <taeda/aten/native/cpu/kernels/exp_rows.h>
#include <taeda/aten/native/cpu/kernels/isa.h>

#include <algorithm>
#include <cmath>

TAEDA_ISA_BEGIN

namespace {

template <class A>
struct Attention {
  using V = typename Lanes<A>::V;

  static A softmax(
      A* scores, const A* mask, A scale, int64_t n, int64_t width, A* inverse) {
    if (mask) {
      for (int64_t i = 0; i < n; ++i) scores[i] = scores[i] * scale + mask[i];
      scale = A(1);
    }
    // The maximum of scaled scores: scale may be negative.
    if (scale < 0) {
      for (int64_t i = 0; i < n; ++i) scores[i] = scores[i] * scale;
      scale = A(1);
    }
    A top = row_max<A>(scores, n) * scale;
    if (n == 0 || top == -std::numeric_limits<A>::infinity()) {
      std::fill(scores, scores + width, A(0));
      *inverse = A(0);
      return -std::numeric_limits<A>::infinity();
    }
    A sum = row_exp<A, A>(scores, scale, top, scores, n);
    std::fill(scores + n, scores + width, A(0));
    *inverse = A(1) / sum;
    return std::log(sum) + top;
  }

  static void grads(A* grads, const A* probs, A delta, A scale, int64_t width) {
    for (int64_t i = 0; i < width; ++i) {
      grads[i] = probs[i] * (grads[i] - delta) * scale;
    }
  }

  static A dot(const A* a, const A* b, int64_t n) {
    BlockSum<A> s;
    for_lanes<A>(n, [&](auto get, auto) { s.add(get(a) * get(b)); });
    return s.get();
  }

  static constexpr AttentionKernels<A> kTable = {softmax, grads, dot};
};

}  // namespace

extern const AttentionTable kAttentionTable = {Attention<float>::kTable,
                                               Attention<double>::kTable};

TAEDA_ISA_END
