// var, std, var_mean, std_mean: shapes.
#include <taeda/aten/iter/reduce.h>
#include <taeda/aten/iter/row_major.h>
#include <taeda/aten/native/dim_rules.h>
#include <taeda/aten/native/moments.h>
#include <taeda/gen/native/std.h>
#include <taeda/gen/native/std_mean.h>
#include <taeda/gen/native/var.h>
#include <taeda/gen/native/var_mean.h>
#include <taeda/gen/ops/std.h>
#include <taeda/gen/ops/std_mean.h>
#include <taeda/gen/ops/var.h>
#include <taeda/gen/ops/var_mean.h>

namespace taeda::native {

namespace {

// What the operators refuse, and the sizes of their results.
template <class I>
Dims<I> check_spread(std::string_view op,
                     const Spec<I>& self,
                     DimList dims,
                     bool keepdim) {
  TAEDA_CHECK(self.is_floating_point() || self.is_complex(),
              op,
              ": std and var only support floating point and complex dtypes, "
              "got ",
              self.dtype());
  uint64_t mask = dim_mask(dims, self.dim());
  Dims<I> sizes;
  for (int64_t d = 0; d < self.dim(); ++d) {
    bool reduced = ((mask >> d) & 1) != 0;
    if (!reduced) sizes.push_back(self.sizes()[d]);
    if (reduced && keepdim) sizes.push_back(1);
  }
  return sizes;
}

Correction correction_of(bool unbiased) {
  return Scalar(int64_t{unbiased ? 1 : 0});
}

}  // namespace

template <class I>
void var_shape(const Spec<I>& self,
               DimList dim,
               const Correction&,
               bool keepdim,
               Plan<I>& plan) {
  plan.set(
      0, check_spread("var", self, dim, keepdim), real_type_of(self.dtype()));
}
TAEDA_SHAPE(var_shape);

template <class I>
void var_mean_shape(const Spec<I>& self,
                    DimList dim,
                    const Correction&,
                    bool keepdim,
                    Plan<I>& plan) {
  Dims<I> sizes = check_spread("var_mean", self, dim, keepdim);
  plan.set(0, sizes, real_type_of(self.dtype()));
  plan.set(1, sizes, self.dtype());
}
TAEDA_SHAPE(var_mean_shape);

template <class I>
void std_shape(const Spec<I>& self,
               DimList dim,
               const Correction&,
               bool keepdim,
               Plan<I>& plan) {
  plan.set(
      0, check_spread("std", self, dim, keepdim), real_type_of(self.dtype()));
}
TAEDA_SHAPE(std_shape);

template <class I>
void std_mean_shape(const Spec<I>& self,
                    DimList dim,
                    const Correction&,
                    bool keepdim,
                    Plan<I>& plan) {
  Dims<I> sizes = check_spread("std_mean", self, dim, keepdim);
  plan.set(0, sizes, real_type_of(self.dtype()));
  plan.set(1, sizes, self.dtype());
}
TAEDA_SHAPE(std_mean_shape);

Tensor var(const Tensor& self, bool unbiased) {
  return ops::var(self, std::nullopt, correction_of(unbiased), false);
}
Tensor var(const Tensor& self, DimList dim, bool unbiased, bool keepdim) {
  return ops::var(self, dim, correction_of(unbiased), keepdim);
}
Tensor std(const Tensor& self, bool unbiased) {
  return ops::std(self, std::nullopt, correction_of(unbiased), false);
}
Tensor std(const Tensor& self, DimList dim, bool unbiased, bool keepdim) {
  return ops::std(self, dim, correction_of(unbiased), keepdim);
}
std::tuple<Tensor, Tensor> var_mean(const Tensor& self, bool unbiased) {
  return ops::var_mean(self, std::nullopt, correction_of(unbiased), false);
}
std::tuple<Tensor, Tensor> var_mean(const Tensor& self,
                                    DimList dim,
                                    bool unbiased,
                                    bool keepdim) {
  return ops::var_mean(self, dim, correction_of(unbiased), keepdim);
}
std::tuple<Tensor, Tensor> std_mean(const Tensor& self, bool unbiased) {
  return ops::std_mean(self, std::nullopt, correction_of(unbiased), false);
}
std::tuple<Tensor, Tensor> std_mean(const Tensor& self,
                                    DimList dim,
                                    bool unbiased,
                                    bool keepdim) {
  return ops::std_mean(self, dim, correction_of(unbiased), keepdim);
}

}  // namespace taeda::native
