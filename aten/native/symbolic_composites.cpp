// Composites over the integer type: what they make of sizes that are symbols.
#include <taeda/aten/iter/symbolic.h>
#include <taeda/aten/iter/symbolic_caller.h>
#include <taeda/aten/native/reshape_rules.h>
#include <taeda/aten/native/symbolic_sizes.h>
#include <taeda/aten/native/view.h>

#include <taeda/gen/ops/_unsafe_view.h>
#include <taeda/gen/ops/chunk.h>
#include <taeda/gen/ops/clone.h>
#include <taeda/gen/ops/detach.h>
#include <taeda/gen/ops/expand.h>
#include <taeda/gen/ops/expand_as.h>
#include <taeda/gen/ops/flatten.h>
#include <taeda/gen/ops/lift_fresh.h>
#include <taeda/gen/ops/narrow.h>
#include <taeda/gen/ops/native_group_norm.h>
#include <taeda/gen/ops/reshape.h>
#include <taeda/gen/ops/reshape_as.h>
#include <taeda/gen/ops/slice.h>
#include <taeda/gen/ops/split.h>
#include <taeda/gen/ops/unflatten.h>
#include <taeda/gen/ops/view.h>
#include <taeda/gen/ops/view_as.h>

namespace taeda {

namespace {

using Symbols = Dims<SymInt>;
using Arguments = std::span<IValue>;

const TensorBase& tensor(Arguments a, size_t i = 0) {
  return a[i].get<TensorBase>();
}
ArrayRef<SymInt> sizes(const TensorBase& t) { return sym_sizes(*t.impl()); }

// Calls an operator with symbols among its integers.
TensorBase call(const OperatorEntry& op, std::vector<IValue> arguments) {
  return call_with(op, arguments)[0].get<TensorBase>();
}
TensorBase view_to(const TensorBase& self, ArrayRef<SymInt> shape) {
  return call(ops::entries::view, {self, shape.vec()});
}

TensorBase reshape_to(const TensorBase& self, ArrayRef<SymInt> wanted) {
  Symbols shape = native::infer_size<SymInt>(wanted, sym_numel(*self.impl()));
  auto strides = native::view_strides<SymInt>(
      sizes(self), sym_strides(*self.impl()), shape);
  if (strides) return view_to(self, shape);
  TensorBase copy = ops::clone(self, MemoryFormat::Contiguous);
  return call(ops::entries::_unsafe_view,
              {copy, ArrayRef<SymInt>(shape).vec()});
}

void reshape(Arguments a, Stack& out) {
  out.emplace_back(reshape_to(tensor(a), boxing::to_symbols(a[1])));
}
void reshape_as(Arguments a, Stack& out) {
  out.emplace_back(reshape_to(tensor(a), sizes(tensor(a, 1))));
}
void view_as(Arguments a, Stack& out) {
  out.emplace_back(view_to(tensor(a), sizes(tensor(a, 1))));
}
void expand_as(Arguments a, Stack& out) {
  out.emplace_back(call(ops::entries::expand,
                        {tensor(a), sizes(tensor(a, 1)).vec(), false}));
}

// Shares memory without being a view, or without its history.
TensorBase copy_of_handle(const TensorBase& t, bool share_version) {
  return TensorBase(t.impl()->shallow_copy(share_version));
}
void unsafe_view(Arguments a, Stack& out) {
  const TensorBase& self = tensor(a);
  ViewGeometry<SymInt> g(self);
  Symbols shape =
      native::infer_size<SymInt>(boxing::to_symbols(a[1]), g.numel());
  auto strides = native::view_strides<SymInt>(g.sizes, g.strides, shape);
  TAEDA_CHECK(strides,
              "_unsafe_view: the strides of ",
              self,
              " do not allow ",
              ArrayRef<SymInt>(shape));
  g.sizes = std::move(shape);
  g.strides = *std::move(strides);
  TensorBase made = copy_of_handle(self, /*share_version=*/false);
  set_symbolic_geometry(made, g);
  out.emplace_back(std::move(made));
}
void detach(Arguments a, Stack& out) {
  out.emplace_back(copy_of_handle(tensor(a), /*share_version=*/true));
}
void lift_fresh(Arguments a, Stack& out) { out.emplace_back(tensor(a)); }

void flatten(Arguments a, Stack& out) {
  const TensorBase& self = tensor(a);
  int64_t start = wrap_dim(a[1].to_int(), self.dim());
  int64_t end = wrap_dim(a[2].to_int(), self.dim());
  TAEDA_CHECK(
      start <= end,
      "flatten() has invalid args: start_dim cannot come after end_dim, "
      "got start_dim ",
      start,
      ", end_dim ",
      end);
  if (self.dim() == 0 || start == end) {
    out.emplace_back(self.dim() == 0 ? ops::reshape(self, {1}) : self);
    return;
  }
  SymInt joined = 1;
  Symbols shape;
  ArrayRef<SymInt> own = sizes(self);
  for (int64_t d = 0; d < self.dim(); ++d) {
    if (d >= start && d <= end) joined *= own[d];
    if (d < start || d > end) shape.push_back(own[d]);
    if (d == end) shape.push_back(joined);
  }
  out.emplace_back(reshape_to(self, shape));
}

void unflatten(Arguments a, Stack& out) {
  const TensorBase& self = tensor(a);
  int64_t dim = wrap_dim(a[1].to_int(), self.dim());
  ArrayRef<SymInt> own = sizes(self);
  Symbols wanted = boxing::to_symbols(a[2]);
  TAEDA_CHECK(!wanted.empty(), "unflatten: sizes must be non-empty");
  Symbols inner = native::infer_size<SymInt>(wanted, own[dim]);
  Symbols shape;
  for (int64_t d = 0; d < self.dim(); ++d) {
    if (d != dim) {
      shape.push_back(own[d]);
    } else {
      for (const SymInt& n : inner) shape.push_back(n);
    }
  }
  out.emplace_back(view_to(self, shape));
}

void narrow(Arguments a, Stack& out) {
  const TensorBase& self = tensor(a);
  TAEDA_CHECK(self.dim() > 0, "narrow() cannot be applied to a 0-dim tensor.");
  int64_t dim = wrap_dim(a[1].to_int(), self.dim());
  const SymInt& size = sizes(self)[dim];
  SymInt start = boxing::to_symbol(a[2]), length = boxing::to_symbol(a[3]);
  TAEDA_CHECK(length >= 0, "narrow(): length must be non-negative.");
  TAEDA_CHECK_AS(Index,
                 start >= -size && start <= size,
                 "start out of range (expected to be in range of [",
                 -size,
                 ", ",
                 size,
                 "], but got ",
                 start,
                 ")");
  if (start < 0) start += size;
  TAEDA_CHECK(start <= size - length,
              "start (",
              start,
              ") + length (",
              length,
              ") exceeds dimension size (",
              size,
              ").");
  out.emplace_back(call(ops::entries::slice_Tensor,
                        {self, dim, start, start + length, int64_t{1}}));
}

void chunk(Arguments a, Stack& out) {
  const TensorBase& self = tensor(a);
  int64_t chunks = a[1].to_int();
  TAEDA_CHECK(self.dim() > 0, "chunk expects at least a 1-dimensional tensor");
  TAEDA_CHECK(
      chunks > 0, "chunk expects `chunks` to be greater than 0, got: ", chunks);
  int64_t dim = wrap_dim(a[2].to_int(), self.dim());
  SymInt size = (sizes(self)[dim] + SymInt(chunks - 1)) / SymInt(chunks);
  out = call_with(ops::entries::split_Tensor,
                  std::vector<IValue>{self, size, dim});
}

struct Known {
  const OperatorEntry* op;
  SymbolicComposite function;
};
constexpr Known kKnown[] = {
    {&ops::entries::reshape, reshape},
    {&ops::entries::reshape_as, reshape_as},
    {&ops::entries::view_as, view_as},
    {&ops::entries::expand_as, expand_as},
    {&ops::entries::_unsafe_view, unsafe_view},
    {&ops::entries::detach, detach},
    {&ops::entries::lift_fresh, lift_fresh},
    {&ops::entries::flatten_using_ints, flatten},
    {&ops::entries::unflatten_int, unflatten},
    {&ops::entries::narrow, narrow},
    {&ops::entries::chunk, chunk},
};

}  // namespace

namespace native {

bool same_sizes(ArrayRef<SymInt> a, ArrayRef<SymInt> b) {
  bool same = a.size() == b.size();
  for (size_t d = 0; same && d < a.size(); ++d) same = a[d] == b[d];
  return same;
}

Tensor reshape_sized(const Tensor& self, ArrayRef<SymInt> shape) {
  if (all_plain(shape) && !self.impl()->is_symbolic()) {
    return ops::reshape(self, as_plain(shape));
  }
  return call(ops::entries::reshape, {self, shape.vec()});
}
Tensor expand_sized(const Tensor& self, ArrayRef<SymInt> shape) {
  if (all_plain(shape)) return ops::expand(self, as_plain(shape));
  return call(ops::entries::expand, {self, shape.vec(), false});
}

std::tuple<Tensor, Tensor, Tensor> group_norm_sized(
    const Tensor& input,
    const OptionalTensor& weight,
    const OptionalTensor& bias,
    const SymInt& n,
    const SymInt& c,
    const SymInt& plane,
    int64_t groups,
    double eps) {
  if (all_plain({n, c, plane})) {
    return ops::native_group_norm(
        input, weight, bias, n.plain(), c.plain(), plane.plain(), groups, eps);
  }
  auto given = [](const OptionalTensor& t) {
    return t ? IValue(*t) : IValue();
  };
  Stack out = call_with(
      ops::entries::native_group_norm,
      std::vector<IValue>{
          input, given(weight), given(bias), n, c, plane, groups, eps});
  auto at = [&](size_t i) { return out[i].get<TensorBase>(); };
  return {at(0), at(1), at(2)};
}

}  // namespace native

SymbolicComposite find_symbolic_composite(const OperatorEntry& op) {
  for (const Known& known : kKnown) {
    if (known.op == &op) return known.function;
  }
  return nullptr;
}

}  // namespace taeda
