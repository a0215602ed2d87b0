// What a compiled callable is called with: tensors, and numbers between them.
#pragma once

#include <taeda/csrc/compiler/graph/trace.h>
#include <taeda/csrc/extension/bridge.h>
#include <taeda/csrc/python/tensor_type.h>

#include <optional>

namespace taeda::compiler {

// Of taeda._C, once the module is loaded.
const python::Bridge& bridge();
bool is_tensor(PyObject* o);

// A taeda.SymInt for an expression, an int for an integer; and the other way.
python::Ref wrap_size(const SymInt& v);
std::optional<SymInt> unwrap_size(PyObject* o);

struct Arguments {
  std::vector<TensorBase> tensors;
  InnerPasses passes;  // where the tensors' grads follow them
  DimVector numbers;
};

// Which arguments are numbers, and what sizes tensors have by them.
class Signature {
 public:
  Signature() = default;
  // For each argument a SymInt where it is a number, (sizes, strides) where it
  // is a tensor that has symbols, else None; None for tensors alone.
  explicit Signature(PyObject* arguments);

  bool has_symbols() const { return env_.get() != nullptr; }
  // Nothing where an argument is of another kind. A SymInt counts as the number
  // that its symbol has seen.
  std::optional<Arguments> read(PyObject* const* args, size_t count) const;
  // Symbols of an env of their own, which has seen these numbers.
  SymbolicInputs symbols(const DimVector& numbers) const;
  // The arguments of a call: tensors with numbers between them.
  python::Ref merged(std::span<const TensorBase> tensors,
                     std::span<const SymInt> numbers) const;

 private:
  std::vector<bool> is_number_;  // by argument; empty: none is
  SymbolicInputs known_;         // in the env of who gave them
  IntrusivePtr<ShapeEnv> env_;
};

}  // namespace taeda::compiler
