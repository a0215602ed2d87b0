// Random numbers in place: every distribution of one tensor.
#include <taeda/aten/core/dtype_rule.h>
#include <taeda/aten/iter/copy.h>
#include <taeda/aten/iter/output.h>
#include <taeda/aten/native/cpu/distribution_fill.h>
#include <taeda/aten/native/cpu/distribution_samplers.h>
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
#include <taeda/gen/ops/view_as_real.h>

#include <cmath>
#include <limits>

namespace taeda::native {

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

// What random_ fills beside what the distributions over integers do.
template <class F>
void visit_filled(ScalarType t, F&& f) {
  switch (t) {
    case kUInt16:
      return f(uint16_t{});
    case kUInt32:
      return f(uint32_t{});
    case kUInt64:
      return f(uint64_t{});
    default:
      visit_random(t, std::forward<F>(f));
  }
}

// The largest integer up to which all integers are values of T.
template <class T>
int64_t largest() {
  if constexpr (std::is_same_v<T, bool>) {
    return 1;
  } else if constexpr (std::is_integral_v<T>) {
    // Of 64 unsigned bits all are drawn: -1, one below a range of 0.
    return static_cast<int64_t>(std::numeric_limits<T>::max());
  } else if constexpr (std::is_same_v<T, float>) {
    return int64_t{1} << 24;
  } else if constexpr (std::is_same_v<T, double>) {
    return int64_t{1} << 53;
  } else {
    return std::is_same_v<T, Half> ? int64_t{1} << 11 : int64_t{1} << 8;
  }
}

template <class T>
double limit_of(bool upper) {
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
  TAEDA_CHECK(v >= limit_of<T>(false) && v <= limit_of<T>(true),
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

void random_(const Tensor& self,
             int64_t from,
             std::optional<int64_t> to,
             const MaybeGenerator& generator) {
  check_no_internal_overlap("random_", self);
  visit_filled(self.dtype(), [&](auto tag) {
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
  visit_filled(self.dtype(), [&](auto tag) {
    using T = decltype(tag);
    for_rows<T>(self, [&](T* data, int64_t n, int64_t stride) {
      fill_random<T>(data, n, stride, *locked);
    });
  });
}

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
