// Forms of pointwise operators that few records ask for.
#pragma once

#include <taeda/aten/iter/pointwise.h>
#include <taeda/aten/iter/repeats.h>

namespace taeda {

// A row-major result, whatever the operands' order in memory.
TAEDA_API TensorBase
pointwise_row_major(const PointwiseOp& op,
                    std::initializer_list<Operand> operands,
                    std::initializer_list<Scalar> scalars = {});
// Writes into `self`, one of the operands, of which elements may lie at one
// address: part after part, so that each reads what the one before has written.
TAEDA_API void pointwise_inplace_in_turn(
    const PointwiseOp& op,
    std::initializer_list<Operand> operands,
    std::initializer_list<Scalar> scalars,
    const TensorBase& self,
    Repeats repeats);
// Into a tensor that must have the dtype of the result.
TAEDA_API void pointwise_exact_out(const PointwiseOp& op,
                                   std::initializer_list<Operand> operands,
                                   std::initializer_list<Scalar> scalars,
                                   const TensorBase& out);

}  // namespace taeda
