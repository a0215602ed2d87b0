// vmap as a level: a value with a batch dim that the mapped function does not
// see.
#pragma once

#include <taeda/aten/core/level.h>

namespace taeda::functorch {

enum class Randomness : uint8_t { Error, Different, Same };

// The batch dim is dim 0 of the value in a wrapper.
class TAEDA_API BatchLevel final : public Level {
 public:
  BatchLevel(int64_t size, Randomness randomness)
      : size_(size), randomness_(randomness) {}
  void call(const OperatorEntry& op, Stack& stack) override;
  // Composites that have a rule of their own.
  bool keeps(const OperatorEntry& op) const override;
  const char* kind() const override { return "vmap"; }

  int64_t size() const { return size_; }
  Randomness randomness() const { return randomness_; }

  // A wrapper around `value`, whose dim `dim` is the batch.
  TensorBase wrap(const TensorBase& value, int64_t dim = 0);
  // The value with its batch dim at `dim`; one that has none is expanded.
  TensorBase unwrap(const TensorBase& t, int64_t dim) const;
  bool has_batch(const TensorBase& t) const { return level_of(t) == this; }
  // The value inside, with the batch as dim 0; others as they are.
  TensorBase inside(const TensorBase& t) const {
    return has_batch(t) ? wrapped_or_null(t)->value : t;
  }
  // How often an operator without a rule was run element by element.
  static int64_t loops();

 private:
  int64_t size_;
  Randomness randomness_;
};

// One call that a rule answers. `args` are what the mapped function gave; a
// rule calls the operator, or others, on the values inside, with the level out
// of the way, and returns results with the batch as their dim 0.
struct BatchCall {
  BatchLevel& level;
  const OperatorEntry& op;
  std::span<IValue> args;

  int argument(std::string_view name) const;
  const ArgInfo& info(size_t i) const { return op.info->values[i]; }
  bool is_batched(size_t i) const;
  bool in_place() const { return op.written_count > 0; }
};
// Nothing: the rule has no answer for these arguments, which it left alone.
using BatchRule = std::optional<Stack> (*)(BatchCall& call);

// Whether the call draws random numbers; not attention that drops nothing.
bool draws(const OperatorEntry& op, std::span<const IValue> args);
// For an operator that draws random numbers: whether the call is to be batched.
// Gives all its tensors the batch where each element draws numbers of its own.
// RuntimeError in "error" mode.
bool begin_random(BatchLevel& level,
                  const OperatorEntry& op,
                  std::span<IValue> args,
                  bool batched);

// Rules by name; null where there is none.
BatchRule view_rule(const OperatorEntry& op);
BatchRule named_rule(const OperatorEntry& op);
// Rules by family; that of kernels goes by the axes of the record.
std::optional<Stack> pointwise_batch(BatchCall& call);
std::optional<Stack> reduction_batch(BatchCall& call);
std::optional<Stack> kernel_batch(BatchCall& call);
// Each element by itself.
Stack loop_batch(BatchCall& call);

// The dim after the batch dim that `d` of a value of this rank means.
inline int64_t behind_batch(int64_t d, int64_t rank) {
  return wrap_dim(d, rank) + 1;
}
// Tensors in `v` become the values inside.
void take_inside(const BatchLevel& level, IValue& v);

}  // namespace taeda::functorch
