// Rules of operators whose axes do not tell what a batch of all of their
// arguments is.
#include <taeda/csrc/functorch/batch_level.h>

#include <taeda/gen/ops/bmm.h>
#include <taeda/gen/ops/convolution.h>
#include <taeda/gen/ops/expand.h>
#include <taeda/gen/ops/flatten.h>
#include <taeda/gen/ops/matmul.h>
#include <taeda/gen/ops/movedim.h>
#include <taeda/gen/ops/mul.h>
#include <taeda/gen/ops/new_empty_strided.h>
#include <taeda/gen/ops/reshape.h>
#include <taeda/gen/ops/squeeze.h>
#include <taeda/gen/ops/sum.h>
#include <taeda/gen/ops/unsqueeze.h>

namespace taeda::functorch {

namespace {

TensorBase tensor(const BatchCall& call, size_t i) {
  return call.level.inside(call.args[i].get<TensorBase>());
}
// The value with a batch, which it is given where it has none.
TensorBase batched(const BatchCall& call, size_t i) {
  return call.level.unwrap(call.args[i].get<TensorBase>(), 0);
}

std::vector<int64_t> ints(const IValue& v) {
  return v.get<std::vector<int64_t>>();
}

// Elements lie where the strides say, in a block for each call.
std::optional<Stack> new_strided(BatchCall& call) {
  std::vector<int64_t> sizes = ints(call.args[1]), strides = ints(call.args[2]);
  auto block = static_cast<int64_t>(required_bytes(sizes, strides, 0, 1));
  sizes.insert(sizes.begin(), call.level.size());
  strides.insert(strides.begin(), block);
  Stack stack(call.args.begin(), call.args.end());
  take_inside(call.level, stack[0]);
  stack[1] = sizes;
  stack[2] = strides;
  call_operator(call.op, stack);
  return stack;
}

// Matrices in both arguments: the axes tell for one of them.
std::optional<Stack> both_matrices(BatchCall& call) {
  if (!call.is_batched(0) || !call.is_batched(1)) return kernel_batch(call);
  return Stack{ops::bmm(tensor(call, 0), tensor(call, 1))};
}

std::optional<Stack> matrix_and_vector(BatchCall& call) {
  if (!call.is_batched(0) || !call.is_batched(1)) return kernel_batch(call);
  TensorBase column = ops::unsqueeze(tensor(call, 1), -1);
  return Stack{ops::squeeze(ops::bmm(tensor(call, 0), column), -1)};
}

std::optional<Stack> vectors(BatchCall& call) {
  TensorBase row = ops::unsqueeze(batched(call, 0), 1);
  TensorBase column = ops::unsqueeze(batched(call, 1), 2);
  return Stack{ops::reshape(ops::bmm(row, column), {call.level.size()})};
}

// A batch of kernels: each has its own groups of channels.
std::optional<Stack> convolved(BatchCall& call) {
  if (!call.is_batched(1)) return kernel_batch(call);
  int64_t size = call.level.size();
  // [b, n, c, ...] to [n, b c, ...] and [b, o, i, ...] to [b o, i, ...].
  TensorBase input = ops::flatten(ops::movedim(batched(call, 0), 0, 1), 1, 2);
  TensorBase weight = ops::flatten(tensor(call, 1), 0, 1);
  Stack stack(call.args.begin(), call.args.end());
  stack[0] = input;
  stack[1] = weight;
  if (call.args[2].is<TensorBase>()) {
    stack[2] = ops::flatten(batched(call, 2), 0, 1);
  }
  stack[8] = call.args[8].to_int() * size;
  call_operator(call.op, stack);
  TensorBase out = stack[0].get<TensorBase>();
  DimVector shape(out.sizes().begin(), out.sizes().end());
  shape[1] /= size;
  shape.insert(shape.begin() + 1, size);
  return Stack{ops::movedim(ops::reshape(out, shape), 1, 0)};
}

struct Row {
  const char* name;
  BatchRule rule;
};

constexpr Row kRows[] = {
    {"new_empty_strided", new_strided},
    {"mm", both_matrices},
    {"mv", matrix_and_vector},
    {"dot", vectors},
    {"convolution", convolved},
};

}  // namespace

BatchRule named_rule(const OperatorEntry& op) {
  if (op.info->form != Form::Functional) return nullptr;
  for (const Row& row : kRows) {
    if (std::string_view(op.name) == row.name) return row.rule;
  }
  return nullptr;
}

}  // namespace taeda::functorch
