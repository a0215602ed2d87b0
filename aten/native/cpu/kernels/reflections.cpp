// One pass over a matrix applies a reflection and sums up what the next one
// needs; sums run along columns, so that no register is summed up itself.
#include <taeda/aten/native/cpu/kernels/reflections.h>

#include <taeda/aten/native/cpu/kernels/matrix_lanes.h>

#include <algorithm>

TAEDA_ISA_BEGIN

namespace {

// Sums of squares below and above these may have lost digits.
template <class T>
struct SquareSums;
template <>
struct SquareSums<float> {
  static constexpr float kLeast = 0x1p-95f, kMost = 0x1p120f;
};
template <>
struct SquareSums<double> {
  static constexpr double kLeast = 0x1p-960, kMost = 0x1p1000;
};

template <class T>
struct Reflector {
  using L = Lane<T>;
  using V = typename L::V;
  static constexpr int64_t kCount = L::kCount;
  static constexpr int64_t kSummed = 64;  // rows of a partial sum

  TAEDA_MATRIX_FN V& at(T* p) { return *reinterpret_cast<V*>(p); }
  TAEDA_MATRIX_FN const V& at(const T* p) {
    return *reinterpret_cast<const V*>(p);
  }
  TAEDA_MATRIX_FN int64_t floor(int64_t n) { return n / kCount * kCount; }
  TAEDA_MATRIX_FN int64_t ceil(int64_t n) { return floor(n + kCount - 1); }

  // Row i of rows begin .. end - 1 loses p[i] w (and w[i] p where Rank is 2)
  // in columns from .. to - 1; `sums` is then the sum of q[i] times row i.
  struct Pass {
    int64_t begin, end, from, to;
    T* a;
    int64_t lda;
    const T *p, *w, *q;
    T* sums;
  };

  template <int Rank, int N>
  TAEDA_MATRIX_FN void pass_columns(const Pass& job, int64_t column) {
    V w[N], p[N], total[N];
    for (int v = 0; v < N; ++v) {
      int64_t j = column + v * kCount;
      if constexpr (Rank >= 1) w[v] = at(job.w + j);
      if constexpr (Rank == 2) p[v] = at(job.p + j);
      total[v] = V{};
    }
    T* row = job.a + job.begin * job.lda + column;
    for (int64_t i = job.begin; i < job.end;) {
      // Partial sums, so that those of tall matrices lose no more digits.
      int64_t stop = std::min(job.end, i + kSummed);
      V sums[N] = {};
      for (; i < stop; ++i, row += job.lda) {
        for (int v = 0; v < N; ++v) {
          V x = at(row + v * kCount);
          if constexpr (Rank >= 1) x -= L::splat(job.p[i]) * w[v];
          if constexpr (Rank == 2) x -= L::splat(job.w[i]) * p[v];
          if constexpr (Rank >= 1) at(row + v * kCount) = x;
          sums[v] += L::splat(job.q[i]) * x;
        }
      }
      for (int v = 0; v < N; ++v) total[v] += sums[v];
    }
    for (int v = 0; v < N; ++v) at(job.sums + column + v * kCount) = total[v];
  }

  template <int Rank>
  static void pass(const Pass& job) {
    int64_t j = job.from;
    for (; j + 4 * kCount <= job.to; j += 4 * kCount) {
      pass_columns<Rank, 4>(job, j);
    }
    if (j + 2 * kCount <= job.to) {
      pass_columns<Rank, 2>(job, j);
      j += 2 * kCount;
    }
    if (j < job.to) pass_columns<Rank, 1>(job, j);
  }

  TAEDA_MATRIX_FN T dot(const T* x, const T* y, int64_t from, int64_t to) {
    V sum{}, other{};
    int64_t i = from;
    for (; i + 2 * kCount <= to; i += 2 * kCount) {
      sum += at(x + i) * at(y + i);
      other += at(x + i + kCount) * at(y + i + kCount);
    }
    if (i < to) sum += at(x + i) * at(y + i);
    sum += other;
    T total = 0;
    for (int l = 0; l < kCount; ++l) total += sum[l];
    return total;
  }

  // x[j] .. x[end - 1] becomes the vector of the reflection that brings it to
  // beta at place j: R's diagonal has the other sign than what it replaces.
  static bool reflect(T* x, int64_t j, int64_t end, T& tau, T& beta) {
    using Limits = SquareSums<T>;
    T alpha = x[j];
    x[j] = 0;
    int64_t from = floor(j);
    T sum = dot(x, x, from, end);
    if (!(sum + alpha * alpha < Limits::kMost)) return false;
    tau = 0;
    beta = alpha;
    if (sum < Limits::kLeast) {
      for (int64_t i = j; i < end; ++i) {
        if (x[i] != 0) return false;
      }
      x[j] = 1;
      return true;
    }
    T norm = root(sum + alpha * alpha);
    beta = alpha < 0 ? norm : -norm;
    tau = (beta - alpha) / beta;
    T scale = 1 / (alpha - beta);
    for (int64_t i = from; i < end; i += kCount) at(x + i) *= scale;
    x[j] = 1;
    return true;
  }
  TAEDA_MATRIX_FN T root(T x) {
    if constexpr (sizeof(T) == sizeof(float)) {
      return __builtin_sqrtf(x);
    } else {
      return __builtin_sqrt(x);
    }
  }
  TAEDA_MATRIX_FN void times(
      T* out, const T* in, T factor, int64_t from, int64_t to) {
    for (int64_t j = from; j < to; j += kCount)
      at(out + j) = factor * at(in + j);
  }

  // A numbers of a row, in registers' places.
  struct alignas(64) Row {
    T x[kMostReflected] = {};
  };

  static bool factor(const Reflections<T>& r) {
    Row w, sums, diagonal;
    int64_t rows = ceil(r.m), columns = ceil(r.n);
    for (int64_t j = 0; j < r.count; ++j) {
      T* x = r.v + j * r.ldv;
      const T* p = j > 0 ? x - r.ldv : x;
      T wj = w.x[j];
      std::fill(x, x + j, T(0));
      const T* column = r.a + j;
      if (j == 0) {
        for (int64_t i = 0; i < r.m; ++i) x[i] = column[i * r.lda];
      } else {
        for (int64_t i = j; i < r.m; ++i) {
          x[i] = column[i * r.lda] - p[i] * wj;
        }
      }
      std::fill(x + r.m, x + rows, T(0));
      if (!reflect(x, j, rows, r.tau[j], diagonal.x[j])) return false;
      int64_t first = j > 0 ? j - 1 : 0, from = floor(j);
      pass<1>({first, r.m, from, columns, r.a, r.lda, p, w.x, x, sums.x});
      times(w.x, sums.x, r.tau[j], from, columns);
    }
    if (r.n > r.count) {
      int64_t last = r.count - 1, from = floor(last);
      const T* x = r.v + last * r.ldv;
      pass<1>({last, r.m, from, columns, r.a, r.lda, x, w.x, x, sums.x});
    }
    for (int64_t j = 0; j < r.count; ++j) r.a[j * r.lda + j] = diagonal.x[j];
    return true;
  }

  static void product(const Reflections<T>& r) {
    Row w, sums;
    int64_t columns = ceil(r.n);
    for (int64_t i = 0; i < r.m; ++i) {
      T* row = r.a + i * r.lda;
      std::fill(row, row + columns, T(0));
      if (i < r.n) row[i] = 1;
    }
    const T* p = r.v + (r.count - 1) * r.ldv;
    for (int64_t j = r.count; j-- > 0;) {
      const T* x = r.v + j * r.ldv;
      int64_t from = floor(j);
      pass<1>({j, r.m, from, columns, r.a, r.lda, p, w.x, x, sums.x});
      times(w.x, sums.x, r.tau[j], from, columns);
      p = x;
    }
    pass<1>({0, r.m, 0, columns, r.a, r.lda, p, w.x, p, sums.x});
  }

  // G. H. Golub, C. F. Van Loan, "Matrix Computations", 8.3.1: each reflection
  // changes what is left by a product of rank 2.
  static bool tridiagonal(const Reflections<T>& r, T* d, T* e) {
    Row w, sums, none;
    int64_t n = r.n, columns = ceil(n);
    const T* p = none.x;
    for (int64_t j = 0; j + 1 < n; ++j) {
      T *x = r.v + j * r.ldv, *row = r.a + j * r.lda;
      T pj = p[j], wj = w.x[j];
      for (int64_t i = floor(j); i < columns; i += kCount) {
        at(x + i) = at(row + i) - pj * at(w.x + i) - wj * at(p + i);
      }
      d[j] = x[j];
      std::fill(x, x + j + 1, T(0));
      std::fill(x + n, x + columns, T(0));
      if (!reflect(x, j + 1, columns, r.tau[j], e[j])) return false;
      int64_t from = floor(j + 1);
      pass<2>({j + 1, n, from, columns, r.a, r.lda, p, w.x, x, sums.x});
      std::fill(sums.x + from, sums.x + j + 1, T(0));
      T tau = r.tau[j], half = tau * tau * dot(sums.x, x, from, columns) / 2;
      for (int64_t i = from; i < columns; i += kCount) {
        at(w.x + i) = tau * at(sums.x + i) - half * at(x + i);
      }
      p = x;
    }
    T last = r.a[(n - 1) * r.lda + n - 1];
    d[n - 1] = last - 2 * p[n - 1] * w.x[n - 1];
    return true;
  }

  static void combine(int64_t rows,
                      int64_t columns,
                      const T* factors,
                      const T* a,
                      int64_t lda,
                      T* sums) {
    // Of a pass of rank 0 nothing is written.
    T* from = const_cast<T*>(a);
    pass<0>({0,
             rows,
             0,
             ceil(columns),
             from,
             lda,
             nullptr,
             nullptr,
             factors,
             sums});
  }

  template <int N>
  TAEDA_MATRIX_FN void rotate_columns(
      int64_t count, T* row, int64_t step, const T* c, const T* s) {
    V x[N];
    for (int v = 0; v < N; ++v) x[v] = at(row + v * kCount);
    for (int64_t k = 0; k < count; ++k, row += step) {
      V ck = L::splat(c[k]), sk = L::splat(s[k]);
      for (int v = 0; v < N; ++v) {
        V y = at(row + step + v * kCount);
        at(row + v * kCount) = ck * x[v] + sk * y;
        x[v] = ck * y - sk * x[v];
      }
    }
    for (int v = 0; v < N; ++v) at(row + v * kCount) = x[v];
  }
  static void rotate(int64_t count,
                     T* rows,
                     int64_t step,
                     int64_t columns,
                     const T* c,
                     const T* s) {
    int64_t j = 0, end = ceil(columns);
    for (; j + 4 * kCount <= end; j += 4 * kCount) {
      rotate_columns<4>(count, rows + j, step, c, s);
    }
    for (; j < end; j += kCount) rotate_columns<1>(count, rows + j, step, c, s);
  }

  static constexpr ReflectionKernels<T> kTable = {
      factor, product, tridiagonal, combine, rotate};
};

}  // namespace

extern const ReflectionTable kReflections = {Reflector<float>::kTable,
                                             Reflector<double>::kTable};

TAEDA_ISA_END
