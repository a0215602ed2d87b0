// Rows of a table, joined over bags of indices: shapes and modes.
#include <taeda/aten/native/argument_checks.h>
#include <taeda/aten/native/embedding_bag.h>
#include <taeda/aten/native/normalization.h>
#include <taeda/gen/native/_embedding_bag.h>
#include <taeda/gen/native/_embedding_bag_dense_backward.h>
#include <taeda/gen/native/_embedding_bag_per_sample_weights_backward.h>
#include <taeda/gen/native/embedding_bag.h>
#include <taeda/gen/ops/_embedding_bag.h>

namespace taeda::native {

namespace {

template <class T>
void check_index_type(const char* what, const T& t) {
  TAEDA_CHECK(t.dtype() == kLong || t.dtype() == kInt,
              "embedding_bag: expected ",
              what,
              " of type Long or Int, got ",
              t.dtype());
}

template <class T>
void check_weights(const T& weight,
                   const T& indices,
                   const T& factors,
                   int64_t mode) {
  TAEDA_CHECK(mode == kSum,
              "embedding_bag: per_sample_weights was not None. "
              "per_sample_weights is only supported for mode='sum' (got mode=",
              mode,
              ").");
  TAEDA_CHECK(factors.dtype() == weight.dtype(),
              "embedding_bag: expected per_sample_weights to have the same "
              "type as weight, ",
              weight.dtype(),
              ", got ",
              factors.dtype());
  TAEDA_CHECK(factors.dim() == 1 && factors.numel() == indices.numel(),
              "embedding_bag: expected per_sample_weights of size ",
              indices.sizes(),
              ", got ",
              factors.sizes());
}

}  // namespace

std::tuple<Tensor, Tensor, Tensor, Tensor> embedding_bag(
    const Tensor& weight,
    const Tensor& indices,
    const Tensor& offsets,
    bool scale_grad_by_freq,
    int64_t mode,
    bool sparse,
    const OptionalTensor& per_sample_weights,
    bool include_last_offset,
    std::optional<int64_t> padding_idx) {
  int64_t padding = -1;
  if (padding_idx) {
    int64_t rows = weight.size(0);
    TAEDA_CHECK(*padding_idx >= -rows && *padding_idx < rows,
                "padding_idx must be within the number of embeddings, -",
                rows,
                " through ",
                rows - 1,
                ", but got ",
                *padding_idx);
    padding = wrap_dim(*padding_idx, rows);
  }
  return ops::_embedding_bag(weight,
                             indices,
                             offsets,
                             scale_grad_by_freq,
                             mode,
                             sparse,
                             per_sample_weights,
                             include_last_offset,
                             padding);
}

template <class I>
void _embedding_bag_shape(const Spec<I>& weight,
                          const Spec<I>& indices,
                          const Spec<I>& offsets,
                          bool,
                          int64_t mode,
                          bool,
                          const Spec<I>& per_sample_weights,
                          bool include_last_offset,
                          int64_t,
                          Plan<I>& plan) {
  TAEDA_CHECK(indices.dim() == 1,
              "embedding_bag: input has to be a 1D or 2D Tensor, the latter "
              "in nn.functional alone, but got Tensor of dimension ",
              indices.dim());
  TAEDA_CHECK(offsets.dim() == 1,
              "embedding_bag: offsets has to be a 1D Tensor, but got Tensor "
              "of dimension ",
              offsets.dim());
  TAEDA_CHECK(weight.dim() == 2,
              "embedding_bag: weight has to be a 2D Tensor, but got ",
              weight);
  check_index_type("indices", indices);
  check_index_type("offsets", offsets);
  TAEDA_CHECK(mode >= kSum && mode <= kMax,
              "embedding_bag: mode must be 0, 1 or 2, got ",
              mode);
  if (per_sample_weights.defined()) {
    check_weights(weight, indices, per_sample_weights, mode);
  }
  I bags = bags_of(offsets, include_last_offset);
  Dims<I> maxima{mode == kMax ? bags : I(0)};
  if (mode == kMax) maxima.push_back(weight.sizes()[1]);
  plan.set(0, {bags, weight.sizes()[1]}, weight.dtype());
  plan.set(1, indices.sizes(), kLong);
  plan.set(2, {bags}, kLong);
  plan.set(3, maxima, kLong);
}
TAEDA_SHAPE(_embedding_bag_shape);

template <class I>
void _embedding_bag_dense_backward_shape(const Spec<I>& grad,
                                         const Spec<I>& indices,
                                         const Spec<I>& offset2bag,
                                         const Spec<I>& bag_size,
                                         const Spec<I>& maximum_indices,
                                         I num_weights,
                                         bool,
                                         int64_t mode,
                                         const Spec<I>& per_sample_weights,
                                         int64_t,
                                         Plan<I>& plan) {
  constexpr std::string_view kName = "embedding_bag_backward";
  TAEDA_CHECK(grad.dim() == 2 && offset2bag.numel() == indices.numel(),
              "_embedding_bag_dense_backward: expected a gradient [bags, "
              "width] and a bag for every index, got ",
              grad,
              " and ",
              offset2bag);
  TAEDA_CHECK(mode == kSum || mode == kMean || mode == kMax,
              kName,
              ": mode must be 0 (sum), 1 (mean) or 2 (max), got ",
              mode);
  check_index_dtype(kName, indices);
  check_index_dtype(kName, offset2bag);
  if (mode != kSum) {
    check_index_dtype(kName, bag_size);
    check_count(kName, "bag_size", bag_size, grad.sizes()[0]);
  }
  if (mode == kMax) {
    check_index_dtype(kName, maximum_indices);
    check_count(kName, "maximum_indices", maximum_indices, grad.numel());
  }
  if (per_sample_weights.defined()) {
    check_weights(grad, indices, per_sample_weights, mode);
  }
  plan.set(0, {num_weights, grad.sizes()[1]}, grad.dtype());
}
TAEDA_SHAPE(_embedding_bag_dense_backward_shape);

template <class I>
void _embedding_bag_per_sample_weights_backward_shape(const Spec<I>& grad,
                                                      const Spec<I>& weight,
                                                      const Spec<I>& indices,
                                                      const Spec<I>&,
                                                      const Spec<I>& offset2bag,
                                                      int64_t mode,
                                                      int64_t,
                                                      Plan<I>& plan) {
  TAEDA_CHECK(mode == kSum,
              "embedding_bag_backward: per_sample_weights only supported for "
              "mode='sum'");
  constexpr std::string_view kName = "embedding_bag_backward";
  TAEDA_CHECK(grad.dim() == 2 && weight.dim() == 2 &&
                  grad.size(1) == weight.size(1) &&
                  grad.dtype() == weight.dtype(),
              kName,
              ": expected a gradient [bags, width] and a weight of its width "
              "and dtype, got ",
              grad,
              " and ",
              weight);
  check_index_dtype(kName, offset2bag);
  check_count(kName, "offset2bag", offset2bag, indices.numel());
  plan.set(0, indices.sizes(), grad.dtype());
}
TAEDA_SHAPE(_embedding_bag_per_sample_weights_backward_shape);

}  // namespace taeda::native
