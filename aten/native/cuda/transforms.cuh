// Transforms of whole rows in their plain form, and interpolation.
#pragma once

#include <taeda/aten/native/cuda/indexing.cuh>

namespace taeda {

// exp(sign 2 pi i number / count)
__device__ inline complex<double> root_of_one(Long number,
                                              Long count,
                                              double sign) {
  const double angle = sign * 6.283185307179586 *
                       static_cast<double>(number % count) /
                       static_cast<double>(count);
  return complex<double>(math::cos_any(angle), math::sin_any(angle));
}

template <class V>
__device__ inline complex<double> as_complex(V v) {
  return converted<complex<double>>(v);
}

// Element i of the discrete Fourier transform along dim; `sign` is -1 forward.
template <class G>
__device__ inline void fourier_at(const G& g, Long i) {
  const Long dim = g.dim.integer(), n = g.x.size(dim);
  const Place e(g.result.slot, i);
  Long from = 0;
  for (Long d = 0; d < g.x.rank(); ++d) {
    if (d != dim) from += e.at(d) * g.x.stride(d);
  }
  complex<double> sum(0, 0);
  for (Long k = 0; k < n; ++k) {
    sum = sum + as_complex(g.x.load(from + k * g.x.stride(dim))) *
                    root_of_one(k * e.at(dim), n, g.sign.real());
  }
  g.result.write(i, sum * complex<double>(g.scale.real(), 0));
}

// The same where the result is real and x has the first half of a row, of which
// the rest is its conjugate.
template <class G>
__device__ inline void fourier_real_at(const G& g, Long i) {
  const Long dim = g.dim.integer(), n = g.result.size(dim);
  const Place e(g.result.slot, i);
  Long from = 0;
  for (Long d = 0; d < g.x.rank(); ++d) {
    if (d != dim) from += e.at(d) * g.x.stride(d);
  }
  const Long half = n / 2 + 1 < g.x.size(dim) ? n / 2 + 1 : g.x.size(dim);
  double sum = 0;
  for (Long k = 0; k < half; ++k) {
    const complex<double> value =
        as_complex(g.x.load(from + k * g.x.stride(dim))) *
        root_of_one(k * e.at(dim), n, 1);
    const bool twice = k > 0 && 2 * k != n;
    sum += twice ? 2 * value.real() : value.real();
  }
  g.result.write(i, sum * g.scale.real());
}

// Interpolation --------------------------------------------------------------

// Where place `at` of the larger tensor lies in the smaller one, of `in`
// places.
__device__ inline double source_of(
    Long at, Long in, Long out, bool corners, double scale, bool cubic) {
  if (corners) {
    return out > 1 ? static_cast<double>(at) * (in - 1) / (out - 1) : 0.0;
  }
  const double ratio = scale > 0 ? 1.0 / scale : static_cast<double>(in) / out;
  const double place = (at + 0.5) * ratio - 0.5;
  return place < 0 && !cubic ? 0.0 : place;
}

// Weights of the four neighbours by Keys' cubic with a = -0.75.
__device__ inline double cubic_weight(double distance) {
  const double a = -0.75, x = distance < 0 ? -distance : distance;
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0.0;
}

// Calls f(number, weight) for each element of the smaller plane that place `at`
// of the larger one is made of.
template <int kDims, int kTaps, class Sizes, class F>
__device__ inline void each_tap(const Long* at,
                                const Sizes& in,
                                const Sizes& out,
                                bool corners,
                                const Numbers& scales,
                                F f) {
  Long place[kDims][kTaps];
  double weight[kDims][kTaps];
  for (int d = 0; d < kDims; ++d) {
    const double source =
        source_of(at[d], in[d], out[d], corners, scales.real(d), kTaps == 4);
    const Long base = static_cast<Long>(math::floor(source));
    const double share = source - static_cast<double>(base);
    for (int t = 0; t < kTaps; ++t) {
      const Long offset = kTaps == 4 ? t - 1 : t;
      Long p = base + offset;
      p = p < 0 ? 0 : (p < in[d] ? p : in[d] - 1);
      place[d][t] = p;
      weight[d][t] = kTaps == 4 ? cubic_weight(share - offset)
                                : (t == 0 ? 1 - share : share);
    }
  }
  int taps = 1;
  for (int d = 0; d < kDims; ++d) taps *= kTaps;
  for (int t = 0; t < taps; ++t) {
    int rest = t;
    Long number = 0, scale = 1;
    double share = 1;
    for (int d = kDims - 1; d >= 0; --d) {
      number += place[d][rest % kTaps] * scale;
      share *= weight[d][rest % kTaps];
      scale *= in[d];
      rest /= kTaps;
    }
    f(number, share);
  }
}

// `small` and `large` are tensors of batch, channels and kDims more axes.
template <int kDims>
struct Planes {
  Long small[kDims], large[kDims], at[kDims], plane, few = 1, many = 1;
  template <class S, class L>
  __device__ inline Planes(const S& s, const L& l, Long i) {
    for (int d = 0; d < kDims; ++d) {
      small[d] = s.size(d - kDims);
      large[d] = l.size(d - kDims);
      few *= small[d];
      many *= large[d];
    }
    plane = i / many;
    Long rest = i % many;
    for (int d = kDims - 1; d >= 0; --d) {
      at[d] = rest % large[d];
      rest /= large[d];
    }
  }
};

template <int kDims, int kTaps, class G>
__device__ inline void upsample_at(const G& g, Long i) {
  const Planes<kDims> p(g.self, g.result, i);
  double sum = 0;
  each_tap<kDims, kTaps>(
      p.at,
      p.small,
      p.large,
      g.corners.truth(),
      g.scales,
      [&](Long number, double weight) {
        sum +=
            weight * static_cast<double>(g.self.flat(p.plane * p.few + number));
      });
  g.result.write(i, sum);
}

template <int kDims, int kTaps, class G>
__device__ inline void upsample_back_at(const G& g, Long i) {
  using V = typename decltype(g.result)::Value;
  const Planes<kDims> p(g.result, g.grad, i);
  const double grad = static_cast<double>(g.grad.flat(i));
  each_tap<kDims, kTaps>(p.at,
                         p.small,
                         p.large,
                         g.corners.truth(),
                         g.scales,
                         [&](Long number, double weight) {
                           g.result.add(
                               g.result.place(p.plane * p.few + number),
                               static_cast<V>(weight * grad));
                         });
}

// The nearest element, found in single precision as the formulas of the forward
// operators do.
template <int kDims, class G>
__device__ inline void nearest_back_at(const G& g, Long i) {
  const Planes<kDims> p(g.result, g.grad, i);
  Long number = 0;
  for (int d = 0; d < kDims; ++d) {
    const double scale = g.scales.real(d);
    const float ratio = scale > 0 ? static_cast<float>(1.0 / scale)
                                  : static_cast<float>(p.small[d]) /
                                        static_cast<float>(p.large[d]);
    const float at = static_cast<float>(p.at[d]) + (g.exact.truth() ? 0.5f : 0);
    Long from = static_cast<Long>(math::floor(at * ratio));
    from = from < p.small[d] ? from : p.small[d] - 1;
    number = number * p.small[d] + from;
  }
  g.result.add(g.result.place(p.plane * p.few + number), g.grad.flat(i));
}

}  // namespace taeda
