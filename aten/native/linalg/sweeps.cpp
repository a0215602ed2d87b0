// Reflections bring the matrix to tridiagonal form, the implicit QR iteration
// brings that to a diagonal: G. H. Golub, C. F. Van Loan, "Matrix
// Computations", 8.3; shifts by J. H. Wilkinson, "The algebraic eigenvalue
// problem" (1965).
#include <taeda/aten/native/linalg/sweeps.h>

#include <taeda/aten/native/cpu/isa_table.h>
#include <taeda/aten/native/linalg/reflected.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

namespace taeda::native {

namespace {

// Rotations of rows first and first + step, then of the next two, and so on.
struct Sweep {
  int64_t first, step, count;
  const double *c, *s;
};

class Tridiagonal {
 public:
  // d: the diagonal of n numbers, e: the n - 1 beside it. Numbers beside it are
  // negligible at eps times their neighbours.
  Tridiagonal(int64_t n, double* d, double* e, double eps)
      : n_(n), d_(d), e_(e), eps_(eps) {
    size_t count = static_cast<size_t>(n);
    c_.resize(count);
    s_.resize(count);
    for (int64_t i = 0; i < n; ++i) least_ = std::max(least_, std::abs(d[i]));
    for (int64_t i = 0; i + 1 < n; ++i) {
      least_ = std::max(least_, std::abs(e[i]));
    }
    least_ *= eps * eps;
  }

  // Leaves the eigenvalues in d; rotate(sweep) is told of all rotations. False
  // if that takes too long.
  template <class F>
  bool solve(const F& rotate) {
    int64_t high = n_ - 1, left = 30 * n_, begin = n_, end = 0;
    while (high > 0) {
      if (negligible(high - 1)) {
        e_[--high] = 0;
        continue;
      }
      int64_t low = high - 1;
      while (low > 0 && !negligible(low - 1)) --low;
      if (low > 0) e_[low - 1] = 0;
      if (low + 1 == high) {
        rotate(two_by_two(low));
        --high;
        continue;
      }
      if (left-- == 0) return false;
      // From the larger end to the smaller one, which graded matrices want. A
      // block that only lost rows keeps its direction.
      if (low < begin || high > end) {
        upward_ = std::abs(d_[low]) < std::abs(d_[high]);
      }
      begin = low;
      end = high;
      rotate(upward_ ? sweep(high, -1, high - low, e_ + high - 1)
                     : sweep(low, 1, high - low, e_ + low));
    }
    return true;
  }

 private:
  bool negligible(int64_t i) const {
    double x = std::abs(e_[i]);
    if (x <= least_) return true;
    return x * x <= eps_ * eps_ * std::abs(d_[i]) * std::abs(d_[i + 1]);
  }

  Sweep two_by_two(int64_t i) {
    double ratio = (d_[i + 1] - d_[i]) / (2 * e_[i]);
    double t = 1 / (std::abs(ratio) + std::sqrt(1 + ratio * ratio));
    if (ratio < 0) t = -t;
    double c = 1 / std::sqrt(1 + t * t);
    d_[i] -= t * e_[i];
    d_[i + 1] += t * e_[i];
    e_[i] = 0;
    c_[0] = c;
    s_[0] = -t * c;
    return {i, 1, 1, c_.data(), s_.data()};
  }

  // One step of the iteration on `count` + 1 numbers from d[first] on; `beside`
  // is the first of those beside them.
  Sweep sweep(int64_t first, int64_t step, int64_t count, double* beside) {
    double *d = d_ + first, *e = beside, *c = c_.data(), *s = s_.data();
    double x =
        d[0] -
        shift(d[(count - 1) * step], e[(count - 1) * step], d[count * step]);
    double now = d[0], next_to = e[0], z = next_to;
    for (int64_t k = 0; k < count; ++k, ++c, ++s, d += step, e += step) {
      double r = std::sqrt(x * x + z * z);
      *c = r != 0 ? x / r : 1;
      *s = r != 0 ? z / r : 0;
      if (k > 0) e[-step] = r;
      double after = d[step], t = *s * (after - now) + 2 * *c * next_to;
      *d = now + *s * t;
      now = after - *s * t;
      x = *c * t - next_to;
      if (k + 1 == count) break;
      z = *s * e[step];
      next_to = *c * e[step];
    }
    d[step] = now;
    *e = x;
    return {first, step, count, c_.data(), s_.data()};
  }

  // The eigenvalue of [[a, b], [b, c]] that is closer to c.
  static double shift(double a, double b, double c) {
    double half = (a - c) / 2, root = std::sqrt(half * half + b * b);
    return c - b * (b / (half + (half < 0 ? -root : root)));
  }

  int64_t n_;
  double *d_, *e_, eps_, least_ = 0;
  std::vector<double> c_, s_;
  bool upward_ = false;
};

// Q of the tridiagonal form, transposed: its rows become eigenvectors.
template <class T>
void transposed_product(const Reflections<T>& given,
                        const AlignedMatrix<T>& rows) {
  int64_t n = given.n;
  AlignedMatrix<T> q(n, n);
  Reflections<T> r = given;
  r.count = n - 1;
  r.a = q.row(0);
  r.lda = q.stride();
  TAEDA_ISA_TABLE(kReflections).of<T>().product(r);
  constexpr int64_t kTile = 8;
  for (int64_t from = 0; from < n; from += kTile) {
    int64_t to = std::min(from + kTile, n);
    for (int64_t j = 0; j < n; ++j) {
      for (int64_t i = from; i < to; ++i) rows(j, i) = q(i, j);
    }
  }
}

// By insertion, as they are few and often nearly in order.
void sort_values(int64_t n, double* values, int64_t* order) {
  for (int64_t k = 1; k < n; ++k) {
    double value = values[k];
    int64_t place = order[k], at = k;
    for (; at > 0 && values[at - 1] > value; --at) {
      values[at] = values[at - 1];
      order[at] = order[at - 1];
    }
    values[at] = value;
    order[at] = place;
  }
}

// A row that many roundings took a little away from length 1.
template <class T>
void put_unit(const T* row, int64_t n, T* to) {
  constexpr int kParts = 4;
  double parts[kParts] = {};
  for (int64_t i = 0; i < n; ++i) {
    parts[i % kParts] += static_cast<double>(row[i]) * row[i];
  }
  double length = std::sqrt((parts[0] + parts[1]) + (parts[2] + parts[3]));
  T factor = static_cast<T>(1 / length - 1);
  for (int64_t i = 0; i < n; ++i) to[i] = row[i] + row[i] * factor;
}

}  // namespace

template <class T>
bool eigh_by_sweeps(int64_t n, T* matrix, T* w, bool lower, bool vectors) {
  // In double, rotations of single precision are as good as single numbers get.
  constexpr double kEps = sizeof(T) == sizeof(float) ? 0x1p-30 : 0x1p-53;
  const auto& kernels = TAEDA_ISA_TABLE(kReflections).of<T>();
  AlignedMatrix<T> a(n, n), v(n, n), numbers(3, n);
  for (int64_t j = 0; j < n; ++j) {
    int64_t begin = lower ? j : 0, end = lower ? n : j + 1;
    for (int64_t i = begin; i < end; ++i) {
      a(i, j) = a(j, i) = matrix[j * n + i];
    }
  }
  Reflections<T> r = {
      n, n, n, a.row(0), a.stride(), v.row(0), v.stride(), numbers.row(2)};
  if (!kernels.tridiagonal(r, numbers.row(0), numbers.row(1))) return false;
  std::vector<double> d(numbers.row(0), numbers.row(0) + n);
  std::vector<double> e(numbers.row(1), numbers.row(1) + n);
  Tridiagonal form(n, d.data(), e.data(), kEps);
  // Products of two of them must be representable; a NaN is not below either.
  auto moderate = [](double x) { return std::abs(x) < 0x1p500; };
  if (!std::all_of(d.begin(), d.end(), moderate)) return false;
  std::vector<int64_t> order(static_cast<size_t>(n));
  std::iota(order.begin(), order.end(), 0);
  if (!vectors) {
    if (!form.solve([](const Sweep&) {})) return false;
    sort_values(n, d.data(), order.data());
    std::copy(d.begin(), d.end(), w);
    return true;
  }
  const AlignedMatrix<T>& rows = a;
  transposed_product(r, rows);
  AlignedMatrix<T> turns(2, n);
  bool ended = form.solve([&](const Sweep& sweep) {
    std::copy_n(sweep.c, sweep.count, turns.row(0));
    std::copy_n(sweep.s, sweep.count, turns.row(1));
    kernels.rotate(sweep.count,
                   rows.row(sweep.first),
                   sweep.step * rows.stride(),
                   n,
                   turns.row(0),
                   turns.row(1));
  });
  if (!ended) return false;
  sort_values(n, d.data(), order.data());
  std::copy(d.begin(), d.end(), w);
  for (int64_t k = 0; k < n; ++k) {
    put_unit(rows.row(order[static_cast<size_t>(k)]), n, matrix + k * n);
  }
  return true;
}

template bool eigh_by_sweeps(int64_t, float*, float*, bool, bool);
template bool eigh_by_sweeps(int64_t, double*, double*, bool, bool);

}  // namespace taeda::native
