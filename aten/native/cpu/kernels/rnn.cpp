#include <taeda/aten/native/cpu/kernels/rnn.h>

#include <taeda/aten/math/exp.h>
#include <taeda/aten/math/hyperbolic.h>
#include <taeda/aten/native/cpu/kernels/isa.h>

TAEDA_ISA_BEGIN

namespace {

template <class A>
[[gnu::always_inline]] inline A squash(A x) {
  return A(1) / (A(1) + math::exp(-x));
}

template <class A>
struct Rnn {
  static void lstm(A* gates, A* c, A* h, int64_t rows, int64_t n) {
    for (int64_t r = 0; r < rows; ++r) {
      A* __restrict i = gates + r * 4 * n;
      A* __restrict f = i + n;
      A* __restrict g = f + n;
      A* __restrict o = g + n;
      A* __restrict cell = c + r * n;
      A* __restrict out = h + r * n;
      for (int64_t j = 0; j < n; ++j) {
        i[j] = squash(i[j]);
        f[j] = squash(f[j]);
        g[j] = math::tanh(g[j]);
        o[j] = squash(o[j]);
        cell[j] = f[j] * cell[j] + i[j] * g[j];
        out[j] = o[j] * math::tanh(cell[j]);
      }
    }
  }

  static void lstm_backward(A* gates,
                            const A* c,
                            const A* old_c,
                            const A* dh,
                            A* dc,
                            int64_t rows,
                            int64_t n) {
    for (int64_t r = 0; r < rows; ++r) {
      A* __restrict i = gates + r * 4 * n;
      A* __restrict f = i + n;
      A* __restrict g = f + n;
      A* __restrict o = g + n;
      const A* __restrict cell = c + r * n;
      const A* __restrict old = old_c + r * n;
      const A* __restrict d = dh + r * n;
      A* __restrict e = dc + r * n;
      for (int64_t j = 0; j < n; ++j) {
        A t = math::tanh(cell[j]);
        A total = e[j] + d[j] * o[j] * (A(1) - t * t);
        A gi = total * g[j] * i[j] * (A(1) - i[j]);
        A gf = total * old[j] * f[j] * (A(1) - f[j]);
        A gg = total * i[j] * (A(1) - g[j] * g[j]);
        A go = d[j] * t * o[j] * (A(1) - o[j]);
        e[j] = total * f[j];
        i[j] = gi, f[j] = gf, g[j] = gg, o[j] = go;
      }
    }
  }

  static void gru(A* gates,
                  const A* hidden,
                  const A* old_h,
                  A* h,
                  int64_t rows,
                  int64_t n) {
    for (int64_t k = 0; k < rows; ++k) {
      A* __restrict r = gates + k * 3 * n;
      A* __restrict z = r + n;
      A* __restrict m = z + n;
      const A* __restrict hr = hidden + k * 3 * n;
      const A* __restrict hz = hr + n;
      const A* __restrict hm = hz + n;
      const A* __restrict old = old_h + k * n;
      A* __restrict out = h + k * n;
      for (int64_t j = 0; j < n; ++j) {
        r[j] = squash(r[j] + hr[j]);
        z[j] = squash(z[j] + hz[j]);
        m[j] = math::tanh(m[j] + r[j] * hm[j]);
        out[j] = m[j] + z[j] * (old[j] - m[j]);
      }
    }
  }

  static void gru_backward(
      A* gates, A* hidden, const A* old_h, A* dh, int64_t rows, int64_t n) {
    for (int64_t k = 0; k < rows; ++k) {
      A* __restrict r = gates + k * 3 * n;
      A* __restrict z = r + n;
      A* __restrict m = z + n;
      A* __restrict hr = hidden + k * 3 * n;
      A* __restrict hz = hr + n;
      A* __restrict hm = hz + n;
      const A* __restrict old = old_h + k * n;
      A* __restrict d = dh + k * n;
      for (int64_t j = 0; j < n; ++j) {
        A gm = d[j] * (A(1) - z[j]) * (A(1) - m[j] * m[j]);
        A gz = d[j] * (old[j] - m[j]) * z[j] * (A(1) - z[j]);
        A gr = gm * hm[j] * r[j] * (A(1) - r[j]);
        hr[j] = gr, hz[j] = gz, hm[j] = gm * r[j];
        d[j] *= z[j];
        r[j] = gr, z[j] = gz, m[j] = gm;
      }
    }
  }

  static void tanh(const A* gates, A* h, int64_t count) {
    for (int64_t j = 0; j < count; ++j) h[j] = math::tanh(gates[j]);
  }
  static void relu(const A* gates, A* h, int64_t count) {
    for (int64_t j = 0; j < count; ++j) h[j] = gates[j] < 0 ? A(0) : gates[j];
  }
  static void tanh_backward(const A* h, const A* dh, A* gates, int64_t count) {
    for (int64_t j = 0; j < count; ++j) {
      gates[j] = dh[j] * (A(1) - h[j] * h[j]);
    }
  }
  static void relu_backward(const A* h, const A* dh, A* gates, int64_t count) {
    for (int64_t j = 0; j < count; ++j) gates[j] = h[j] > 0 ? dh[j] : A(0);
  }

  static constexpr RnnKernels<A> kTable = {lstm,
                                           lstm_backward,
                                           gru,
                                           gru_backward,
                                           tanh,
                                           relu,
                                           tanh_backward,
                                           relu_backward};
};

}  // namespace

extern const RnnTable kRnnTable = {Rnn<float>::kTable, Rnn<double>::kTable};

TAEDA_ISA_END
