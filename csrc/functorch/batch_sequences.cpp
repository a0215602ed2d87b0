// Operators on sequences that are a batch already, which vmap's batch joins.
#include <taeda/csrc/functorch/batch_helpers.h>

#include <taeda/gen/ops/flatten.h>
#include <taeda/gen/ops/movedim.h>
#include <taeda/gen/ops/unflatten.h>

namespace taeda::functorch {

namespace {

// The batch and dim `dim` of what the mapped function sees as one dim.
TensorBase joined(const BatchCall& call, size_t i, int64_t dim) {
  return ops::flatten(
      ops::movedim(batched(call, i), 0, dim), dim, dim + int64_t{1});
}

TensorBase parted(const BatchCall& call, const TensorBase& t, int64_t dim) {
  int64_t size = call.level.size(), each = size == 0 ? 0 : t.size(dim) / size;
  return ops::movedim(ops::unflatten(t, dim, {size, each}), dim, 0);
}

// Lengths of the sequences, a tensor or a list that all elements share.
IValue joined_lengths(const BatchCall& call, size_t i) {
  if (call.args[i].is<TensorBase>()) return joined(call, i, 0);
  std::vector<int64_t> once = ints(call.args[i]), all;
  for (int64_t k = 0; k < call.level.size(); ++k) {
    all.insert(all.end(), once.begin(), once.end());
  }
  return all;
}

// [steps, n, classes] with [n, length] or all labels in one line.
std::optional<Stack> ctc(BatchCall& call) {
  Stack stack(call.args.begin(), call.args.end());
  stack[0] = joined(call, 0, 1);
  stack[1] = joined(call, 1, 0);
  for (size_t i : {size_t{2}, size_t{3}}) stack[i] = joined_lengths(call, i);
  call_operator(call.op, stack);
  for (IValue& v : stack) v = parted(call, v.get<TensorBase>(), 0);
  return stack;
}

std::optional<Stack> ctc_backward(BatchCall& call) {
  Stack stack(call.args.begin(), call.args.end());
  stack[1] = joined(call, 1, 1);
  for (size_t i : {size_t{0}, size_t{2}, size_t{5}, size_t{6}}) {
    stack[i] = joined(call, i, 0);
  }
  for (size_t i : {size_t{3}, size_t{4}}) stack[i] = joined_lengths(call, i);
  call_operator(call.op, stack);
  return Stack{parted(call, stack[0].get<TensorBase>(), 1)};
}

constexpr NamedRule kSequenceRules[] = {
    {"_ctc_loss", ctc},
    {"_ctc_loss.Tensor", ctc},
    {"_ctc_loss_backward", ctc_backward},
    {"_ctc_loss_backward.Tensor", ctc_backward},
};

}  // namespace

ArrayRef<NamedRule> sequence_rules() { return kSequenceRules; }

}  // namespace taeda::functorch
