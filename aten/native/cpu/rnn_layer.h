// What a recurrent layer's loop over time and its gradient share.
#pragma once

#include <taeda/aten/iter/row_major.h>
#include <taeda/aten/native/argument_checks.h>
#include <taeda/aten/native/blas/gemm.h>
#include <taeda/aten/native/cpu/kernels/rnn.h>
#include <taeda/aten/native/normalization.h>
#include <taeda/aten/native/rnn_layer.h>

#include <algorithm>
#include <vector>

namespace taeda::native::rnn {

template <class A>
const RnnKernels<A>& kernels() {
  const RnnTable& table = TAEDA_ISA_TABLE(kRnnTable);
  if constexpr (std::is_same_v<A, float>) {
    return table.f32;
  } else {
    return table.f64;
  }
}

// Note [Packed rows]
// Input and output hold the rows of all time steps behind each other, `count`
// of them at each step, never more than at the step before. The state has one
// row per sequence; a step updates its first `count` rows, so that backward in
// time sequences join with their initial state, and forward in time the state
// of an ended sequence stays as it was.
struct Steps {
  struct Step {
    int64_t row, count;
  };
  std::vector<Step> steps;  // in the order of computation
  int64_t rows = 0;
  Steps(ArrayRef<int64_t> counts, bool reverse) {
    for (int64_t c : counts) {
      steps.push_back({rows, c});
      rows += c;
    }
    if (reverse) std::reverse(steps.begin(), steps.end());
  }
};
using Sizes = SizesOver<int64_t>;

template <class A>
void times(blas::Op ta,
           blas::Op tb,
           int64_t m,
           int64_t n,
           int64_t k,
           const A* a,
           int64_t lda,
           const A* b,
           int64_t ldb,
           A beta,
           A* c,
           int64_t ldc) {
  blas::gemm<A>(ta,
                tb,
                m,
                n,
                k,
                A(1),
                a,
                std::max<int64_t>(lda, 1),
                b,
                std::max<int64_t>(ldb, 1),
                beta,
                c,
                std::max<int64_t>(ldc, 1));
}
inline constexpr blas::Op kPlain = blas::Op::kNone, kTurned = blas::Op::kTrans;

// Every row begins as a + b, either of which may be missing.
template <class A>
void start_rows(
    A* to, int64_t rows, int64_t n, const Tensor& a, const Tensor& b) {
  if (rows == 0) return;
  const A* x = data_or_null<A>(a);
  const A* y = data_or_null<A>(b);
  for (int64_t j = 0; j < n; ++j) {
    to[j] = (x ? x[j] : A(0)) + (y ? y[j] : A(0));
  }
  for (int64_t r = 1; r < rows; ++r) std::copy_n(to, n, to + r * n);
}

// All operands row-major and of the type of sums.
struct Layer {
  int64_t mode;
  Tensor x, h0, c0, w_ih, w_hh, b_ih, b_hh, w_hr;
  Sizes sizes;
  Steps steps;
  ScalarType type;
};

template <class A>
void project(const Layer& l, int64_t n, const A* made, A* y) {
  times<A>(kPlain,
           kTurned,
           n,
           l.sizes.state,
           l.sizes.hidden,
           made,
           l.sizes.hidden,
           l.w_hr.const_data<A>(),
           l.sizes.hidden,
           A(0),
           y,
           l.sizes.state);
}

inline Tensor transposed(const Tensor& matrix) {
  int64_t rows = matrix.sizes()[0], width = matrix.sizes()[1];
  return contiguous(
      make_view(matrix, {width, rows}, {1, width}, matrix.storage_offset()));
}

inline Tensor plain(const OptionalTensor& t, ScalarType type) {
  return t && t->defined() ? contiguous_as(*t, type) : Tensor();
}

inline Layer make_layer(int64_t mode,
                        const Tensor& input,
                        const Tensor& h0,
                        const OptionalTensor& c0,
                        const Tensor& w_ih,
                        const Tensor& w_hh,
                        const OptionalTensor& b_ih,
                        const OptionalTensor& b_hh,
                        const OptionalTensor& w_hr,
                        ArrayRef<int64_t> counts,
                        bool reverse) {
  ScalarType type = compute_type(input.dtype());
  return {mode,
          contiguous_as(input, type),
          contiguous_as(h0, type),
          plain(c0, type),
          contiguous_as(w_ih, type),
          contiguous_as(w_hh, type),
          plain(b_ih, type),
          plain(b_hh, type),
          plain(w_hr, type),
          Sizes(mode, input, h0, w_hh),
          Steps(counts, reverse),
          type};
}

template <class F>
void visit_sum_type(ScalarType t, F&& f) {
  t == kDouble ? f(double{}) : f(float{});
}

}  // namespace taeda::native::rnn
