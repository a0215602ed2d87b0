// Operators that draw random numbers, known by the tag of their records.
#include <taeda/csrc/functorch/batch_level.h>

namespace taeda::functorch {

bool draws(const OperatorEntry& op, std::span<const IValue> args) {
  if (!op.info->has(OpTag::NondeterministicSeeded)) return false;
  for (size_t i = 0; i < args.size(); ++i) {
    bool rate = name_of(op.info->values[i], op.schema) == "dropout_p";
    if (rate && args[i].is<double>() && args[i].get<double>() == 0) {
      return false;
    }
  }
  return true;
}

bool begin_random(BatchLevel& level,
                  const OperatorEntry& op,
                  std::span<IValue> args,
                  bool batched) {
  TAEDA_CHECK(level.randomness() != Randomness::Error,
              "vmap: called random operation while in randomness error mode. "
              "Please either use the 'same' or 'different' randomness flags on "
              "vmap or perform the randomness operation out of vmap (",
              op.qualified_name(),
              ")");
  if (level.randomness() == Randomness::Same) return batched;
  for (size_t i = 0; i < args.size(); ++i) {
    bool written = op.info->values[i].has(ArgInfo::kWritten);
    each_tensor(args[i], [&](TensorBase& t) {
      if (level.has_batch(t)) return;
      TAEDA_CHECK(!written,
                  "vmap: Cannot ask for different inplace randomness on an "
                  "unbatched tensor. This will appear like same randomness (",
                  op.qualified_name(),
                  " of shape ",
                  t.sizes(),
                  ").");
      // One call draws for all elements, in PyTorch's order.
      BelowLevel below(level);
      t = level.wrap(level.unwrap(t, 0));
    });
  }
  return true;
}

}  // namespace taeda::functorch
