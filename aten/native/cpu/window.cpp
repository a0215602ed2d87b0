// Window functions, and complex numbers of two real tensors.
#include <taeda/aten/iter/copy.h>
#include <taeda/aten/native/creation.h>
#include <taeda/gen/native/bartlett_window.h>
#include <taeda/gen/native/blackman_window.h>
#include <taeda/gen/native/complex.h>
#include <taeda/gen/native/hamming_window.h>
#include <taeda/gen/native/hann_window.h>
#include <taeda/gen/native/kaiser_window.h>
#include <taeda/gen/native/polar.h>
#include <taeda/gen/ops/cos.h>

#include <cmath>

namespace taeda::native {

namespace {

constexpr double kPi = 3.14159265358979323846;

// value(x) for the positions x = 0 ... 1 of a window.
template <class F>
Tensor at_positions(int64_t length, bool periodic, F&& value) {
  Tensor exact = make_tensor("window", {length}, kDouble);
  double* data = exact.mutable_data<double>();
  double last = static_cast<double>(periodic ? length : length - 1);
  for (int64_t i = 0; i < length; ++i) {
    data[i] = value(static_cast<double>(i) / last);
  }
  return exact;
}

// A window of one point is 1.
template <class F>
void window(int64_t length, bool periodic, const Tensor& out, F&& value) {
  if (length == 1) return fill_with(out, 1.0);
  copy_into(out, at_positions(length, periodic, value));
}

// value(cos(2 pi x)) for the positions.
template <class F>
void cosine_window(int64_t length,
                   bool periodic,
                   const Tensor& out,
                   F&& value) {
  if (length == 1) return fill_with(out, 1.0);
  Tensor exact =
      at_positions(length, periodic, [](double x) { return 2 * kPi * x; });
  ops::cos_(exact);
  double* data = exact.mutable_data<double>();
  for (int64_t i = 0; i < length; ++i) data[i] = value(data[i]);
  copy_into(out, exact);
}

void cosine_window(int64_t length,
                   bool periodic,
                   double alpha,
                   double beta,
                   const Tensor& out) {
  cosine_window(
      length, periodic, out, [=](double c) { return alpha - beta * c; });
}

// The modified Bessel function I0 by its power series, whose terms all have one
// sign; quick for the arguments that windows have.
double bessel_i0(double x) {
  double term = 1, sum = 1, half = x / 2;
  for (int k = 1; k < 1000 && term > sum * 1e-18; ++k) {
    term *= (half / k) * (half / k);
    sum += term;
  }
  return sum;
}

}  // namespace

void hann_window_cpu(int64_t length,
                     bool periodic,
                     Dtype,
                     MaybeLayout,
                     MaybeDevice,
                     MaybeBool,
                     const Tensor& out) {
  cosine_window(length, periodic, 0.5, 0.5, out);
}
void hann_window_cpu(int64_t length,
                     Dtype,
                     MaybeLayout,
                     MaybeDevice,
                     MaybeBool,
                     const Tensor& out) {
  cosine_window(length, true, 0.5, 0.5, out);
}

void hamming_window_cpu(int64_t length,
                        bool periodic,
                        double alpha,
                        double beta,
                        Dtype,
                        MaybeLayout,
                        MaybeDevice,
                        MaybeBool,
                        const Tensor& out) {
  cosine_window(length, periodic, alpha, beta, out);
}
void hamming_window_cpu(int64_t length,
                        bool periodic,
                        double alpha,
                        Dtype,
                        MaybeLayout,
                        MaybeDevice,
                        MaybeBool,
                        const Tensor& out) {
  cosine_window(length, periodic, alpha, 0.46, out);
}
void hamming_window_cpu(int64_t length,
                        bool periodic,
                        Dtype,
                        MaybeLayout,
                        MaybeDevice,
                        MaybeBool,
                        const Tensor& out) {
  cosine_window(length, periodic, 0.54, 0.46, out);
}
void hamming_window_cpu(int64_t length,
                        Dtype,
                        MaybeLayout,
                        MaybeDevice,
                        MaybeBool,
                        const Tensor& out) {
  cosine_window(length, true, 0.54, 0.46, out);
}

namespace {

void bartlett(int64_t length, bool periodic, const Tensor& out) {
  window(length, periodic, out, [](double x) {
    return x <= 0.5 ? 2 * x : 2 - 2 * x;
  });
}

void blackman(int64_t length, bool periodic, const Tensor& out) {
  // The cosine of the doubled angle is 2 c^2 - 1.
  cosine_window(length, periodic, out, [](double c) {
    return 0.34 - 0.5 * c + 0.16 * c * c;
  });
}

void kaiser(int64_t length, bool periodic, double beta, const Tensor& out) {
  double scale = bessel_i0(beta);
  window(length, periodic, out, [=](double x) {
    double y = 2 * x - 1;
    double inside = std::max(0.0, 1 - y * y);
    return bessel_i0(beta * std::sqrt(inside)) / scale;
  });
}

}  // namespace

void bartlett_window_cpu(int64_t length,
                         bool periodic,
                         Dtype,
                         MaybeLayout,
                         MaybeDevice,
                         MaybeBool,
                         const Tensor& out) {
  bartlett(length, periodic, out);
}
void bartlett_window_cpu(int64_t length,
                         Dtype,
                         MaybeLayout,
                         MaybeDevice,
                         MaybeBool,
                         const Tensor& out) {
  bartlett(length, true, out);
}
void blackman_window_cpu(int64_t length,
                         bool periodic,
                         Dtype,
                         MaybeLayout,
                         MaybeDevice,
                         MaybeBool,
                         const Tensor& out) {
  blackman(length, periodic, out);
}
void blackman_window_cpu(int64_t length,
                         Dtype,
                         MaybeLayout,
                         MaybeDevice,
                         MaybeBool,
                         const Tensor& out) {
  blackman(length, true, out);
}
void kaiser_window_cpu(int64_t length,
                       bool periodic,
                       double beta,
                       Dtype,
                       MaybeLayout,
                       MaybeDevice,
                       MaybeBool,
                       const Tensor& out) {
  kaiser(length, periodic, beta, out);
}
void kaiser_window_cpu(int64_t length,
                       bool periodic,
                       Dtype,
                       MaybeLayout,
                       MaybeDevice,
                       MaybeBool,
                       const Tensor& out) {
  kaiser(length, periodic, 12.0, out);
}
void kaiser_window_cpu(int64_t length,
                       Dtype,
                       MaybeLayout,
                       MaybeDevice,
                       MaybeBool,
                       const Tensor& out) {
  kaiser(length, true, 12.0, out);
}

namespace {

// out = make(a, b) for each element.
template <class F>
void pairs(const Tensor& a, const Tensor& b, const Tensor& out, F&& make) {
  Tensor x = make_tensor("complex", out.sizes(), kDouble),
         y = make_tensor("complex", out.sizes(), kDouble);
  copy_into(x, a);
  copy_into(y, b);
  const double* p = x.const_data<double>();
  const double* q = y.const_data<double>();
  Tensor flat = make_tensor("complex", out.sizes(), kComplexDouble);
  auto* r = flat.mutable_data<taeda::complex<double>>();
  for (int64_t i = 0, n = x.numel(); i < n; ++i) r[i] = make(p[i], q[i]);
  copy_into(out, flat);
}

}  // namespace

void complex_cpu(const Tensor& real, const Tensor& imag, const Tensor& out) {
  pairs(real, imag, out, [](double a, double b) {
    return taeda::complex<double>(a, b);
  });
}

void polar_cpu(const Tensor& abs, const Tensor& angle, const Tensor& out) {
  pairs(abs, angle, out, [](double r, double a) {
    return taeda::complex<double>(r * std::cos(a), r * std::sin(a));
  });
}

}  // namespace taeda::native
