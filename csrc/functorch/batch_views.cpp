// What views make of a batch: the same view, one dim further.
#include <taeda/csrc/functorch/batch_level.h>

#include <taeda/gen/ops/alias.h>
#include <taeda/gen/ops/as_strided.h>
#include <taeda/gen/ops/select.h>
#include <taeda/gen/ops/squeeze.h>
#include <taeda/gen/ops/transpose.h>
#include <taeda/gen/ops/unfold.h>
#include <taeda/gen/ops/unsqueeze.h>

#include <algorithm>

namespace taeda::functorch {

namespace {

int64_t rank_of(const BatchCall& call) {
  return call.args[0].get<TensorBase>().dim();
}

// The call with the value inside; the rule has adapted the other arguments.
Stack finish(BatchCall& call) {
  take_inside(call.level, call.args[0]);
  Stack stack(call.args.begin(), call.args.end());
  call_operator(call.op, stack);
  return stack;
}

// Of a number: the dims that are named, 0 or -1, are not there, and it stays
// as it is. Nothing where one of them is another.
template <size_t... I>
std::optional<Stack> number(BatchCall& call) {
  auto fits = [](int64_t d) { return d == 0 || d == -1; };
  if (!(fits(call.args[I].to_int()) && ...)) return std::nullopt;
  return Stack{ops::alias(call.level.inside(call.args[0].get<TensorBase>()))};
}

// The arguments at these places count dims, which a number has not.
template <size_t... I>
std::optional<Stack> dims(BatchCall& call) {
  int64_t rank = rank_of(call);
  if (rank == 0) return std::nullopt;
  ((call.args[I] = behind_batch(call.args[I].to_int(), rank)), ...);
  return finish(call);
}

// As dims, but a number may be named them of.
template <size_t... I>
std::optional<Stack> dims_or_number(BatchCall& call) {
  return rank_of(call) == 0 ? number<I...>(call) : dims<I...>(call);
}

// A number is a row of one element, of which one part is taken.
std::optional<Stack> unfolded(BatchCall& call) {
  if (rank_of(call) > 0) return dims<1>(call);
  int64_t dim = call.args[1].to_int();
  if (dim != 0 && dim != -1) return std::nullopt;
  TensorBase row =
      ops::unsqueeze(call.level.inside(call.args[0].get<TensorBase>()), 1);
  TensorBase parts =
      ops::unfold(row, 1, call.args[2].to_int(), call.args[3].to_int());
  return Stack{ops::select(parts, 1, 0)};
}

// A new dim: it may stand behind the last one.
std::optional<Stack> new_dim(BatchCall& call) {
  call.args[1] = behind_batch(call.args[1].to_int(), rank_of(call) + 1);
  return finish(call);
}

std::optional<Stack> as_it_is(BatchCall& call) { return finish(call); }

std::optional<Stack> dim_list(BatchCall& call) {
  int64_t rank = rank_of(call);
  const auto& given = call.args[1].get<std::vector<int64_t>>();
  bool fits =
      std::ranges::all_of(given, [](int64_t d) { return d == 0 || d == -1; });
  if (rank == 0 && !fits) return std::nullopt;
  if (rank == 0) {
    return Stack{ops::alias(call.level.inside(call.args[0].get<TensorBase>()))};
  }
  std::vector<int64_t> all;
  for (int64_t d : given) all.push_back(behind_batch(d, rank));
  call.args[1] = all;
  return finish(call);
}

std::optional<Stack> permuted(BatchCall& call) {
  int64_t rank = rank_of(call);
  const auto& given = call.args[1].get<std::vector<int64_t>>();
  TAEDA_CHECK(static_cast<int64_t>(given.size()) == rank,
              "permute: number of dimensions in the tensor input "
              "does not match the length of the desired ordering of dimensions "
              "i.e. input.dim() = ",
              rank,
              " is not equal to len(dims) = ",
              given.size());
  std::vector<int64_t> all{0};
  for (int64_t d : given) all.push_back(behind_batch(d, rank));
  call.args[1] = all;
  return finish(call);
}

// `t` of a vector or a number is itself.
std::optional<Stack> matrix_transposed(BatchCall& call) {
  const TensorBase& self = call.args[0].get<TensorBase>();
  TAEDA_CHECK(self.dim() <= 2,
              "t() expects a tensor with <= 2 dimensions, but self is ",
              self.dim(),
              "D");
  TensorBase value = call.level.inside(self);
  return Stack{self.dim() < 2 ? ops::alias(value)
                              : ops::transpose(value, 1, 2)};
}

// Every dim of size 1, but the batch.
std::optional<Stack> squeezed(BatchCall& call) {
  const TensorBase& self = call.args[0].get<TensorBase>();
  std::vector<int64_t> ones;
  for (int64_t d = 0; d < self.dim(); ++d) {
    if (self.size(d) == 1) ones.push_back(d + 1);
  }
  return Stack{ops::squeeze(call.level.inside(self), ones)};
}

std::optional<Stack> sized(BatchCall& call) {
  const auto& given = call.args[1].get<std::vector<int64_t>>();
  std::vector<int64_t> sizes(given);
  sizes.insert(sizes.begin(), call.level.size());
  call.args[1] = sizes;
  return finish(call);
}

std::optional<Stack> expanded(BatchCall& call) {
  const TensorBase& self = call.args[0].get<TensorBase>();
  const auto& given = call.args[1].get<std::vector<int64_t>>();
  TensorBase value = call.level.inside(self);
  auto rank = static_cast<int64_t>(given.size());
  while (value.dim() - 1 < rank) value = ops::unsqueeze(value, 1);
  std::vector<int64_t> sizes(given);
  sizes.insert(sizes.begin(), call.level.size());
  Stack stack{value, sizes, call.args[2]};
  call_operator(call.op, stack);
  return stack;
}

// Strides count elements of the value that the mapped function sees.
std::optional<Stack> restrided(BatchCall& call) {
  const TensorBase& self = call.args[0].get<TensorBase>();
  TensorBase value = call.level.inside(self);
  std::vector<int64_t> sizes = call.args[1].get<std::vector<int64_t>>();
  std::vector<int64_t> strides = call.args[2].get<std::vector<int64_t>>();
  sizes.insert(sizes.begin(), value.size(0));
  strides.insert(strides.begin(), value.stride(0));
  std::optional<int64_t> offset;
  if (!call.args[3].is_none()) offset = call.args[3].to_int();
  return Stack{ops::as_strided(value, sizes, strides, offset)};
}

std::optional<Stack> reshaped_alias(BatchCall& call) {
  const TensorBase& self = call.args[0].get<TensorBase>();
  std::vector<int64_t> strides = call.args[2].get<std::vector<int64_t>>();
  strides.insert(strides.begin(), call.level.inside(self).stride(0));
  call.args[2] = strides;
  return sized(call);
}

struct Row {
  const char* name;
  const char* overload;
  BatchRule rule;
};

constexpr Row kRows[] = {
    {"lift_fresh", "", as_it_is},
    {"alias", "", as_it_is},
    {"detach", "", as_it_is},
    {"view_as_real", "", as_it_is},
    {"view_as_complex", "", as_it_is},
    {"_conj", "", as_it_is},
    {"_neg_view", "", as_it_is},
    {"view", "dtype", as_it_is},
    {"view", "", sized},
    {"_reshape_alias", "", reshaped_alias},
    {"expand", "", expanded},
    {"permute", "", permuted},
    {"transpose", "int", dims_or_number<1, 2>},
    {"t", "", matrix_transposed},
    {"squeeze", "", squeezed},
    {"squeeze", "dim", dims_or_number<1>},
    {"squeeze", "dims", dim_list},
    {"unsqueeze", "", new_dim},
    {"as_strided", "", restrided},
    {"select", "int", dims<1>},
    {"slice", "Tensor", dims<1>},
    {"diagonal", "", dims<2, 3>},
    {"unfold", "", unfolded},
    {"split", "Tensor", dims<2>},
    {"split_with_sizes", "", dims<2>},
    {"unbind", "int", dims<1>},
};

}  // namespace

namespace {
// `transpose_` and its like: the wrapper takes over what `transpose` gives.
std::optional<Stack> changed_view(BatchCall& call) {
  std::string_view name = call.op.name;
  name.remove_suffix(1);
  OperatorEntry* op = Dispatcher::get().find(name, call.op.overload);
  BatchCall functional{call.level, *op, call.args};
  return view_rule(*op)(functional);
}
}  // namespace

BatchRule view_rule(const OperatorEntry& op) {
  std::string_view name = op.name;
  bool changes = op.info->has(OpTag::InPlaceView);
  if (changes) name.remove_suffix(1);
  for (const Row& row : kRows) {
    if (name == row.name && std::string_view(op.overload) == row.overload) {
      return changes ? changed_view : row.rule;
    }
  }
  return nullptr;
}

}  // namespace taeda::functorch
