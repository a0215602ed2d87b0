// sort, argsort, topk, kthvalue, median, nanmedian, mode: shapes.
#include <taeda/aten/native/dim_rules.h>
#include <taeda/gen/native/argsort.h>
#include <taeda/gen/native/kthvalue.h>
#include <taeda/gen/native/median.h>
#include <taeda/gen/native/mode.h>
#include <taeda/gen/native/msort.h>
#include <taeda/gen/native/nanmedian.h>
#include <taeda/gen/native/sort.h>
#include <taeda/gen/native/topk.h>
#include <taeda/gen/ops/full.h>
#include <taeda/gen/ops/median.h>
#include <taeda/gen/ops/nanmedian.h>
#include <taeda/gen/ops/reshape.h>
#include <taeda/gen/ops/sort.h>

#include <limits>

namespace taeda::native {

namespace {

template <class I>
void plan_sort(const Spec<I>& self, int64_t dim, Plan<I>& plan) {
  refuse_unordered("sort", self.dtype());
  wrap_dim(dim, self.dim());
  for (size_t i = 0; i < 2; ++i) {
    ScalarType type = i == 0 ? self.dtype() : kLong;
    if (self.is_non_overlapping_and_dense()) {
      plan.set(i, self.sizes(), self.strides(), type);
    } else {
      plan.set(i, self.sizes(), type);
    }
  }
}

}  // namespace

template <class I>
void sort_shape(const Spec<I>& self, int64_t dim, bool, Plan<I>& plan) {
  plan_sort(self, dim, plan);
}
TAEDA_SHAPE(sort_shape);
template <class I>
void sort_stable_shape(const Spec<I>& self,
                       std::optional<bool>,
                       int64_t dim,
                       bool,
                       Plan<I>& plan) {
  plan_sort(self, dim, plan);
}
TAEDA_SHAPE(sort_stable_shape);

Tensor argsort(const Tensor& self, int64_t dim, bool descending) {
  return std::get<1>(ops::sort(self, dim, descending));
}
Tensor argsort(const Tensor& self, bool stable, int64_t dim, bool descending) {
  return std::get<1>(ops::sort(self, stable, dim, descending));
}
Tensor msort(const Tensor& self) {
  return std::get<0>(ops::sort(self, 0, false));
}

template <class I>
void topk_shape(
    const Spec<I>& self, I k, int64_t dim, bool, bool, Plan<I>& plan) {
  refuse_unordered("topk", self.dtype());
  int64_t at = wrap_dim(dim, self.dim());
  I n = self.dim() == 0 ? 1 : self.sizes()[at];
  TAEDA_CHECK(k >= 0 && k <= n,
              "topk: selected index k out of range: k is ",
              k,
              ", the dim has size ",
              n);
  Dims<I> shape(self.sizes());
  if (!shape.empty()) shape[static_cast<size_t>(at)] = k;
  plan.set(0, shape, self.dtype());
  plan.set(1, shape, kLong);
}
TAEDA_SHAPE(topk_shape);

template <class I>
void kthvalue_shape(
    const Spec<I>& self, I k, int64_t dim, bool keepdim, Plan<I>& plan) {
  int64_t at = wrap_dim(dim, self.dim());
  I n = self.dim() == 0 ? I(1) : self.sizes()[at];
  check_not_empty("kthvalue", self, at);
  TAEDA_CHECK(k >= 1 && k <= n,
              "kthvalue(): selected number k out of range for dimension ",
              at,
              ": k is ",
              k,
              ", the dim has size ",
              n);
  plan_choice("kthvalue", self, dim, keepdim, plan);
  plan.refuse_overlap(1);
}
TAEDA_SHAPE(kthvalue_shape);

template <class I>
void median_dim_shape(const Spec<I>& self,
                      int64_t dim,
                      bool keepdim,
                      Plan<I>& plan) {
  plan_choice(plan.op(), self, dim, keepdim, plan);
}
TAEDA_SHAPE(median_dim_shape);

template <class I>
void nanmedian_dim_shape(const Spec<I>& self,
                         int64_t dim,
                         bool keepdim,
                         Plan<I>& plan) {
  plan_choice(plan.op(), self, dim, keepdim, plan);
}
TAEDA_SHAPE(nanmedian_dim_shape);

template <class I>
void mode_shape(const Spec<I>& self, int64_t dim, bool keepdim, Plan<I>& plan) {
  plan_choice(plan.op(), self, dim, keepdim, plan);
}
TAEDA_SHAPE(mode_shape);

namespace {

Tensor no_median(const Tensor& self) {
  double none =
      self.is_floating_point() ? std::numeric_limits<double>::quiet_NaN() : 0.0;
  return ops::full({}, Scalar(none), self.dtype(), {}, self.device(), {});
}

Tensor flat(const Tensor& self) {
  int64_t all[] = {self.numel()};
  return ops::reshape(self, IntArrayRef(all));
}

}  // namespace

Tensor median_all(const Tensor& self) {
  if (self.numel() == 0) return no_median(self);
  return std::get<0>(ops::median(flat(self), 0, false));
}
Tensor nanmedian_all(const Tensor& self) {
  if (self.numel() == 0) return no_median(self);
  return std::get<0>(ops::nanmedian(flat(self), 0, false));
}

}  // namespace taeda::native
