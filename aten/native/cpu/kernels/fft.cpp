#include <taeda/aten/native/cpu/kernels/fft.h>
#include <taeda/aten/native/cpu/kernels/isa.h>

TAEDA_ISA_BEGIN

namespace {

template <class T>
struct Pair {
  T re, im;
};
template <class T>
Pair<T> operator+(Pair<T> a, Pair<T> b) {
  return {a.re + b.re, a.im + b.im};
}
template <class T>
Pair<T> operator-(Pair<T> a, Pair<T> b) {
  return {a.re - b.re, a.im - b.im};
}
template <class T>
Pair<T> operator*(T c, Pair<T> a) {
  return {c * a.re, c * a.im};
}
// a divided by i: a quarter turn clockwise.
template <class T>
Pair<T> turned(Pair<T> a) {
  return {a.im, -a.re};
}
template <class T>
Pair<T> times(Pair<T> a, T re, T im) {
  return {a.re * re - a.im * im, a.re * im + a.im * re};
}

template <class T>
[[gnu::always_inline]] inline void butterfly(Pair<T> (&a)[2]) {
  Pair<T> d = a[0] - a[1];
  a[0] = a[0] + a[1];
  a[1] = d;
}

template <class T>
[[gnu::always_inline]] inline void butterfly(Pair<T> (&a)[3]) {
  constexpr T kSin = T(0.866025403784438646763723170752936183L);
  Pair<T> sum = a[1] + a[2], side = turned(kSin * (a[1] - a[2]));
  Pair<T> mid = a[0] - T(0.5) * sum;
  a[0] = a[0] + sum;
  a[1] = mid + side;
  a[2] = mid - side;
}

template <class T>
[[gnu::always_inline]] inline void butterfly(Pair<T> (&a)[4]) {
  Pair<T> p = a[0] + a[2], q = a[0] - a[2];
  Pair<T> r = a[1] + a[3], s = turned(a[1] - a[3]);
  a[0] = p + r;
  a[1] = q + s;
  a[2] = p - r;
  a[3] = q - s;
}

template <class T>
[[gnu::always_inline]] inline void butterfly(Pair<T> (&a)[5]) {
  constexpr T kCos1 = T(0.309016994374947424102293417182819059L);
  constexpr T kCos2 = T(-0.809016994374947424102293417182819059L);
  constexpr T kSin1 = T(0.951056516295153572116439333379382143L);
  constexpr T kSin2 = T(0.587785252292473129168705954639072769L);
  Pair<T> s1 = a[1] + a[4], d1 = a[1] - a[4];
  Pair<T> s2 = a[2] + a[3], d2 = a[2] - a[3];
  Pair<T> p = a[0] + kCos1 * s1 + kCos2 * s2;
  Pair<T> q = a[0] + kCos2 * s1 + kCos1 * s2;
  Pair<T> u = turned(kSin1 * d1 + kSin2 * d2);
  Pair<T> v = turned(kSin2 * d1 - kSin1 * d2);
  a[0] = a[0] + s1 + s2;
  a[1] = p + u;
  a[2] = q + v;
  a[3] = q - v;
  a[4] = p - u;
}

template <class T, int R>
void stage_of(const FftStage<T>& stage,
              const T* __restrict in_re,
              const T* __restrict in_im,
              T* __restrict out_re,
              T* __restrict out_im) {
  int64_t s = stage.stride, far = stage.parts * s;
  for (int64_t p = 0; p < stage.parts; ++p) {
    T re[R], im[R];
    for (int k = 1; k < R; ++k) {
      re[k] = stage.re[p * (R - 1) + k - 1];
      im[k] = stage.im[p * (R - 1) + k - 1];
    }
    const T *x = in_re + p * s, *y = in_im + p * s;
    T *u = out_re + p * R * s, *v = out_im + p * R * s;
    for (int64_t q = 0; q < s; ++q) {
      Pair<T> a[R];
      for (int k = 0; k < R; ++k) a[k] = {x[q + k * far], y[q + k * far]};
      butterfly(a);
      u[q] = a[0].re;
      v[q] = a[0].im;
      for (int k = 1; k < R; ++k) {
        Pair<T> b = times(a[k], re[k], im[k]);
        u[q + k * s] = b.re;
        v[q + k * s] = b.im;
      }
    }
  }
}

constexpr int kLanes = 16;
constexpr int64_t kMostHalf = kMostRadix / 2;

// Any odd radix: sums and differences of what lies opposite, times cosines and
// sines.
template <class T>
void odd_butterflies(const FftStage<T>& stage,
                     const T* x,
                     const T* y,
                     int64_t p,
                     int64_t count,
                     T* u,
                     T* v) {
  int64_t r = stage.radix, s = stage.stride, far = stage.parts * s;
  T sum_re[kMostHalf][kLanes], sum_im[kMostHalf][kLanes];
  T dif_re[kMostHalf][kLanes], dif_im[kMostHalf][kLanes];
  T all_re[kLanes], all_im[kLanes];
  for (int64_t q = 0; q < count; ++q) all_re[q] = x[q], all_im[q] = y[q];
  for (int64_t j = 0; j < r / 2; ++j) {
    int64_t near = (j + 1) * far, opposite = (r - 1 - j) * far;
    for (int64_t q = 0; q < count; ++q) {
      sum_re[j][q] = x[q + near] + x[q + opposite];
      sum_im[j][q] = y[q + near] + y[q + opposite];
      dif_re[j][q] = x[q + near] - x[q + opposite];
      dif_im[j][q] = y[q + near] - y[q + opposite];
      all_re[q] += sum_re[j][q];
      all_im[q] += sum_im[j][q];
    }
  }
  for (int64_t q = 0; q < count; ++q) u[q] = all_re[q], v[q] = all_im[q];
  const T *turn_re = stage.re + p * (r - 1), *turn_im = stage.im + p * (r - 1);
  for (int64_t k = 1; k <= r / 2; ++k) {
    T mid_re[kLanes], mid_im[kLanes], side_re[kLanes] = {},
                                      side_im[kLanes] = {};
    for (int64_t q = 0; q < count; ++q) mid_re[q] = x[q], mid_im[q] = y[q];
    for (int64_t j = 0, at = 0; j < r / 2; ++j) {
      at = at + k < r ? at + k : at + k - r;
      T c = stage.root_re[at], w = stage.root_im[at];
      for (int64_t q = 0; q < count; ++q) {
        mid_re[q] += c * sum_re[j][q];
        mid_im[q] += c * sum_im[j][q];
        side_re[q] -= w * dif_im[j][q];
        side_im[q] += w * dif_re[j][q];
      }
    }
    for (int64_t q = 0; q < count; ++q) {
      Pair<T> mid{mid_re[q], mid_im[q]}, side{side_re[q], side_im[q]};
      Pair<T> b = times(mid + side, turn_re[k - 1], turn_im[k - 1]);
      Pair<T> c = times(mid - side, turn_re[r - k - 1], turn_im[r - k - 1]);
      u[q + k * s] = b.re;
      v[q + k * s] = b.im;
      u[q + (r - k) * s] = c.re;
      v[q + (r - k) * s] = c.im;
    }
  }
}

template <class T>
void stage_of_any(const FftStage<T>& stage,
                  const T* in_re,
                  const T* in_im,
                  T* out_re,
                  T* out_im) {
  int64_t s = stage.stride;
  for (int64_t p = 0; p < stage.parts; ++p) {
    for (int64_t q = 0; q < s; q += kLanes) {
      int64_t from = p * s + q, to = p * stage.radix * s + q;
      int64_t count = s - q < kLanes ? s - q : kLanes;
      odd_butterflies(stage,
                      in_re + from,
                      in_im + from,
                      p,
                      count,
                      out_re + to,
                      out_im + to);
    }
  }
}

template <class T>
void stage(const FftStage<T>& stage,
           const T* in_re,
           const T* in_im,
           T* out_re,
           T* out_im) {
  switch (stage.radix) {
    case 2:
      return stage_of<T, 2>(stage, in_re, in_im, out_re, out_im);
    case 3:
      return stage_of<T, 3>(stage, in_re, in_im, out_re, out_im);
    case 4:
      return stage_of<T, 4>(stage, in_re, in_im, out_re, out_im);
    case 5:
      return stage_of<T, 5>(stage, in_re, in_im, out_re, out_im);
    default:
      return stage_of_any(stage, in_re, in_im, out_re, out_im);
  }
}

}  // namespace

extern const FftTable kFftTable = {stage<float>, stage<double>};

TAEDA_ISA_END
