// Window functions, and complex numbers of two real tensors.
#include <taeda/aten/iter/copy.h>
#include <taeda/aten/native/creation.h>
#include <taeda/aten/parallel/parallel.h>
#include <taeda/gen/native/bartlett_window.h>
#include <taeda/gen/native/blackman_window.h>
#include <taeda/gen/native/complex.h>
#include <taeda/gen/native/hamming_window.h>
#include <taeda/gen/native/hann_window.h>
#include <taeda/gen/native/kaiser_window.h>
#include <taeda/gen/native/polar.h>
#include <taeda/gen/ops/cos.h>
#include <taeda/gen/ops/mul.h>
#include <taeda/gen/ops/sin.h>

#include <cmath>
#include <cstring>

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

// `t` as a dense tensor of sizes and dtype of the parts of `out`.
Tensor part_of(const Tensor& t, const Tensor& out, ScalarType dtype) {
  bool lazy = t.is_conj() || t.is_neg();
  if (t.dtype() == dtype && t.sizes() == out.sizes() && t.is_contiguous() &&
      !lazy) {
    return t;
  }
  Tensor part = make_tensor("complex", out.sizes(), dtype);
  copy_into(part, t);
  return part;
}

// Numbers of a and b in turns.
template <class T>
void alternate(const T* a, const T* b, T* out, int64_t n) {
  constexpr int kCount = 16 / sizeof(T);
  typedef T V __attribute__((vector_size(16)));
  parallel_for(0, n, 32768, [&](int64_t i, int64_t end) {
    for (; i + kCount <= end; i += kCount) {
      V x, y;
      std::memcpy(&x, a + i, sizeof(V));
      std::memcpy(&y, b + i, sizeof(V));
      V low, high;
      if constexpr (kCount == 4) {
        low = __builtin_shufflevector(x, y, 0, 4, 1, 5);
        high = __builtin_shufflevector(x, y, 2, 6, 3, 7);
      } else {
        low = __builtin_shufflevector(x, y, 0, 2);
        high = __builtin_shufflevector(x, y, 1, 3);
      }
      std::memcpy(out + 2 * i, &low, sizeof(V));
      std::memcpy(out + 2 * i + kCount, &high, sizeof(V));
    }
    for (; i < end; ++i) {
      out[2 * i] = a[i];
      out[2 * i + 1] = b[i];
    }
  });
}

}  // namespace

void complex_cpu(const Tensor& real, const Tensor& imag, const Tensor& out) {
  if (out.dtype() == kComplexHalf || !out.is_contiguous()) {
    ScalarType wide =
        out.dtype() == kComplexDouble ? out.dtype() : kComplexFloat;
    Tensor flat = make_tensor("complex", out.sizes(), wide);
    complex_cpu(real, imag, flat);
    return copy_into(out, flat);
  }
  ScalarType t = real_type_of(out.dtype());
  Tensor a = part_of(real, out, t), b = part_of(imag, out, t);
  int64_t n = out.numel();
  if (t == kFloat) {
    alternate(a.const_data<float>(),
              b.const_data<float>(),
              out.mutable_data<float>(),
              n);
  } else {
    alternate(a.const_data<double>(),
              b.const_data<double>(),
              out.mutable_data<double>(),
              n);
  }
}

void polar_cpu(const Tensor& abs, const Tensor& angle, const Tensor& out) {
  ScalarType t = out.dtype() == kComplexDouble ? kDouble : kFloat;
  Tensor r = part_of(abs, out, t), a = part_of(angle, out, t);
  complex_cpu(ops::mul(r, ops::cos(a)), ops::mul(r, ops::sin(a)), out);
}

}  // namespace taeda::native
