// Kernels for the operators whose record has a CPU kernel and says, beside it,
// what each element is (families `map`, `reduction`, `scan`).
#pragma once

#include <taeda/aten/core/dispatcher.h>

#include <vector>

namespace taeda::cuda {

struct FormulaText;
// Null where the record has no formula.
const FormulaText* formula_of(const OperatorEntry& op);
// Computes into the results, which are planned. False where the formula has no
// meaning for their dtypes.
bool run_formula(const OperatorEntry& op,
                 const FormulaText& formula,
                 const IValue* values,
                 const std::vector<TensorBase>& results);

}  // namespace taeda::cuda
