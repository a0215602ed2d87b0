// Cross entropy: one kernel for rows of logits with class targets, composed of
// operators otherwise.
#include <taeda/aten/iter/copy.h>
#include <taeda/aten/native/argument_checks.h>
#include <taeda/aten/native/formula_support.h>
#include <taeda/aten/native/normalization.h>
#include <taeda/aten/native/symbolic_sizes.h>
#include <taeda/gen/native/_cross_entropy_rows.h>
#include <taeda/gen/native/_cross_entropy_rows_backward.h>
#include <taeda/gen/native/cross_entropy_loss.h>
#include <taeda/gen/ops/_cross_entropy_rows.h>
#include <taeda/gen/ops/add.h>
#include <taeda/gen/ops/div.h>
#include <taeda/gen/ops/eq.h>
#include <taeda/gen/ops/index_select.h>
#include <taeda/gen/ops/log_softmax.h>
#include <taeda/gen/ops/logical_not.h>
#include <taeda/gen/ops/masked_fill.h>
#include <taeda/gen/ops/mul.h>
#include <taeda/gen/ops/neg.h>
#include <taeda/gen/ops/nll_loss_nd.h>
#include <taeda/gen/ops/reshape.h>
#include <taeda/gen/ops/sum.h>

namespace taeda::native {

namespace {

template <class I>
void check_rows(std::string_view op,
                const Spec<I>& self,
                const Spec<I>& target,
                const Spec<I>& weight) {
  TAEDA_CHECK(self.dim() == 2,
              op,
              ": expected scores of shape [rows, classes], got ",
              self.sizes());
  check_shape(op, "target", target, ArrayRef<I>(self.sizes()[0]));
  if (weight.defined()) check_count(op, "weight", weight, self.sizes()[1]);
}

}  // namespace

template <class I>
void _cross_entropy_rows_shape(const Spec<I>& self,
                               const Spec<I>& target,
                               const Spec<I>& weight,
                               int64_t reduction,
                               int64_t,
                               Plan<I>& plan) {
  check_rows("cross_entropy_loss", self, target, weight);
  ScalarType type = compute_type(self.dtype());
  plan.set(0,
           reduction == kNoReduction ? target.sizes() : ArrayRef<I>(),
           self.dtype());
  plan.set(1, target.sizes(), type);
  plan.set(2, ArrayRef<I>(), type);
}
TAEDA_SHAPE(_cross_entropy_rows_shape);

template <class I>
void _cross_entropy_rows_backward_shape(const Spec<I>& grad,
                                        const Spec<I>& self,
                                        const Spec<I>& target,
                                        const Spec<I>& weight,
                                        int64_t reduction,
                                        int64_t,
                                        const Spec<I>& log_sum_exp,
                                        const Spec<I>& total_weight,
                                        Plan<I>& plan) {
  constexpr std::string_view kName = "cross_entropy_loss_backward";
  check_rows(kName, self, target, weight);
  I rows = self.sizes()[0];
  check_count(kName, "grad", grad, reduction == kNoReduction ? rows : I(1));
  check_count(kName, "log_sum_exp", log_sum_exp, rows);
  check_count(kName, "total_weight", total_weight, 1);
  plan.set(0, self.sizes(), self.dtype());
}
TAEDA_SHAPE(_cross_entropy_rows_backward_shape);

// The composed forms ----------------------------------------------------------

namespace {

Tensor as_column(const Tensor& weight, int64_t rank, int64_t class_dim) {
  DimVector sizes(static_cast<size_t>(rank), 1);
  sizes[static_cast<size_t>(class_dim)] = weight.numel();
  return ops::reshape(weight, sizes);
}

void check_class_weight(const Tensor& w, const SymInt& classes) {
  TAEDA_CHECK(!w.defined() || (w.dim() == 1 && w.numel() == classes),
              "cross_entropy: weight tensor should be defined either for all ",
              classes,
              " classes or no classes but got weight tensor of shape: ",
              w.sizes());
}

Tensor with_probabilities(const Tensor& self,
                          const Tensor& target,
                          const Tensor& weight,
                          int64_t reduction,
                          double smoothing) {
  int64_t class_dim = self.dim() == 1 ? 0 : 1;
  const SymInt& classes = symbolic_size(self, class_dim);
  check_class_weight(weight, classes);
  Tensor logs = ops::log_softmax(self, class_dim, self.dtype());
  Tensor goal = target;
  if (smoothing > 0) {
    goal = ops::add(ops::mul(target, Scalar(1 - smoothing)),
                    Scalar(smoothing / static_cast<double>(classes.guard())));
  }
  Tensor terms = ops::mul(logs, goal);
  if (weight.defined()) {
    terms = ops::mul(terms, as_column(weight, self.dim(), class_dim));
  }
  if (reduction == kNoReduction) {
    return ops::neg(ops::sum(terms, IntArrayRef{class_dim}, false));
  }
  Tensor sum = ops::neg(ops::sum(terms));
  if (reduction != kMeanReduction) return sum;
  // Without classes nothing is counted, which gives NaN.
  SymInt all = sym_numel(*logs.impl());
  return share_of(sum, classes == 0 ? all : all / classes);
}

// The sum of the weights of the targets that count.
Tensor counted_weight(const Tensor& target,
                      const Tensor& weight,
                      const Tensor& ignored) {
  if (!weight.defined()) return ops::sum(ops::logical_not(ignored));
  Tensor places = ops::masked_fill(target, ignored, Scalar(0));
  Tensor weights = ops::index_select(weight, 0, ops::reshape(places, {-1}));
  Tensor flat = ops::reshape(ignored, {-1});
  return ops::sum(ops::masked_fill(weights, flat, Scalar(0.0)));
}

Tensor smoothed(const Tensor& self,
                const Tensor& target,
                const Tensor& weight,
                int64_t reduction,
                int64_t ignore_index,
                double smoothing) {
  int64_t class_dim = self.dim() == 1 ? 0 : 1;
  int64_t classes = self.size(class_dim);
  Tensor logs = ops::log_softmax(self, class_dim, self.dtype());
  OptionalTensor given =
      weight.defined() ? OptionalTensor(weight) : std::nullopt;
  Tensor own = ops::nll_loss_nd(logs, target, given, reduction, ignore_index);
  Tensor terms = logs;
  if (weight.defined()) {
    terms = ops::mul(logs, as_column(weight, self.dim(), class_dim));
  }
  Tensor all = ops::neg(ops::sum(terms, IntArrayRef{class_dim}, false));
  Tensor ignored = ops::eq(target, Scalar(ignore_index));
  all = ops::masked_fill(all, ignored, Scalar(0.0));
  if (reduction == kMeanReduction) {
    all = ops::div(ops::sum(all), counted_weight(target, weight, ignored));
  } else if (reduction != kNoReduction) {
    all = ops::sum(all);
  }
  return ops::add(
      ops::mul(own, Scalar(1 - smoothing)),
      ops::mul(all, Scalar(smoothing / static_cast<double>(classes))));
}

// Whether the rows kernel applies; what it does not take is left to nll_loss,
// whose messages are PyTorch's.
bool takes_rows(const Tensor& self,
                const Tensor& target,
                const Tensor& weight) {
  bool shapes = self.dim() == 2 && target.dim() == 1 &&
                same_size(self, 0, target, 0) && symbolic_size(self, 1) > 0;
  if (!shapes) return false;
  bool types = self.is_floating_point() && !is_float8(self.dtype()) &&
               (target.dtype() == kLong || target.dtype() == kByte);
  bool weights = !weight.defined() ||
                 (weight.dim() == 1 && same_size(weight, 0, self, 1) &&
                  weight.dtype() == self.dtype());
  return types && weights;
}

}  // namespace

Tensor cross_entropy_loss(const Tensor& self,
                          const Tensor& target,
                          const OptionalTensor& weight,
                          int64_t reduction,
                          int64_t ignore_index,
                          double label_smoothing) {
  Tensor w = or_undefined(weight);
  TAEDA_CHECK(label_smoothing >= 0 && label_smoothing <= 1,
              "label_smoothing must be between 0.0 and 1.0. Got: ",
              label_smoothing);
  if (same_sizes(symbolic_sizes(self), symbolic_sizes(target))) {
    TAEDA_CHECK(target.is_floating_point(),
                "Expected floating point type for target with class "
                "probabilities, got ",
                target.dtype());
    TAEDA_CHECK(ignore_index < 0,
                "ignore_index is not supported for floating point target");
    return with_probabilities(self, target, w, reduction, label_smoothing);
  }
  if (label_smoothing > 0) {
    return smoothed(self, target, w, reduction, ignore_index, label_smoothing);
  }
  if (takes_rows(self, target, w)) {
    return std::get<0>(ops::_cross_entropy_rows(
        self, target, weight, reduction, ignore_index));
  }
  int64_t class_dim = self.dim() == 1 ? 0 : 1;
  return ops::nll_loss_nd(ops::log_softmax(self, class_dim, self.dtype()),
                          target,
                          weight,
                          reduction,
                          ignore_index);
}

}  // namespace taeda::native
