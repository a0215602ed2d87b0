// Products and systems of equations whose axes tell what a batch of one operand
// is, but not of all.
#include <taeda/csrc/functorch/batch_helpers.h>

#include <taeda/gen/ops/_to_copy.h>
#include <taeda/gen/ops/add.h>
#include <taeda/gen/ops/baddbmm.h>
#include <taeda/gen/ops/bmm.h>
#include <taeda/gen/ops/conj.h>
#include <taeda/gen/ops/convolution.h>
#include <taeda/gen/ops/expand.h>
#include <taeda/gen/ops/flatten.h>
#include <taeda/gen/ops/matmul.h>
#include <taeda/gen/ops/mm.h>
#include <taeda/gen/ops/movedim.h>
#include <taeda/gen/ops/mul.h>
#include <taeda/gen/ops/reshape.h>
#include <taeda/gen/ops/squeeze.h>
#include <taeda/gen/ops/t.h>
#include <taeda/gen/ops/transpose.h>

namespace taeda::functorch {

namespace {

// Matrices in both arguments.
std::optional<Stack> matrices(BatchCall& call) {
  if (!call.is_batched(0) || !call.is_batched(1)) return kernel_batch(call);
  return Stack{ops::bmm(inside(call, 0), inside(call, 1))};
}

// There is no product of batches of 8-bit integers with 32-bit sums.
std::optional<Stack> integer_matrices(BatchCall& call) {
  if (!call.is_batched(0) || !call.is_batched(1)) return kernel_batch(call);
  return Stack{ops::bmm(ops::_to_copy(inside(call, 0), kInt),
                        ops::_to_copy(inside(call, 1), kInt))};
}

std::optional<Stack> matrix_and_vector(BatchCall& call) {
  if (!call.is_batched(1)) return kernel_batch(call);
  if (!call.is_batched(0)) {
    return Stack{ops::mm(inside(call, 1), ops::t(inside(call, 0)))};
  }
  TensorBase column = ops::unsqueeze(inside(call, 1), -1);
  return Stack{ops::squeeze(ops::bmm(inside(call, 0), column), -1)};
}

std::optional<Stack> vectors(BatchCall& call) {
  TensorBase row = ops::unsqueeze(batched(call, 0), 1);
  TensorBase column = ops::unsqueeze(batched(call, 1), 2);
  return Stack{ops::reshape(ops::bmm(row, column), {call.level.size()})};
}

// The first one conjugated.
std::optional<Stack> conjugated_vectors(BatchCall& call) {
  TensorBase row = ops::conj(ops::unsqueeze(batched(call, 0), 1));
  TensorBase column = ops::unsqueeze(batched(call, 1), 2);
  return Stack{ops::reshape(ops::bmm(row, column), {call.level.size()})};
}

// beta self + alpha product, with `self` spread over the product's sizes.
TensorBase added(const BatchCall& call,
                 const TensorBase& a,
                 const TensorBase& b) {
  TensorBase self = padded(batched(call, 0), 2);
  self = ops::expand(self, {a.size(0), a.size(1), b.size(2)});
  return ops::baddbmm(
      self, a, b, call.args[3].to_scalar(), call.args[4].to_scalar());
}

std::optional<Stack> added_matrices(BatchCall& call) {
  if (auto found = kernel_batch(call)) return found;
  return Stack{added(call, batched(call, 1), batched(call, 2))};
}

std::optional<Stack> added_vector(BatchCall& call) {
  if (auto found = kernel_batch(call)) return found;
  // self is a column beside the product.
  TensorBase self = padded(batched(call, 0), 1);
  call.args[0] = call.level.wrap(ops::unsqueeze(self, -1));
  TensorBase column = ops::unsqueeze(batched(call, 2), -1);
  return Stack{ops::squeeze(added(call, batched(call, 1), column), -1)};
}

std::optional<Stack> linear_layer(BatchCall& call) {
  if (auto found = kernel_batch(call)) return found;
  TensorBase x = batched(call, 0), w = batched(call, 1);
  bool single = rank_of(call, 1) == 1;
  if (single) w = ops::unsqueeze(w, 1);
  std::vector<int64_t> sizes(x.sizes().begin(), x.sizes().end());
  sizes.back() = w.size(1);
  TensorBase rows = ops::reshape(x, {x.size(0), -1, x.size(-1)});
  TensorBase out = ops::matmul(rows, ops::transpose(w, 1, 2));
  out = ops::reshape(out, sizes);
  if (single) out = ops::squeeze(out, -1);
  if (is_given(call, 2)) {
    out = ops::add(out, padded(batched(call, 2), out.dim() - 1));
  }
  return Stack{out};
}

// A batch of kernels: each has its own groups of channels.
std::optional<Stack> convolved(BatchCall& call) {
  if (!call.is_batched(1)) {
    if (auto found = kernel_batch(call)) return found;
  }
  int64_t size = call.level.size();
  // [b, n, c, ...] to [n, b c, ...] and [b, o, i, ...] to [b o, i, ...].
  TensorBase input = ops::flatten(ops::movedim(batched(call, 0), 0, 1), 1, 2);
  TensorBase weight = ops::flatten(batched(call, 1), 0, 1);
  Stack stack(call.args.begin(), call.args.end());
  stack[0] = input;
  stack[1] = weight;
  if (is_given(call, 2)) stack[2] = ops::flatten(batched(call, 2), 0, 1);
  stack[8] = call.args[8].to_int() * size;
  call_operator(call.op, stack);
  TensorBase out = stack[0].get<TensorBase>();
  DimVector shape(out.sizes().begin(), out.sizes().end());
  shape[1] /= size;
  shape.insert(shape.begin() + 1, size);
  return Stack{ops::movedim(ops::reshape(out, shape), 1, 0)};
}

// Whether B holds vectors is seen from the shapes without the batch.
std::optional<Stack> solved(BatchCall& call) {
  const TensorBase& a = call.args[0].get<TensorBase>();
  const TensorBase& b = call.args[1].get<TensorBase>();
  auto rows = a.sizes().slice(
      0, static_cast<size_t>(std::max<int64_t>(a.dim() - 1, 0)));
  bool vector = b.dim() == 1 || (b.dim() == a.dim() - 1 && b.sizes() == rows);
  TensorBase right = batched(call, 1);
  if (vector) right = ops::unsqueeze(right, -1);
  int64_t rank = std::max(a.dim(), right.dim() - 1);
  Stack stack(call.args.begin(), call.args.end());
  stack[0] = padded(batched(call, 0), rank);
  stack[1] = padded(right, rank);
  call_operator(call.op, stack);
  if (vector) stack[0] = ops::squeeze(stack[0].get<TensorBase>(), -1);
  return stack;
}

// What is not unpacked is an empty vector of each call.
std::optional<Stack> unpacked(BatchCall& call) {
  auto found = kernel_batch(call);
  if (!found) return found;
  for (IValue& v : *found) {
    TensorBase& t = v.get<TensorBase>();
    if (t.dim() == 1) t = ops::expand(t, {call.level.size(), 0});
  }
  return found;
}

constexpr NamedRule kProductRules[] = {
    {"mm", matrices},
    {"_int_mm", integer_matrices},
    {"mv", matrix_and_vector},
    {"dot", vectors},
    {"vdot", conjugated_vectors},
    {"addmm", added_matrices},
    {"addmv", added_vector},
    {"linear", linear_layer},
    {"convolution", convolved},
    {"linalg_solve", solved},
    {"lu_unpack", unpacked},
    {"linalg_solve_ex", solved},
};

}  // namespace

ArrayRef<NamedRule> product_rules() { return kProductRules; }

}  // namespace taeda::functorch
