// What other extension modules of the package need of _C, which exports no
// symbols: `taeda._C._bridge`, a capsule.
#pragma once

#include <taeda/csrc/python/tensor_type.h>

namespace taeda::python {

struct Bridge {
  static constexpr const char* kName = "taeda._C._bridge";
  PyTypeObject* tensor_type;
  PyObject* (*wrap)(TensorBase t);
  void (*translate)() noexcept;  // translate_exception
};

}  // namespace taeda::python
