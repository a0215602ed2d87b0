#include <taeda/aten/native/cpu/kernels/cross_entropy.h>

#include <taeda/aten/native/cpu/kernels/exp_rows.h>
#include <taeda/aten/native/cpu/kernels/isa.h>

#include <cmath>

TAEDA_ISA_BEGIN

namespace {

template <class T>
struct CrossEntropy {
  using A = lane_sum_t<T>;

  static void log_sum_exp(const T* x, A* out, int64_t rows, int64_t n) {
    for (int64_t r = 0; r < rows; ++r, x += n) {
      A top = row_max<A>(x, n);
      A shift = std::isinf(top) ? A(0) : top;
      out[r] = std::log(row_exp_sum<A, T>(x, shift, n)) + shift;
    }
  }

  static void backward(const T* x,
                       const A* log_sum_exp,
                       const int64_t* target,
                       const A* factor,
                       T* dx,
                       int64_t rows,
                       int64_t n) {
    for (int64_t r = 0; r < rows; ++r, x += n, dx += n) {
      A f = factor[r], shift = log_sum_exp[r];
      if (f == 0) {
        for (int64_t i = 0; i < n; ++i) dx[i] = static_cast<T>(A(0));
        continue;
      }
      for (int64_t i = 0; i < n; ++i) {
        dx[i] = static_cast<T>(f * math::exp(static_cast<A>(x[i]) - shift));
      }
      A own = math::exp(static_cast<A>(x[target[r]]) - shift);
      dx[target[r]] = static_cast<T>(f * (own - A(1)));
    }
  }

  static constexpr CrossEntropyKernels<T, A> kTable = {log_sum_exp, backward};
};

}  // namespace

extern const CrossEntropyTable kCrossEntropyTable = {
    CrossEntropy<float>::kTable,
    CrossEntropy<double>::kTable,
    CrossEntropy<BFloat16>::kTable,
    CrossEntropy<Half>::kTable};

TAEDA_ISA_END
