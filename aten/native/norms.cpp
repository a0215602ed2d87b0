// Norms and other reductions made of simpler ones.
#include <taeda/aten/iter/copy.h>
#include <taeda/aten/iter/output.h>
#include <taeda/aten/iter/pointwise.h>
#include <taeda/aten/iter/reduce.h>
#include <taeda/aten/native/normalization.h>
#include <taeda/aten/native/symbolic_sizes.h>
#include <taeda/c10/core/symbolic_geometry.h>
#include <taeda/gen/native/_foreach_norm.h>
#include <taeda/gen/native/_foreach_powsum.h>
#include <taeda/gen/native/count_nonzero.h>
#include <taeda/gen/native/float_power.h>
#include <taeda/gen/native/glu.h>
#include <taeda/gen/native/linalg_vector_norm.h>
#include <taeda/gen/native/logsumexp.h>
#include <taeda/gen/native/nanmean.h>
#include <taeda/gen/native/norm.h>
#include <taeda/gen/native/trace.h>
#include <taeda/gen/ops/_to_copy.h>
#include <taeda/gen/ops/abs.h>
#include <taeda/gen/ops/add.h>
#include <taeda/gen/ops/amax.h>
#include <taeda/gen/ops/amin.h>
#include <taeda/gen/ops/diagonal.h>
#include <taeda/gen/ops/div.h>
#include <taeda/gen/ops/eq.h>
#include <taeda/gen/ops/exp.h>
#include <taeda/gen/ops/isnan.h>
#include <taeda/gen/ops/linalg_vector_norm.h>
#include <taeda/gen/ops/log.h>
#include <taeda/gen/ops/logical_not.h>
#include <taeda/gen/ops/mul.h>
#include <taeda/gen/ops/nansum.h>
#include <taeda/gen/ops/narrow.h>
#include <taeda/gen/ops/ne.h>
#include <taeda/gen/ops/pow.h>
#include <taeda/gen/ops/real.h>
#include <taeda/gen/ops/reshape.h>
#include <taeda/gen/ops/sigmoid.h>
#include <taeda/gen/ops/squeeze.h>
#include <taeda/gen/ops/sub.h>
#include <taeda/gen/ops/sum.h>
#include <taeda/gen/ops/to.h>
#include <taeda/gen/ops/where.h>
#include <taeda/gen/sym/narrow.h>

#include <cmath>
#include <limits>
#include <vector>

namespace taeda::native {

namespace {

using Dims = std::optional<IntArrayRef>;
using Order = std::optional<Scalar>;

Tensor in_dtype(const Tensor& t, ScalarType dtype) {
  return t.dtype() == dtype ? t : ops::_to_copy(t, dtype);
}

void check_norm_dtype(std::string_view op,
                      const Tensor& self,
                      std::optional<ScalarType> dtype) {
  ScalarType type = dtype ? *dtype : self.dtype();
  TAEDA_CHECK(is_floating(type) || is_complex(type),
              op,
              "(): input dtype should be either floating point or complex. "
              "Expected a floating point or complex tensor as input. Got ",
              type,
              " instead.");
}

Tensor checked_norm(std::string_view op,
                    const Tensor& self,
                    const Scalar& order,
                    Dims dims,
                    bool keepdim,
                    std::optional<ScalarType> dtype) {
  check_norm_dtype(op, self, dtype);
  return ops::linalg_vector_norm(self, order, dims, keepdim, dtype);
}

// Norms of negative and infinite order of no elements are none.
void check_has_identity(const Tensor& self, double order, const Dims& dims) {
  if (order >= 0 && std::isfinite(order)) return;
  bool all = !dims || dims->empty();
  TAEDA_CHECK(!all,
              "linalg.vector_norm cannot compute the ",
              order,
              " norm on an empty tensor because the operation does not have an "
              "identity");
  for (int64_t d : *dims) {
    TAEDA_CHECK(self.size(d) != 0,
                "linalg.vector_norm cannot compute the ",
                order,
                " norm on the dimension ",
                d,
                " because this dimension is empty and the operation does not "
                "have an identity");
  }
}

Scalar order_or_two(const Order& p) { return p ? *p : Scalar(2.0); }

}  // namespace

void check_vector_norm(const Tensor& self,
                       const Scalar& ord,
                       Dims dim,
                       bool keepdim,
                       std::optional<ScalarType> dtype) {
  (void)keepdim;
  check_norm_dtype("linalg.vector_norm", self, dtype);
  TAEDA_CHECK(!ord.is_complex(),
              "linalg.vector_norm: Expected a non-complex scalar as the order "
              "of norm, got ",
              ord);
  if (self.numel() == 0) check_has_identity(self, ord.to<double>(), dim);
}

Tensor norm(const Tensor& self, const Scalar& p) {
  return checked_norm("norm", self, p, std::nullopt, false, std::nullopt);
}
Tensor norm(const Tensor& self, const Order& p, ScalarType dtype) {
  return checked_norm(
      "norm", self, order_or_two(p), std::nullopt, false, dtype);
}
Tensor norm(const Tensor& self, const Order& p, IntArrayRef dim, bool keepdim) {
  return checked_norm(
      "norm", self, order_or_two(p), dim, keepdim, std::nullopt);
}
Tensor norm(const Tensor& self,
            const Order& p,
            IntArrayRef dim,
            bool keepdim,
            ScalarType dtype) {
  return checked_norm("norm", self, order_or_two(p), dim, keepdim, dtype);
}

Tensor logsumexp(const Tensor& self, IntArrayRef dim, bool keepdim) {
  bool whole = is_integral(self.dtype(), /*include_bool=*/true);
  // Integers are rounded once, at the end.
  if (whole) {
    return cast(logsumexp(cast(self, kDouble), dim, keepdim), default_dtype());
  }
  const Tensor& in = self;
  if (sym_numel(*in.impl()) == 0) {
    return ops::log(ops::sum(ops::exp(in), dim, keepdim));
  }
  // The real part alone decides how large an exponential is.
  Tensor size = in.is_complex() ? ops::real(in) : in;
  Tensor high = ops::amax(size, dim, /*keepdim=*/true);
  Tensor infinite =
      ops::eq(ops::abs(high), Scalar(std::numeric_limits<double>::infinity()));
  Tensor shift = ops::where(infinite, Scalar(0.0), high);
  Tensor sum = ops::sum(ops::exp(ops::sub(in, shift)), dim, /*keepdim=*/true);
  if (!keepdim) {
    // Before the last step, so that the result is no view.
    uint64_t mask = dim_mask(dim, in.dim());
    DimVector reduced;
    for (int64_t d = 0; d < in.dim(); ++d) {
      if ((mask >> d & 1) != 0) reduced.push_back(d);
    }
    sum = ops::squeeze(sum, reduced);
    shift = ops::squeeze(shift, reduced);
  }
  return ops::add(ops::log(sum), shift);
}

Tensor trace(const Tensor& self) {
  TAEDA_CHECK(self.dim() == 2,
              "trace: expected a matrix, but got tensor with dim ",
              self.dim());
  return ops::sum(ops::diagonal(self));
}

Tensor count_nonzero(const Tensor& self, std::optional<int64_t> dim) {
  Tensor nonzero = ops::ne(self, Scalar(0));
  if (!dim) return ops::sum(nonzero);
  int64_t dims[] = {*dim};
  return ops::sum(nonzero, IntArrayRef(dims), false);
}
Tensor count_nonzero(const Tensor& self, IntArrayRef dim) {
  return ops::sum(ops::ne(self, Scalar(0)), dim, false);
}

Tensor nanmean(const Tensor& self,
               Dims dim,
               bool keepdim,
               std::optional<ScalarType> dtype) {
  TAEDA_CHECK(self.is_floating_point() || self.is_complex(),
              "nanmean(): expected input to have floating point or complex "
              "dtype but got ",
              self.dtype());
  Tensor count = ops::sum(ops::logical_not(ops::isnan(self)), dim, keepdim);
  return ops::div(ops::nansum(self, dim, keepdim, dtype), count);
}

Tensor glu(const Tensor& self, int64_t dim) {
  TAEDA_CHECK(self.dim() > 0,
              "glu: glu does not support 0-dimensional tensors");
  int64_t at = wrap_dim(dim, self.dim());
  const SymInt& size = symbolic_size(self, at);
  TAEDA_CHECK(size % SymInt(2) == 0,
              "glu: Halving dimension must be even, but dimension ",
              at,
              " is size ",
              size);
  SymInt half = size / SymInt(2);
  Tensor a = sym::narrow(self, at, 0, half);
  Tensor b = sym::narrow(self, at, half, half);
  return ops::mul(a, ops::sigmoid(b));
}

namespace {

// What float_power computes in. A Scalar or tensor each.
template <class A, class B>
ScalarType float_power_type(const A& self, const B& exponent) {
  return self.is_complex() || exponent.is_complex() ? kComplexDouble : kDouble;
}

void check_float_power(const char* what, ScalarType given, ScalarType wanted) {
  TAEDA_CHECK(given == wanted,
              what,
              " has dtype ",
              given,
              " but the operation's result requires dtype ",
              wanted);
}

template <class A, class B>
void float_power_into(const A& self, const B& exponent, const Tensor& out) {
  check_float_power("the output given to float_power",
                    out.dtype(),
                    float_power_type(self, exponent));
  write_out("float_power", float_power(self, exponent), out);
}

}  // namespace

Tensor float_power(const Tensor& self, const Tensor& exponent) {
  ScalarType dtype = float_power_type(self, exponent);
  return ops::pow(in_dtype(self, dtype), in_dtype(exponent, dtype));
}
Tensor float_power(const Tensor& self, const Scalar& exponent) {
  return ops::pow(in_dtype(self, float_power_type(self, exponent)), exponent);
}
Tensor float_power(const Scalar& self, const Tensor& exponent) {
  return ops::pow(self, in_dtype(exponent, float_power_type(self, exponent)));
}

void float_power_(const Tensor& self, const Tensor& exponent) {
  ScalarType dtype = float_power_type(self, exponent);
  check_float_power("the base given to float_power_", self.dtype(), dtype);
  ops::pow_(self, in_dtype(exponent, dtype));
}
void float_power_(const Tensor& self, const Scalar& exponent) {
  check_float_power("the base given to float_power_",
                    self.dtype(),
                    float_power_type(self, exponent));
  ops::pow_(self, exponent);
}

void float_power_out(const Tensor& self,
                     const Tensor& exponent,
                     const Tensor& out) {
  float_power_into(self, exponent, out);
}
void float_power_out(const Tensor& self,
                     const Scalar& exponent,
                     const Tensor& out) {
  float_power_into(self, exponent, out);
}
void float_power_out(const Scalar& self,
                     const Tensor& exponent,
                     const Tensor& out) {
  float_power_into(self, exponent, out);
}

template <class I>
void _foreach_norm_shape(SpecList<I> self,
                         const Scalar& ord,
                         std::optional<ScalarType> dtype,
                         Plan<I>& plan) {
  TAEDA_CHECK(!self.empty(), "Tensor list must have at least one tensor.");
  double order = ord.to_double();
  TAEDA_CHECK_AS(NotImplemented,
                 !(std::isinf(order) && order < 0),
                 "_foreach_norm: order -inf is not implemented");
  for (size_t i = 0; i < self.size(); ++i) {
    ScalarType type = self[i].dtype();
    TAEDA_CHECK(
        is_floating(type) || is_complex(type),
        "_foreach_norm: expected floating-point or complex tensors, got ",
        type);
    plan.set(i, ArrayRef<I>(), real_type_of(dtype.value_or(type)));
  }
}
TAEDA_SHAPE(_foreach_norm_shape);

// Powers and sums in float where the tensors have 16 bits.
std::vector<Tensor> _foreach_powsum(TensorBaseList self,
                                    const Scalar& ord,
                                    std::optional<ScalarType> dtype) {
  TAEDA_CHECK(!self.empty(), "Tensor list must have at least one tensor.");
  std::vector<Tensor> sums;
  for (const Tensor& t : self) {
    if (!t.is_floating_point() && !t.is_complex()) {
      not_implemented_for("powsum_cpu", t.dtype());
    }
    Tensor size = ops::abs(t);
    ScalarType result = dtype.value_or(size.dtype());
    bool narrow = size.itemsize() == 2;
    Tensor powers = ops::pow(narrow ? ops::to(size, kFloat) : size, ord);
    sums.push_back(ops::to(ops::sum(powers), result));
  }
  return sums;
}

}  // namespace taeda::native
