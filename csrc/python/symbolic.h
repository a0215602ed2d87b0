// Integers that are symbols, as Python's taeda.SymInt.
#pragma once

#include <taeda/c10/core/symbolic_geometry.h>
#include <taeda/csrc/python/common.h>

namespace taeda::python {

// taeda.SymInt, once taeda._symbols has been imported; before that nobody can
// have one. Guarded by the GIL.
extern PyTypeObject* sym_int_type;

inline bool is_symbol(PyObject* o) {
  return TAEDA_UNLIKELY(Py_TYPE(o) == sym_int_type);
}
// The number of any object that is_int_like, a symbol as it stands.
SymInt to_symbol(PyObject* o);
// TypeError naming `where` for what is no list of them.
Dims<SymInt> to_symbols(PyObject* o, const char* where);

// An int where it is no symbol.
PyObject* wrap(const SymInt& v);
PyObject* new_symbolic_tuple(ArrayRef<SymInt> values);
PyObject* new_symbolic_size(ArrayRef<SymInt> sizes);  // taeda.Size

// The nodes of taeda.SymInt belong to the module _shapes, without which nobody
// has a symbol.
struct SymbolNodes {
  SymInt (*value)(PyObject* node);
  PyObject* (*make)(const SymInt& v);  // a new reference
};
SymbolNodes& symbol_nodes();

// Ends the conversion of a call's arguments to integers: call_symbolic makes
// the call instead.
struct SymbolicArgument {};

}  // namespace taeda::python
