// Products that have a kernel of their own here and are made of others in what
// programs expect to see of __torch_dispatch__.
#include <taeda/csrc/boxed/module.h>

#include <taeda/aten/core/level.h>
#include <taeda/gen/ops/_unsafe_view.h>
#include <taeda/gen/ops/add.h>
#include <taeda/gen/ops/addmm.h>
#include <taeda/gen/ops/bmm.h>
#include <taeda/gen/ops/dot.h>
#include <taeda/gen/ops/expand.h>
#include <taeda/gen/ops/linear.h>
#include <taeda/gen/ops/matmul.h>
#include <taeda/gen/ops/mm.h>
#include <taeda/gen/ops/mv.h>
#include <taeda/gen/ops/reshape.h>
#include <taeda/gen/ops/squeeze.h>
#include <taeda/gen/ops/t.h>
#include <taeda/gen/ops/unsqueeze.h>
#include <taeda/gen/ops/view.h>

namespace taeda::python {

namespace {
DimVector joined(IntArrayRef front, IntArrayRef back) {
  DimVector out(front);
  for (int64_t n : back) out.push_back(n);
  return out;
}

// The rows of all matrices of `t` as one matrix.
DimVector folded(const TensorBase& t) {
  int64_t rows = 1;
  for (int64_t n : t.sizes().slice(0, t.sizes().size() - 1)) rows *= n;
  return {rows, t.size(-1)};
}

TensorBase batched_product(const TensorBase& a, const TensorBase& b) {
  TensorBase left = a.dim() == 1 ? ops::unsqueeze(a, 0) : a;
  TensorBase right = b.dim() == 1 ? ops::unsqueeze(b, 1) : b;
  size_t left_rank = left.sizes().size(), right_rank = right.sizes().size();
  DimVector batch =
      broadcast_shapes<int64_t>("matmul",
                                left.sizes().slice(0, left_rank - 2),
                                right.sizes().slice(0, right_rank - 2));
  int64_t count = 1;
  for (int64_t n : batch) count *= n;
  int64_t rows = left.size(-2), inner = left.size(-1), columns = right.size(-1);
  auto stacked = [&](const TensorBase& t, int64_t n, int64_t m) {
    return ops::reshape(ops::expand(t, joined(batch, {n, m})), {count, n, m});
  };
  TensorBase out = ops::bmm(stacked(left, rows, inner),
                            stacked(right, right.size(-2), columns));
  DimVector sizes = batch;
  if (a.dim() > 1) sizes.push_back(rows);
  if (b.dim() > 1) sizes.push_back(columns);
  return ops::_unsafe_view(out, sizes);
}

TensorBase product(const TensorBase& a, const TensorBase& b) {
  TAEDA_CHECK(a.dim() > 0 && b.dim() > 0,
              "both arguments to matmul need to be at least 1D, but they are ",
              a.dim(),
              "D and ",
              b.dim(),
              "D");
  if (a.dim() > 2 && b.dim() <= 2) {
    TensorBase rows = ops::reshape(a, folded(a));
    DimVector sizes(a.sizes().slice(0, a.sizes().size() - 1));
    if (b.dim() == 2) sizes.push_back(b.size(1));
    return ops::_unsafe_view(b.dim() == 1 ? ops::mv(rows, b) : ops::mm(rows, b),
                             sizes);
  }
  if (a.dim() > 2 || b.dim() > 2) return batched_product(a, b);
  if (b.dim() == 1) return a.dim() == 1 ? ops::dot(a, b) : ops::mv(a, b);
  if (a.dim() == 2) return ops::mm(a, b);
  return ops::squeeze(ops::mm(ops::unsqueeze(a, 0), b), int64_t{0});
}

TensorBase layer(const TensorBase& input,
                 const TensorBase& weight,
                 const TensorBase& bias) {
  TensorBase turned = ops::t(weight);
  if (!bias.defined()) return product(input, turned);
  bool matrices = weight.dim() == 2 && bias.dim() <= 1;
  if (matrices && input.dim() == 2) return ops::addmm(bias, input, turned);
  if (matrices && input.dim() > 2 && input.is_contiguous()) {
    TensorBase rows = ops::addmm(bias, ops::view(input, folded(input)), turned);
    DimVector sizes(input.sizes().slice(0, input.sizes().size() - 1));
    return ops::view(rows, joined(sizes, {weight.size(0)}));
  }
  return ops::add(product(input, turned), bias);
}
}  // namespace

bool run_parts(const OperatorEntry& op, Stack& stack) {
  static const OperatorEntry* linear = Dispatcher::get().find("linear", "");
  static const OperatorEntry* matmul = Dispatcher::get().find("matmul", "");
  if (&op != linear && &op != matmul) return false;
  std::span<IValue> args = arguments_on(op, stack);
  // The parts are made of sizes as integers.
  bool symbolic = false;
  each_tensor(args,
              [&](TensorBase& t) { symbolic |= t.impl()->is_symbolic(); });
  if (TAEDA_UNLIKELY(symbolic)) return false;
  TensorBase out;
  if (&op == linear) {
    out = layer(args[0].get<TensorBase>(),
                args[1].get<TensorBase>(),
                args[2].is_none() ? TensorBase() : args[2].get<TensorBase>());
  } else {
    out = product(args[0].get<TensorBase>(), args[1].get<TensorBase>());
  }
  stack.resize(stack.size() - args.size());
  stack.emplace_back(std::move(out));
  return true;
}

}  // namespace taeda::python
