// Hinge losses of classes against classes: shapes.
#include <taeda/aten/native/argument_checks.h>
#include <taeda/aten/native/loss_reduction.h>
#include <taeda/aten/native/multi_margin.h>
#include <taeda/gen/native/multi_margin_loss.h>
#include <taeda/gen/native/multi_margin_loss_backward.h>
#include <taeda/gen/native/multilabel_margin_loss_backward.h>
#include <taeda/gen/native/multilabel_margin_loss_forward.h>

namespace taeda::native {

namespace {

template <class I>
void check_class_type(std::string_view op, const Spec<I>& target) {
  TAEDA_CHECK(target.dtype() == kLong,
              op,
              ": expected scalar type Long but found ",
              target.dtype(),
              " for target");
}

}  // namespace

MarginTerms margin_terms(const Scalar& p, const Scalar& margin) {
  double power = p.to_double();
  TAEDA_CHECK(power == 1 || power == 2,
              "multi_margin_loss: only p == 1 and p == 2 supported, got p = ",
              power);
  return {static_cast<int>(power), margin.to_double()};
}

namespace {

template <class I>
void check_multi_margin(const Spec<I>& self,
                        const Spec<I>& target,
                        const Spec<I>& weight) {
  constexpr std::string_view kName = "multi_margin_loss";
  Rows<I> rows = rows_of(kName, self);
  TAEDA_CHECK(target.dim() <= 1 && target.numel() == rows.count,
              "multi_margin_loss: target tensor should be 1-D with size equal "
              "to the number of input samples (batch size). Expected target "
              "size [",
              rows.count,
              "], but got ",
              target.sizes(),
              ". Input has shape ",
              self.sizes(),
              ".");
  if (!weight.defined()) return check_class_type(kName, target);
  TAEDA_CHECK(weight.dim() <= 1 && weight.numel() == rows.classes,
              "inconsistent weight size, expected ",
              rows.classes,
              " but got ",
              weight.sizes());
  TAEDA_CHECK(weight.dtype() == self.dtype(),
              "multi_margin_loss: expected weight of type ",
              self.dtype(),
              ", got ",
              weight.dtype());
  check_class_type(kName, target);
}

}  // namespace

template <class I>
void multi_margin_loss_shape(const Spec<I>& self,
                             const Spec<I>& target,
                             const Scalar& p,
                             const Scalar& margin,
                             const Spec<I>& weight,
                             int64_t reduction,
                             Plan<I>& plan) {
  margin_terms(p, margin);
  check_multi_margin(self, target, weight);
  bool each = reduction == kNoReduction && target.dim() > 0;
  plan.set(0, each ? target.sizes() : ArrayRef<I>(), self.dtype());
}
TAEDA_SHAPE(multi_margin_loss_shape);

template <class I>
void multi_margin_loss_backward_shape(const Spec<I>& grad_output,
                                      const Spec<I>& self,
                                      const Spec<I>& target,
                                      const Scalar& p,
                                      const Scalar& margin,
                                      const Spec<I>& weight,
                                      int64_t reduction,
                                      Plan<I>& plan) {
  margin_terms(p, margin);
  check_multi_margin(self, target, weight);
  check_count("multi_margin_loss_backward",
              "grad_output",
              grad_output,
              reduction == kNoReduction ? target.numel() : 1);
  plan.set(0, self.sizes(), self.dtype());
}
TAEDA_SHAPE(multi_margin_loss_backward_shape);

namespace {

template <class I>
void check_multilabel(const Spec<I>& self, const Spec<I>& target) {
  constexpr std::string_view kName = "multilabel_margin_loss";
  rows_of(kName, self);
  bool fits = self.dim() == 2
                  ? target.sizes() == self.sizes()
                  : target.dim() <= 1 && target.numel() == self.numel();
  TAEDA_CHECK(fits,
              "inconsistent target size: ",
              target.sizes(),
              " for input of size: ",
              self.sizes());
  check_class_type(kName, target);
}

}  // namespace

template <class I>
void multilabel_margin_loss_shape(const Spec<I>& self,
                                  const Spec<I>& target,
                                  int64_t reduction,
                                  Plan<I>& plan) {
  check_multilabel(self, target);
  bool each = reduction == kNoReduction && self.dim() == 2;
  Dims<I> losses;
  if (each) losses.push_back(self.sizes()[0]);
  plan.set(0, losses, self.dtype());
  plan.set(1, target.sizes(), self.dtype());
}
TAEDA_SHAPE(multilabel_margin_loss_shape);

template <class I>
void multilabel_margin_loss_backward_shape(const Spec<I>& grad_output,
                                           const Spec<I>& self,
                                           const Spec<I>& target,
                                           int64_t reduction,
                                           const Spec<I>& is_target,
                                           Plan<I>& plan) {
  check_multilabel(self, target);
  check_count(
      "multilabel_margin_loss_backward",
      "grad_output",
      grad_output,
      reduction == kNoReduction && self.dim() == 2 ? self.sizes()[0] : 1);
  TAEDA_CHECK(is_target.sizes() == target.sizes(),
              "multilabel_margin_loss_backward: expected is_target of size ",
              target.sizes(),
              ", got ",
              is_target.sizes());
  plan.set(0, self.sizes(), self.dtype());
}
TAEDA_SHAPE(multilabel_margin_loss_backward_shape);

}  // namespace taeda::native
