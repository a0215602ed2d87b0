// Random numbers in place: every distribution of one tensor.
#include <taeda/aten/native/random.h>

#include <taeda/aten/iter/copy.h>
#include <taeda/aten/iter/output.h>
#include <taeda/aten/native/cpu/distribution_fill.h>
#include <taeda/aten/native/cpu/distribution_samplers.h>
#include <taeda/aten/native/creation.h>
#include <taeda/gen/native/bernoulli.h>
#include <taeda/gen/native/cauchy_.h>
#include <taeda/gen/native/exponential_.h>
#include <taeda/gen/native/geometric_.h>
#include <taeda/gen/native/log_normal_.h>
#include <taeda/gen/native/normal_.h>
#include <taeda/gen/native/random_.h>
#include <taeda/gen/native/uniform_.h>
#include <taeda/gen/ops/view_as_real.h>

#include <cmath>
#include <limits>

namespace taeda::native {

void check_std(double std) {
  TAEDA_CHECK(std >= 0.0, "normal expects std >= 0.0, but found std ", std);
}

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
}
TAEDA_SHAPE(uniform_shape);

void uniform_(const Tensor& self,
              double from,
              double to,
              const MaybeGenerator& generator) {
  if (self.is_complex()) {
    return uniform_(ops::view_as_real(self), from, to, generator);
  }
  check_no_internal_overlap("uniform_", self);
  LockedGenerator locked(generator);
  visit_floating("check_uniform_bounds", self.dtype(), [&](auto tag) {
    using T = decltype(tag);
    for_rows<T>(self, [&](T* data, int64_t n, int64_t stride) {
      fill_uniform<T>(data, n, stride, from, to, *locked);
    });
  });
}

template <class I>
void normal_inplace_shape(
    const Spec<I>&, double, double std, const MaybeGenerator&, Plan<I>&) {
  check_std(std);
}
TAEDA_SHAPE(normal_inplace_shape);

void normal_(const Tensor& self,
             double mean,
             double std,
             const MaybeGenerator& generator) {
  if (self.is_complex()) {
    return normal_(
        ops::view_as_real(self), mean, std / std::sqrt(2.0), generator);
  }
  check_no_internal_overlap("normal_", self);
  LockedGenerator locked(generator);
  visit_floating("normal_kernel_cpu", self.dtype(), [&](auto tag) {
    using T = decltype(tag);
    if (self.is_contiguous()) {
      fill_normal<T>(self.mutable_data<T>(), self.numel(), mean, std, *locked);
      return;
    }
    for_rows<T>(self, [&](T* data, int64_t n, int64_t stride) {
      fill_normal_scalar<T>(data, n, stride, mean, std, *locked);
    });
  });
}

// Integers -------------------------------------------------------------------

namespace {

template <class F>
void visit_random(ScalarType t, F&& f) {
  switch (t) {
    case kBool:
      return f(bool{});
    case kByte:
      return f(uint8_t{});
    case kChar:
      return f(int8_t{});
    case kShort:
      return f(int16_t{});
    case kInt:
      return f(int32_t{});
    case kLong:
      return f(int64_t{});
    default:
      visit_floating("random_", t, std::forward<F>(f));
  }
}

template <class T>
constexpr bool kIsFloat = !std::is_integral_v<T>;

// The largest integer up to which all integers are values of T.
template <class T>
int64_t largest() {
  if constexpr (std::is_same_v<T, bool>) {
    return 1;
  } else if constexpr (std::is_integral_v<T>) {
    return std::numeric_limits<T>::max();
  } else if constexpr (std::is_same_v<T, float>) {
    return int64_t{1} << 24;
  } else if constexpr (std::is_same_v<T, double>) {
    return int64_t{1} << 53;
  } else {
    return std::is_same_v<T, Half> ? int64_t{1} << 11 : int64_t{1} << 8;
  }
}

template <class T>
double bound_of(bool upper) {
  if constexpr (std::is_same_v<T, bool>) {
    return upper ? 1 : 0;
  } else if constexpr (std::is_arithmetic_v<T>) {
    return static_cast<double>(upper ? std::numeric_limits<T>::max()
                                     : std::numeric_limits<T>::lowest());
  } else {
    double size = std::is_same_v<T, Half> ? 65504.0 : 3.3895313892515355e38;
    return upper ? size : -size;
  }
}

template <class T>
void check_bound(int64_t value, const char* name, ScalarType t) {
  double v = static_cast<double>(value);
  TAEDA_CHECK(v >= bound_of<T>(false) && v <= bound_of<T>(true),
              name,
              " is out of bounds for ",
              t);
}

template <class T>
void fill_range(const Tensor& self,
                RandomRange r,
                const MaybeGenerator& generator) {
  LockedGenerator locked(generator);
  for_rows<T>(self, [&](T* data, int64_t n, int64_t stride) {
    fill_random_range<T>(data, n, stride, r.range, r.base, *locked);
  });
}

}  // namespace

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

void random_(const Tensor& self,
             int64_t from,
             std::optional<int64_t> to,
             const MaybeGenerator& generator) {
  check_no_internal_overlap("random_", self);
  visit_random(self.dtype(), [&](auto tag) {
    using T = decltype(tag);
    check_bound<T>(from, "from", self.dtype());
    if (to) {
      check_bound<T>(*to - 1, "to - 1", self.dtype());
      return fill_range<T>(self, random_range<T>(from, *to), generator);
    }
    uint64_t range =
        static_cast<uint64_t>(largest<T>()) - static_cast<uint64_t>(from) + 1;
    fill_range<T>(self, {range, from}, generator);
  });
}
void random_(const Tensor& self, int64_t to, const MaybeGenerator& generator) {
  random_(self, 0, to, generator);
}
void random_(const Tensor& self, const MaybeGenerator& generator) {
  check_no_internal_overlap("random_", self);
  LockedGenerator locked(generator);
  visit_random(self.dtype(), [&](auto tag) {
    using T = decltype(tag);
    for_rows<T>(self, [&](T* data, int64_t n, int64_t stride) {
      fill_random<T>(data, n, stride, *locked);
    });
  });
}

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

void exponential_(const Tensor& self,
                  double lambd,
                  const MaybeGenerator& generator) {
  check_no_internal_overlap("exponential_", self);
  LockedGenerator locked(generator);
  visit_floating("exponential", self.dtype(), [&](auto tag) {
    using T = decltype(tag);
    for_rows<T>(self, [&](T* data, int64_t n, int64_t stride) {
      fill_exponential<T>(data, n, stride, lambd, *locked);
    });
  });
}

template <class I>
void geometric_shape(const Spec<I>&,
                     double p,
                     const MaybeGenerator&,
                     Plan<I>&) {
  TAEDA_CHECK(
      0 < p && p < 1, "geometric_ expects p to be in (0, 1), but got p=", p);
}
TAEDA_SHAPE(geometric_shape);

void geometric_(const Tensor& self, double p, const MaybeGenerator& generator) {
  check_no_internal_overlap("geometric_", self);
  LockedGenerator locked(generator);
  visit_random(self.dtype(), [&](auto tag) {
    using T = decltype(tag);
    if constexpr (std::is_same_v<T, bool>) {
      not_implemented_for("geometric_cpu", self.dtype());
    } else {
      for_rows<T>(self, [&](T* data, int64_t n, int64_t stride) {
        fill_geometric<T>(data, n, stride, p, *locked);
      });
    }
  });
}

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

void cauchy_(const Tensor& self,
             double median,
             double sigma,
             const MaybeGenerator& generator) {
  check_no_internal_overlap("cauchy_", self);
  LockedGenerator locked(generator);
  visit_floating("cauchy", self.dtype(), [&](auto tag) {
    using T = decltype(tag);
    for_rows<T>(self, [&](T* data, int64_t n, int64_t stride) {
      fill_cauchy<T>(data, n, stride, median, sigma, *locked);
    });
  });
}

template <class I>
void log_normal_shape(
    const Spec<I>&, double, double std, const MaybeGenerator&, Plan<I>&) {
  TAEDA_CHECK(std > 0.0, "log_normal_ expects std > 0.0, but found std=", std);
}
TAEDA_SHAPE(log_normal_shape);

void log_normal_(const Tensor& self,
                 double mean,
                 double std,
                 const MaybeGenerator& generator) {
  check_no_internal_overlap("log_normal_", self);
  LockedGenerator locked(generator);
  visit_floating("log_normal_cpu", self.dtype(), [&](auto tag) {
    using T = decltype(tag);
    for_rows<T>(self, [&](T* data, int64_t n, int64_t stride) {
      fill_log_normal<T>(data, n, stride, mean, std, *locked);
    });
  });
}

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

void bernoulli_cpu(const Tensor& self,
                   const MaybeGenerator& generator,
                   const Tensor& out) {
  bernoulli_(out, self, generator);
}
void bernoulli_cpu(const Tensor&,
                   double p,
                   const MaybeGenerator& generator,
                   const Tensor& out) {
  bernoulli_(out, p, generator);
}

void bernoulli_(const Tensor& self, double p, const MaybeGenerator& generator) {
  check_no_internal_overlap("bernoulli_", self);
  LockedGenerator locked(generator);
  visit_random(self.dtype(), [&](auto tag) {
    using T = decltype(tag);
    for_rows<T>(self, [&](T* data, int64_t n, int64_t stride) {
      fill_bernoulli<T>(data, n, stride, p, *locked);
    });
  });
}

void bernoulli_(const Tensor& self,
                const Tensor& p,
                const MaybeGenerator& generator) {
  check_no_internal_overlap("bernoulli_", self);
  if (self.numel() == 0) return;
  ScalarType t = p.dtype() == kDouble ? kDouble : kFloat;
  Tensor wide = make_tensor("bernoulli_", self.sizes(), t);
  copy_into(wide, p);
  Tensor work = self.is_contiguous()
                    ? self
                    : make_tensor("bernoulli_", self.sizes(), self.dtype());
  {
    LockedGenerator locked(generator);
    visit_random(self.dtype(), [&](auto tag) {
      using T = decltype(tag);
      T* data = work.mutable_data<T>();
      if (t == kDouble) {
        fill_bernoulli<T, double>(
            data, 1, wide.const_data<double>(), 1, work.numel(), *locked);
      } else {
        fill_bernoulli<T, float>(
            data, 1, wide.const_data<float>(), 1, work.numel(), *locked);
      }
    });
  }
  if (!work.is_same(self)) copy_into(self, work);
}

}  // namespace taeda::native
