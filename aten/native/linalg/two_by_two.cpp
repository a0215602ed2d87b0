// The only source that includes Eigen.
#include <taeda/aten/native/linalg/two_by_two.h>

#include <Eigen/Eigenvalues>

#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>

namespace taeda::native {

namespace {

// Whether squares of numbers from `least` to `most` are normal numbers, with
// room for sums and for rounding.
template <class R>
bool squares_are_normal(R least, R most) {
  using Limits = std::numeric_limits<R>;
  const R low = std::sqrt(Limits::min()) / Limits::epsilon();
  const R high = std::sqrt(Limits::max()) * Limits::epsilon();
  return least > low && most < high;
}

// The power of two f with which diag(1, f)^-1 A diag(1, f) has two numbers of
// nearly one size beside its diagonal. Without it eigenvalues of badly scaled
// matrices lose digits that LAPACK keeps; Eigen has no such step. After
// B. N. Parlett and C. Reinsch, "Balancing a matrix for calculation of
// eigenvalues and eigenvectors", 1969.
template <class R>
R balance(R above, R below) {
  const R ratio = below / above;
  R factor = 1;
  for (R square = 1; square * 2 < ratio; square *= 4) factor *= 2;
  for (R square = 1; square > ratio * 2; square /= 4) factor /= 2;
  return factor;
}

// The multiple of x of norm 1 whose larger number is real and positive, as in
// LAPACK's eigenvectors. False where there is none.
template <class R>
bool write_vector(std::complex<R> x0, std::complex<R> x1, complex<R>* out) {
  const R first = std::norm(x0), second = std::norm(x1), sum = first + second;
  if (!(sum > 0) || !std::isfinite(sum)) return false;
  const bool swap = second > first;
  const std::complex<R> large = swap ? x1 : x0, small = swap ? x0 : x1;
  const R size = std::sqrt(std::max(first, second)), norm = std::sqrt(sum);
  const std::complex<R> other = small * std::conj(large) / (size * norm);
  out[swap ? 1 : 0] = complex<R>(size / norm, R(0));
  out[swap ? 0 : 1] = complex<R>(other.real(), other.imag());
  return true;
}

}  // namespace

template <class R>
bool eig_two_by_two(const R* matrix, complex<R>* values, complex<R>* vectors) {
  using Matrix = Eigen::Matrix<R, 2, 2>;
  Matrix a = Eigen::Map<const Matrix>(matrix);
  const R above = std::abs(a(0, 1)), below = std::abs(a(1, 0));
  const R most = a.cwiseAbs().maxCoeff();
  if (!squares_are_normal(std::min(above, below), most)) return false;
  const R factor = balance(above, below);
  a(0, 1) *= factor;
  a(1, 0) /= factor;
  // Eigen takes the second vector of a double eigenvalue for one of its own.
  const R half = (a(0, 0) - a(1, 1)) / 2, product = a(0, 1) * a(1, 0);
  const R rounding = 16 * std::numeric_limits<R>::epsilon();
  const R terms = half * half + std::abs(product);
  if (std::abs(half * half + product) <= rounding * terms) return false;
  const Eigen::EigenSolver<Matrix> solver(a, vectors != nullptr);
  if (solver.info() != Eigen::Success) return false;
  const auto& found = solver.eigenvalues();
  for (int j = 0; j < 2; ++j) {
    if (!std::isfinite(found[j].real() + found[j].imag())) return false;
    values[j] = complex<R>(found[j].real(), found[j].imag());
  }
  if (vectors == nullptr) return true;
  const auto v = solver.eigenvectors();
  return write_vector<R>(v(0, 0), v(1, 0) * factor, vectors) &&
         write_vector<R>(v(0, 1), v(1, 1) * factor, vectors + 2);
}

template bool eig_two_by_two(const double*, complex<double>*, complex<double>*);

// In double: Eigen's solver takes fifteen seconds to compile for each type.
template <>
bool eig_two_by_two(const float* matrix,
                    complex<float>* values,
                    complex<float>* vectors) {
  const double wide[4] = {matrix[0], matrix[1], matrix[2], matrix[3]};
  complex<double> found[2], directions[4];
  if (!eig_two_by_two(wide, found, vectors ? directions : nullptr)) {
    return false;
  }
  auto narrow = [](const complex<double>& v) {
    return complex<float>(static_cast<float>(v.real()),
                          static_cast<float>(v.imag()));
  };
  for (int j = 0; j < 2; ++j) {
    values[j] = narrow(found[j]);
    if (!std::isfinite(values[j].real() + values[j].imag())) return false;
  }
  for (int j = 0; vectors != nullptr && j < 4; ++j) {
    vectors[j] = narrow(directions[j]);
  }
  return true;
}

}  // namespace taeda::native
