// Distances between all rows of one or two matrices.
#include <taeda/aten/core/dtype_rule.h>
#include <taeda/aten/iter/copy.h>
#include <taeda/aten/native/argument_checks.h>
#include <taeda/aten/parallel/parallel.h>
#include <taeda/gen/native/_cdist_backward.h>
#include <taeda/gen/native/_cdist_forward.h>
#include <taeda/gen/native/_pdist_backward.h>
#include <taeda/gen/native/_pdist_forward.h>

#include <algorithm>
#include <cmath>

namespace taeda::native {

namespace {

// A norm: how a difference joins the sum, what the sum becomes, and the
// distance's derivative by a difference.
template <class T>
struct NormZero {
  T add(T sum, T d) const { return sum + (d != 0 ? T(1) : T(0)); }
  T finish(T sum) const { return sum; }
  T slope(T, T) const { return T(0); }
};
template <class T>
T sign_of(T d) {
  return static_cast<T>((d > 0) - (d < 0));
}
template <class T>
struct NormOne {
  T add(T sum, T d) const { return sum + std::abs(d); }
  T finish(T sum) const { return sum; }
  T slope(T d, T) const { return sign_of(d); }
};
template <class T>
struct NormTwo {
  T add(T sum, T d) const { return sum + d * d; }
  T finish(T sum) const { return std::sqrt(sum); }
  T slope(T d, T dist) const { return dist == 0 ? T(0) : d / dist; }
};
template <class T>
struct NormMax {
  T add(T sum, T d) const { return std::max(sum, std::abs(d)); }
  T finish(T sum) const { return sum; }
  T slope(T d, T dist) const { return std::abs(d) == dist ? sign_of(d) : T(0); }
};
template <class T>
struct NormAny {
  T p;
  T add(T sum, T d) const { return sum + std::pow(std::abs(d), p); }
  T finish(T sum) const { return std::pow(sum, 1 / p); }
  T slope(T d, T dist) const {
    if (dist == 0 || (p < 1 && d == 0)) return T(0);
    return sign_of(d) * std::pow(std::abs(d), p - 1) / std::pow(dist, p - 1);
  }
};

template <class F>
void visit_norm(std::string_view op, ScalarType type, double p, F&& f) {
  auto with = [&](auto tag) {
    using T = decltype(tag);
    if (p == 0) return f(tag, NormZero<T>());
    if (p == 1) return f(tag, NormOne<T>());
    if (p == 2) return f(tag, NormTwo<T>());
    if (std::isinf(p)) return f(tag, NormMax<T>());
    f(tag, NormAny<T>{static_cast<T>(p)});
  };
  if (type == kFloat) return with(float{});
  if (type == kDouble) return with(double{});
  not_implemented_for(op, type);
}

template <class T, class N>
T distance(const T* a, const T* b, int64_t width, const N& norm) {
  T sum = 0;
  for (int64_t j = 0; j < width; ++j) sum = norm.add(sum, a[j] - b[j]);
  return norm.finish(sum);
}

// Adds the derivative of a distance to the row it is taken from.
template <class T, class N>
void add_slope(
    const T* a, const T* b, int64_t width, const N& norm, T g, T dist, T* to) {
  if (g == 0) return;
  for (int64_t j = 0; j < width; ++j) {
    to[j] += g * norm.slope(a[j] - b[j], dist);
  }
}

struct Pairs {
  int64_t batch = 1, n, m, width;
};

Pairs pairs_of(const Tensor& x1, const Tensor& x2) {
  Pairs p{1, x1.size(-2), x2.size(-2), x1.size(-1)};
  for (int64_t d = 0; d + 2 < x1.dim(); ++d) p.batch *= x1.sizes()[d];
  return p;
}

int64_t grain_of(int64_t work) {
  return std::max<int64_t>(1, 16384 / std::max<int64_t>(work, 1));
}

}  // namespace

void _cdist_forward_cpu(const Tensor& x1,
                        const Tensor& x2,
                        double p,
                        std::optional<int64_t>,
                        const Tensor& out) {
  Tensor a = contiguous(x1), b = contiguous(x2);
  Pairs s = pairs_of(a, b);
  visit_norm("cdist", a.dtype(), p, [&](auto tag, auto norm) {
    using T = decltype(tag);
    T* to = out.mutable_data<T>();
    int64_t grain = grain_of(s.m * s.width);
    parallel_for(0, s.batch * s.n, grain, [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) {
        const T* row = a.const_data<T>() + r * s.width;
        const T* others = b.const_data<T>() + r / s.n * s.m * s.width;
        for (int64_t j = 0; j < s.m; ++j) {
          to[r * s.m + j] = distance(row, others + j * s.width, s.width, norm);
        }
      }
    });
  });
}

void _cdist_backward_cpu(const Tensor& grad,
                         const Tensor& x1,
                         const Tensor& x2,
                         double p,
                         const Tensor& cdist,
                         const Tensor& out) {
  Tensor a = contiguous(x1), b = contiguous(x2);
  Tensor g = contiguous(grad), d = contiguous(cdist);
  Pairs s = pairs_of(a, b);
  fill_with(out, int64_t{0});
  visit_norm("cdist_backward", a.dtype(), p, [&](auto tag, auto norm) {
    using T = decltype(tag);
    int64_t grain = grain_of(s.m * s.width);
    parallel_for(0, s.batch * s.n, grain, [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) {
        const T* row = a.const_data<T>() + r * s.width;
        const T* others = b.const_data<T>() + r / s.n * s.m * s.width;
        for (int64_t j = 0; j < s.m; ++j) {
          add_slope(row,
                    others + j * s.width,
                    s.width,
                    norm,
                    g.const_data<T>()[r * s.m + j],
                    d.const_data<T>()[r * s.m + j],
                    out.mutable_data<T>() + r * s.width);
        }
      }
    });
  });
}

void _pdist_forward_cpu(const Tensor& self, double p, const Tensor& out) {
  Tensor x = contiguous(self);
  int64_t n = x.sizes()[0], width = x.sizes()[1];
  visit_norm("pdist", x.dtype(), p, [&](auto tag, auto norm) {
    using T = decltype(tag);
    const T* rows = x.const_data<T>();
    T* to = out.mutable_data<T>();
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t j = i + 1; j < n; ++j) {
        *to++ = distance(rows + i * width, rows + j * width, width, norm);
      }
    }
  });
}

void _pdist_backward_cpu(const Tensor& grad,
                         const Tensor& self,
                         double p,
                         const Tensor& pdist,
                         const Tensor& out) {
  Tensor x = contiguous(self), g = contiguous(grad), d = contiguous(pdist);
  int64_t n = x.sizes()[0], width = x.sizes()[1];
  fill_with(out, int64_t{0});
  visit_norm("pdist_backward", x.dtype(), p, [&](auto tag, auto norm) {
    using T = decltype(tag);
    const T* rows = x.const_data<T>();
    const T* slope = g.const_data<T>();
    const T* dist = d.const_data<T>();
    T* to = out.mutable_data<T>();
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t j = i + 1; j < n; ++j, ++slope, ++dist) {
        const T* a = rows + i * width;
        const T* b = rows + j * width;
        add_slope(a, b, width, norm, *slope, *dist, to + i * width);
        add_slope(b, a, width, norm, *slope, *dist, to + j * width);
      }
    }
  });
}

}  // namespace taeda::native
