// max, min, argmax, argmin, aminmax and their derivatives: shapes.
#include <taeda/aten/iter/output.h>
#include <taeda/aten/iter/type_words.h>
#include <taeda/aten/native/argument_checks.h>
#include <taeda/aten/native/cpu/kernels/extrema.h>
#include <taeda/aten/native/dim_rules.h>
#include <taeda/gen/native/_aminmax.h>
#include <taeda/gen/native/amax.h>
#include <taeda/gen/native/amin.h>
#include <taeda/gen/native/aminmax.h>
#include <taeda/gen/native/argmax.h>
#include <taeda/gen/native/argmin.h>
#include <taeda/gen/native/max.h>
#include <taeda/gen/native/min.h>
#include <taeda/gen/native/value_selecting_reduction_backward.h>
#include <taeda/gen/ops/amax.h>
#include <taeda/gen/ops/amin.h>

namespace taeda::native {

namespace {

template <class I>
void plan_place(std::string_view op,
                const Spec<I>& self,
                std::optional<int64_t> dim,
                bool keepdim,
                Plan<I>& plan) {
  if (dim) wrap_dim(*dim, self.dim());
  TAEDA_CHECK(self.dim() <= 64,
              op,
              ": only tensors with up to 64 dims are supported, got ",
              self.dim());
  refuse_unordered(op, self.dtype());
  if (dim) {
    check_not_empty(op, self, *dim);
    return plan.set(0, without_dim(self.sizes(), *dim, keepdim), kLong);
  }
  TAEDA_CHECK_AS(Index,
                 self.numel() > 0,
                 op,
                 "(): Expected reduction dim to be specified for input.numel() "
                 "== 0. Specify the reduction dim with the 'dim' argument.");
  plan.set(0, Dims<I>(keepdim ? self.sizes().size() : 0, I(1)), kLong);
}

void check_any(std::string_view op, const Tensor& self) {
  TAEDA_CHECK(self.numel() > 0,
              op,
              "(): Expected reduction dim to be specified for input.numel() == "
              "0. Specify the reduction dim with the 'dim' argument.");
}

}  // namespace

void check_extremum(const Tensor& self, IntArrayRef dim, bool) {
  TAEDA_CHECK(self.numel() > 0 || !dim.empty(),
              "amax(), amin(): Expected reduction dim to be specified for "
              "input.numel() == 0. Specify the reduction dim with the 'dim' "
              "argument.");
}

Tensor max_all(const Tensor& self) {
  check_any("max", self);
  return ops::amax(self, IntArrayRef(), false);
}
Tensor min_all(const Tensor& self) {
  check_any("min", self);
  return ops::amin(self, IntArrayRef(), false);
}
template <class I>
void max_dim_shape(const Spec<I>& self,
                   int64_t dim,
                   bool keepdim,
                   Plan<I>& plan) {
  plan_choice("max", self, dim, keepdim, plan);
}
TAEDA_SHAPE(max_dim_shape);

template <class I>
void argmax_shape(const Spec<I>& self,
                  std::optional<int64_t> dim,
                  bool keepdim,
                  Plan<I>& plan) {
  plan_place("argmax", self, dim, keepdim, plan);
}
TAEDA_SHAPE(argmax_shape);

template <class I>
void min_dim_shape(const Spec<I>& self,
                   int64_t dim,
                   bool keepdim,
                   Plan<I>& plan) {
  plan_choice("min", self, dim, keepdim, plan);
}
TAEDA_SHAPE(min_dim_shape);

template <class I>
void argmin_shape(const Spec<I>& self,
                  std::optional<int64_t> dim,
                  bool keepdim,
                  Plan<I>& plan) {
  plan_place("argmin", self, dim, keepdim, plan);
}
TAEDA_SHAPE(argmin_shape);

std::tuple<Tensor, Tensor> aminmax(const Tensor& self,
                                   std::optional<int64_t> dim,
                                   bool keepdim) {
  if (dim) {
    int64_t dims[] = {*dim};
    return {ops::amin(self, IntArrayRef(dims), keepdim),
            ops::amax(self, IntArrayRef(dims), keepdim)};
  }
  TAEDA_CHECK(self.numel() > 0,
              "aminmax(): cannot compute aminmax over an empty dimension as "
              "the operation has no identity.");
  Tensor low = ops::amin(self, IntArrayRef(), keepdim);
  return {low, ops::amax(self, IntArrayRef(), keepdim)};
}
void aminmax_out(const Tensor& self,
                 std::optional<int64_t> dim,
                 bool keepdim,
                 const Tensor& min,
                 const Tensor& max) {
  for (const Tensor* out : {&min, &max}) {
    TAEDA_CHECK(out->dtype() == self.dtype(),
                "aminmax: Expected out tensor to have dtype ",
                derived::type_words(self.dtype()),
                ", but got ",
                derived::type_words(out->dtype()),
                " instead");
  }
  auto [low, high] = aminmax(self, dim, keepdim);
  write_out("aminmax", low, min);
  write_out("aminmax", high, max);
}
std::tuple<Tensor, Tensor> _aminmax(const Tensor& self) {
  return aminmax(self, std::nullopt, false);
}
std::tuple<Tensor, Tensor> _aminmax(const Tensor& self,
                                    int64_t dim,
                                    bool keepdim) {
  return aminmax(self, dim, keepdim);
}

template <class I>
void value_selecting_reduction_backward_shape(const Spec<I>& grad,
                                              int64_t dim,
                                              const Spec<I>& indices,
                                              ArrayRef<I> sizes,
                                              bool keepdim,
                                              Plan<I>& plan) {
  int64_t rank = static_cast<int64_t>(sizes.size());
  int64_t at = wrap_dim(dim, rank);
  bool gone = !keepdim && rank > 0;
  constexpr std::string_view kName = "value_selecting_reduction_backward";
  check_index_dtype(kName, indices);
  check_shape(kName, "indices", indices, grad.sizes());
  Dims<I> kept(sizes);
  if (gone) kept.erase(kept.begin() + at);
  TAEDA_CHECK(grad.dim() == static_cast<int64_t>(kept.size()),
              kName,
              ": expected a gradient with ",
              kept.size(),
              " dims, got ",
              grad.sizes());
  for (int64_t d = 0; d < grad.dim(); ++d) {
    TAEDA_CHECK(
        (!gone && d == at) || grad.sizes()[d] == kept[static_cast<size_t>(d)],
        kName,
        ": expected a gradient of shape ",
        ArrayRef<I>(kept),
        ", got ",
        grad.sizes());
  }
  plan.set(0, sizes, grad.dtype());
}
TAEDA_SHAPE(value_selecting_reduction_backward_shape);

}  // namespace taeda::native
