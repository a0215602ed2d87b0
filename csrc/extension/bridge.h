// What other extension modules, users' among them, need of _C, which exports no
// symbols: `taeda._C._bridge`, a capsule.
#pragma once

#include <Python.h>

#include <taeda/aten/core/tensor_base.h>

namespace taeda::python {

// Functions of Python objects need the GIL. They throw what `translate` turns
// into Python's error; it is called in a handler of that exception.
struct Bridge {
  static constexpr const char* kName = "taeda._C._bridge";
  // Of the library whose headers these are; extensions compare it.
  static constexpr int kLayout = 2;

  int layout;
  PyTypeObject* tensor_type;
  PyObject* (*wrap)(TensorBase t);
  void (*translate)() noexcept;
  const TensorBase& (*unwrap)(PyObject* o);
  PyObject* (*wrap_number)(const Scalar& v);
  Scalar (*to_number)(PyObject* o);
  PyObject* (*wrap_dtype)(ScalarType t);
  ScalarType (*to_dtype)(PyObject* o);
  PyObject* (*wrap_device)(Device d);
  Device (*to_device)(PyObject* o);
};

}  // namespace taeda::python
