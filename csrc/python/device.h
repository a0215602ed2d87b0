// taeda.device objects.
#pragma once

#include <taeda/csrc/python/common.h>

namespace taeda::python {

struct PyDevice {
  PyObject_HEAD Device device;
};
extern PyTypeObject* device_type;

PyObject* new_device(Device device);
// device, str, or an int (an accelerator's index).
inline bool is_device(PyObject* o) { return Py_TYPE(o) == device_type; }
inline bool is_device_like(PyObject* o) {
  return is_device(o) || PyUnicode_Check(o) ||
         (PyLong_Check(o) && !PyBool_Check(o));
}
Device to_device(PyObject* o);
void init_device(PyObject* module);

}  // namespace taeda::python
