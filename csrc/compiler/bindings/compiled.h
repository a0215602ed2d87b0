// A Python callable that runs a function of tensors as compiled graphs.
#pragma once

#include <taeda/csrc/compiler/graph/compiled.h>
#include <taeda/csrc/python/bridge.h>

namespace taeda::compiler {

// Of taeda._C, once the module is loaded.
const python::Bridge& bridge();

// A new object for a callable. `on_failure` is called with what went wrong
// where the callable cannot be compiled; it raises, or the callable runs as it
// is from then on. Gradients of the inputs `cleared` are dropped before each
// call.
PyObject* new_compiled(PyObject* function,
                       PyObject* on_failure,
                       const CompileOptions& options,
                       std::vector<size_t> cleared);
PyTypeObject* add_compiled_type(PyObject* module);

}  // namespace taeda::compiler
