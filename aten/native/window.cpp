// Window functions, and complex numbers of two real tensors.
#include <taeda/aten/iter/copy.h>
#include <taeda/aten/iter/pointwise.h>
#include <taeda/aten/native/creation.h>
#include <taeda/gen/native/bartlett_window.h>
#include <taeda/gen/native/blackman_window.h>
#include <taeda/gen/native/complex.h>
#include <taeda/gen/native/hamming_window.h>
#include <taeda/gen/native/hann_window.h>
#include <taeda/gen/native/kaiser_window.h>
#include <taeda/gen/native/polar.h>

#include <cmath>

namespace taeda::native {

using Dtype = std::optional<ScalarType>;
using MaybeLayout = std::optional<Layout>;
using MaybeDevice = std::optional<Device>;
using MaybeBool = std::optional<bool>;

namespace {

constexpr double kPi = 3.14159265358979323846;

// value(x) for the positions x = 0 ... 1 of a window.
template <class F>
Tensor window(std::string_view op,
              int64_t length,
              bool periodic,
              Dtype dtype,
              MaybeLayout layout,
              MaybeDevice device,
              F&& value) {
  ScalarType t = dtype.value_or(default_dtype());
  TAEDA_CHECK(is_floating(t), op, " expects floating point dtypes, got: ", t);
  TAEDA_CHECK(length >= 0,
              op,
              " requires non-negative window_length, got window_length=",
              length);
  Tensor out = new_tensor(op, {length}, t, layout, device);
  if (!out.is_cpu()) return out;
  Tensor exact = make_tensor(op, {length}, kDouble);
  double* data = exact.mutable_data<double>();
  double last = static_cast<double>(periodic ? length : length - 1);
  for (int64_t i = 0; i < length; ++i) {
    data[i] = length == 1 ? 1.0 : value(static_cast<double>(i) / last);
  }
  copy_into(out, exact);
  return out;
}

Tensor cosine_window(std::string_view op,
                     int64_t length,
                     bool periodic,
                     double alpha,
                     double beta,
                     Dtype dtype,
                     MaybeLayout layout,
                     MaybeDevice device) {
  return window(op, length, periodic, dtype, layout, device, [=](double x) {
    return alpha - beta * std::cos(2 * kPi * x);
  });
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

Tensor hann_window(int64_t length,
                   bool periodic,
                   Dtype dtype,
                   MaybeLayout layout,
                   MaybeDevice device,
                   MaybeBool) {
  return cosine_window(
      "hann_window", length, periodic, 0.5, 0.5, dtype, layout, device);
}
Tensor hann_window(int64_t length,
                   Dtype dtype,
                   MaybeLayout layout,
                   MaybeDevice device,
                   MaybeBool pin) {
  return hann_window(length, true, dtype, layout, device, pin);
}

Tensor hamming_window(int64_t length,
                      bool periodic,
                      double alpha,
                      double beta,
                      Dtype dtype,
                      MaybeLayout layout,
                      MaybeDevice device,
                      MaybeBool) {
  return cosine_window(
      "hamming_window", length, periodic, alpha, beta, dtype, layout, device);
}
Tensor hamming_window(int64_t length,
                      bool periodic,
                      double alpha,
                      Dtype dtype,
                      MaybeLayout layout,
                      MaybeDevice device,
                      MaybeBool pin) {
  return hamming_window(
      length, periodic, alpha, 0.46, dtype, layout, device, pin);
}
Tensor hamming_window(int64_t length,
                      bool periodic,
                      Dtype dtype,
                      MaybeLayout layout,
                      MaybeDevice device,
                      MaybeBool pin) {
  return hamming_window(
      length, periodic, 0.54, 0.46, dtype, layout, device, pin);
}
Tensor hamming_window(int64_t length,
                      Dtype dtype,
                      MaybeLayout layout,
                      MaybeDevice device,
                      MaybeBool pin) {
  return hamming_window(length, true, 0.54, 0.46, dtype, layout, device, pin);
}

Tensor bartlett_window(int64_t length,
                       bool periodic,
                       Dtype dtype,
                       MaybeLayout layout,
                       MaybeDevice device,
                       MaybeBool) {
  return window(
      "bartlett_window", length, periodic, dtype, layout, device, [](double x) {
        return x <= 0.5 ? 2 * x : 2 - 2 * x;
      });
}
Tensor bartlett_window(int64_t length,
                       Dtype dtype,
                       MaybeLayout layout,
                       MaybeDevice device,
                       MaybeBool pin) {
  return bartlett_window(length, true, dtype, layout, device, pin);
}

Tensor blackman_window(int64_t length,
                       bool periodic,
                       Dtype dtype,
                       MaybeLayout layout,
                       MaybeDevice device,
                       MaybeBool) {
  return window(
      "blackman_window", length, periodic, dtype, layout, device, [](double x) {
        return 0.42 - 0.5 * std::cos(2 * kPi * x) +
               0.08 * std::cos(4 * kPi * x);
      });
}
Tensor blackman_window(int64_t length,
                       Dtype dtype,
                       MaybeLayout layout,
                       MaybeDevice device,
                       MaybeBool pin) {
  return blackman_window(length, true, dtype, layout, device, pin);
}

Tensor kaiser_window(int64_t length,
                     bool periodic,
                     double beta,
                     Dtype dtype,
                     MaybeLayout layout,
                     MaybeDevice device,
                     MaybeBool) {
  double scale = bessel_i0(beta);
  return window(
      "kaiser_window", length, periodic, dtype, layout, device, [=](double x) {
        double y = 2 * x - 1;
        double inside = std::max(0.0, 1 - y * y);
        return bessel_i0(beta * std::sqrt(inside)) / scale;
      });
}
Tensor kaiser_window(int64_t length,
                     bool periodic,
                     Dtype dtype,
                     MaybeLayout layout,
                     MaybeDevice device,
                     MaybeBool pin) {
  return kaiser_window(length, periodic, 12.0, dtype, layout, device, pin);
}
Tensor kaiser_window(int64_t length,
                     Dtype dtype,
                     MaybeLayout layout,
                     MaybeDevice device,
                     MaybeBool pin) {
  return kaiser_window(length, true, 12.0, dtype, layout, device, pin);
}

// Complex numbers of two tensors ---------------------------------------------

namespace {

// make(a, b, real, imag) writes one element.
template <class F>
Tensor pairs(std::string_view op, const Tensor& a, const Tensor& b, F&& make) {
  ScalarType t = a.dtype();
  TAEDA_CHECK(t == kFloat || t == kDouble || t == kHalf,
              "Expected both inputs to be Half, Float or Double tensors but "
              "got ",
              a.dtype(),
              " and ",
              b.dtype());
  TAEDA_CHECK(t == b.dtype(),
              "Expected object of scalar type ",
              a.dtype(),
              " but got scalar type ",
              b.dtype(),
              " for second argument");
  DimVector shape = broadcast_shapes<int64_t>(op, a.sizes(), b.sizes());
  Tensor out = make_tensor(op, shape, complex_type_of(t), a.device());
  if (!out.is_cpu()) return out;
  Tensor x = make_tensor(op, shape, kDouble),
         y = make_tensor(op, shape, kDouble);
  copy_into(x, a);
  copy_into(y, b);
  const double* p = x.const_data<double>();
  const double* q = y.const_data<double>();
  Tensor flat = make_tensor(op, shape, kComplexDouble);
  auto* r = flat.mutable_data<taeda::complex<double>>();
  for (int64_t i = 0, n = x.numel(); i < n; ++i) r[i] = make(p[i], q[i]);
  copy_into(out, flat);
  return out;
}

}  // namespace

Tensor make_complex(const Tensor& real, const Tensor& imag) {
  return pairs("complex", real, imag, [](double a, double b) {
    return taeda::complex<double>(a, b);
  });
}

Tensor polar(const Tensor& abs, const Tensor& angle) {
  return pairs("polar", abs, angle, [](double r, double a) {
    return taeda::complex<double>(r * std::cos(a), r * std::sin(a));
  });
}

}  // namespace taeda::native
