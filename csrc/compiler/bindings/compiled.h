// A Python callable that runs a function of tensors as compiled graphs.
#pragma once

#include <taeda/csrc/compiler/bindings/arguments.h>
#include <taeda/csrc/compiler/graph/compiled.h>

namespace taeda::compiler {

// A new object for a callable. `on_failure` is called with what went wrong
// where the callable cannot be compiled; it raises, or the callable runs as it
// is from then on. `on_made`, if not None, is called with the object for each
// new version.
PyObject* new_compiled(PyObject* function,
                       PyObject* on_failure,
                       PyObject* on_made,
                       const CompileOptions& options,
                       Signature signature = {});
PyTypeObject* add_compiled_type(PyObject* module);

}  // namespace taeda::compiler
