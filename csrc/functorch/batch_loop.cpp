// Operators without a rule: one element after the other.
#include <taeda/csrc/functorch/batch_level.h>

#include <taeda/c10/core/generator.h>
#include <taeda/gen/ops/select.h>
#include <taeda/gen/ops/stack.h>

#include <mutex>

namespace taeda::functorch {

namespace {

// Restores the generator's state for every element of a call that is to draw
// the same numbers for all of them.
class SameNumbers {
 public:
  explicit SameNumbers(const BatchCall& call) {
    if (call.level.randomness() != Randomness::Same) return;
    if (!call.op.info->has(OpTag::NondeterministicSeeded)) return;
    int at = call.argument("generator");
    Generator given;
    if (at >= 0 && call.args[static_cast<size_t>(at)].is<Generator>()) {
      given = call.args[static_cast<size_t>(at)].get<Generator>();
    }
    generator_ = &check_cpu_generator(given);
    std::lock_guard lock(generator_->mutex());
    state_.resize(generator_->state_size());
    generator_->get_state(state_.data());
  }
  void before(int64_t element) {
    if (generator_ == nullptr || element == 0) return;
    std::lock_guard lock(generator_->mutex());
    generator_->set_state(state_.data(), state_.size());
  }

 private:
  CpuGeneratorImpl* generator_ = nullptr;
  std::vector<uint8_t> state_;
};

using Results = std::vector<Stack>;

// Result `i` of every element as one value.
IValue joined(const Results& each, size_t i) {
  const IValue& first = each[0][i];
  if (first.is<std::vector<TensorBase>>()) {
    size_t count = first.get<std::vector<TensorBase>>().size();
    std::vector<TensorBase> out;
    for (size_t k = 0; k < count; ++k) {
      std::vector<TensorBase> parts;
      for (const Stack& s : each) {
        const auto& list = s[i].get<std::vector<TensorBase>>();
        TAEDA_CHECK(
            list.size() == count,
            "vmap: elements of the batch give lists of different lengths");
        parts.push_back(list[k]);
      }
      out.push_back(ops::stack(parts, 0));
    }
    return out;
  }
  TAEDA_CHECK(first.is<TensorBase>(),
              "Batching rule not implemented: each element of the batch has a "
              "result of its own, which is no tensor. We could not generate a "
              "fallback.");
  std::vector<TensorBase> parts;
  for (const Stack& s : each) parts.push_back(s[i].get<TensorBase>());
  if (!parts[0].defined()) return TensorBase();
  return ops::stack(parts, 0);
}

}  // namespace

Stack loop_batch(BatchCall& call) {
  const OperatorEntry& op = call.op;
  TAEDA_CHECK(op.written_count == 0 || call.is_batched(op.written_first),
              op.qualified_name(),
              ": vmap cannot change a tensor in place that has no batch by "
              "values that have one");
  TAEDA_CHECK(call.level.size() > 0,
              op.qualified_name(),
              ": vmap over no elements needs a rule for the operator");
  SameNumbers numbers(call);
  Results each;
  for (int64_t element = 0; element < call.level.size(); ++element) {
    numbers.before(element);
    Stack stack(call.args.begin(), call.args.end());
    for (IValue& v : stack) {
      each_tensor(v, [&](TensorBase& t) {
        if (call.level.has_batch(t)) {
          t = ops::select(call.level.inside(t), 0, element);
        }
      });
    }
    call_operator(op, stack);
    each.push_back(std::move(stack));
  }
  Stack results;
  for (size_t i = 0; i < each[0].size(); ++i) {
    // What was written is in the memory that the slices share.
    results.push_back(i < op.written_count ? call.args[op.written_first + i]
                                           : joined(each, i));
    if (i < op.written_count) take_inside(call.level, results.back());
  }
  return results;
}

}  // namespace taeda::functorch
