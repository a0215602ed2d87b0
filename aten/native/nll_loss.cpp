// Negative log likelihood of target classes: shapes and compositions.
#include <taeda/aten/native/loss_reduction.h>
#include <taeda/aten/native/normalization.h>
#include <taeda/aten/native/symbolic_sizes.h>
#include <taeda/gen/native/nll_loss.h>
#include <taeda/gen/native/nll_loss2d.h>
#include <taeda/gen/native/nll_loss2d_backward.h>
#include <taeda/gen/native/nll_loss2d_forward.h>
#include <taeda/gen/native/nll_loss_backward.h>
#include <taeda/gen/native/nll_loss_forward.h>
#include <taeda/gen/native/nll_loss_nd.h>
#include <taeda/gen/ops/nll_loss.h>
#include <taeda/gen/ops/nll_loss2d.h>
#include <taeda/gen/ops/nll_loss2d_forward.h>
#include <taeda/gen/ops/nll_loss_forward.h>

namespace taeda::native {

namespace {

template <class I>
void check_target_type(std::string_view op, const Spec<I>& target) {
  TAEDA_CHECK(target.dtype() == kLong || target.dtype() == kByte,
              op,
              ": expected target dtype to be Long or Byte, but got ",
              target.dtype());
}

template <class I>
void check_weight(std::string_view op,
                  const Spec<I>& self,
                  const Spec<I>& weight,
                  const I& classes) {
  if (!weight.defined()) return;
  TAEDA_CHECK(weight.dim() == 1 && weight.numel() == classes,
              op,
              ": weight tensor should be defined either for all ",
              classes,
              " classes or no classes but got weight tensor of shape: ",
              weight.sizes());
  TAEDA_CHECK(weight.dtype() == self.dtype(),
              op,
              ": expected scalar type ",
              self.dtype(),
              " but found ",
              weight.dtype());
}

// Rows: [n, c] with [n], or [c] with one target.
template <class I>
void check_rows(std::string_view op,
                const Spec<I>& self,
                const Spec<I>& target,
                const Spec<I>& weight) {
  TAEDA_CHECK(self.dim() > 0 && self.dim() <= 2,
              op,
              ": input tensor should be 1D or 2D, got ",
              self);
  TAEDA_CHECK(target.dim() <= 1,
              "0D or 1D target tensor expected, multi-target not supported");
  bool single = self.dim() == 1;
  if (single) {
    TAEDA_CHECK_AS(
        Value,
        target.dim() == 0 || target.sizes()[0] == 1,
        "For 1D input, 1D target must have size 1, but got target size: ",
        target.numel());
  }
  TAEDA_CHECK(
      single || (target.dim() == 1 && self.sizes()[0] == target.sizes()[0]),
      "size mismatch (got input: ",
      self.sizes(),
      ", target: ",
      target.sizes(),
      ")");
  check_target_type(op, target);
  check_weight(op, self, weight, self.sizes()[self.dim() - 1]);
}

// Planes: [n, c, h, w] with [n, h, w].
template <class I>
void check_planes(std::string_view op,
                  const Spec<I>& self,
                  const Spec<I>& target,
                  const Spec<I>& weight) {
  TAEDA_CHECK(target.dim() == 3,
              "only batches of spatial targets supported (3D tensors) but got "
              "targets of dimension: ",
              target.dim());
  TAEDA_CHECK(self.dim() == 4,
              "only batches of spatial inputs supported (4D tensors), but got "
              "input of dimension: ",
              self.dim());
  bool fits = self.sizes()[0] == target.sizes()[0] &&
              self.sizes()[2] == target.sizes()[1] &&
              self.sizes()[3] == target.sizes()[2];
  TAEDA_CHECK(fits,
              "size mismatch (got input: ",
              self.sizes(),
              " , target: ",
              target.sizes());
  check_target_type(op, target);
  check_weight(op, self, weight, self.sizes()[1]);
}

}  // namespace

template <class I>
void nll_loss_forward_shape(const Spec<I>& self,
                            const Spec<I>& target,
                            const Spec<I>& weight,
                            int64_t reduction,
                            I,
                            Plan<I>& plan) {
  check_rows("nll_loss_forward", self, target, weight);
  Dims<I> sizes;
  if (reduction == kNoReduction && self.dim() == 2)
    sizes.push_back(self.sizes()[0]);
  plan.set(0, sizes, self.dtype());
  // The sum of the targets' weights, which the mean is divided by and the
  // gradient needs again.
  plan.set(1, ArrayRef<I>(), self.dtype());
}
TAEDA_SHAPE(nll_loss_forward_shape);

template <class I>
void nll_loss_backward_shape(const Spec<I>&,
                             const Spec<I>& self,
                             const Spec<I>& target,
                             const Spec<I>& weight,
                             int64_t,
                             I,
                             const Spec<I>&,
                             Plan<I>& plan) {
  check_rows("nll_loss_backward", self, target, weight);
  plan.set(0, self.sizes(), self.dtype());
}
TAEDA_SHAPE(nll_loss_backward_shape);

template <class I>
void nll_loss2d_forward_shape(const Spec<I>& self,
                              const Spec<I>& target,
                              const Spec<I>& weight,
                              int64_t reduction,
                              I,
                              Plan<I>& plan) {
  check_planes("nll_loss2d_forward", self, target, weight);
  Dims<I> sizes;
  if (reduction == kNoReduction) sizes = Dims<I>(target.sizes());
  plan.set(0, sizes, self.dtype());
  plan.set(1, ArrayRef<I>(), self.dtype());
}
TAEDA_SHAPE(nll_loss2d_forward_shape);

template <class I>
void nll_loss2d_backward_shape(const Spec<I>&,
                               const Spec<I>& self,
                               const Spec<I>& target,
                               const Spec<I>& weight,
                               int64_t,
                               I,
                               const Spec<I>&,
                               Plan<I>& plan) {
  check_planes("nll_loss2d_backward", self, target, weight);
  plan.set(0, self.sizes(), self.dtype());
}
TAEDA_SHAPE(nll_loss2d_backward_shape);

Tensor nll_loss(const Tensor& self,
                const Tensor& target,
                const OptionalTensor& weight,
                int64_t reduction,
                int64_t ignore_index) {
  return std::get<0>(
      ops::nll_loss_forward(self, target, weight, reduction, ignore_index));
}

Tensor nll_loss2d(const Tensor& self,
                  const Tensor& target,
                  const OptionalTensor& weight,
                  int64_t reduction,
                  int64_t ignore_index) {
  return std::get<0>(
      ops::nll_loss2d_forward(self, target, weight, reduction, ignore_index));
}

Tensor nll_loss_nd(const Tensor& self,
                   const Tensor& target,
                   const OptionalTensor& weight,
                   int64_t reduction,
                   int64_t ignore_index) {
  TAEDA_CHECK_AS(Value,
                 self.dim() >= 1,
                 "Expected 1 or more dimensions (got ",
                 self.dim(),
                 ")");
  if (self.dim() != 1) {
    SymInt batch = target.dim() == 0 ? SymInt(0) : symbolic_sizes(target)[0];
    TAEDA_CHECK_AS(Value,
                   symbolic_sizes(self)[0] == batch,
                   "Expected input batch_size (",
                   symbolic_sizes(self)[0],
                   ") to match target batch_size (",
                   batch,
                   ").");
  }
  if (self.dim() <= 2) {
    return ops::nll_loss(self, target, weight, reduction, ignore_index);
  }
  if (self.dim() == 4) {
    return ops::nll_loss2d(self, target, weight, reduction, ignore_index);
  }
  ArrayRef<SymInt> sizes = symbolic_sizes(self);
  const SymInt &n = sizes[0], &c = sizes[1];
  Dims<SymInt> wanted{n};
  SymInt plane = 1;
  for (const SymInt& s : sizes.slice(2)) wanted.push_back(s), plane *= s;
  TAEDA_CHECK(same_sizes(symbolic_sizes(target), wanted),
              "Expected target size ",
              ArrayRef<SymInt>(wanted),
              ", got ",
              symbolic_sizes(target));
  Tensor out = ops::nll_loss2d(reshape_sized(self, {n, c, SymInt(1), plane}),
                               reshape_sized(target, {n, SymInt(1), plane}),
                               weight,
                               reduction,
                               ignore_index);
  return reduction == kNoReduction ? reshape_sized(out, wanted) : out;
}

}  // namespace taeda::native
