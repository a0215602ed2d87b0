// What our own extension modules beside _C need of csrc/python: the bridge that
// users' modules have, and more. csrc/extension/lent.cpp, which each of them
// links, defines functions of csrc/python by it.
#pragma once

#include <taeda/csrc/autograd/node.h>
#include <taeda/csrc/extension/bridge.h>
#include <taeda/csrc/python/symbolic.h>
#include <taeda/csrc/python/values.h>

namespace taeda::python {

struct Lent : Bridge {
  PyTypeObject** tensor_class;
  PyTypeObject** parameter_class;
  const char* (*library_name)();
  PyObject* (*wrap_as)(TensorBase t, PyTypeObject* type);
  bool (*is_int_like)(PyObject* o);
  bool (*is_scalar_like)(PyObject* o);
  int64_t (*to_int)(PyObject* o);
  double (*to_double)(PyObject* o);
  PyObject* (*layout_object)(Layout l);
  PyObject* (*memory_format_object)(MemoryFormat f);
  Generator (*to_generator)(PyObject* o);
  PyObject* (*wrap_generator)(const Generator& generator);
  PyTypeObject** sym_int_type;
  SymInt (*to_symbol)(PyObject* o);
  Dims<SymInt> (*to_symbols)(PyObject* o, const char* where);
  PyObject* (*wrap_symbol)(const SymInt& v);
  SymbolNodes* symbol_nodes;
  IntrusivePtr<autograd::Node> (*node_of)(PyObject* o);
};

// The node of an object, in such a module as well.
IntrusivePtr<autograd::Node> node_of(PyObject* o);
// is_symbol, in such a module.
bool holds_symbol(PyObject* o);

// Of a module beside _C: looks the functions up. Before all else of this file.
void borrow_from_native();

}  // namespace taeda::python
