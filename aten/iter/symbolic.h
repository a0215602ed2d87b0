// Operators on tensors without memory whose sizes are symbols.
#pragma once

#include <taeda/aten/core/level.h>
#include <taeda/aten/iter/spec.h>
#include <taeda/aten/iter/view_geometry.h>

namespace taeda {

// Note [Symbolic tensors]
// A meta tensor with a symbol among its sizes has the key Symbolic, whose
// kernel answers every operator: composites run first, as at the levels; of a
// kernel or a view the rule of its record runs over SymInt; of pointwise
// operators and reductions the drivers' rules for sizes do, and dtypes come
// from a call on meta tensors of the same ranks. What has no rule is computed
// with every symbol fixed to its hint, which is a guard and counted
// (symbolic_fallbacks).
// Calls with a symbol among their integers are boxed; a C++ function of the
// operator's type gets the hint.

// What a rule decides: outputs, or where views lie.
struct SymbolicPlan {
  explicit SymbolicPlan(std::string_view op) : outputs(op) {}
  Plan<SymInt> outputs;
  ViewGeometries<SymInt> views;
};

// A rule of a record: a function over SymInt, and how it is called with the
// arguments of a boxed call. One `call` serves all rules of one type.
struct SymbolicRule {
  void* function;
  void (*call)(void* function,
               std::span<const IValue> arguments,
               SymbolicPlan& plan);
};

template <class Signature>
struct SymbolicCaller;
template <class R, class... A>
struct SymbolicCaller<R(A...)> {
  static void call(void* function,
                   std::span<const IValue> arguments,
                   SymbolicPlan& plan);
};

// What the operator gives for arguments whose tensors may be symbolic; nothing
// where no rule tells. Errors are those of the rule.
TAEDA_API std::optional<SymbolicPlan> plan_symbolic(
    const OperatorEntry& op, std::span<const IValue> arguments);

// A meta tensor; a plain one where nothing is a symbol.
TAEDA_API TensorBase make_symbolic_tensor(ArrayRef<SymInt> sizes,
                                          ArrayRef<SymInt> strides,
                                          ScalarType dtype);
// Gives a tensor a geometry, of integers or not.
TAEDA_API void set_symbolic_geometry(const TensorBase& t,
                                     const ViewGeometry<SymInt>& geometry);

// The operators of this thread that fixed symbols for want of a rule, by name,
// since the last call.
TAEDA_API std::vector<std::string> take_symbolic_fallbacks();

// Composites written over the integer type: run where an argument is symbolic.
// False where the operator is none of them.
bool run_symbolic_composite(const OperatorEntry& op, Stack& stack);
using SymbolicComposite = void (*)(std::span<IValue> arguments, Stack& results);
SymbolicComposite find_symbolic_composite(const OperatorEntry& op);

// A dispatch with symbols among the integers on the stack.
void call_with_symbols(const OperatorEntry& op, Stack& stack);
void register_symbolic_kernel(Dispatcher& dispatcher);

}  // namespace taeda
