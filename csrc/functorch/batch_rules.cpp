// What pointwise operators and reductions make of a batch.
#include <taeda/csrc/functorch/batch_helpers.h>

#include <taeda/aten/core/dtype_rule.h>
#include <taeda/aten/native/formula_support.h>
#include <taeda/gen/ops/_to_copy.h>
#include <taeda/gen/ops/mul.h>
#include <taeda/gen/ops/reshape.h>
#include <taeda/gen/ops/squeeze.h>
#include <taeda/gen/ops/unsqueeze.h>

namespace taeda::functorch {

namespace {

int64_t largest_rank(std::span<IValue> args) {
  int64_t rank = 0;
  each_tensor(args, [&](TensorBase& t) { rank = std::max(rank, t.dim()); });
  return rank;
}

void refuse_inplace(const BatchCall& call) {
  throw_error(
      ErrorKind::Runtime,
      str_cat(
          "vmap: inplace arithmetic(self, *extra_args) is not possible "
          "because there exists a Tensor `other` in extra_args that has "
          "more elements than `self`. This happened due to `other` being "
          "vmapped over but `self` not being vmapped over in a vmap. Please "
          "try to use out-of-place operators instead of inplace arithmetic (",
          call.op.qualified_name(),
          ")"));
}

// A batch of numbers has a dim and would take part in promotion as a tensor
// with dims does: it gets the dtype that the mapped function would see.
void convert_numbers(const BatchCall& call, int64_t rank) {
  const DtypeRule& rule = call.op.info->record->dtypes;
  if (rank == 0 || rule.promote == Promote::First) return;
  std::vector<Scalar> numbers;
  numbers.reserve(call.args.size());
  std::vector<Operand> operands;
  bool needed = false;
  for (size_t i = 0; i < call.args.size(); ++i) {
    IValue& v = call.args[i];
    if (v.is<TensorBase>()) {
      const TensorBase& t = v.get<TensorBase>();
      operands.emplace_back(t);
      needed = needed || (call.level.has_batch(t) && t.dim() == 0);
    } else if (call.info(i).type == ValueType::Scalar && !v.is_none()) {
      // alpha and its like do not promote.
      if (call.info(i).has(ArgInfo::kKeywordOnly)) continue;
      numbers.push_back(v.to_scalar());
      operands.emplace_back(numbers.back());
    }
  }
  if (!needed) return;
  DtypePlan plan = plan_dtypes(call.op.name, rule, operands);
  size_t place = 0;
  for (IValue& v : call.args) {
    if (!v.is<TensorBase>()) continue;
    const TensorBase& t = v.get<TensorBase>();
    bool condition = place++ < rule.conditions;
    if (condition || !call.level.has_batch(t) || t.dim() > 0) continue;
    if (t.dtype() == plan.common) continue;
    v = call.level.wrap(ops::_to_copy(call.level.inside(t), plan.common));
  }
}

// The gradient of a loss's mean is divided by the number of elements, of which
// a batch has more than the mapped function sees: the call is made as that of a
// sum, and this is what its result is multiplied by.
std::optional<Scalar> take_share(BatchCall& call) {
  int reduction = call.argument("reduction");
  if (reduction < 0) return std::nullopt;
  IValue& how = call.args[static_cast<size_t>(reduction)];
  if (how.to_int() != native::kMeanReduction) return std::nullopt;
  derived::Tensors seen;
  for (const char* name : {"self", "target"}) {
    seen.push_back(
        call.args[static_cast<size_t>(call.argument(name))].get<TensorBase>());
  }
  how = IValue(native::kSumReduction);
  return Scalar(native::loss_share(native::kMeanReduction, seen));
}

// The values of an int, int[] or absent `dim` argument.
std::vector<int64_t> dims_in(const IValue& v) {
  if (v.is_none()) return {};
  if (v.is<std::vector<int64_t>>()) return v.get<std::vector<int64_t>>();
  return {v.to_int()};
}

// `any` and `all` of an empty list of dims, see reduction_mask.
bool reduces_nothing(const RecordInfo& record, const IValue& dim) {
  return record.dtypes.out == OutKind::Bool && !dim.is_none() &&
         dims_in(dim).empty();
}

// The overload that takes the place of a reduction of everything.
const OperatorEntry* with_dim(const OperatorEntry& op) {
  for (const OperatorEntry* other : Dispatcher::get().all()) {
    if (std::string_view(other->name) != op.name) continue;
    if (other->info->form != Form::Functional) continue;
    for (const ArgInfo& a : arguments_of(*other->info)) {
      bool ints = a.type == ValueType::Int || a.type == ValueType::SymInt;
      if (ints && name_of(a, other->schema) == "dim") return other;
    }
  }
  return nullptr;
}

// All elements of each sample as one dim, reduced by the overload with `dim`.
std::optional<Stack> reduce_everything(BatchCall& call) {
  const OperatorEntry* op = with_dim(call.op);
  if (op == nullptr) return std::nullopt;
  Stack stack;
  for (const ArgInfo& a : arguments_of(*op->info)) {
    std::string_view name = name_of(a, op->schema);
    int given = call.argument(name);
    if (given >= 0) {
      stack.push_back(call.args[static_cast<size_t>(given)]);
    } else if (name == "dim") {
      bool list = a.has(ArgInfo::kList);
      stack.push_back(list ? IValue(std::vector<int64_t>{1})
                           : IValue(int64_t{1}));
    } else if (a.type == ValueType::Bool) {
      stack.emplace_back(false);  // keepdim
    } else {
      stack.emplace_back();
    }
  }
  TensorBase& self = stack[0].get<TensorBase>();
  TensorBase value = call.level.inside(self);
  self = ops::reshape(value, {value.size(0), -1});
  call_operator(*op, stack);
  return stack;
}

}  // namespace

std::optional<Stack> pointwise_batch(BatchCall& call) {
  if (call.in_place() && !call.is_batched(0)) refuse_inplace(call);
  int64_t rank = largest_rank(call.args);
  convert_numbers(call, rank);
  std::optional<Scalar> share = take_share(call);
  Stack stack;
  for (IValue& v : call.args) {
    stack.push_back(v);
    each_tensor(stack.back(), [&](TensorBase& t) {
      if (call.level.has_batch(t)) t = padded(call.level.inside(t), rank);
    });
  }
  call_operator(call.op, stack);
  if (share) {
    TensorBase& result = stack[0].get<TensorBase>();
    result = ops::mul(result, *share);
  }
  return stack;
}

std::optional<Stack> reduction_batch(BatchCall& call) {
  int dim = call.argument("dim");
  if (dim < 0) return reduce_everything(call);
  const TensorBase& self = call.args[0].get<TensorBase>();
  int64_t rank = self.dim();
  Stack stack(call.args.begin(), call.args.end());
  TensorBase value = call.level.inside(self);
  if (reduces_nothing(*call.op.info->record, stack[static_cast<size_t>(dim)])) {
    stack[0] = value;
    call_operator(call.op, stack);
    return stack;
  }
  if (rank == 0) value = ops::unsqueeze(value, 1);
  stack[0] = value;
  IValue& chosen = stack[static_cast<size_t>(dim)];
  bool single = chosen.is<int64_t>();
  std::vector<int64_t> dims = dims_in(chosen);
  bool everything = dims.empty();
  for (int64_t& d : dims) d = behind_batch(d, rank);
  for (int64_t d = 0; everything && d < std::max<int64_t>(rank, 1); ++d) {
    dims.push_back(d + 1);
  }
  chosen = single ? IValue(dims[0]) : IValue(dims);
  call_operator(call.op, stack);
  int keep = call.argument("keepdim");
  if (rank == 0 && keep >= 0 &&
      call.args[static_cast<size_t>(keep)].to_bool()) {
    for (IValue& v : stack) {
      each_tensor(v, [](TensorBase& t) { t = ops::squeeze(t, 1); });
    }
  }
  return stack;
}

}  // namespace taeda::functorch
