// What the singular values tell: pseudo-inverse and rank.
#include <taeda/aten/iter/copy.h>
#include <taeda/aten/native/linalg/matrices.h>
#include <taeda/gen/native/_linalg_pinv.h>
#include <taeda/gen/native/linalg_matrix_rank.h>
#include <taeda/gen/native/linalg_pinv.h>
#include <taeda/gen/ops/_linalg_pinv.h>
#include <taeda/gen/ops/abs.h>
#include <taeda/gen/ops/amax.h>
#include <taeda/gen/ops/conj.h>
#include <taeda/gen/ops/full.h>
#include <taeda/gen/ops/gt.h>
#include <taeda/gen/ops/le.h>
#include <taeda/gen/ops/linalg_eigh.h>
#include <taeda/gen/ops/linalg_eigvalsh.h>
#include <taeda/gen/ops/linalg_svd.h>
#include <taeda/gen/ops/linalg_svdvals.h>
#include <taeda/gen/ops/masked_fill.h>
#include <taeda/gen/ops/matmul.h>
#include <taeda/gen/ops/maximum.h>
#include <taeda/gen/ops/mul.h>
#include <taeda/gen/ops/reciprocal.h>
#include <taeda/gen/ops/sum.h>
#include <taeda/gen/ops/transpose.h>
#include <taeda/gen/ops/unsqueeze.h>
#include <taeda/gen/ops/zeros_like.h>

#include <algorithm>
#include <limits>

namespace taeda::native {

namespace {

Tensor number(double value, const Tensor& a) {
  return ops::full({},
                   Scalar(value),
                   real_type_of(a.dtype()),
                   std::nullopt,
                   a.device(),
                   std::nullopt);
}

// The relative tolerance where none is given.
double usual_tolerance(const Tensor& a) {
  bool narrow = real_type_of(a.dtype()) == kFloat;
  double eps = narrow ? std::numeric_limits<float>::epsilon()
                      : std::numeric_limits<double>::epsilon();
  return eps * static_cast<double>(std::max(a.size(-2), a.size(-1)));
}

struct Tolerances {
  Tensor atol, rtol;
};

template <typename T>
bool given(const std::optional<T>& t) {
  if constexpr (std::is_same_v<T, double>) {
    return t.has_value();
  } else {
    return t.has_value() && t->defined();
  }
}

Tensor as_tensor(double value, const Tensor& a) { return number(value, a); }
Tensor as_tensor(const Tensor& value, const Tensor&) { return value; }

// An absolute tolerance alone switches the relative one off, if it is not 0.
template <typename T>
Tolerances tolerances(std::string_view op,
                      const Tensor& a,
                      const std::optional<T>& atol,
                      const std::optional<T>& rtol) {
  check_matrices(op, a);
  Tolerances t;
  t.atol = given(atol) ? as_tensor(*atol, a) : number(0, a);
  if (given(rtol)) {
    t.rtol = as_tensor(*rtol, a);
  } else {
    bool absolute = false;
    if constexpr (std::is_same_v<T, double>) {
      absolute = atol && *atol > 0;
    } else {
      absolute = given(atol);
    }
    t.rtol = number(absolute ? 0 : usual_tolerance(a), a);
  }
  return t;
}

// The singular values' limit, with a last dim of 1; `s` are magnitudes.
Tensor limit(const Tensor& s, const Tolerances& t) {
  int64_t last[] = {-1};
  Tensor largest = ops::amax(s, IntArrayRef(last), /*keepdim=*/true);
  auto column = [](const Tensor& x) {
    return x.dim() == 0 ? x : ops::unsqueeze(x, -1);
  };
  return ops::maximum(column(t.atol), ops::mul(column(t.rtol), largest));
}

Tensor adjoint(const Tensor& t) {
  Tensor flipped = ops::transpose(t, -2, -1);
  return t.is_complex() ? ops::conj(flipped) : flipped;
}

template <typename T>
Tensor rank_of(const Tensor& a,
               const std::optional<T>& atol,
               const std::optional<T>& rtol,
               bool hermitian) {
  constexpr std::string_view op = "linalg.matrix_rank";
  Tolerances t = tolerances(op, a, atol, rtol);
  if (a.numel() == 0) {
    Tensor none = make_tensor(op, batch_sizes(a), kLong, a.device());
    fill_with(none, Scalar(0));
    return none;
  }
  Tensor s = hermitian ? ops::abs(ops::linalg_eigvalsh(a, "L"))
                       : ops::linalg_svdvals(a, std::nullopt);
  int64_t last[] = {-1};
  return ops::sum(ops::gt(s, limit(s, t)), IntArrayRef(last));
}

}  // namespace

Tensor _linalg_pinv(const Tensor& a,
                    const Tensor& atol,
                    const Tensor& rtol,
                    bool hermitian) {
  if (a.numel() == 0) {
    return ops::zeros_like(ops::transpose(a, -2, -1));
  }
  Tensor s, u, vh;
  if (hermitian) {
    std::tie(s, u) = ops::linalg_eigh(a, "L");
    vh = adjoint(u);
  } else {
    std::tie(u, s, vh) = ops::linalg_svd(a, false, std::nullopt);
  }
  Tensor size = hermitian ? ops::abs(s) : s;
  Tensor small = ops::le(size, limit(size, {atol, rtol}));
  Tensor inverse = ops::masked_fill(ops::reciprocal(s), small, Scalar(0));
  Tensor scaled = ops::mul(adjoint(vh), ops::unsqueeze(inverse, -2));
  return ops::matmul(scaled, adjoint(u));
}

Tensor linalg_pinv(const Tensor& a,
                   const std::optional<Tensor>& atol,
                   const std::optional<Tensor>& rtol,
                   bool hermitian) {
  Tolerances t = tolerances("linalg.pinv", a, atol, rtol);
  return ops::_linalg_pinv(a, t.atol, t.rtol, hermitian);
}

Tensor linalg_pinv(const Tensor& a,
                   std::optional<double> atol,
                   std::optional<double> rtol,
                   bool hermitian) {
  Tolerances t = tolerances("linalg.pinv", a, atol, rtol);
  return ops::_linalg_pinv(a, t.atol, t.rtol, hermitian);
}

Tensor linalg_matrix_rank(const Tensor& a,
                          const std::optional<Tensor>& atol,
                          const std::optional<Tensor>& rtol,
                          bool hermitian) {
  return rank_of(a, atol, rtol, hermitian);
}

Tensor linalg_matrix_rank(const Tensor& a,
                          std::optional<double> atol,
                          std::optional<double> rtol,
                          bool hermitian) {
  return rank_of(a, atol, rtol, hermitian);
}

}  // namespace taeda::native
