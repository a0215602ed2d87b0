// Rules of operators whose axes do not tell what a batch of all of their
// arguments is.
#include <taeda/csrc/functorch/batch_helpers.h>

#include <taeda/gen/ops/_local_scalar_dense.h>
#include <taeda/gen/ops/_to_copy.h>
#include <taeda/gen/ops/amax.h>
#include <taeda/gen/ops/amin.h>
#include <taeda/gen/ops/contiguous.h>
#include <taeda/gen/ops/copy_.h>
#include <taeda/gen/ops/count_nonzero.h>
#include <taeda/gen/ops/expand.h>
#include <taeda/gen/ops/median.h>
#include <taeda/gen/ops/nanmedian.h>
#include <taeda/gen/ops/narrow.h>
#include <taeda/gen/ops/new_empty_strided.h>
#include <taeda/gen/ops/new_zeros.h>
#include <taeda/gen/ops/nonzero.h>
#include <taeda/gen/ops/norm.h>
#include <taeda/gen/ops/repeat.h>
#include <taeda/gen/ops/reshape.h>
#include <taeda/gen/ops/resize_.h>

#include <algorithm>

namespace taeda::functorch {

namespace {

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

std::optional<Stack> repeated(BatchCall& call) {
  std::vector<int64_t> counts = ints(call.args[1]);
  TensorBase value =
      padded(inside(call, 0), static_cast<int64_t>(counts.size()));
  counts.insert(counts.begin(), 1);
  return Stack{ops::repeat(value, counts)};
}

std::optional<Stack> resized(BatchCall& call) {
  bool contiguous =
      call.args[2].is_none() ||
      call.args[2].to_int() == static_cast<int64_t>(MemoryFormat::Contiguous);
  if (!contiguous || !call.is_batched(0)) return std::nullopt;
  std::vector<int64_t> sizes = ints(call.args[1]);
  sizes.insert(sizes.begin(), call.level.size());
  TensorBase value = inside(call, 0);
  ops::resize_(value, sizes);
  return Stack{value};
}

TensorBase rows(const BatchCall& call) {
  return ops::reshape(inside(call, 0), {call.level.size(), -1});
}

std::optional<Stack> largest(BatchCall& call) {
  return Stack{ops::amax(rows(call), {1})};
}
std::optional<Stack> smallest(BatchCall& call) {
  return Stack{ops::amin(rows(call), {1})};
}
std::optional<Stack> middle(BatchCall& call) {
  return Stack{std::get<0>(ops::median(rows(call), 1))};
}
std::optional<Stack> middle_number(BatchCall& call) {
  return Stack{std::get<0>(ops::nanmedian(rows(call), 1))};
}

// A number of its own for each element.
std::optional<Stack> filled(BatchCall& call) {
  if (!call.is_batched(1)) return kernel_batch(call);
  if (call.in_place() && !call.is_batched(0)) return std::nullopt;
  TensorBase to = batched(call, 0);
  TensorBase value = padded(inside(call, 1), rank_of(call, 0));
  if (call.in_place()) {
    ops::copy_(to, value);
    return Stack{to};
  }
  value = ops::_to_copy(value, to.dtype());
  return Stack{ops::contiguous(ops::expand(value, to.sizes()))};
}

std::optional<Stack> length(BatchCall& call) {
  int64_t dims[] = {1};
  return Stack{ops::norm(
      rows(call), call.args[1].to_scalar(), IntArrayRef(dims), false)};
}

// Vectors of no elements stand beside tensors of any shape in a list to join.
// They count by their dtype alone: as tensors with no element along the dim.
std::optional<Stack> concatenated(BatchCall& call) {
  auto& list = call.args[0].get<std::vector<TensorBase>>();
  auto empty = [](const TensorBase& t) {
    return t.dim() == 1 && t.numel() == 0;
  };
  auto model = std::ranges::find_if_not(list, empty);
  if (model == list.end() || model->dim() == 1) return kernel_batch(call);
  DimVector sizes(model->sizes());
  int64_t dim = wrap_dim(call.args[1].to_int(), model->dim());
  sizes[static_cast<size_t>(dim)] = 0;
  for (TensorBase& t : list) {
    if (empty(t)) t = ops::new_zeros(call.level.inside(t), sizes);
  }
  return kernel_batch(call);
}

// The positions in all elements of the batch, who must have equally many.
std::optional<Stack> positions(BatchCall& call) {
  int64_t one[] = {1};
  TensorBase value = inside(call, 0);
  TensorBase counts = ops::count_nonzero(rows(call), IntArrayRef(one));
  int64_t size = call.level.size(), rank = value.dim() - 1;
  TensorBase all = ops::nonzero(value);
  int64_t each = size == 0 ? 0 : all.size(0) / size;
  auto number = [](const TensorBase& t) {
    return ops::_local_scalar_dense(t).to_int();
  };
  if (size > 0) {
    int64_t least = number(ops::amin(counts)), most = number(ops::amax(counts));
    TAEDA_CHECK(least == most,
                "argwhere: vmap expects as many elements that are not 0 in "
                "each sample, but they have from ",
                least,
                " to ",
                most);
  }
  TensorBase places = ops::narrow(all, 1, int64_t{1}, rank);
  return Stack{ops::reshape(places, {size, each, rank})};
}

// Edges lie between the least and the largest point, numbers that are read.
std::optional<Stack> edges(BatchCall& call) { return loop_batch(call); }

constexpr NamedRule kRules[] = {
    {"_histogramdd_bin_edges", edges},
    {"cat", concatenated},
    {"argwhere", positions},
    {"new_empty_strided", new_strided},
    {"repeat", repeated},
    {"resize_", resized},
    {"fill.Tensor", filled},
    {"fill_.Tensor", filled},
    {"norm.Scalar", length},
    {"max", largest},
    {"min", smallest},
    {"median", middle},
    {"nanmedian", middle_number},
};

}  // namespace

BatchRule named_rule(const OperatorEntry& op) {
  if (op.info->form == Form::Out) return nullptr;
  std::string name(op.name);
  if (!std::string_view(op.overload).empty()) {
    name += '.';
    name += op.overload;
  }
  ArrayRef<NamedRule> all[] = {kRules,
                               product_rules(),
                               indexing_rules(),
                               norm_rules(),
                               sequence_rules()};
  for (const ArrayRef<NamedRule>& part : all) {
    for (const NamedRule& row : part) {
      if (row.name == name) return row.rule;
    }
  }
  return nullptr;
}

}  // namespace taeda::functorch
