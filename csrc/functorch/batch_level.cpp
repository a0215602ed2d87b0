#include <taeda/csrc/functorch/batch_level.h>
#include <taeda/csrc/functorch/view_relation.h>

#include <taeda/gen/ops/expand.h>
#include <taeda/gen/ops/movedim.h>
#include <taeda/gen/ops/unsqueeze.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <unordered_map>

namespace taeda::functorch {

namespace {

std::atomic<int64_t> loop_count{0};

BatchRule find_rule(const OperatorEntry& op) {
  if (BatchRule rule = named_rule(op)) return rule;
  if (BatchRule rule = view_rule(op)) return rule;
  const RecordInfo& record = *op.info->record;
  // Formulas beside a kernel: its axes tell, and those of pointwise operators
  // that are reduced besides.
  if (record.composite || record.axes != nullptr) return kernel_batch;
  switch (record.family) {
    case Family::Pointwise:
      return pointwise_batch;
    case Family::Reduction:
      return reduction_batch;
    default:
      return kernel_batch;
  }
}

Stack loop(BatchCall& call) {
  loop_count.fetch_add(1, std::memory_order_relaxed);
  return loop_batch(call);
}

// Operators never go away, so their addresses are keys for ever.
BatchRule rule_of(const OperatorEntry& op) {
  static std::mutex mutex;
  static auto* rules = new std::unordered_map<const OperatorEntry*, BatchRule>;
  std::lock_guard guard(mutex);
  auto [at, fresh] = rules->try_emplace(&op, nullptr);
  if (fresh) at->second = find_rule(op);
  return at->second;
}

void check_out(const OperatorEntry& op) {
  TAEDA_CHECK(op.info->form != Form::Out,
              "Batching rule not implemented for ",
              op.qualified_name(),
              ": the out= form writes into a tensor that has no batch");
}

// Operators whose results' sizes, or numbers, differ between the elements.
void check_data_dependence(const BatchLevel& level,
                           const OperatorEntry& op,
                           std::span<IValue> args) {
  std::string_view name = op.name;
  // What reads a composite's numbers is one of its parts, if it is called.
  bool reads =
      op.info->has(OpTag::DataDependentOutput) && !op.info->record->composite;
  TAEDA_CHECK(
      !reads,
      "vmap: It looks like you're calling .item() on a Tensor (Batching "
      "rule not implemented for ",
      op.qualified_name(),
      "). We don't support vmap over calling .item() on a Tensor, "
      "please try to rewrite what you're doing with other operations.");
  bool asks_size =
      std::ranges::any_of(arguments_of(*op.info), [&](const ArgInfo& a) {
        std::string_view argument = name_of(a, op.schema);
        return argument == "output_size" || argument == "minlength";
      });
  TAEDA_CHECK(!op.info->has(OpTag::DynamicOutputShape) || asks_size,
              "vmap: We do not support batching operators that can output "
              "dynamic shape. Attempted to vmap over ",
              op.qualified_name(),
              " with ",
              level.size(),
              " elements, whose results could have different shapes.");
  if (name != "index" || op.info->form != Form::Functional) return;
  each_tensor(args[1], [&](TensorBase& t) {
    bool mask = t.dtype() == kBool || t.dtype() == kByte;
    TAEDA_CHECK(!mask || !level.has_batch(t),
                "vmap: We do not support batching operators that can support "
                "dynamic shape. Attempting to batch over indexing with a "
                "boolean mask (of shape ",
                t.sizes(),
                ").");
  });
}

void wrap_results(BatchLevel& level,
                  const OperatorEntry& op,
                  std::span<const IValue> given,
                  Stack& results) {
  for (size_t i = 0; i < results.size(); ++i) {
    if (i < op.written_count) {
      TensorBase inner = results[i].get<TensorBase>();
      results[i] = given[op.written_first + i];
      if (op.info->has(OpTag::InPlaceView)) {
        set_wrapped(results[i].get<TensorBase>(),
                    inner,
                    inner.sizes().slice(1),
                    inner.strides().slice(1),
                    0);
      }
      continue;
    }
    each_tensor(results[i], [&](TensorBase& t) {
      t = level.wrap(t);
      relate_view(op, given, i, t);
    });
  }
}

}  // namespace

int64_t BatchLevel::loops() {
  return loop_count.load(std::memory_order_relaxed);
}

TensorBase BatchLevel::wrap(const TensorBase& value, int64_t dim) {
  TensorBase front = dim == 0 ? value : ops::movedim(value, dim, 0);
  return make_wrapper(LevelPtr::share(this),
                      front,
                      front.sizes().slice(1),
                      front.strides().slice(1),
                      0);
}

TensorBase BatchLevel::unwrap(const TensorBase& t, int64_t dim) const {
  TensorBase value = inside(t);
  if (!has_batch(t)) {
    DimVector sizes(value.sizes().begin(), value.sizes().end());
    sizes.insert(sizes.begin(), size_);
    value = ops::expand(value, sizes);
  }
  dim = wrap_dim(dim, value.dim());
  return dim == 0 ? value : ops::movedim(value, 0, dim);
}

int BatchCall::argument(std::string_view name) const {
  for (size_t i = 0; i < args.size(); ++i) {
    if (name_of(info(i), op.schema) == name) return static_cast<int>(i);
  }
  return -1;
}

bool BatchCall::is_batched(size_t i) const {
  bool found = false;
  each_tensor(args[i],
              [&](TensorBase& t) { found = found || level.has_batch(t); });
  return found;
}

bool BatchLevel::keeps(const OperatorEntry& op) const {
  return rule_of(op) != kernel_batch;
}

void take_inside(const BatchLevel& level, IValue& v) {
  each_tensor(v, [&](TensorBase& t) { t = level.inside(t); });
}

void BatchLevel::call(const OperatorEntry& op, Stack& stack) {
  std::span<IValue> args = arguments_on(op, stack);
  bool batched = false;
  each_tensor(args, [&](TensorBase& t) { batched = batched || has_batch(t); });
  bool random = draws(op, args);
  if (random) batched = begin_random(*this, op, args, batched);
  if (!batched) {
    BelowLevel below(*this);
    call_operator(op, stack);
    return;
  }
  check_out(op);
  check_data_dependence(*this, op, args);
  // With a derivative of its own or not: what it is made of has rules.
  if (op.info->record->composite && named_rule(op) == nullptr) {
    run_composite(op, stack);
    return;
  }
  LevelPtr keep = LevelPtr::share(this);
  std::vector<IValue> given(args.begin(), args.end());
  bool same = random && randomness_ == Randomness::Same;
  std::optional<Stack> results;
  if (!same) {
    BelowLevel below(*this);
    BatchCall call{*this, op, args};
    results = rule_of(op)(call);
    if (results) wrap_results(*this, op, given, *results);
  }
  // What the operator means has rules.
  if (!results && !same && run_means(op, stack)) return;
  if (!results) {
    BelowLevel below(*this);
    BatchCall call{*this, op, args};
    results = loop(call);
    wrap_results(*this, op, given, *results);
  }
  stack.resize(stack.size() - args.size());
  for (IValue& v : *results) stack.push_back(std::move(v));
}

}  // namespace taeda::functorch
