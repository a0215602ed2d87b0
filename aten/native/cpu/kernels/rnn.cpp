#include <taeda/aten/native/cpu/kernels/rnn.h>

#include <taeda/aten/math/exp.h>
#include <taeda/aten/math/hyperbolic.h>
#include <taeda/aten/native/cpu/kernels/isa.h>

TAEDA_ISA_BEGIN

// Note [Rows as functions]
// The rows below are functions of their own: g++ believes __restrict of
// parameters alone, and so many pointers are too many to compare at run time.
#define TAEDA_ROW [[gnu::noinline]] static void

namespace {

template <class A>
[[gnu::always_inline]] inline A squash(A x) {
  return A(1) / (A(1) + math::exp(-x));
}

template <class A>
struct Rnn {
  TAEDA_ROW lstm_row(A* __restrict i,
                     A* __restrict f,
                     A* __restrict g,
                     A* __restrict o,
                     A* __restrict cell,
                     A* __restrict out,
                     int64_t n) {
    for (int64_t j = 0; j < n; ++j) {
      i[j] = squash(i[j]);
      f[j] = squash(f[j]);
      g[j] = math::tanh(g[j]);
      o[j] = squash(o[j]);
      cell[j] = f[j] * cell[j] + i[j] * g[j];
      out[j] = o[j] * math::tanh(cell[j]);
    }
  }
  static void lstm(A* gates, A* c, A* h, int64_t rows, int64_t n) {
    for (int64_t r = 0; r < rows; ++r) {
      A* i = gates + r * 4 * n;
      lstm_row(i, i + n, i + 2 * n, i + 3 * n, c + r * n, h + r * n, n);
    }
  }

  TAEDA_ROW lstm_backward_row(A* __restrict i,
                              A* __restrict f,
                              A* __restrict g,
                              A* __restrict o,
                              const A* __restrict cell,
                              const A* __restrict old,
                              const A* __restrict d,
                              A* __restrict e,
                              int64_t n) {
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
  static void lstm_backward(A* gates,
                            const A* c,
                            const A* old_c,
                            const A* dh,
                            A* dc,
                            int64_t rows,
                            int64_t n) {
    for (int64_t r = 0; r < rows; ++r) {
      A* i = gates + r * 4 * n;
      lstm_backward_row(i,
                        i + n,
                        i + 2 * n,
                        i + 3 * n,
                        c + r * n,
                        old_c + r * n,
                        dh + r * n,
                        dc + r * n,
                        n);
    }
  }

  TAEDA_ROW gru_row(A* __restrict r,
                    A* __restrict z,
                    A* __restrict m,
                    const A* __restrict hidden,
                    const A* __restrict old,
                    A* __restrict out,
                    int64_t n) {
    for (int64_t j = 0; j < n; ++j) {
      r[j] = squash(r[j] + hidden[j]);
      z[j] = squash(z[j] + hidden[n + j]);
      m[j] = math::tanh(m[j] + r[j] * hidden[2 * n + j]);
      out[j] = m[j] + z[j] * (old[j] - m[j]);
    }
  }
  static void gru(A* gates,
                  const A* hidden,
                  const A* old_h,
                  A* h,
                  int64_t rows,
                  int64_t n) {
    for (int64_t k = 0; k < rows; ++k) {
      A* r = gates + k * 3 * n;
      gru_row(
          r, r + n, r + 2 * n, hidden + k * 3 * n, old_h + k * n, h + k * n, n);
    }
  }

  TAEDA_ROW gru_backward_row(A* __restrict r,
                             A* __restrict z,
                             A* __restrict m,
                             A* __restrict hr,
                             A* __restrict hz,
                             A* __restrict hm,
                             const A* __restrict old,
                             A* __restrict d,
                             int64_t n) {
    for (int64_t j = 0; j < n; ++j) {
      A gm = d[j] * (A(1) - z[j]) * (A(1) - m[j] * m[j]);
      A gz = d[j] * (old[j] - m[j]) * z[j] * (A(1) - z[j]);
      A gr = gm * hm[j] * r[j] * (A(1) - r[j]);
      hr[j] = gr, hz[j] = gz, hm[j] = gm * r[j];
      d[j] *= z[j];
      r[j] = gr, z[j] = gz, m[j] = gm;
    }
  }
  static void gru_backward(
      A* gates, A* hidden, const A* old_h, A* dh, int64_t rows, int64_t n) {
    for (int64_t k = 0; k < rows; ++k) {
      A* r = gates + k * 3 * n;
      A* side = hidden + k * 3 * n;
      gru_backward_row(r,
                       r + n,
                       r + 2 * n,
                       side,
                       side + n,
                       side + 2 * n,
                       old_h + k * n,
                       dh + k * n,
                       n);
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
