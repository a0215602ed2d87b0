// Bags of embeddings, losses of sequences, and counts that become places.
#include <taeda/aten/iter/copy.h>
#include <taeda/aten/native/ctc_loss.h>
#include <taeda/aten/native/cuda/given.h>
#include <taeda/aten/native/cuda/kernels.h>
#include <taeda/aten/native/cuda/ordered.h>
#include <taeda/aten/native/rearranging.h>
#include <taeda/gen/ops/_ctc_loss.h>
#include <taeda/gen/ops/_ctc_loss_backward.h>
#include <taeda/gen/ops/_to_copy.h>
#include <taeda/gen/ops/amin.h>
#include <taeda/gen/ops/arange.h>
#include <taeda/gen/ops/clamp.h>
#include <taeda/gen/ops/contiguous.h>
#include <taeda/gen/ops/cumsum.h>
#include <taeda/gen/ops/div.h>
#include <taeda/gen/ops/item.h>
#include <taeda/gen/ops/permute.h>
#include <taeda/gen/ops/reshape.h>
#include <taeda/gen/ops/searchsorted.h>
#include <taeda/gen/ops/select.h>

#include <algorithm>
#include <limits>

namespace taeda::cuda {

TAEDA_INTERNAL_NAMES

namespace {

using Pair = std::tuple<Tensor, Tensor>;
using Four = std::tuple<Tensor, Tensor, Tensor, Tensor>;

// Bags -----------------------------------------------------------------------

constexpr int64_t kMean = 1, kMax = 2;

Tensor filled(IntArrayRef sizes,
              ScalarType dtype,
              const Tensor& like,
              const Scalar& value) {
  Tensor made = make_tensor("empty", sizes, dtype, like.device());
  fill_with(made, value);
  return made;
}

Four embedding_bag(const Tensor& weight,
                   const Tensor& indices,
                   const Tensor& offsets,
                   bool,
                   int64_t mode,
                   bool,
                   const OptionalTensor& per_sample_weights,
                   bool include_last_offset,
                   int64_t padding_idx) {
  int64_t bags = offsets.size(0) - (include_last_offset ? 1 : 0);
  int64_t width = weight.size(1);
  Tensor out = filled({bags, width}, weight.dtype(), weight, 0);
  // Indices behind the last bag belong to none of them.
  Tensor bag_of = filled(indices.sizes(), kLong, weight, bags);
  Tensor sizes = filled({bags}, kLong, weight, 0);
  Tensor maxima;
  if (mode == kMax) maxima = filled({bags, width}, kLong, weight, 0);
  Tensor factors = per_sample_weights ? *per_sample_weights : Tensor();
  DeviceCall("embedding_bag", "sequences", "bag_at(g, i);")
      .number("mode", mode)
      .number("padding_idx", padding_idx)
      .tensor("weight", weight)
      .tensor("indices", indices)
      .tensor("offsets", offsets)
      .tensor("factors", factors)
      .tensor("bag_of", bag_of)
      .tensor("sizes", sizes)
      .tensor("maxima", maxima)
      .tensor("result", out)
      .run(out.numel());
  if (mode != kMax) maxima = filled({0}, kLong, weight, 0);
  return {out, bag_of, sizes, maxima};
}

// A row for each use, which the table's rows add up in the order of the uses.
// Rows that have a factor are float where the gradient has 16 bits.
Tensor embedding_bag_dense_backward(const Tensor& grad,
                                    const Tensor& indices,
                                    const Tensor& offset2bag,
                                    const Tensor& bag_size,
                                    const Tensor& maxima,
                                    int64_t rows,
                                    bool scale_grad_by_freq,
                                    int64_t mode,
                                    const OptionalTensor& per_sample_weights,
                                    int64_t padding_idx) {
  constexpr const char* kName = "_embedding_bag_dense_backward";
  int64_t width = grad.size(1);
  ScalarType type = grad.dtype();
  bool factors = per_sample_weights && per_sample_weights->defined();
  bool scaled = factors || mode == kMean || scale_grad_by_freq;
  if (scaled && is_reduced_floating(type)) type = kFloat;
  Tensor out = filled({rows, width}, type, grad, 0);
  int64_t uses = mode == kMax ? grad.size(0) : indices.numel();
  if (uses * width == 0) return ops::_to_copy(out, grad.dtype());
  Tensor source = make_tensor(kName, {uses, width}, type, grad.device());
  DeviceCall(kName, "sequences", "bag_back_at(g, i);")
      .number("mode", mode)
      .number("padding_idx", padding_idx)
      .tensor("grad", grad)
      .tensor("indices", indices)
      .tensor("offset2bag", offset2bag)
      .tensor("bag_size", bag_size)
      .tensor("per_sample_weights", factors ? *per_sample_weights : Tensor())
      .tensor("result", source)
      .run(source.numel());
  if (mode == kMax) {
    write_elements({kName, 0, maxima, source, 1, Combine::Add, {}}, out);
    return out;
  }
  Tensor seen;
  if (scale_grad_by_freq) seen = filled({rows}, kLong, grad, 0);
  write_rows({kName, 0, indices, source, 1, Combine::Add, seen}, out);
  if (scale_grad_by_freq) {
    Tensor least = ops::clamp(seen, Scalar(1), std::nullopt);
    out = ops::div(out, ops::reshape(least, {rows, 1}));
  }
  return out.dtype() == grad.dtype() ? out
                                     : Tensor(ops::_to_copy(out, grad.dtype()));
}

// Sequences ------------------------------------------------------------------

Tensor on_device(const std::vector<int64_t>& values, Device device) {
  Tensor here =
      make_tensor("ctc_loss", {static_cast<int64_t>(values.size())}, kLong);
  std::copy(values.begin(), values.end(), here.mutable_data<int64_t>());
  Tensor there = make_tensor("ctc_loss", here.sizes(), kLong, device);
  copy_into(there, here);
  return there;
}

struct Sequences {
  Tensor steps, labels;  // how many each has
  Tensor first;          // where its labels begin among the targets
};

Sequences sequences_of(const Tensor& targets,
                       IntArrayRef input_lengths,
                       IntArrayRef target_lengths) {
  std::vector<int64_t> first;
  int64_t at = 0;
  for (int64_t length : target_lengths) {
    first.push_back(at);
    at += targets.dim() == 1 ? length : targets.size(1);
  }
  Device device = targets.device();
  return {on_device({input_lengths.begin(), input_lengths.end()}, device),
          on_device({target_lengths.begin(), target_lengths.end()}, device),
          on_device(first, device)};
}

int64_t states_of(IntArrayRef target_lengths) {
  int64_t most = 0;
  for (int64_t n : target_lengths) most = std::max(most, n);
  return 2 * most + 1;
}

Pair ctc_loss(const Tensor& log_probs,
              const Tensor& targets,
              IntArrayRef input_lengths,
              IntArrayRef target_lengths,
              int64_t blank,
              bool) {
  Sequences all = sequences_of(targets, input_lengths, target_lengths);
  int64_t batch = log_probs.size(1);
  double never = -std::numeric_limits<double>::infinity();
  ScalarType dtype = log_probs.dtype();
  Tensor loss = filled({batch}, dtype, log_probs, 0);
  Tensor alpha = filled({batch, log_probs.size(0), states_of(target_lengths)},
                        dtype,
                        log_probs,
                        never);
  DeviceCall("ctc_loss", "sequences", "ctc_at(g, i);")
      .number("blank", blank)
      .tensor("log_probs", log_probs)
      .tensor("targets", targets)
      .tensor("input_lengths", all.steps)
      .tensor("target_lengths", all.labels)
      .tensor("first", all.first)
      .tensor("alpha", alpha)
      .tensor("loss", loss)
      .run(batch);
  return {loss, alpha};
}

Tensor ctc_loss_backward(const Tensor& grad,
                         const Tensor& log_probs,
                         const Tensor& targets,
                         IntArrayRef input_lengths,
                         IntArrayRef target_lengths,
                         const Tensor& loss,
                         const Tensor& alpha,
                         int64_t blank,
                         bool zero_infinity) {
  Sequences all = sequences_of(targets, input_lengths, target_lengths);
  int64_t batch = log_probs.size(1);
  ScalarType dtype = log_probs.dtype();
  Tensor out = filled(log_probs.sizes(), dtype, log_probs, 0);
  Tensor beta = make_tensor(
      "ctc_loss", {batch, 2, alpha.size(2)}, dtype, log_probs.device());
  DeviceCall("ctc_loss_backward", "sequences", "ctc_back_at(g, i);")
      .number("blank", blank)
      .number("zero_infinity", zero_infinity ? 1 : 0)
      .tensor("grad", grad)
      .tensor("log_probs", log_probs)
      .tensor("targets", targets)
      .tensor("input_lengths", all.steps)
      .tensor("target_lengths", all.labels)
      .tensor("first", all.first)
      .tensor("alpha", ops::contiguous(alpha))
      .tensor("loss", loss)
      .tensor("beta", beta)
      .tensor("result", out)
      .run(batch);
  return out;
}

// Waits for the device: how long a sequence is decides what a loop does.
Pair ctc_loss_of_tensors(const Tensor& log_probs,
                         const Tensor& targets,
                         const Tensor& input_lengths,
                         const Tensor& target_lengths,
                         int64_t blank,
                         bool zero_infinity) {
  return ops::_ctc_loss(log_probs,
                        targets,
                        native::list_of(input_lengths),
                        native::list_of(target_lengths),
                        blank,
                        zero_infinity);
}
Tensor ctc_loss_of_tensors_backward(const Tensor& grad,
                                    const Tensor& log_probs,
                                    const Tensor& targets,
                                    const Tensor& input_lengths,
                                    const Tensor& target_lengths,
                                    const Tensor& loss,
                                    const Tensor& alpha,
                                    int64_t blank,
                                    bool zero_infinity) {
  return ops::_ctc_loss_backward(grad,
                                 log_probs,
                                 targets,
                                 native::list_of(input_lengths),
                                 native::list_of(target_lengths),
                                 loss,
                                 alpha,
                                 blank,
                                 zero_infinity);
}

// Counts ---------------------------------------------------------------------

// Waits for the device where nobody says how many results there are.
Tensor repeat_interleave(const Tensor& repeats,
                         std::optional<int64_t> output_size) {
  native::check_repeats(repeats);
  int64_t n = repeats.numel(), total = 0;
  Tensor ends = ops::cumsum(repeats, 0, kLong);
  if (output_size) {
    total = *output_size;
  } else if (n > 0) {
    int64_t least = ops::item(ops::amin(repeats, IntArrayRef{})).to_int();
    TAEDA_CHECK(least >= 0,
                "repeat_interleave: repeats can not be negative, got ",
                least);
    total = ops::item(ops::select(ends, 0, n - 1)).to_int();
  }
  Tensor places =
      ops::arange(total, kLong, std::nullopt, repeats.device(), std::nullopt);
  Tensor found = ops::searchsorted(ends, places, false, /*right=*/true);
  return ops::_to_copy(found, repeats.dtype());
}

// Of the bits of each row's elements, as double or int64.
Tensor hash_tensor(const Tensor& self, IntArrayRef dim, bool keepdim, int64_t) {
  DimVector order, kept;
  std::vector<bool> folds(self.sizes().size(), dim.empty());
  for (int64_t d : dim) {
    if (folds.empty()) break;  // without axes there is nothing to go along
    folds[static_cast<size_t>(wrap_dim(d, self.dim()))] = true;
  }
  int64_t count = 1;
  for (bool wanted : {false, true}) {
    for (size_t d = 0; d < folds.size(); ++d) {
      if (folds[d] != wanted) continue;
      order.push_back(static_cast<int64_t>(d));
      if (wanted) count *= self.sizes()[d];
    }
  }
  for (size_t d = 0; d < folds.size(); ++d) {
    if (!folds[d] || keepdim) kept.push_back(folds[d] ? 1 : self.sizes()[d]);
  }
  Tensor out = make_tensor("hash_tensor", kept, kUInt64, self.device());
  DeviceCall("hash_tensor", "counting", "hash_row(g, i);")
      .number("count", count)
      .tensor("self", ops::permute(self, order))
      .tensor("result", out)
      .run(out.numel());
  return out;
}

}  // namespace

Definitions sequence_definitions() {
  static const Definition all[] = {
      defined_as("_embedding_bag", embedding_bag),
      defined_as("_embedding_bag_dense_backward", embedding_bag_dense_backward),
      defined_as("_ctc_loss", ctc_loss),
      defined_as("_ctc_loss_backward", ctc_loss_backward),
      defined_as("_ctc_loss.Tensor", ctc_loss_of_tensors),
      defined_as("_ctc_loss_backward.Tensor", ctc_loss_of_tensors_backward),
      defined_as("repeat_interleave.Tensor", repeat_interleave),
      defined_as("hash_tensor", hash_tensor),
  };
  return all;
}

}  // namespace taeda::cuda
