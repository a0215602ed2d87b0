// Window functions, and complex numbers of two real tensors: shapes.
#include <taeda/aten/native/creation.h>
#include <taeda/gen/native/bartlett_window.h>
#include <taeda/gen/native/blackman_window.h>
#include <taeda/gen/native/complex.h>
#include <taeda/gen/native/hamming_window.h>
#include <taeda/gen/native/hann_window.h>
#include <taeda/gen/native/kaiser_window.h>
#include <taeda/gen/native/polar.h>

namespace taeda::native {

namespace {

template <class I>
void plan_window(Plan<I>& plan,
                 int64_t length,
                 Dtype dtype,
                 MaybeLayout layout) {
  ScalarType t = dtype.value_or(default_dtype());
  TAEDA_CHECK(
      is_floating(t), plan.op(), " expects floating point dtypes, got: ", t);
  TAEDA_CHECK(length >= 0,
              plan.op(),
              " requires non-negative window_length, got window_length=",
              length);
  plan_size<I>(plan, {I(length)}, t, layout);
}

}  // namespace

template <class I>
void window_shape(int64_t length,
                  Dtype dtype,
                  MaybeLayout layout,
                  MaybeDevice,
                  MaybeBool,
                  Plan<I>& plan) {
  plan_window(plan, length, dtype, layout);
}
TAEDA_SHAPE(window_shape);

template <class I>
void window_periodic_shape(int64_t length,
                           bool,
                           Dtype dtype,
                           MaybeLayout layout,
                           MaybeDevice,
                           MaybeBool,
                           Plan<I>& plan) {
  plan_window(plan, length, dtype, layout);
}
TAEDA_SHAPE(window_periodic_shape);

template <class I>
void window_alpha_shape(int64_t length,
                        bool,
                        double,
                        Dtype dtype,
                        MaybeLayout layout,
                        MaybeDevice,
                        MaybeBool,
                        Plan<I>& plan) {
  plan_window(plan, length, dtype, layout);
}
TAEDA_SHAPE(window_alpha_shape);

template <class I>
void window_alpha_beta_shape(int64_t length,
                             bool,
                             double,
                             double,
                             Dtype dtype,
                             MaybeLayout layout,
                             MaybeDevice,
                             MaybeBool,
                             Plan<I>& plan) {
  plan_window(plan, length, dtype, layout);
}
TAEDA_SHAPE(window_alpha_beta_shape);

// Complex numbers of two tensors ---------------------------------------------

template <class I>
void complex_shape(const Spec<I>& a, const Spec<I>& b, Plan<I>& plan) {
  ScalarType t = a.dtype();
  auto fits = [](ScalarType s) {
    return s == kFloat || s == kDouble || s == kHalf;
  };
  TAEDA_CHECK(fits(t) && fits(b.dtype()),
              "Expected both inputs to be Half, Float or Double tensors but "
              "got ",
              a.dtype(),
              " and ",
              b.dtype());
  TAEDA_CHECK(t == b.dtype(),
              "Expected object of scalar type ",
              a.dtype(),
              " but got scalar type ",
              b.dtype(),
              " for second argument");
  plan_pairs(plan, a, b, complex_type_of(t));
}
TAEDA_SHAPE(complex_shape);

}  // namespace taeda::native
