// A Python callable that runs a function of tensors as compiled graphs.
#pragma once

#include <taeda/csrc/compiler/bindings/arguments.h>
#include <taeda/csrc/compiler/graph/compiled.h>

namespace taeda::compiler {

// `on_failure` is called with what went wrong where the callable cannot be
// compiled; it raises, or the callable runs as it is from then on. `on_made`,
// if not None, is called with the object for each new version.
struct CompiledSettings {
  python::Ref on_failure, on_made;
  CompileOptions options;
  Signature signature;
  std::vector<size_t> cleared;  // tensors whose gradients go before each call
  bool passes = false;          // Note [Passes inside]
};

// A new object for a callable.
PyObject* new_compiled(PyObject* function, CompiledSettings settings);
PyTypeObject* add_compiled_type(PyObject* module);

}  // namespace taeda::compiler
