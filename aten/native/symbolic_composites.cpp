// Composites over the integer type: what they make of sizes that are symbols.
#include <taeda/aten/iter/derived.h>
#include <taeda/aten/iter/symbolic.h>
#include <taeda/aten/iter/symbolic_caller.h>
#include <taeda/aten/native/reshape_rules.h>
#include <taeda/aten/native/symbolic_sizes.h>
#include <taeda/aten/native/upsample_symbols.h>
#include <taeda/aten/native/view.h>

#include <taeda/gen/native/pad.h>
#include <taeda/gen/ops/_conj.h>
#include <taeda/gen/ops/_neg_view.h>
#include <taeda/gen/ops/_unsafe_view.h>
#include <taeda/gen/ops/broadcast_to.h>
#include <taeda/gen/ops/chunk.h>
#include <taeda/gen/ops/clone.h>
#include <taeda/gen/ops/constant_pad_nd.h>
#include <taeda/gen/ops/copy_.h>
#include <taeda/gen/ops/detach.h>
#include <taeda/gen/ops/expand.h>
#include <taeda/gen/ops/expand_as.h>
#include <taeda/gen/ops/flatten.h>
#include <taeda/gen/ops/index_select.h>
#include <taeda/gen/ops/lift_fresh.h>
#include <taeda/gen/ops/narrow.h>
#include <taeda/gen/ops/native_group_norm.h>
#include <taeda/gen/ops/new_full.h>
#include <taeda/gen/ops/pad.h>
#include <taeda/gen/ops/repeat_interleave.h>
#include <taeda/gen/ops/reshape.h>
#include <taeda/gen/ops/reshape_as.h>
#include <taeda/gen/ops/slice.h>
#include <taeda/gen/ops/split.h>
#include <taeda/gen/ops/unflatten.h>
#include <taeda/gen/ops/unsqueeze.h>
#include <taeda/gen/ops/view.h>
#include <taeda/gen/ops/view_as.h>
#include <taeda/gen/ops/view_as_complex.h>
#include <taeda/gen/ops/view_as_real.h>
#include <taeda/gen/ops/zeros.h>
#include <taeda/gen/sym/new_zeros.h>

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

void broadcast_to(Arguments a, Stack& out) {
  out.emplace_back(native::expand_sized(tensor(a), boxing::to_symbols(a[1])));
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

void copy_into_self(Arguments a, Stack& out) {
  const TensorBase& self = tensor(a);
  ArrayRef<SymInt> own = sizes(self);
  Symbols shape = broadcast_shapes<SymInt>("copy_", own, sizes(tensor(a, 1)));
  TAEDA_CHECK(native::same_sizes(shape, own),
              "copy_: output with shape ",
              own,
              " doesn't match the broadcast shape ",
              ArrayRef<SymInt>(shape));
  derived::check_writable(self);
  self.impl()->bump_version();
  out.emplace_back(self);
}

// Each element of a dim `repeats` times, right behind itself.
void repeat_interleave(Arguments a, Stack& out) {
  SymInt repeats = boxing::to_symbol(a[1]);
  TAEDA_CHECK(repeats >= 0, "repeats must be non-negative, got ", repeats);
  const TensorBase& self = tensor(a);
  bool flat = a[2].is_none() || self.dim() == 0;
  TensorBase input = flat ? reshape_to(self, {SymInt(-1)}) : self;
  int64_t dim = flat ? 0 : wrap_dim(a[2].to_int(), self.dim());
  Symbols wide(sizes(input)), joined(sizes(input));
  joined[dim] *= repeats;
  if (!a[3].is_none()) {
    SymInt wanted = boxing::to_symbol(a[3]);
    TAEDA_CHECK(wanted == joined[dim],
                "repeat_interleave: Invalid output_size, expected ",
                joined[dim],
                " but got ",
                wanted);
  }
  wide.insert(wide.begin() + dim + 1, repeats);
  TensorBase spread =
      native::expand_sized(ops::unsqueeze(input, dim + 1), wide);
  TensorBase copy = ops::clone(spread, MemoryFormat::Contiguous);
  out.emplace_back(view_to(copy, joined));
}

void pad(Arguments a, Stack& out) {
  const std::string& mode = a[2].get<std::string>();
  Symbols frame = boxing::to_symbols(a[1]);
  bool constant = mode == "constant" && frame.size() % 2 == 0;
  if (constant && !all_plain(frame)) {
    IValue value = a[3].is_none() ? IValue(0.0) : a[3];
    out.emplace_back(call(ops::entries::constant_pad_nd,
                          {tensor(a), ArrayRef<SymInt>(frame).vec(), value}));
    return;
  }
  DimVector fixed;
  for (const SymInt& each : frame) fixed.push_back(each.guard());
  std::optional<double> value;
  if (!a[3].is_none()) value = a[3].to_double();
  out.emplace_back(native::pad(tensor(a), fixed, mode, value));
}

// Of meta tensors: their sum has to be given.
void repeated_places(Arguments a, Stack& out) {
  const TensorBase& repeats = tensor(a);
  TAEDA_CHECK_AS(NotImplemented,
                 repeats.is_meta() && !a[1].is_none(),
                 "repeat_interleave: the size of the result is the sum of ",
                 "repeats, which is data; give output_size");
  out.emplace_back(make_symbolic_tensor(
      boxing::to_symbol(a[1]), ArrayRef<SymInt>(), repeats.dtype()));
}

// By numbers of repetitions that are data.
void repeat_by_data(Arguments a, Stack& out) {
  bool flat = a[2].is_none() || tensor(a).dim() == 0;
  TensorBase input = flat ? reshape_to(tensor(a), {SymInt(-1)}) : tensor(a);
  int64_t dim = flat ? 0 : wrap_dim(a[2].to_int(), input.dim());
  TensorBase counts = tensor(a, 1);
  const SymInt& size = sizes(input)[dim];
  if (counts.dim() == 0 || sizes(counts)[0] == 1) {
    counts = native::expand_sized(reshape_to(counts, {SymInt(1)}), size);
  } else {
    TAEDA_CHECK(sizes(counts)[0] == size,
                "repeats must have the same size as input along dim, but got "
                "repeats.size(0) = ",
                sizes(counts)[0],
                " and input.size(",
                dim,
                ") = ",
                size);
  }
  TensorBase places =
      call(ops::entries::repeat_interleave_Tensor, {counts, a[3]});
  out.emplace_back(ops::index_select(input, dim, places));
}

template <TensorBase (*view)(const TensorBase&)>
void viewed(Arguments a, Stack& out) {
  out.emplace_back(view(tensor(a)));
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
    {&ops::entries::broadcast_to, broadcast_to},
    {&ops::entries::_unsafe_view, unsafe_view},
    {&ops::entries::view_as_real, viewed<native::view_as_real_sized>},
    {&ops::entries::view_as_complex, viewed<native::view_as_complex_sized>},
    {&ops::entries::_conj, viewed<native::_conj_sized>},
    {&ops::entries::_neg_view, viewed<native::_neg_view_sized>},
    {&ops::entries::detach, detach},
    {&ops::entries::lift_fresh, lift_fresh},
    {&ops::entries::flatten_using_ints, flatten},
    {&ops::entries::unflatten_int, unflatten},
    {&ops::entries::narrow, narrow},
    {&ops::entries::chunk, chunk},
    {&ops::entries::copy_, copy_into_self},
    {&ops::entries::pad, pad},
    {&ops::entries::repeat_interleave_Tensor, repeated_places},
    {&ops::entries::repeat_interleave_self_int, repeat_interleave},
    {&ops::entries::repeat_interleave_self_Tensor, repeat_by_data},
};

}  // namespace

namespace native {

bool same_sizes(ArrayRef<SymInt> a, ArrayRef<SymInt> b) {
  bool same = a.size() == b.size();
  for (size_t d = 0; same && d < a.size(); ++d) same = a[d] == b[d];
  return same;
}

Tensor number_as_tensor(const Tensor& like, const SymInt& number) {
  return call(ops::entries::new_full,
              {like,
               std::vector<int64_t>(),
               number,
               static_cast<int64_t>(kLong),
               IValue(),
               IValue(),
               IValue()});
}
Tensor zeros_sized(const Tensor& like, ArrayRef<SymInt> sizes) {
  if (all_plain(sizes) && !meets_python(like)) {
    return ops::zeros(as_plain(sizes),
                      like.dtype(),
                      std::nullopt,
                      like.device(),
                      std::nullopt);
  }
  return sym::new_zeros(like, sizes);
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
  return native::find_symbolic_upsample(op);
}

}  // namespace taeda
