// What computes the same as an operator that writes into its arguments.
#pragma once

#include <taeda/aten/core/level.h>

namespace taeda::functorch {

// What a call computes, without having written anything.
struct Computed {
  // The operator's own results, those that are written arguments left out.
  Stack results;
  // For each argument that is written, tensor or list, in their order.
  Stack written;
};

// `args` are values. Where records have no functional form (of a library's
// operators), the operator itself is called, on copies of what it writes.
Computed compute_functionally(const OperatorEntry& op,
                              std::span<const IValue> args);

// The operator whose result takes the place of the first argument: `add` of
// `add_`, `transpose` of `transpose_`, `bernoulli` of `bernoulli.out`; null
// where there is none.
TAEDA_API const OperatorEntry* functional_form(const OperatorEntry& op);

// Whether an argument is written.
inline bool is_written(const OperatorEntry& op, size_t i) {
  return op.info->values[i].has(ArgInfo::kWritten);
}
bool writes(const OperatorEntry& op);

}  // namespace taeda::functorch
