// Blocks of reflections: R. Schreiber, C. Van Loan, "A storage-efficient WY
// representation for products of Householder transformations" (1989).
#include <taeda/aten/native/linalg/reflected.h>

#include <taeda/aten/native/blas/gemm.h>
#include <taeda/aten/native/cpu/isa_table.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <new>

namespace taeda::native {

using blas::Op;

namespace {

constexpr std::align_val_t kAlignment{64};

// Columns that are eliminated in one piece, and the width of blocks where there
// are more (measured: docs/design/linalg.md).
constexpr int64_t kUnblocked = 96;
constexpr int64_t kBlock = 32;

template <class T>
const ReflectionKernels<T>& kernels() {
  return TAEDA_ISA_TABLE(kReflections).of<T>();
}

int64_t whole_units(int64_t n) {
  return (n + kRowUnit - 1) / kRowUnit * kRowUnit;
}

}  // namespace

template <class T>
AlignedMatrix<T>::AlignedMatrix(int64_t rows, int64_t columns)
    : rows_(rows), columns_(columns), stride_(whole_units(columns)) {
  size_t count = static_cast<size_t>(rows * stride_);
  void* memory =
      ::operator new[](std::max<size_t>(count, 1) * sizeof(T), kAlignment);
  data_.reset(static_cast<T*>(memory));
  std::fill_n(data_.get(), count, T(0));
}
template <class T>
void AlignedMatrix<T>::Free::operator()(T* p) const {
  ::operator delete[](p, kAlignment);
}

template <class T>
Reflected<T>::Reflected(const AlignedMatrix<T>& a, int64_t count)
    : rows_(a.rows()),
      count_(count),
      v_(count, a.rows()),
      triangles_(0, 0),
      tau_(static_cast<size_t>(count)),
      blocks_(count > kUnblocked || a.columns() > kMostReflected),
      block_(blocks_ ? kBlock : count) {
  if (blocks_) {
    ok_ = factor_blocks(a);
  } else {
    ok_ = kernels<T>().factor({rows_,
                               a.columns(),
                               count,
                               a.row(0),
                               a.stride(),
                               v_.row(0),
                               v_.stride(),
                               tau_.data()});
  }
}

template <class T>
bool Reflected<T>::factor_blocks(const AlignedMatrix<T>& a) {
  triangles_ = AlignedMatrix<T>(count_, block_);
  for (int64_t first = 0; first < count_; first += block_) {
    int64_t count = std::min(block_, count_ - first), rows = rows_ - first;
    // Apart, the rows are beside each other in the first-level cache.
    AlignedMatrix<T> panel(rows, count);
    for (int64_t i = 0; i < rows; ++i) {
      std::copy_n(a.row(first + i) + first, count, panel.row(i));
    }
    bool ok = kernels<T>().factor({rows,
                                   count,
                                   count,
                                   panel.row(0),
                                   panel.stride(),
                                   v_.row(first),
                                   v_.stride(),
                                   tau_.data() + first});
    if (!ok) return false;
    for (int64_t i = 0; i < count; ++i) {
      std::copy_n(panel.row(i), count, a.row(first + i) + first);
    }
    make_triangle(first, count);
    apply(/*transposed=*/true, first, count, a, first + count);
  }
  return true;
}

// The upper triangle with which the block's product is I - V triangle V^T.
template <class T>
void Reflected<T>::make_triangle(int64_t first, int64_t count) {
  AlignedMatrix<T> products(count, count);
  const T* v = v_.row(first);
  blas::gemm<T>(Op::kNone,
                Op::kTrans,
                count,
                count,
                rows_ - first,
                1,
                v,
                v_.stride(),
                v,
                v_.stride(),
                0,
                products.row(0),
                products.stride());
  for (int64_t j = 0; j < count; ++j) {
    T tau = tau_[static_cast<size_t>(first + j)];
    for (int64_t i = 0; i < j; ++i) {
      T sum = 0;
      for (int64_t l = i; l < j; ++l) {
        sum += triangles_(first + i, l) * products(l, j);
      }
      triangles_(first + i, j) = -tau * sum;
    }
    triangles_(first + j, j) = tau;
  }
}

// Multiplies a's columns from `column` on, below row `first`, by the product of
// a block or by its transpose.
template <class T>
void Reflected<T>::apply(bool transposed,
                         int64_t first,
                         int64_t count,
                         const AlignedMatrix<T>& a,
                         int64_t column) const {
  int64_t columns = a.columns() - column, rows = rows_ - first;
  if (columns <= 0) return;
  AlignedMatrix<T> sums(count, columns), turned(count, columns);
  T* part = a.row(first) + column;
  blas::gemm<T>(Op::kNone,
                Op::kNone,
                count,
                columns,
                rows,
                1,
                v_.row(first),
                v_.stride(),
                part,
                a.stride(),
                0,
                sums.row(0),
                sums.stride());
  blas::gemm<T>(transposed ? Op::kTrans : Op::kNone,
                Op::kNone,
                count,
                columns,
                count,
                1,
                triangles_.row(first),
                triangles_.stride(),
                sums.row(0),
                sums.stride(),
                0,
                turned.row(0),
                turned.stride());
  blas::gemm<T>(Op::kTrans,
                Op::kNone,
                rows,
                columns,
                count,
                -1,
                v_.row(first),
                v_.stride(),
                turned.row(0),
                turned.stride(),
                1,
                part,
                a.stride());
}

template <class T>
void Reflected<T>::product(const AlignedMatrix<T>& q) {
  if (!blocks_ && q.columns() <= kMostReflected) {
    return kernels<T>().product({rows_,
                                 q.columns(),
                                 count_,
                                 q.row(0),
                                 q.stride(),
                                 v_.row(0),
                                 v_.stride(),
                                 tau_.data()});
  }
  for (int64_t i = 0; i < rows_; ++i) {
    std::fill_n(q.row(i), q.columns(), T(0));
    if (i < q.columns()) q(i, i) = 1;
  }
  if (!blocks_) {
    triangles_ = AlignedMatrix<T>(count_, count_);
    make_triangle(0, count_);
  }
  for (int64_t first = (count_ - 1) / block_ * block_; first >= 0;
       first -= block_) {
    int64_t count = std::min(block_, count_ - first);
    apply(/*transposed=*/false, first, count, q, first);
  }
}

namespace {

// x becomes the inverse of rows and columns begin .. end - 1 of r.
template <class T>
void invert(const AlignedMatrix<T>& r,
            const AlignedMatrix<T>& x,
            int64_t begin,
            int64_t end) {
  constexpr int64_t kLeaf = 64;
  if (end - begin > kLeaf) {
    int64_t middle = begin + whole_units((end - begin) / 2);
    invert(r, x, begin, middle);
    invert(r, x, middle, end);
    int64_t m = middle - begin, n = end - middle;
    AlignedMatrix<T> product(m, n);
    blas::gemm<T>(Op::kNone,
                  Op::kNone,
                  m,
                  n,
                  n,
                  1,
                  r.row(begin) + middle,
                  r.stride(),
                  x.row(middle) + middle,
                  x.stride(),
                  0,
                  product.row(0),
                  product.stride());
    blas::gemm<T>(Op::kNone,
                  Op::kNone,
                  m,
                  n,
                  m,
                  -1,
                  x.row(begin) + begin,
                  x.stride(),
                  product.row(0),
                  product.stride(),
                  0,
                  x.row(begin) + middle,
                  x.stride());
    return;
  }
  AlignedMatrix<T> sums(1, kLeaf + kRowUnit);
  for (int64_t i = end; i-- > begin;) {
    int64_t from = i / kRowUnit * kRowUnit;
    kernels<T>().combine(end - i - 1,
                         end - from,
                         r.row(i) + i + 1,
                         x.row(i + 1 < end ? i + 1 : i) + from,
                         x.stride(),
                         sums.row(0));
    T pivot = T(1) / r(i, i);
    for (int64_t j = i + 1; j < end; ++j) {
      x(i, j) = -pivot * sums(0, j - from);
    }
    x(i, i) = pivot;
  }
}

// The sum of squares on and above the diagonal.
template <class T>
double squares(const AlignedMatrix<T>& r, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) {
    const T* row = r.row(i);
    double part = 0;
    for (int64_t j = i; j < n; ++j) {
      part += static_cast<double>(row[j]) * static_cast<double>(row[j]);
    }
    sum += part;
  }
  return sum;
}

// Twice what iterations of R^T R x find for the largest singular value, which
// is at least that value: J. Kuczynski, H. Wozniakowski, "Estimating the
// largest eigenvalue by the power and Lanczos algorithms with a random start"
// (1992), theorem 4.1, bounds the probability that less than half of it is
// found by 0.83 sqrt(n) 4^(0.5 - steps), whatever the matrix.
template <class T>
double largest_value(const AlignedMatrix<T>& r, int64_t n) {
  constexpr int kSteps = 16;
  size_t count = static_cast<size_t>(n);
  std::vector<T> x(count), y(count);
  uint64_t state = 88172645463325252;
  for (T& number : x) {
    number = 0;
    for (int k = 0; k < 12; ++k) {  // as good as normal
      state ^= state << 13;
      state ^= state >> 7;
      state ^= state << 17;
      number += static_cast<T>(state >> 40) * T(0x1p-24) - T(0.5);
    }
  }
  auto length = [](const std::vector<T>& v) {
    double sum = 0;
    for (T number : v) sum += static_cast<double>(number) * number;
    return std::sqrt(sum);
  };
  double found = 0;
  for (int step = 0; step < kSteps; ++step) {
    double size = length(x);
    if (!(size > 0)) return std::numeric_limits<double>::infinity();
    for (T& number : x) number = static_cast<T>(number / size);
    std::fill(y.begin(), y.end(), T(0));
    // y = R x, by rows; then x = R^T y.
    for (int64_t i = 0; i < n; ++i) {
      const T* row = r.row(i) + i;
      y[static_cast<size_t>(i)] = blas::dot(n - i, row, 1, x.data() + i, 1);
    }
    found = length(y);
    std::fill(x.begin(), x.end(), T(0));
    for (int64_t i = 0; i < n; ++i) {
      T factor = y[static_cast<size_t>(i)];
      blas::axpy<T>(n - i, factor, r.row(i) + i, 1, x.data() + i, 1);
    }
  }
  return 2 * found;
}

}  // namespace

template <class T>
bool surely_conditioned(const AlignedMatrix<T>& r, int64_t n, double rcond) {
  constexpr double kRoundings = 2;
  AlignedMatrix<T> inverse(n, n);
  invert(r, inverse, 0, n);
  double epsilon = std::numeric_limits<T>::epsilon();
  double least = std::max(rcond, epsilon * static_cast<double>(n));
  // No singular value of a matrix exceeds the root of the sum of its squares.
  double wanted = kRoundings * least * std::sqrt(squares(inverse, n));
  if (wanted * std::sqrt(squares(r, n)) <= 1) return true;
  // Of large matrices that root is far above the largest value.
  return wanted < std::numeric_limits<double>::infinity() &&
         wanted * largest_value(r, n) <= 1;
}

template class AlignedMatrix<float>;
template class AlignedMatrix<double>;
template class Reflected<float>;
template class Reflected<double>;
template bool surely_conditioned(const AlignedMatrix<float>&, int64_t, double);
template bool surely_conditioned(const AlignedMatrix<double>&, int64_t, double);

}  // namespace taeda::native
