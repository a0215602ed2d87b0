// One use of every routine of the table, for each type: a wrong argument list
// shows as a wrong result or a crash.
#include <taeda/aten/native/blas/lapack.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <taeda/aten/native/blas/gemm.h>
#include <taeda/aten/native/blas/load_library.h>
#include <taeda/c10/util/check.h>

#include "reference.h"

namespace taeda::blas {
namespace {

using testing::random_vector;

constexpr int kN = 12;
constexpr size_t kCount = kN * kN;

template <typename T>
constexpr bool kComplex = testing::IsComplex<T>::value;

template <typename T>
const char* adjoint() {
  return kComplex<T> ? "C" : "T";
}

template <typename T>
double size_of(const T& x) {
  if constexpr (kComplex<T>) {
    return std::hypot(x.real(), x.imag());
  } else {
    return std::fabs(x);
  }
}

// The largest |x - y|.
template <typename T>
double gap(const std::vector<T>& x, const std::vector<T>& y) {
  double largest = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    largest = std::max(largest, size_of<T>(x[i] - y[i]));
  }
  return largest;
}

// Column-major op(A) op(B) of kN x kN matrices, by the table's own gemm.
template <typename T>
std::vector<T> times(const char* ta,
                     const std::vector<T>& a,
                     const char* tb,
                     const std::vector<T>& b) {
  std::vector<T> c(kCount);
  const int n = kN;
  const T one(1);
  const T zero(0);
  lapack<T>().gemm(ta,
                   tb,
                   &n,
                   &n,
                   &n,
                   &one,
                   a.data(),
                   &n,
                   b.data(),
                   &n,
                   &zero,
                   c.data(),
                   &n,
                   1,
                   1);
  return c;
}

template <typename T>
std::vector<T> identity() {
  std::vector<T> out(kCount, T(0));
  for (size_t i = 0; i < kN; ++i) {
    out[i * kN + i] = T(1);
  }
  return out;
}

template <typename T>
class Lapack : public ::testing::Test {
 protected:
  using R = real_t<T>;

  void SetUp() override {
    std::mt19937 rng(4);
    a_ = random_vector<T>(kCount, rng);
    b_ = random_vector<T>(kCount, rng);
    for (size_t i = 0; i < kN; ++i) {
      a_[i * kN + i] += T(8);
    }
    // Hermitian and positive definite.
    hermitian_ = times<T>(adjoint<T>(), a_, "N", a_);
    for (size_t i = 0; i < kN; ++i) {
      for (size_t j = 0; j < i; ++j) {
        if constexpr (kComplex<T>) {
          const T& x = hermitian_[i * kN + j];
          hermitian_[j * kN + i] = T(x.real(), -x.imag());
        } else {
          hermitian_[j * kN + i] = hermitian_[i * kN + j];
        }
      }
    }
    // kN ** 2 roundings of entries below 128 (Higham, Accuracy and Stability of
    // Numerical Algorithms, theorem 9.3).
    bound_ =
        kN * kN * 128 * static_cast<double>(std::numeric_limits<R>::epsilon());
  }

  // A scaled to its columns by real factors.
  static std::vector<T> scaled(std::vector<T> x, const std::vector<R>& s) {
    for (size_t j = 0; j < kN; ++j) {
      for (size_t i = 0; i < kN; ++i) {
        x[j * kN + i] *= T(s[j]);
      }
    }
    return x;
  }

  // clang-format off
  // The routines whose argument lists differ between real and complex.
  using Vector = std::vector<T>;
  void gesdd(Vector a, std::vector<R>& s, Vector& u, Vector& vt) {
    if constexpr (kComplex<T>) {
      table_.gesdd("A", &n_, &n_, a.data(), &n_, s.data(), u.data(), &n_,
                   vt.data(), &n_, work_.data(), &work_size_,
                   real_work_.data(), int_work_.data(), &info_, 1);
    } else {
      table_.gesdd("A", &n_, &n_, a.data(), &n_, s.data(), u.data(), &n_,
                   vt.data(), &n_, work_.data(), &work_size_,
                   int_work_.data(), &info_, 1);
    }
  }
  void gesvd(Vector a, std::vector<R>& s, Vector& u, Vector& vt) {
    if constexpr (kComplex<T>) {
      table_.gesvd("A", "A", &n_, &n_, a.data(), &n_, s.data(), u.data(), &n_,
                   vt.data(), &n_, work_.data(), &work_size_,
                   real_work_.data(), &info_, 1, 1);
    } else {
      table_.gesvd("A", "A", &n_, &n_, a.data(), &n_, s.data(), u.data(), &n_,
                   vt.data(), &n_, work_.data(), &work_size_, &info_, 1, 1);
    }
  }
  // x holds the right-hand sides, then the solution. Returns the rank found.
  int least_squares(const std::string& solver, Vector a, Vector& x) {
    int rank = kN;
    if (solver == "gels") {
      table_.gels("N", &n_, &n_, &n_, a.data(), &n_, x.data(), &n_,
                  work_.data(), &work_size_, &info_, 1);
    } else if constexpr (kComplex<T>) {
      if (solver == "gelsy") {
        table_.gelsy(&n_, &n_, &n_, a.data(), &n_, x.data(), &n_,
                     jpvt_.data(), &rcond_, &rank, work_.data(), &work_size_,
                     real_work_.data(), &info_);
      } else if (solver == "gelsd") {
        table_.gelsd(&n_, &n_, &n_, a.data(), &n_, x.data(), &n_, s_.data(),
                     &rcond_, &rank, work_.data(), &work_size_,
                     real_work_.data(), int_work_.data(), &info_);
      } else {
        table_.gelss(&n_, &n_, &n_, a.data(), &n_, x.data(), &n_, s_.data(),
                     &rcond_, &rank, work_.data(), &work_size_,
                     real_work_.data(), &info_);
      }
    } else if (solver == "gelsy") {
      table_.gelsy(&n_, &n_, &n_, a.data(), &n_, x.data(), &n_, jpvt_.data(),
                   &rcond_, &rank, work_.data(), &work_size_, &info_);
    } else if (solver == "gelsd") {
      table_.gelsd(&n_, &n_, &n_, a.data(), &n_, x.data(), &n_, s_.data(),
                   &rcond_, &rank, work_.data(), &work_size_,
                   int_work_.data(), &info_);
    } else {
      table_.gelss(&n_, &n_, &n_, a.data(), &n_, x.data(), &n_, s_.data(),
                   &rcond_, &rank, work_.data(), &work_size_, &info_);
    }
    return rank;
  }
  // clang-format on

  const R rcond_ = R(1e-6);
  std::vector<R> s_ = std::vector<R>(kN);
  std::vector<int> jpvt_ = std::vector<int>(kN, 0);
  const Routines<T>& table_ = lapack<T>();
  const int n_ = kN;
  const int work_size_ = 400 * kN;
  int info_ = -1;
  double bound_ = 0;
  std::vector<T> a_;
  std::vector<T> b_;
  std::vector<T> hermitian_;
  std::vector<T> work_ = std::vector<T>(400 * kN);
  std::vector<R> real_work_ = std::vector<R>(400 * kN);
  std::vector<int> int_work_ = std::vector<int>(400 * kN);
  std::vector<int> pivots_ = std::vector<int>(kN);
};

using Types = ::testing::Types<float, double, complex<float>, complex<double>>;
TYPED_TEST_SUITE(Lapack, Types);

TYPED_TEST(Lapack, LuSolveAndInverse) {
  using T = TypeParam;
  auto lu = this->a_;
  this->table_.getrf(&this->n_,
                     &this->n_,
                     lu.data(),
                     &this->n_,
                     this->pivots_.data(),
                     &this->info_);
  ASSERT_EQ(this->info_, 0);
  auto x = this->b_;
  this->table_.getrs("N",
                     &this->n_,
                     &this->n_,
                     lu.data(),
                     &this->n_,
                     this->pivots_.data(),
                     x.data(),
                     &this->n_,
                     &this->info_,
                     1);
  ASSERT_EQ(this->info_, 0);
  EXPECT_LT(gap(times<T>("N", this->a_, "N", x), this->b_), this->bound_);
  this->table_.getri(&this->n_,
                     lu.data(),
                     &this->n_,
                     this->pivots_.data(),
                     this->work_.data(),
                     &this->work_size_,
                     &this->info_);
  ASSERT_EQ(this->info_, 0);
  EXPECT_LT(gap(times<T>("N", this->a_, "N", lu), identity<T>()), this->bound_);
}

TYPED_TEST(Lapack, Cholesky) {
  using T = TypeParam;
  auto l = this->hermitian_;
  this->table_.potrf("L", &this->n_, l.data(), &this->n_, &this->info_, 1);
  ASSERT_EQ(this->info_, 0);
  auto x = this->b_;
  this->table_.potrs("L",
                     &this->n_,
                     &this->n_,
                     l.data(),
                     &this->n_,
                     x.data(),
                     &this->n_,
                     &this->info_,
                     1);
  EXPECT_LT(gap(times<T>("N", this->hermitian_, "N", x), this->b_),
            this->bound_);
  // L y = b by trtrs and by trsm.
  auto y = this->b_;
  auto z = this->b_;
  this->table_.trtrs("L",
                     "N",
                     "N",
                     &this->n_,
                     &this->n_,
                     l.data(),
                     &this->n_,
                     y.data(),
                     &this->n_,
                     &this->info_,
                     1,
                     1,
                     1);
  const T one(1);
  this->table_.trsm("L",
                    "L",
                    "N",
                    "N",
                    &this->n_,
                    &this->n_,
                    &one,
                    l.data(),
                    &this->n_,
                    z.data(),
                    &this->n_,
                    1,
                    1,
                    1,
                    1);
  EXPECT_LT(gap(y, z), this->bound_);
  this->table_.potri("L", &this->n_, l.data(), &this->n_, &this->info_, 1);
  ASSERT_EQ(this->info_, 0);
  // The inverse's last diagonal entry, against the solution of the last unit
  // vector.
  auto unit = identity<T>();
  this->table_.potrf(
      "U", &this->n_, this->hermitian_.data(), &this->n_, &this->info_, 1);
  this->table_.potrs("U",
                     &this->n_,
                     &this->n_,
                     this->hermitian_.data(),
                     &this->n_,
                     unit.data(),
                     &this->n_,
                     &this->info_,
                     1);
  EXPECT_LT(size_of<T>(unit.back() - l.back()), this->bound_);
}

TYPED_TEST(Lapack, Qr) {
  using T = TypeParam;
  auto qr = this->a_;
  std::vector<T> tau(kN);
  this->table_.geqrf(&this->n_,
                     &this->n_,
                     qr.data(),
                     &this->n_,
                     tau.data(),
                     this->work_.data(),
                     &this->work_size_,
                     &this->info_);
  ASSERT_EQ(this->info_, 0);
  auto r = qr;
  for (size_t j = 0; j < kN; ++j) {
    for (size_t i = j + 1; i < kN; ++i) {
      r[j * kN + i] = T(0);
    }
  }
  auto q = qr;
  this->table_.orgqr(&this->n_,
                     &this->n_,
                     &this->n_,
                     q.data(),
                     &this->n_,
                     tau.data(),
                     this->work_.data(),
                     &this->work_size_,
                     &this->info_);
  ASSERT_EQ(this->info_, 0);
  EXPECT_LT(gap(times<T>(adjoint<T>(), q, "N", q), identity<T>()),
            this->bound_);
  EXPECT_LT(gap(times<T>("N", q, "N", r), this->a_), this->bound_);
  this->table_.ormqr("L",
                     "N",
                     &this->n_,
                     &this->n_,
                     &this->n_,
                     qr.data(),
                     &this->n_,
                     tau.data(),
                     r.data(),
                     &this->n_,
                     this->work_.data(),
                     &this->work_size_,
                     &this->info_,
                     1,
                     1);
  EXPECT_LT(gap(r, this->a_), this->bound_);
}

TYPED_TEST(Lapack, HermitianEigenvalues) {
  using T = TypeParam;
  using R = real_t<T>;
  auto v = this->hermitian_;
  std::vector<R> w(kN);
  if constexpr (kComplex<T>) {
    this->table_.syevd("V",
                       "L",
                       &this->n_,
                       v.data(),
                       &this->n_,
                       w.data(),
                       this->work_.data(),
                       &this->work_size_,
                       this->real_work_.data(),
                       &this->work_size_,
                       this->int_work_.data(),
                       &this->work_size_,
                       &this->info_,
                       1,
                       1);
  } else {
    this->table_.syevd("V",
                       "L",
                       &this->n_,
                       v.data(),
                       &this->n_,
                       w.data(),
                       this->work_.data(),
                       &this->work_size_,
                       this->int_work_.data(),
                       &this->work_size_,
                       &this->info_,
                       1,
                       1);
  }
  ASSERT_EQ(this->info_, 0);
  EXPECT_LT(gap(times<T>("N", this->hermitian_, "N", v), this->scaled(v, w)),
            this->bound_);
}

TYPED_TEST(Lapack, GeneralEigenvaluesSumToTheTrace) {
  using T = TypeParam;
  using R = real_t<T>;
  auto a = this->a_;
  std::vector<T> w(kN);
  std::vector<T> left(kCount);
  std::vector<T> right(kCount);
  if constexpr (kComplex<T>) {
    this->table_.geev("V",
                      "V",
                      &this->n_,
                      a.data(),
                      &this->n_,
                      w.data(),
                      left.data(),
                      &this->n_,
                      right.data(),
                      &this->n_,
                      this->work_.data(),
                      &this->work_size_,
                      this->real_work_.data(),
                      &this->info_,
                      1,
                      1);
  } else {
    std::vector<R> imaginary(kN);
    this->table_.geev("V",
                      "V",
                      &this->n_,
                      a.data(),
                      &this->n_,
                      w.data(),
                      imaginary.data(),
                      left.data(),
                      &this->n_,
                      right.data(),
                      &this->n_,
                      this->work_.data(),
                      &this->work_size_,
                      &this->info_,
                      1,
                      1);
  }
  ASSERT_EQ(this->info_, 0);
  T difference(0);
  for (size_t i = 0; i < kN; ++i) {
    difference += w[i] - this->a_[i * kN + i];
  }
  EXPECT_LT(size_of<T>(difference), this->bound_);
}

TYPED_TEST(Lapack, SingularValues) {
  using T = TypeParam;
  for (const bool divide : {true, false}) {
    std::vector<real_t<T>> s(kN);
    std::vector<T> u(kCount);
    std::vector<T> vt(kCount);
    if (divide) {
      this->gesdd(this->a_, s, u, vt);
    } else {
      this->gesvd(this->a_, s, u, vt);
    }
    ASSERT_EQ(this->info_, 0);
    const auto back = times<T>("N", this->scaled(u, s), "N", vt);
    EXPECT_LT(gap(back, this->a_), this->bound_);
  }
}

TYPED_TEST(Lapack, LeastSquaresSolversAgree) {
  using T = TypeParam;
  for (const char* solver : {"gels", "gelsy", "gelsd", "gelss"}) {
    SCOPED_TRACE(solver);
    auto x = this->b_;
    const int rank = this->least_squares(solver, this->a_, x);
    ASSERT_EQ(this->info_, 0);
    EXPECT_EQ(rank, kN);
    EXPECT_LT(gap(times<T>("N", this->a_, "N", x), this->b_), this->bound_);
  }
}

TYPED_TEST(Lapack, IndefiniteSolve) {
  using T = TypeParam;
  // For complex types sytrf means symmetric, not Hermitian.
  auto symmetric = times<T>("T", this->a_, "N", this->a_);
  auto factor = symmetric;
  auto x = this->b_;
  this->table_.sytrf("L",
                     &this->n_,
                     factor.data(),
                     &this->n_,
                     this->pivots_.data(),
                     this->work_.data(),
                     &this->work_size_,
                     &this->info_,
                     1);
  ASSERT_EQ(this->info_, 0);
  this->table_.sytrs("L",
                     &this->n_,
                     &this->n_,
                     factor.data(),
                     &this->n_,
                     this->pivots_.data(),
                     x.data(),
                     &this->n_,
                     &this->info_,
                     1);
  EXPECT_LT(gap(times<T>("N", symmetric, "N", x), this->b_), this->bound_);
  if constexpr (kComplex<T>) {
    factor = this->hermitian_;
    x = this->b_;
    this->table_.hetrf("L",
                       &this->n_,
                       factor.data(),
                       &this->n_,
                       this->pivots_.data(),
                       this->work_.data(),
                       &this->work_size_,
                       &this->info_,
                       1);
    ASSERT_EQ(this->info_, 0);
    this->table_.hetrs("L",
                       &this->n_,
                       &this->n_,
                       factor.data(),
                       &this->n_,
                       this->pivots_.data(),
                       x.data(),
                       &this->n_,
                       &this->info_,
                       1);
    EXPECT_LT(gap(times<T>("N", this->hermitian_, "N", x), this->b_),
              this->bound_);
  }
}

TEST(LoadLibrary, AMissingFileIsARuntimeErrorThatNamesIt) {
  try {
    load_library("libtaeda_not_there.so", "a test");
    FAIL() << "no exception";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::Runtime);
    const std::string text = error.what();
    EXPECT_NE(text.find("libtaeda_not_there.so"), std::string::npos) << text;
    EXPECT_NE(text.find("a test"), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace taeda::blas
