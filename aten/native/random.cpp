// Random numbers in place: what the distributions of one tensor accept.
#include <taeda/aten/core/dtype_rule.h>
#include <taeda/aten/iter/output.h>
#include <taeda/aten/native/creation.h>
#include <taeda/aten/native/random.h>
#include <taeda/gen/native/bernoulli.h>
#include <taeda/gen/native/cauchy_.h>
#include <taeda/gen/native/exponential_.h>
#include <taeda/gen/native/geometric_.h>
#include <taeda/gen/native/log_normal_.h>
#include <taeda/gen/native/normal_.h>
#include <taeda/gen/native/random_.h>
#include <taeda/gen/native/uniform_.h>

#include <cmath>
#include <limits>

namespace taeda::native {

void check_std(double std) {
  TAEDA_CHECK(std >= 0.0, "normal expects std >= 0.0, but found std ", std);
}

namespace {

double largest(ScalarType t) {
  switch (t) {
    case kHalf:
      return 65504.0;
    case kBFloat16:
      return 0x1.fep127;
    case kFloat:
      return std::numeric_limits<float>::max();
    default:
      return std::numeric_limits<double>::max();
  }
}

}  // namespace

template <class I>
void uniform_shape(const Spec<I>& self,
                   double from,
                   double to,
                   const MaybeGenerator&,
                   Plan<I>&) {
  ScalarType t = self.dtype();
  if (!is_complex(t) && (!is_floating(t) || is_float8(t))) {
    not_implemented_for("check_uniform_bounds", t);
  }
  TAEDA_CHECK(from <= to,
              "uniform_ expects to return a [from, to) range, but found from=",
              from,
              " > to=",
              to);
  double most = largest(real_type_of(t));
  auto check = [&](const char* name, double v) {
    TAEDA_CHECK(std::abs(v) <= most, name, " is out of bounds for ", t);
  };
  check("from", from);
  check("to", to);
  TAEDA_CHECK(to - from <= most,
              "uniform_ expects to-from <= ",
              most,
              ", the largest ",
              t,
              ", but found to=",
              to,
              " and from=",
              from);
}
TAEDA_SHAPE(uniform_shape);

template <class I>
void normal_inplace_shape(
    const Spec<I>&, double, double std, const MaybeGenerator&, Plan<I>&) {
  check_std(std);
}
TAEDA_SHAPE(normal_inplace_shape);

template <class I>
void random_from_shape(const Spec<I>&,
                       int64_t from,
                       std::optional<int64_t> to,
                       const MaybeGenerator&,
                       Plan<I>&) {
  if (to) check_random_range(from, *to);
}
TAEDA_SHAPE(random_from_shape);

template <class I>
void random_to_shape(const Spec<I>&,
                     int64_t to,
                     const MaybeGenerator&,
                     Plan<I>&) {
  check_random_range<int64_t>(0, to);
}
TAEDA_SHAPE(random_to_shape);

// Other distributions --------------------------------------------------------

template <class I>
void exponential_shape(const Spec<I>& self,
                       double lambd,
                       const MaybeGenerator&,
                       Plan<I>&) {
  TAEDA_CHECK(self.is_floating_point(),
              "Exponential distribution is a continuous probability "
              "distribution. dtype must be a floating point but you specified ",
              self.dtype());
  TAEDA_CHECK(lambd > 0.0,
              "exponential_ expects lambda > 0.0, but found lambda=",
              lambd);
}
TAEDA_SHAPE(exponential_shape);

template <class I>
void geometric_shape(const Spec<I>&,
                     double p,
                     const MaybeGenerator&,
                     Plan<I>&) {
  TAEDA_CHECK(
      0 < p && p < 1, "geometric_ expects p to be in (0, 1), but got p=", p);
}
TAEDA_SHAPE(geometric_shape);

template <class I>
void cauchy_shape(const Spec<I>& self,
                  double,
                  double sigma,
                  const MaybeGenerator&,
                  Plan<I>&) {
  TAEDA_CHECK(
      sigma > 0.0, "cauchy_ expects sigma > 0.0, but found sigma=", sigma);
  TAEDA_CHECK(self.is_floating_point(),
              "Cauchy distribution is a continuous probability distribution. "
              "dtype must be a floating point but you specified ",
              self.dtype());
}
TAEDA_SHAPE(cauchy_shape);

template <class I>
void log_normal_shape(
    const Spec<I>&, double, double std, const MaybeGenerator&, Plan<I>&) {
  TAEDA_CHECK(std > 0.0, "log_normal_ expects std > 0.0, but found std=", std);
}
TAEDA_SHAPE(log_normal_shape);

// bernoulli ------------------------------------------------------------------

namespace {

void check_chance(double p) {
  TAEDA_CHECK(
      0 <= p && p <= 1, "bernoulli_ expects p to be in [0, 1], but got p=", p);
}

template <class I>
void check_chances(const Spec<I>& p) {
  TAEDA_CHECK_AS(
      NotImplemented,
      p.is_floating_point(),
      "bernoulli_: expected probabilities tensor to have floating type, got ",
      p.dtype());
}

}  // namespace

template <class I>
void bernoulli_shape(const Spec<I>& self,
                     const MaybeGenerator&,
                     Plan<I>& plan) {
  check_chances(self);
  plan.set(0, self.sizes(), self.dtype());
}
TAEDA_SHAPE(bernoulli_shape);

template <class I>
void bernoulli_out_shape(const Spec<I>& self,
                         const MaybeGenerator&,
                         const Spec<I>& out,
                         Plan<I>& plan) {
  check_chances(self);
  plan_into(plan, self.sizes(), out);
}
TAEDA_SHAPE(bernoulli_out_shape);

template <class I>
void bernoulli_p_shape(const Spec<I>& self,
                       double p,
                       const MaybeGenerator&,
                       Plan<I>& plan) {
  check_chance(p);
  plan.set_like(0, self, self.dtype());
}
TAEDA_SHAPE(bernoulli_p_shape);

template <class I>
void bernoulli_float_shape(const Spec<I>&,
                           double p,
                           const MaybeGenerator&,
                           Plan<I>&) {
  check_chance(p);
}
TAEDA_SHAPE(bernoulli_float_shape);

template <class I>
void bernoulli_tensor_shape(const Spec<I>&,
                            const Spec<I>& p,
                            const MaybeGenerator&,
                            Plan<I>&) {
  check_chances(p);
}
TAEDA_SHAPE(bernoulli_tensor_shape);

}  // namespace taeda::native
