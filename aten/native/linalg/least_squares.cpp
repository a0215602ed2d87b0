// Least squares by LAPACK's drivers.
#include <taeda/aten/core/level.h>
#include <taeda/aten/native/linalg/batches.h>
#include <taeda/aten/native/linalg/reflected.h>
#include <taeda/gen/native/_linalg_lstsq.h>
#include <taeda/gen/native/linalg_lstsq.h>
#include <taeda/gen/ops/_linalg_lstsq.h>
#include <taeda/gen/ops/abs.h>
#include <taeda/gen/ops/all.h>
#include <taeda/gen/ops/conj.h>
#include <taeda/gen/ops/eq.h>
#include <taeda/gen/ops/expand.h>
#include <taeda/gen/ops/item.h>
#include <taeda/gen/ops/matmul.h>
#include <taeda/gen/ops/mul.h>
#include <taeda/gen/ops/narrow.h>
#include <taeda/gen/ops/new_empty.h>
#include <taeda/gen/ops/real.h>
#include <taeda/gen/ops/reshape.h>
#include <taeda/gen/ops/squeeze.h>
#include <taeda/gen/ops/sub.h>
#include <taeda/gen/ops/sum.h>
#include <taeda/gen/ops/unsqueeze.h>

#include <limits>

namespace taeda::native {

using blas::Int;
using blas::lapack;

namespace {

constexpr std::string_view kName = "torch.linalg.lstsq";

// One system: `a` is overwritten, `b` of max(m, n) rows holds the right sides
// and then the solutions.
template <class T>
struct System {
  using R = blas::real_t<T>;
  static constexpr bool kComplex = !std::is_same_v<T, R>;

  Int m, n, count;
  T *a, *b;
  R rcond;
  R* values;
  Int rank = 0, info = 0;

  Int solve(std::string_view driver);

 private:
  Int lda() const { return leading(m); }
  Int ldb() const { return leading(std::max(m, n)); }
  void by_qr(T* work, Int size);
  void by_pivoted_qr(T* work, Int size);
  void by_values(bool divide, T* work, Int size);
};

template <class T>
void System<T>::by_qr(T* work, Int size) {
  Int la = lda(), lb = ldb();
  lapack<T>().gels("N", &m, &n, &count, a, &la, b, &lb, work, &size, &info, 1);
}

template <class T>
void System<T>::by_pivoted_qr(T* work, Int size) {
  Int la = lda(), lb = ldb();
  std::vector<Int> order(static_cast<size_t>(std::max(n, 1)));
  const auto& call = lapack<T>().gelsy;
  if constexpr (kComplex) {
    std::vector<R> real(static_cast<size_t>(std::max(2 * n, 1)));
    call(&m,
         &n,
         &count,
         a,
         &la,
         b,
         &lb,
         order.data(),
         &rcond,
         &rank,
         work,
         &size,
         real.data(),
         &info);
  } else {
    call(&m,
         &n,
         &count,
         a,
         &la,
         b,
         &lb,
         order.data(),
         &rcond,
         &rank,
         work,
         &size,
         &info);
  }
}

// By singular values: bidiagonal divide and conquer or the QR iteration.
template <class T>
void System<T>::by_values(bool divide, T* work, Int size) {
  Int la = lda(), lb = ldb();
  // LAPACK 3.12, xGELSD: bounds of RWORK and IWORK, smlsiz being at most 25.
  int64_t k = std::max<int64_t>(std::min(m, n), 1), leaves = 25, levels = 1;
  for (int64_t size_of = k; size_of > 1; size_of /= 2) ++levels;
  int64_t reals = 10 * std::max<int64_t>(n, m) +
                  2 * std::max<int64_t>(n, m) * leaves + 8 * k * levels +
                  3 * leaves * count +
                  std::max((leaves + 1) * (leaves + 1),
                           std::max<int64_t>(n, m) * (1 + count) + 2 * count);
  if constexpr (kComplex) {
    std::vector<R> real(static_cast<size_t>(reals));
    if (!divide) {
      return lapack<T>().gelss(&m,
                               &n,
                               &count,
                               a,
                               &la,
                               b,
                               &lb,
                               values,
                               &rcond,
                               &rank,
                               work,
                               &size,
                               real.data(),
                               &info);
    }
    std::vector<Int> integers(static_cast<size_t>(3 * k * levels + 11 * k));
    lapack<T>().gelsd(&m,
                      &n,
                      &count,
                      a,
                      &la,
                      b,
                      &lb,
                      values,
                      &rcond,
                      &rank,
                      work,
                      &size,
                      real.data(),
                      integers.data(),
                      &info);
  } else {
    if (!divide) {
      return lapack<T>().gelss(&m,
                               &n,
                               &count,
                               a,
                               &la,
                               b,
                               &lb,
                               values,
                               &rcond,
                               &rank,
                               work,
                               &size,
                               &info);
    }
    std::vector<Int> integers(static_cast<size_t>(3 * k * levels + 11 * k));
    lapack<T>().gelsd(&m,
                      &n,
                      &count,
                      a,
                      &la,
                      b,
                      &lb,
                      values,
                      &rcond,
                      &rank,
                      work,
                      &size,
                      integers.data(),
                      &info);
  }
}

template <class T>
Int System<T>::solve(std::string_view driver) {
  with_workspace<T>([&](T* work, Int size) {
    if (driver == "gels") {
      by_qr(work, size);
    } else if (driver == "gelsy") {
      by_pivoted_qr(work, size);
    } else {
      by_values(driver == "gelsd", work, size);
    }
  });
  return info;
}

template <class T>
struct Systems {
  const Tensor &a, &b;
  double rcond;
  std::string_view driver;
  const Tensor &solution, &rank, &values;

  void solve() const;

 private:
  // Column c of solution i, which lies as the shape function says.
  T* result(int64_t i, int64_t c) const {
    int64_t stride = std::max(a.size(-2), a.size(-1));
    return item<T>(solution, i, stride * b.size(-1)) + c * stride;
  }
  bool may_be_sure() const;
  bool by_reflections(int64_t i) const;
  void by_lapack(int64_t i) const;
  void by_lapack(int64_t i,
                 Int m,
                 std::vector<T>& matrix,
                 std::vector<T>& sides) const;
};

// Where there are at least as many rows as columns: pivots only tell the rank,
// so that those of gelsy are not needed where it is certain. Else LAPACK gets R
// and Q^T b, whose rows beyond R do not matter. False where nothing is done.
template <class T>
bool Systems<T>::by_reflections(int64_t i) const {
  int64_t m = a.size(-2), n = a.size(-1), count = b.size(-1);
  bool gelsy = driver == "gelsy";
  AlignedMatrix<T> both(m, n + count);
  MatrixReader<T>(a).copy_rows(i, both.row(0), both.stride());
  MatrixReader<T>(b).copy_rows(i, both.row(0) + n, both.stride());
  if (!Reflected<T>(both, n).ok()) return false;
  if (!surely_conditioned(both, n, gelsy ? rcond : 0)) {
    if (m == n) return false;
    std::vector<T> matrix(static_cast<size_t>(n * n));
    std::vector<T> sides(static_cast<size_t>(n * count));
    for (int64_t row = 0; row < n; ++row) {
      for (int64_t c = row; c < n; ++c) {
        matrix[static_cast<size_t>(c * n + row)] = both(row, c);
      }
      for (int64_t c = 0; c < count; ++c) {
        sides[static_cast<size_t>(c * n + row)] = both(row, n + c);
      }
    }
    by_lapack(i, static_cast<Int>(n), matrix, sides);
    return true;
  }
  // Row-major R is LAPACK's R^T: x^T R^T = b^T.
  Int stride = static_cast<Int>(both.stride());
  Int rows = static_cast<Int>(n), columns = static_cast<Int>(count);
  const T one(1);
  lapack<T>().trsm("R",
                   "L",
                   "N",
                   "N",
                   &columns,
                   &rows,
                   &one,
                   both.row(0),
                   &stride,
                   both.row(0) + n,
                   &stride,
                   1,
                   1,
                   1,
                   1);
  for (int64_t c = 0; c < count; ++c) {
    T* x = result(i, c);
    for (int64_t row = 0; row < n; ++row) x[row] = both(row, n + c);
  }
  if (gelsy) rank.mutable_data<int64_t>()[i] = n;
  return true;
}

// Matrix i, column-major, with m rows; `sides` has max(m, n) rows.
template <class T>
void Systems<T>::by_lapack(int64_t i,
                           Int m,
                           std::vector<T>& matrix,
                           std::vector<T>& sides) const {
  using R = blas::real_t<T>;
  Int n = columns_of(a), count = columns_of(b);
  Int rows = std::max(m, n), k = std::min(m, n);
  std::vector<R> unused(static_cast<size_t>(std::max(k, 1)));
  System<T> system{m,
                   n,
                   count,
                   matrix.data(),
                   sides.data(),
                   static_cast<R>(rcond),
                   values.numel() > 0 ? item<R>(values, i, k) : unused.data()};
  Int info = system.solve(driver);
  TAEDA_CHECK_AS(LinAlg,
                 info == 0,
                 kName,
                 ": (Batch element ",
                 i,
                 "): The least squares solution could not be computed "
                 "because the input matrix does not have full rank (error "
                 "code: ",
                 info,
                 ").");
  rank.mutable_data<int64_t>()[i] = system.rank;
  for (int64_t c = 0; c < count; ++c) {
    std::copy_n(sides.data() + c * rows, n, result(i, c));
  }
}

template <class T>
void Systems<T>::by_lapack(int64_t i) const {
  Int m = rows_of(a), n = columns_of(a), count = columns_of(b);
  int64_t rows = std::max(m, n);
  std::vector<T> matrix(static_cast<size_t>(m) * static_cast<size_t>(n));
  std::vector<T> sides(static_cast<size_t>(rows) * static_cast<size_t>(count));
  std::vector<T> given(static_cast<size_t>(m) * static_cast<size_t>(count));
  MatrixReader<T>(a).copy(i, matrix.data(), m, n);
  if (count > 0) MatrixReader<T>(b).copy(i, given.data(), m, count);
  for (int64_t c = 0; c < count; ++c) {
    std::copy_n(given.data() + c * m, m, sides.data() + c * rows);
  }
  by_lapack(i, m, matrix, sides);
}

// Whether an attempt is worth while: square matrices of normal numbers have a
// ratio of singular values of some 1 / 4n, which should be beyond doubt more
// often than not. What LAPACK gets of taller matrices is worth it anyway.
template <class T>
bool Systems<T>::may_be_sure() const {
  int64_t m = a.size(-2), n = a.size(-1);
  if (m < n || solution.numel() == 0) return false;
  if (driver == "gels") return true;
  return driver == "gelsy" &&
         (m >= 2 * n || 16 * rcond * static_cast<double>(n) <= 1);
}

template <class T>
void Systems<T>::solve() const {
  bool attempt = may_be_sure();
  for (int64_t i = 0; i < batch_count(a); ++i) {
    if constexpr (std::is_same_v<T, blas::real_t<T>>) {
      if (attempt && by_reflections(i)) continue;
    }
    by_lapack(i);
  }
}

}  // namespace

template <class I>
void _linalg_lstsq_shape(const Spec<I>& self,
                         const Spec<I>& b,
                         double,
                         std::string_view,
                         Plan<I>& plan) {
  check_matrices(kName, self);
  TAEDA_CHECK(b.dtype() == self.dtype() && b.dim() == self.dim(),
              kName,
              ": expected matrices of one dtype, got ",
              self,
              " and ",
              b);
  const I &m = self.size(-2), &n = self.size(-1);
  TAEDA_CHECK(batch_sizes(self) == batch_sizes(b) && b.size(-2) == m,
              kName,
              ": shapes do not fit: ",
              self.sizes(),
              " and ",
              b.sizes());
  // As LAPACK leaves them: the first n of max(m, n) rows.
  ColumnMajor<I> lie(batch_sizes(self), sym_max(m, n), b.size(-1));
  lie.sizes[lie.sizes.size() - 2] = n;
  plan.set(0, lie.sizes, lie.strides, self.dtype());
  plan.set(1, batch_sizes(self), kLong);
  plan.set(2, vectors_of(self, std::min(m, n)), real_type_of(self.dtype()));
}
TAEDA_SHAPE(_linalg_lstsq_shape);

void _linalg_lstsq_cpu(const Tensor& self,
                       const Tensor& b,
                       double rcond,
                       std::string_view driver,
                       const Tensor& solution,
                       const Tensor& rank,
                       const Tensor& values) {
  fill_with(rank, Scalar(0));
  zero_fill(values);
  zero_fill(solution);
  if (self.numel() == 0) return;
  Tensor a = readable(self), right = readable(b);
  visit_lapack(self.dtype(), [&](auto t) {
    Systems<decltype(t)>{a, right, rcond, driver, solution, rank, values}
        .solve();
  });
}

namespace {

void check_systems(const Tensor& a, const Tensor& b, bool vector) {
  check_matrices(kName, a);
  TAEDA_CHECK(b.dim() >= 1,
              kName,
              ": other must have at least 1 dimension, got ",
              b.dim());
  TAEDA_CHECK(a.dtype() == b.dtype(),
              kName,
              ": Expected input and other to have the same dtype, but got "
              "input's dtype ",
              a.dtype(),
              " and other's dtype ",
              b.dtype());
  int64_t apart = a.dim() - b.dim();
  TAEDA_CHECK(apart >= 0 && apart <= 1,
              kName,
              ": input.dim() must be greater or equal to other.dim() and "
              "(input.dim() - other.dim()) <= 1");
  TAEDA_CHECK(a.size(-2) == b.size(vector ? -1 : -2),
              kName,
              ": input.size(-2) should match other.size(",
              vector ? -1 : -2,
              ")");
}

// Residuals are there for all systems or for none, those that a transform
// hides too; what traces has to see that a number is read.
bool have_full_rank(const Tensor& rank, int64_t n) {
  Tensor ranks = rank;
  for (Level* level = level_of(ranks);
       level != nullptr && level->is_transform();
       level = level_of(ranks)) {
    ranks = level->value_in(ranks);
  }
  return ops::item(ops::all(ops::eq(ranks, Scalar(n)))).to<bool>();
}

Tensor spread(const Tensor& t, IntArrayRef batch) {
  DimVector sizes(batch);
  sizes.push_back(t.size(-2));
  sizes.push_back(t.size(-1));
  return ops::expand(t, sizes);
}

}  // namespace

std::tuple<Tensor, Tensor, Tensor, Tensor> linalg_lstsq(
    const Tensor& self,
    const Tensor& b,
    std::optional<double> rcond,
    std::optional<std::string_view> driver) {
  DimVector line;
  if (self.dim() >= 2) {
    line = batch_sizes(self);
    line.push_back(self.size(-2));
  }
  bool vector = b.dim() == 1 ||
                (self.dim() - 1 == b.dim() && b.sizes() == IntArrayRef(line));
  check_systems(self, b, vector);
  // On a GPU PyTorch's drivers are this one.
  bool on_gpu = self.device().type == DeviceType::CUDA;
  std::string_view name = driver.value_or(on_gpu ? "gels" : "gelsy");
  TAEDA_CHECK(
      name == "gels" || name == "gelsy" || name == "gelsd" || name == "gelss",
      kName,
      ": parameter `driver` should be one of (gels, gelsy, gelsd, gelss)");
  Tensor right = vector ? ops::unsqueeze(b, -1) : b;
  DimVector batch =
      broadcast_shapes<int64_t>(kName, batch_sizes(self), batch_sizes(right));
  Tensor a = spread(self, batch);
  right = spread(right, batch);
  int64_t m = self.size(-2), n = self.size(-1);
  bool narrow = real_type_of(self.dtype()) == kFloat;
  double eps = narrow ? std::numeric_limits<float>::epsilon()
                      : std::numeric_limits<double>::epsilon();
  double tolerance = rcond.value_or(eps * static_cast<double>(std::max(m, n)));
  auto [solution, rank, values] = ops::_linalg_lstsq(a, right, tolerance, name);
  bool by_values = name == "gelsd" || name == "gelss";
  int64_t nothing[] = {0};
  Tensor none = ops::new_empty(values, nothing);
  // With a history, as PyTorch's have, also where there are none.
  Tensor residuals =
      ops::narrow(ops::real(ops::reshape(solution, {-1})), 0, 0, 0);
  if (m > n && name != "gelsy" && !self.is_meta() &&
      (!by_values || have_full_rank(rank, n))) {
    Tensor apart = ops::sub(ops::matmul(a, solution), right, 1);
    int64_t rows[] = {-2};
    residuals = ops::real(
        ops::sum(ops::mul(apart, ops::conj(apart)), IntArrayRef(rows)));
  }
  if (vector) solution = ops::squeeze(solution, -1);
  return {solution,
          residuals,
          name == "gels" ? ops::new_empty(rank, nothing) : rank,
          by_values ? values : none};
}

}  // namespace taeda::native
