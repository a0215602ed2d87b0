// Vectors of complex numbers, real parts in one and imaginary parts in another,
// and what a stage of a Fourier transform does with them.
#pragma once

#include <taeda/aten/native/cpu/kernels/fft.h>
#include <taeda/aten/native/cpu/kernels/isa.h>

#include <cstring>
#include <utility>

#define TAEDA_FFT_FN [[gnu::always_inline]] static inline

TAEDA_ISA_BEGIN

#if defined(__AVX512F__)
constexpr int kVectorBytes = 64;
#elif defined(__AVX2__)
constexpr int kVectorBytes = 32;
#else
constexpr int kVectorBytes = 16;
#endif

// The most numbers of type T that a register holds.
template <class T>
constexpr int kWidest = kVectorBytes / static_cast<int>(sizeof(T));

template <class T, int W>
struct VectorOf {
  typedef T type __attribute__((vector_size(W * sizeof(T))));
};
template <class T>
struct VectorOf<T, 1> {
  using type = T;
};
template <class T, int W>
using Vector = typename VectorOf<T, W>::type;

template <class V>
TAEDA_FFT_FN V load(const void* p) {
  V v;
  std::memcpy(&v, p, sizeof(V));
  return v;
}
template <class V>
TAEDA_FFT_FN void store(void* p, const V& v) {
  std::memcpy(p, &v, sizeof(V));
}

// f(0), ..., f(N - 1), where each number is a constant.
template <int N, class F>
TAEDA_FFT_FN void repeat(F&& f) {
  [&]<int... I>(std::integer_sequence<int, I...>)
      __attribute__((always_inline)) {
    (f(std::integral_constant<int, I>{}), ...);
  }
  (std::make_integer_sequence<int, N>{});
}

// Element i is number Index(i) of the elements of a and, after them, b.
template <int W, auto Index, class V>
TAEDA_FFT_FN V shuffled(const V& a, const V& b) {
  return [&]<int... I>(std::integer_sequence<int, I...>)
      __attribute__((always_inline)) {
    return __builtin_shufflevector(a, b, Index(I)...);
  }
  (std::make_integer_sequence<int, W>{});
}

// a[i][j] and a[j][i] change places.
template <class T, int W, class V>
TAEDA_FFT_FN void transpose(V (&a)[W]) {
  // Pairs of rows exchange blocks of H elements.
  auto swap_blocks = [](V & x, V & y, auto H) __attribute__((always_inline)) {
    constexpr int h = decltype(H)::value;
    V upper = shuffled<W, [](int i) { return i & h ? W + i - h : i; }>(x, y);
    y = shuffled<W, [](int i) { return i & h ? W + i : i + h; }>(x, y);
    x = upper;
  };
  using std::integral_constant;
  if constexpr (sizeof(T) == 4) {
    // Within 16 bytes: what one instruction does on every level.
    repeat<W / 4>([&](auto g) __attribute__((always_inline)) {
      V *r = a + 4 * g, t[4];
      repeat<2>([&](auto i) __attribute__((always_inline)) {
        auto low = [](int l) { return (l & ~3) + l % 4 / 2 + l % 2 * W; };
        auto high = [](int l) { return (l & ~3) + l % 4 / 2 + 2 + l % 2 * W; };
        t[i] = shuffled<W, low>(r[2 * i], r[2 * i + 1]);
        t[i + 2] = shuffled<W, high>(r[2 * i], r[2 * i + 1]);
      });
      repeat<2>([&](auto i) __attribute__((always_inline)) {
        r[2 * i] = t[2 * i];
        r[2 * i + 1] = t[2 * i + 1];
        swap_blocks(r[2 * i], r[2 * i + 1], integral_constant<int, 2>{});
      });
    });
  } else {
    repeat<W / 2>([&](auto g) __attribute__((always_inline)) {
      swap_blocks(a[2 * g], a[2 * g + 1], integral_constant<int, 1>{});
    });
  }
  constexpr int lane = 16 / static_cast<int>(sizeof(T));
  auto across = [&](auto H) __attribute__((always_inline)) {
    constexpr int h = decltype(H)::value;
    repeat<W>([&](auto i) __attribute__((always_inline)) {
      if constexpr ((i & h) == 0) swap_blocks(a[i], a[i + h], H);
    });
  };
  if constexpr (lane < W) across(integral_constant<int, lane>{});
  if constexpr (2 * lane < W) across(integral_constant<int, 2 * lane>{});
}

template <class V>
struct Pair {
  V re, im;
};
template <class V>
TAEDA_FFT_FN Pair<V> operator+(const Pair<V>& a, const Pair<V>& b) {
  return {a.re + b.re, a.im + b.im};
}
template <class V>
TAEDA_FFT_FN Pair<V> operator-(const Pair<V>& a, const Pair<V>& b) {
  return {a.re - b.re, a.im - b.im};
}
// a divided by i: a quarter turn clockwise.
template <class V>
TAEDA_FFT_FN Pair<V> turned(const Pair<V>& a) {
  return {a.im, -a.re};
}
template <class V, class C>
TAEDA_FFT_FN Pair<V> scaled(const Pair<V>& a, const C& c) {
  return {a.re * c, a.im * c};
}
template <class V, class C>
TAEDA_FFT_FN Pair<V> times(const Pair<V>& a, const C& re, const C& im) {
  return {a.re * re - a.im * im, a.re * im + a.im * re};
}

// W numbers of a view from p on, at most one of whose parts is ahead.
template <int W, class T>
TAEDA_FFT_FN Pair<Vector<T, W>> load_pair(const FftView<const T>& v,
                                          int64_t at) {
  using V = Vector<T, W>;
  if constexpr (W == 1) {
    return {v.re[at], v.im[at]};
  } else {
    if (v.unit == 1) return {load<V>(v.re + at), load<V>(v.im + at)};
    bool swapped = v.re > v.im;
    const T* p = (swapped ? v.im : v.re) + at;
    V a = load<V>(p), b = load<V>(p + W);
    V even = shuffled<W, [](int i) { return 2 * i; }>(a, b);
    V odd = shuffled<W, [](int i) { return 2 * i + 1; }>(a, b);
    if (swapped) return {odd, even};
    return {even, odd};
  }
}
template <int W, class T, class V>
TAEDA_FFT_FN void store_pair(const FftView<T>& v,
                             int64_t at,
                             const Pair<V>& a) {
  if constexpr (W == 1) {
    v.re[at] = a.re;
    v.im[at] = a.im;
  } else {
    if (v.unit == 1) {
      store(v.re + at, a.re);
      store(v.im + at, a.im);
      return;
    }
    bool swapped = v.re > v.im;
    T* p = (swapped ? v.im : v.re) + at;
    Pair<V> b = swapped ? Pair<V>{a.im, a.re} : a;
    store(p, shuffled<W, [](int i) { return i / 2 + i % 2 * W; }>(b.re, b.im));
    store(p + W,
          shuffled<W, [](int i) { return W / 2 + i / 2 + i % 2 * W; }>(b.re,
                                                                       b.im));
  }
}

template <int W, class V>
TAEDA_FFT_FN Pair<V> reversed(const Pair<V>& a) {
  if constexpr (W == 1) {
    return a;
  } else {
    auto back = [](int i) { return W - 1 - i; };
    return {shuffled<W, back>(a.re, a.re), shuffled<W, back>(a.im, a.im)};
  }
}

// Transforms of R numbers, in place.
template <class T, class V>
TAEDA_FFT_FN void butterfly(Pair<V> (&)[1]) {}

template <class T, class V>
TAEDA_FFT_FN void butterfly(Pair<V> (&a)[2]) {
  Pair<V> d = a[0] - a[1];
  a[0] = a[0] + a[1];
  a[1] = d;
}

template <class T, class V>
TAEDA_FFT_FN void butterfly(Pair<V> (&a)[3]) {
  constexpr T kSin = T(0.866025403784438646763723170752936183L);
  Pair<V> sum = a[1] + a[2], side = turned(scaled(a[1] - a[2], kSin));
  Pair<V> mid = a[0] - scaled(sum, T(0.5));
  a[0] = a[0] + sum;
  a[1] = mid + side;
  a[2] = mid - side;
}

template <class V>
TAEDA_FFT_FN void quarters(Pair<V>& a, Pair<V>& b, Pair<V>& c, Pair<V>& d) {
  Pair<V> p = a + c, q = a - c, r = b + d, s = turned(b - d);
  a = p + r;
  b = q + s;
  c = p - r;
  d = q - s;
}
template <class T, class V>
TAEDA_FFT_FN void butterfly(Pair<V> (&a)[4]) {
  quarters(a[0], a[1], a[2], a[3]);
}

template <class T, class V>
TAEDA_FFT_FN void butterfly(Pair<V> (&a)[5]) {
  constexpr T kCos1 = T(0.309016994374947424102293417182819059L);
  constexpr T kCos2 = T(-0.809016994374947424102293417182819059L);
  constexpr T kSin1 = T(0.951056516295153572116439333379382143L);
  constexpr T kSin2 = T(0.587785252292473129168705954639072769L);
  Pair<V> s1 = a[1] + a[4], d1 = a[1] - a[4];
  Pair<V> s2 = a[2] + a[3], d2 = a[2] - a[3];
  Pair<V> p = a[0] + scaled(s1, kCos1) + scaled(s2, kCos2);
  Pair<V> q = a[0] + scaled(s1, kCos2) + scaled(s2, kCos1);
  Pair<V> u = turned(scaled(d1, kSin1) + scaled(d2, kSin2));
  Pair<V> v = turned(scaled(d1, kSin2) - scaled(d2, kSin1));
  a[0] = a[0] + s1 + s2;
  a[1] = p + u;
  a[2] = q + v;
  a[3] = q - v;
  a[4] = p - u;
}

constexpr long double kHalfRoot = 0.707106781186547524400844362104849039L;

// Times exp(-2 pi i / 8), and its third power.
template <class T, class V>
TAEDA_FFT_FN Pair<V> eighth(const Pair<V>& a) {
  return scaled(Pair<V>{a.re + a.im, a.im - a.re}, T(kHalfRoot));
}
template <class T, class V>
TAEDA_FFT_FN Pair<V> three_eighths(const Pair<V>& a) {
  return scaled(Pair<V>{a.im - a.re, -(a.re + a.im)}, T(kHalfRoot));
}

template <class T, class V>
TAEDA_FFT_FN void butterfly(Pair<V> (&a)[8]) {
  quarters(a[0], a[2], a[4], a[6]);
  quarters(a[1], a[3], a[5], a[7]);
  Pair<V> b[4] = {a[1], eighth<T>(a[3]), turned(a[5]), three_eighths<T>(a[7])};
  Pair<V> c[4] = {a[0], a[2], a[4], a[6]};
  repeat<4>([&](auto k) __attribute__((always_inline)) {
    a[k] = c[k] + b[k];
    a[k + 4] = c[k] - b[k];
  });
}

template <class T, class V>
TAEDA_FFT_FN void butterfly(Pair<V> (&a)[16]) {
  constexpr T kCos = T(0.923879532511286756128183189396788287L);
  constexpr T kSin = T(0.382683432365089771728459984030398866L);
  repeat<4>([&](auto i) __attribute__((always_inline)) {
    quarters(a[i], a[i + 4], a[i + 8], a[i + 12]);
  });
  a[5] = times(a[5], kCos, -kSin);
  a[9] = eighth<T>(a[9]);
  a[13] = times(a[13], kSin, -kCos);
  a[6] = eighth<T>(a[6]);
  a[10] = turned(a[10]);
  a[14] = three_eighths<T>(a[14]);
  a[7] = times(a[7], kSin, -kCos);
  a[11] = three_eighths<T>(a[11]);
  a[15] = times(a[15], -kCos, kSin);
  repeat<4>([&](auto k) __attribute__((always_inline)) {
    quarters(a[4 * k], a[4 * k + 1], a[4 * k + 2], a[4 * k + 3]);
  });
  // Number k + 4 m lies at [4 k + m].
  auto swap = [&](int i, int j) __attribute__((always_inline)) {
    Pair<V> t = a[i];
    a[i] = a[j];
    a[j] = t;
  };
  swap(1, 4), swap(2, 8), swap(3, 12), swap(6, 9), swap(7, 13), swap(11, 14);
}

TAEDA_ISA_END
