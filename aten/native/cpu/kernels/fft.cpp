#include <taeda/aten/native/cpu/kernels/fft.h>
#include <taeda/aten/native/cpu/kernels/fft_vectors.h>

TAEDA_ISA_BEGIN

namespace {

template <class T, int R, int W>
TAEDA_FFT_FN void butterflies(const FftStage<T>& stage,
                              const FftView<const T>& in,
                              const FftView<T>& out,
                              int64_t p,
                              int64_t d,
                              int64_t q) {
  Pair<Vector<T, W>> a[R];
  int64_t from = (p * stage.rows + d) * in.row + q * in.unit;
  int64_t far = stage.parts * stage.rows * in.row;
  repeat<R>([&](auto k) __attribute__((always_inline)) {
    a[k] = load_pair<W>(in, from + k * far);
  });
  butterfly<T>(a);
  if (p > 0) {
    const T* re = stage.re + p * (R - 1) - 1;
    const T* im = stage.im + p * (R - 1) - 1;
    repeat<R>([&](auto k) __attribute__((always_inline)) {
      if constexpr (k > 0) a[k] = times(a[k], re[k], im[k]);
    });
  }
  if (stage.factor != T(1)) {
    repeat<R>([&](auto k) __attribute__((always_inline)) {
      a[k] = scaled(a[k], stage.factor);
    });
  }
  int64_t to = (p * R * stage.rows + d) * out.row + q * out.unit;
  int64_t apart = stage.rows * out.row;
  repeat<R>([&](auto k) __attribute__((always_inline)) {
    store_pair<W>(out, to + k * apart, a[k]);
  });
}

// From lane q on, as many at once as there are.
template <class T, int R, int W>
TAEDA_FFT_FN void lanes_from(const FftStage<T>& stage,
                             const FftView<const T>& in,
                             const FftView<T>& out,
                             int64_t p,
                             int64_t d,
                             int64_t q) {
  for (; q + W <= stage.lanes; q += W)
    butterflies<T, R, W>(stage, in, out, p, d, q);
  if constexpr (W > 1) {
    if (q < stage.lanes) lanes_from<T, R, W / 2>(stage, in, out, p, d, q);
  }
}

template <class T, int R>
void stage_of(const FftStage<T>& stage,
              const FftView<const T>& in,
              const FftView<T>& out) {
  for (int64_t p = 0; p < stage.parts; ++p) {
    for (int64_t d = 0; d < stage.rows; ++d)
      lanes_from<T, R, kWidest<T>>(stage, in, out, p, d, 0);
  }
}

constexpr int kMostHalf = kMostRadix / 2;

// Any odd radix: sums and differences of what lies opposite, times cosines and
// sines.
template <class T, int W>
void odd_butterflies(const FftStage<T>& stage,
                     const FftView<const T>& in,
                     const FftView<T>& out,
                     int64_t p,
                     int64_t d,
                     int64_t q) {
  using V = Vector<T, W>;
  int64_t r = stage.radix;
  auto element = [&](int64_t k) {
    int64_t j = (p + k * stage.parts) * stage.rows + d;
    return load_pair<W>(in, j * in.row + q * in.unit);
  };
  const T *turn_re = stage.re + p * (r - 1) - 1,
          *turn_im = stage.im + p * (r - 1) - 1;
  auto put = [&](int64_t k, Pair<V> a) {
    if (p * k > 0) a = times(a, turn_re[k], turn_im[k]);
    int64_t j = (p * r + k) * stage.rows + d;
    store_pair<W>(out, j * out.row + q * out.unit, scaled(a, stage.factor));
  };
  Pair<V> sum[kMostHalf], dif[kMostHalf];
  Pair<V> first = element(0), all = first;
  for (int64_t j = 0; j < r / 2; ++j) {
    Pair<V> near = element(j + 1), opposite = element(r - 1 - j);
    sum[j] = near + opposite;
    dif[j] = near - opposite;
    all = all + sum[j];
  }
  put(0, all);
  for (int64_t k = 1; k <= r / 2; ++k) {
    Pair<V> mid = first, side{};
    for (int64_t j = 0, at = 0; j < r / 2; ++j) {
      at = at + k < r ? at + k : at + k - r;
      mid = mid + scaled(sum[j], stage.root_re[at]);
      side = side + scaled(dif[j], stage.root_im[at]);
    }
    side = turned(side);
    put(k, mid - side);
    put(r - k, mid + side);
  }
}

template <class T>
void stage_of_any(const FftStage<T>& stage,
                  const FftView<const T>& in,
                  const FftView<T>& out) {
  constexpr int W = kWidest<T>;
  for (int64_t p = 0; p < stage.parts; ++p) {
    for (int64_t d = 0; d < stage.rows; ++d) {
      int64_t q = 0;
      for (; q + W <= stage.lanes; q += W)
        odd_butterflies<T, W>(stage, in, out, p, d, q);
      for (; q < stage.lanes; ++q)
        odd_butterflies<T, 1>(stage, in, out, p, d, q);
    }
  }
}

template <class T>
void stage(const FftStage<T>& stage,
           const FftView<const T>& in,
           const FftView<T>& out) {
  switch (stage.radix) {
    case 1:
      return stage_of<T, 1>(stage, in, out);
    case 2:
      return stage_of<T, 2>(stage, in, out);
    case 3:
      return stage_of<T, 3>(stage, in, out);
    case 4:
      return stage_of<T, 4>(stage, in, out);
    case 5:
      return stage_of<T, 5>(stage, in, out);
    case 8:
      return stage_of<T, 8>(stage, in, out);
    case 16:
      return stage_of<T, 16>(stage, in, out);
    default:
      return stage_of_any(stage, in, out);
  }
}

// W parts at once, whose results a transposition puts in their places. The last
// ones overlap those before them: what is computed twice is the same.
template <class T, int W>
void first_of(const FftStage<T>& stage,
              const FftView<const T>& in,
              const FftView<T>& out) {
  using V = Vector<T, W>;
  int64_t parts = stage.parts;
  for (int64_t begin = 0; begin < parts; begin += W) {
    int64_t p = begin + W <= parts ? begin : parts - W;
    Pair<V> a[W];
    repeat<W>([&](auto k) __attribute__((always_inline)) {
      a[k] = load_pair<W>(in, (p + k * parts) * in.row);
    });
    butterfly<T>(a);
    V re[W], im[W];
    repeat<W>([&](auto k) __attribute__((always_inline)) {
      if constexpr (k > 0) {
        int64_t at = (k - 1) * parts + p;
        a[k] = times(a[k], load<V>(stage.re + at), load<V>(stage.im + at));
      }
      re[k] = a[k].re;
      im[k] = a[k].im;
    });
    transpose<T, W>(re);
    transpose<T, W>(im);
    repeat<W>([&](auto i) __attribute__((always_inline)) {
      store(out.re + (p + i) * W, re[i]);
      store(out.im + (p + i) * W, im[i]);
    });
  }
}

template <class T, int W>
void first(const FftStage<T>& stage,
           const FftView<const T>& in,
           const FftView<T>& out) {
  if (stage.radix == W) return first_of<T, W>(stage, in, out);
  if constexpr (W > 16 / sizeof(T)) first<T, W / 2>(stage, in, out);
}

// Element k of a half spectrum and, conjugated, element half - k.
template <bool kJoin, class V, class C>
TAEDA_FFT_FN void combine(Pair<V>& near, Pair<V>& far, const C& c, const C& s) {
  Pair<V> sum{near.re + far.re, near.im - far.im};
  Pair<V> dif{near.re - far.re, near.im + far.im};
  Pair<V> odd;
  if constexpr (kJoin) {
    odd = turned(times(dif, c, s));
  } else {
    odd = turned(times(dif, -c, s));
  }
  near = sum + odd;
  far = {sum.re - odd.re, odd.im - sum.im};
}

// Elements 0 and half of the spectrum, which are real, and element 0 of what is
// half as long.
template <bool kJoin, int W, class T>
TAEDA_FFT_FN void combine_ends(const FftView<const T>& in,
                               const FftView<T>& out,
                               int64_t at,
                               int64_t to,
                               int64_t in_last,
                               int64_t out_last) {
  using V = Vector<T, W>;
  Pair<V> a = load_pair<W>(in, at);
  if constexpr (kJoin) {
    T two = 2;
    store_pair<W>(out, to, Pair<V>{(a.re + a.im) * two, V{}});
    store_pair<W>(out, to + out_last, Pair<V>{(a.re - a.im) * two, V{}});
  } else {
    V b = load_pair<W>(in, at + in_last).re;
    store_pair<W>(out, to, Pair<V>{a.re + b, a.re - b});
  }
}

template <bool kJoin, int W, class T>
TAEDA_FFT_FN void combine_line(const FftRoots<T>& roots,
                               const FftView<const T>& in,
                               const FftView<T>& out,
                               int64_t k) {
  using V = Vector<T, W>;
  int64_t h = roots.half;
  for (; 2 * k <= h && k + W <= h; k += W) {
    int64_t back = h - k - W + 1;
    Pair<V> near = load_pair<W>(in, k * in.unit);
    Pair<V> far = reversed<W>(load_pair<W>(in, back * in.unit));
    combine<kJoin>(near, far, load<V>(roots.re + k), load<V>(roots.im + k));
    store_pair<W>(out, k * out.unit, near);
    store_pair<W>(out, back * out.unit, reversed<W>(far));
  }
  if constexpr (W > 1) {
    if (2 * k <= h) combine_line<kJoin, W / 2>(roots, in, out, k);
  }
}

template <bool kJoin, int W, class T>
TAEDA_FFT_FN void combine_lanes(const FftRoots<T>& roots,
                                const FftView<const T>& in,
                                const FftView<T>& out,
                                int64_t lanes,
                                int64_t k,
                                int64_t q) {
  using V = Vector<T, W>;
  int64_t h = roots.half, back = h - k;
  for (; q + W <= lanes; q += W) {
    int64_t at = q * in.unit, to = q * out.unit;
    if (k == 0) {
      combine_ends<kJoin, W>(in, out, at, to, h * in.row, h * out.row);
      continue;
    }
    Pair<V> near = load_pair<W>(in, k * in.row + at);
    Pair<V> far = load_pair<W>(in, back * in.row + at);
    combine<kJoin>(near, far, roots.re[k], roots.im[k]);
    store_pair<W>(out, k * out.row + to, near);
    store_pair<W>(out, back * out.row + to, far);
  }
  if constexpr (W > 1) {
    if (q < lanes) combine_lanes<kJoin, W / 2>(roots, in, out, lanes, k, q);
  }
}

template <class T, bool kJoin>
void combined(const FftRoots<T>& roots,
              const FftView<const T>& in,
              const FftView<T>& out,
              int64_t lanes) {
  int64_t h = roots.half;
  if (lanes == 0) {
    combine_ends<kJoin, 1>(in, out, 0, 0, h * in.unit, h * out.unit);
    return combine_line<kJoin, kWidest<T>>(roots, in, out, 1);
  }
  for (int64_t k = 0; 2 * k <= h; ++k)
    combine_lanes<kJoin, kWidest<T>>(roots, in, out, lanes, k, 0);
}

template <class T, int W>
TAEDA_FFT_FN void product_from(const T* re,
                               const T* im,
                               const FftView<const T>& in,
                               const FftView<T>& out,
                               int64_t n,
                               int64_t i) {
  using V = Vector<T, W>;
  for (; i + W <= n; i += W) {
    Pair<V> a = load_pair<W>(in, i * in.unit);
    a = times(a, load<V>(re + i), load<V>(im + i));
    store_pair<W>(out, i * out.unit, a);
  }
  if constexpr (W > 1) {
    if (i < n) product_from<T, W / 2>(re, im, in, out, n, i);
  }
}
template <class T>
void product(const T* re,
             const T* im,
             const FftView<const T>& in,
             const FftView<T>& out,
             int64_t n) {
  product_from<T, kWidest<T>>(re, im, in, out, n, 0);
}

template <class T>
void turn(const T* row,
          const T* all,
          const FftView<T>& numbers,
          int64_t rows,
          int64_t lanes) {
  constexpr int W = kWidest<T>;
  FftView<const T> in{numbers.re, numbers.im, numbers.row, numbers.unit};
  auto some = [&](int64_t j, int64_t q, auto width)
      __attribute__((always_inline)) {
    constexpr int w = decltype(width)::value;
    using V = Vector<T, w>;
    int64_t at = j * in.row + q * in.unit;
    const T* p = all + j * lanes + q;
    Pair<V> factor{load<V>(p), load<V>(p + rows * lanes)};
    factor = times(factor, row[j], row[rows + j]);
    Pair<V> a = load_pair<w>(in, at);
    store_pair<w>(numbers, at, times(a, factor.re, factor.im));
  };
  for (int64_t j = 0; j < rows; ++j) {
    int64_t q = 0;
    for (; q + W <= lanes; q += W) some(j, q, std::integral_constant<int, W>{});
    for (; q < lanes; ++q) some(j, q, std::integral_constant<int, 1>{});
  }
}

template <class T>
void mirror(T* line, int64_t n) {
  constexpr int W = kWidest<T>, count = W / 2;
  using V = Vector<T, W>;
  V sign;
  for (int i = 0; i < W; ++i) sign[i] = i % 2 ? T(-1) : T(1);
  int64_t k = 1, end = (n - 1) / 2;
  for (; k + count - 1 <= end; k += count) {
    V a = load<V>(line + 2 * k);
    auto back = [](int i) { return W - 2 - (i & ~1) + i % 2; };
    store(line + 2 * (n - k - count + 1), shuffled<W, back>(a, a) * sign);
  }
  for (; k <= end; ++k) {
    line[2 * (n - k)] = line[2 * k];
    line[2 * (n - k) + 1] = -line[2 * k + 1];
  }
}

// Complex numbers move as they are: those of floats as doubles.
template <class T>
void transpose_all(const T* in,
                   int64_t in_row,
                   T* out,
                   int64_t out_row,
                   int64_t rows,
                   int64_t columns) {
  constexpr int W = sizeof(T) == 4 ? kWidest<double> : 1;
  int64_t i = 0;
  auto one = [&](int64_t row, int64_t from) {
    for (int64_t j = from; j < columns; ++j)
      std::memcpy(out + j * out_row + 2 * row,
                  in + row * in_row + 2 * j,
                  2 * sizeof(T));
  };
  if constexpr (W > 1) {
    using V = Vector<double, W>;
    for (; i + W <= rows; i += W) {
      int64_t j = 0;
      for (; j + W <= columns; j += W) {
        V a[W];
        repeat<W>([&](auto k) __attribute__((always_inline)) {
          a[k] = load<V>(in + (i + k) * in_row + 2 * j);
        });
        transpose<double, W>(a);
        repeat<W>([&](auto k) __attribute__((always_inline)) {
          store(out + (j + k) * out_row + 2 * i, a[k]);
        });
      }
      for (int64_t k = 0; k < W; ++k) one(i + k, j);
    }
  }
  for (; i < rows; ++i) one(i, 0);
}

template <class T>
constexpr FftKernels<T> kernels_of() {
  return {kWidest<T>,
          stage<T>,
          first<T, kWidest<T>>,
          combined<T, true>,
          combined<T, false>,
          product<T>,
          turn<T>,
          mirror<T>,
          transpose_all<T>};
}

}  // namespace

extern const FftTable kFftTable = {kernels_of<float>(), kernels_of<double>()};

TAEDA_ISA_END
