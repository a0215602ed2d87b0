#include <taeda/aten/native/cpu/kernels/isa.h>
#include <taeda/aten/native/cpu/kernels/norm.h>

#include <cmath>

TAEDA_ISA_BEGIN

namespace {

// Rows of T, summed in A. `_rows` functions take a matrix whose columns are the
// channels: there each lane has its own statistics, elsewhere one row has one.
template <class T>
struct Norm {
  using A = lane_sum_t<T>;
  using L = Lanes<A>;
  using V = typename L::V;

  static A sum(const T* x, int64_t n) {
    // Four vectors are one link of the chain of additions.
    constexpr int64_t k = L::kCount;
    BlockSum<A> s;
    int64_t i = 0;
    for (; i + 4 * k <= n; i += 4 * k) {
      s.add((L::load(x + i) + L::load(x + i + k)) +
            (L::load(x + i + 2 * k) + L::load(x + i + 3 * k)));
    }
    for_lanes<A>(n - i, [&](auto get, auto) { s.add(get(x + i)); });
    return s.get();
  }

  // The sum of squared distances to a mean that is known already. In two
  // passes, because the sum of squares minus n times the squared mean cancels.
  static A square_sum(const T* x, A mean, int64_t n) {
    BlockSum<A> s;
    // Lanes past the end read as zero, whose distance to the mean is not zero,
    // so the last elements are added one by one.
    int64_t full = n - n % L::kCount;
    V m = L::splat(mean);
    for_lanes<A>(full, [&](auto get, auto) {
      V d = get(x) - m;
      s.add(d * d);
    });
    A rest = 0;
    for (int64_t i = full; i < n; ++i) {
      A d = static_cast<A>(x[i]) - mean;
      rest += d * d;
    }
    return s.get() + rest;
  }

  // What both gradients of a channel need: the sum of dy and that of dy * (x -
  // mean).
  static NormSums<A> grad_sums(const T* dy, const T* x, A mean, int64_t n) {
    BlockSum<A> s, d;
    V m = L::splat(mean);
    for_lanes<A>(n, [&](auto get, auto) {
      V g = get(dy);
      s.add(g);
      d.add(g * (get(x) - m));
    });
    return {s.get(), d.get()};
  }

  static void affine(const T* x, A a, A b, T* y, int64_t n) {
    V va = L::splat(a), vb = L::splat(b);
    for_lanes<A>(n, [&](auto get, auto put) { put(y, get(x) * va + vb); });
  }

  // The gradient by x of one channel is linear in dy and x, with coefficients
  // that depend on the channel alone.
  static void affine2(
      const T* dy, const T* x, A a, A b, A c, T* dx, int64_t n) {
    V va = L::splat(a), vb = L::splat(b), vc = L::splat(c);
    for_lanes<A>(n, [&](auto get, auto put) {
      put(dx, get(dy) * va + get(x) * vb + vc);
    });
  }

  static void affine_rows(
      const T* x, const A* a, const A* b, T* y, int64_t rows, int64_t n) {
    for (int64_t r = 0; r < rows; ++r, x += n, y += n) {
      for_lanes<A>(
          n, [&](auto get, auto put) { put(y, get(x) * get(a) + get(b)); });
    }
  }

  static void affine2_rows(const T* dy,
                           const T* x,
                           const A* a,
                           const A* b,
                           const A* c,
                           T* dx,
                           int64_t rows,
                           int64_t n) {
    for (int64_t r = 0; r < rows; ++r, x += n, dy += n, dx += n) {
      for_lanes<A>(n, [&](auto get, auto put) {
        put(dx, get(dy) * get(a) + get(x) * get(b) + get(c));
      });
    }
  }

  static void sum_rows(const T* x, A* sums, int64_t rows, int64_t n) {
    for (int64_t r = 0; r < rows; ++r, x += n) {
      for_lanes<A>(n,
                   [&](auto get, auto put) { put(sums, get(sums) + get(x)); });
    }
  }

  static void square_sum_rows(
      const T* x, const A* mean, A* sums, int64_t rows, int64_t n) {
    for (int64_t r = 0; r < rows; ++r, x += n) {
      for_lanes<A>(n, [&](auto get, auto put) {
        V d = get(x) - get(mean);
        put(sums, get(sums) + d * d);
      });
    }
  }

  static void grad_sum_rows(const T* dy,
                            const T* x,
                            const A* mean,
                            A* sums,
                            A* dots,
                            int64_t rows,
                            int64_t n) {
    for (int64_t r = 0; r < rows; ++r, x += n, dy += n) {
      for_lanes<A>(n, [&](auto get, auto put) {
        V g = get(dy);
        put(sums, get(sums) + g);
        put(dots, get(dots) + g * (get(x) - get(mean)));
      });
    }
  }

  // Whole rows of layer norm, or of RMS norm where `centred` is false: that one
  // has no mean, and `mean` is not written. w and b may be null.
  static void forward(const T* x,
                      const A* w,
                      const A* b,
                      T* y,
                      A* mean,
                      A* rstd,
                      int64_t rows,
                      int64_t n,
                      double eps,
                      bool centred) {
    for (int64_t r = 0; r < rows; ++r, x += n, y += n) {
      A m = centred ? sum(x, n) / static_cast<A>(n) : A(0);
      A var = square_sum(x, m, n) / static_cast<A>(n);
      A scale = A(1) / std::sqrt(var + static_cast<A>(eps));
      if (centred) mean[r] = m;
      rstd[r] = scale;
      V vs = L::splat(scale), vm = L::splat(m);
      if (w && b) {
        for_lanes<A>(n, [&](auto get, auto put) {
          put(y, (get(x) - vm) * vs * get(w) + get(b));
        });
      } else if (w) {
        for_lanes<A>(n, [&](auto get, auto put) {
          put(y, (get(x) - vm) * vs * get(w));
        });
      } else if (b) {
        for_lanes<A>(n, [&](auto get, auto put) {
          put(y, (get(x) - vm) * vs + get(b));
        });
      } else {
        for_lanes<A>(n,
                     [&](auto get, auto put) { put(y, (get(x) - vm) * vs); });
      }
    }
  }

  // The gradient by one row of x. Its mean, and its part along x, are taken
  // out, for the norm does not depend on the row's shift and scale.
  template <bool kWeighted>
  static void input_row(const T* dy,
                        const T* x,
                        const A* w,
                        A mean,
                        A rstd,
                        T* dx,
                        int64_t n,
                        bool centred) {
    BlockSum<A> sums, dots;
    V vm = L::splat(mean), vs = L::splat(rstd);
    auto weighted = [&](auto get) __attribute__((always_inline)) {
      if constexpr (kWeighted) {
        return get(dy) * get(w);
      } else {
        return get(dy);
      }
    };
    for_lanes<A>(n, [&](auto get, auto) {
      V g = weighted(get);
      sums.add(g);
      dots.add(g * (get(x) - vm));
    });
    A count = static_cast<A>(n);
    A average = centred ? sums.get() / count : A(0);
    V shift = L::splat(average);
    V slope = L::splat(dots.get() / count * rstd * rstd);
    for_lanes<A>(n, [&](auto get, auto put) {
      put(dx, (weighted(get) - shift - (get(x) - vm) * slope) * vs);
    });
  }

  // All gradients of whole rows; each of dx, dw and db may be null. dw and db
  // are added to, so that threads may sum rows of their own.
  static void backward(const T* dy,
                       const T* x,
                       const A* w,
                       const A* mean,
                       const A* rstd,
                       T* dx,
                       A* dw,
                       A* db,
                       int64_t rows,
                       int64_t n,
                       bool centred) {
    for (int64_t r = 0; r < rows; ++r, x += n, dy += n) {
      A m = centred ? mean[r] : A(0), s = rstd[r];
      if (dx && w) input_row<true>(dy, x, w, m, s, dx + r * n, n, centred);
      if (dx && !w) input_row<false>(dy, x, w, m, s, dx + r * n, n, centred);
      V vm = L::splat(m), vs = L::splat(s);
      if (dw) {
        for_lanes<A>(n, [&](auto get, auto put) {
          put(dw, get(dw) + get(dy) * (get(x) - vm) * vs);
        });
      }
      if (db) {
        for_lanes<A>(n,
                     [&](auto get, auto put) { put(db, get(db) + get(dy)); });
      }
    }
  }

  static constexpr NormKernels<T> kTable = {forward,
                                            backward,
                                            sum,
                                            square_sum,
                                            grad_sums,
                                            affine,
                                            affine2,
                                            affine_rows,
                                            affine2_rows,
                                            sum_rows,
                                            square_sum_rows,
                                            grad_sum_rows};
};

}  // namespace

extern const NormTable kNormTable = {Norm<float>::kTable,
                                     Norm<double>::kTable,
                                     Norm<BFloat16>::kTable,
                                     Norm<Half>::kTable};

TAEDA_ISA_END
