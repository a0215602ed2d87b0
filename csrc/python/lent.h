// What our own extension modules beside _C need of csrc/python: the bridge that
// users' modules have, and more. csrc/extension/lent.cpp, which each of them
// links, defines functions of csrc/python by it.
#pragma once

#include <taeda/csrc/extension/bridge.h>
#include <taeda/csrc/python/boxed_values.h>
#include <taeda/csrc/python/symbolic.h>

namespace taeda::python {

struct Lent : Bridge {
  PyTypeObject** tensor_class;
  PyTypeObject** parameter_class;
  const char* (*library_name)();
  PyObject* (*wrap_as)(TensorBase t, PyTypeObject* type);
  Kind (*kind_of)(const ArgInfo& value);
  IValue (*to_ivalue)(PyObject* o, const Kind& kind);
  Ref (*to_object)(const IValue& v, const Kind& kind);
  Ref (*results_to_object)(const Stack& stack, const Kinds& kinds);
  SymInt (*to_symbol)(PyObject* o);
  Dims<SymInt> (*to_symbols)(PyObject* o, const char* where);
  PyObject* (*wrap_symbol)(const SymInt& v);
  SymbolNodes* symbol_nodes;
};

// Of a module beside _C: looks the functions up. Before all else of this file.
void borrow_from_native();

}  // namespace taeda::python
