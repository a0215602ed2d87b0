// Distances between all rows of one or two matrices.
#include <taeda/aten/iter/copy.h>
#include <taeda/aten/iter/pointwise.h>
#include <taeda/aten/native/argument_checks.h>
#include <taeda/aten/parallel/parallel.h>
#include <taeda/gen/native/_cdist_backward.h>
#include <taeda/gen/native/_cdist_forward.h>
#include <taeda/gen/native/_pdist_backward.h>
#include <taeda/gen/native/_pdist_forward.h>
#include <taeda/gen/native/cdist.h>
#include <taeda/gen/native/pdist.h>
#include <taeda/gen/ops/_cdist_forward.h>
#include <taeda/gen/ops/_pdist_forward.h>
#include <taeda/gen/ops/contiguous.h>
#include <taeda/gen/ops/expand.h>

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

// The loops walk both tensors by one batch index.
template <class T>
void check_rows(std::string_view name, const T& x1, const T& x2) {
  auto batch = [](const T& t) {
    return t.sizes().slice(0, static_cast<size_t>(t.dim()) - 2);
  };
  TAEDA_CHECK(x1.dim() >= 2 && x2.dim() == x1.dim() && batch(x1) == batch(x2) &&
                  x1.size(-1) == x2.size(-1),
              name,
              ": expected x1 [..., p, m] and x2 [..., r, m], got ",
              x1.sizes(),
              " and ",
              x2.sizes());
}

void check_order(double p) {
  TAEDA_CHECK(p >= 0, "only supports non-negative p values, got ", p);
}

}  // namespace

Tensor cdist(const Tensor& x1,
             const Tensor& x2,
             double p,
             std::optional<int64_t> compute_mode) {
  TAEDA_CHECK(x1.dim() >= 2 && x2.dim() >= 2,
              "cdist only supports at least 2D tensors, X1 got: ",
              x1.dim(),
              "D, X2 got: ",
              x2.dim(),
              "D");
  TAEDA_CHECK(x1.size(-1) == x2.size(-1),
              "X1 and X2 must have the same number of columns. X1: ",
              x1.size(-1),
              " X2: ",
              x2.size(-1));
  TAEDA_CHECK(x1.is_floating_point() && x2.is_floating_point(),
              "cdist only supports floating-point dtypes, X1 got: ",
              x1.dtype(),
              ", X2 got: ",
              x2.dtype());
  check_order(p);
  TAEDA_CHECK(compute_mode.value_or(0) >= 0 && compute_mode.value_or(0) <= 2,
              "possible modes: 0, 1, 2, but was: ",
              compute_mode.value_or(0));
  auto batch = [](const Tensor& t) {
    return t.sizes().slice(0, static_cast<size_t>(t.dim()) - 2);
  };
  DimVector lead = broadcast_shapes<int64_t>("cdist", batch(x1), batch(x2));
  auto expanded = [&](const Tensor& t) {
    DimVector sizes = lead;
    sizes.push_back(t.size(-2));
    sizes.push_back(t.size(-1));
    return IntArrayRef(sizes) == t.sizes() ? t : ops::expand(t, sizes, false);
  };
  return ops::_cdist_forward(expanded(x1), expanded(x2), p, compute_mode);
}

template <class I>
void _cdist_forward_shape(const Spec<I>& x1,
                          const Spec<I>& x2,
                          double p,
                          std::optional<int64_t>,
                          Plan<I>& plan) {
  check_order(p);
  check_rows("_cdist_forward", x1, x2);
  TAEDA_CHECK(x1.dtype() == x2.dtype(),
              "cdist: expected inputs of the same dtype, got ",
              x1.dtype(),
              " and ",
              x2.dtype());
  Dims<I> sizes(x1.sizes());
  sizes.back() = x2.size(-2);
  plan.set(0, sizes, x1.dtype());
}
TAEDA_SHAPE(_cdist_forward_shape);

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

template <class I>
void _cdist_backward_shape(const Spec<I>& grad,
                           const Spec<I>& x1,
                           const Spec<I>& x2,
                           double,
                           const Spec<I>& cdist,
                           Plan<I>& plan) {
  constexpr std::string_view kName = "cdist_backward";
  const int64_t rank = x1.dim();
  check_rows(kName, x1, x2);
  for (const Spec<I>* t : {&grad, &x2, &cdist}) {
    TAEDA_CHECK(t->dtype() == x1.dtype(),
                kName,
                ": expected tensors of one dtype, got ",
                x1.dtype(),
                " and ",
                t->dtype());
  }
  Dims<I> distances(x1.sizes());
  distances[static_cast<size_t>(rank - 1)] = x2.size(-2);
  check_shape(kName, "grad", grad, distances);
  check_shape(kName, "cdist", cdist, distances);
  plan.set(0, x1.sizes(), x1.dtype());
}
TAEDA_SHAPE(_cdist_backward_shape);

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

Tensor pdist(const Tensor& self, double p) {
  TAEDA_CHECK(self.dim() == 2,
              "pdist only supports 2D tensors, got: ",
              self.dim(),
              "D");
  TAEDA_CHECK(self.is_floating_point(),
              "pdist only supports floating-point dtypes, got ",
              self.dtype());
  TAEDA_CHECK(p >= 0, "pdist only supports non-negative p values, got ", p);
  return ops::_pdist_forward(ops::contiguous(self, MemoryFormat::Contiguous),
                             p);
}

template <class I>
void _pdist_forward_shape(const Spec<I>& self, double, Plan<I>& plan) {
  I n = self.sizes()[0];
  plan.set(0, {n > 1 ? n * (n - 1) / 2 : 0}, self.dtype());
}
TAEDA_SHAPE(_pdist_forward_shape);

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

template <class I>
void _pdist_backward_shape(const Spec<I>&,
                           const Spec<I>& self,
                           double,
                           const Spec<I>&,
                           Plan<I>& plan) {
  plan.set(0, self.sizes(), self.dtype());
}
TAEDA_SHAPE(_pdist_backward_shape);

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
