// The Python object of a tensor. See Note [Wrappers].
#pragma once

#include <taeda/csrc/python/common.h>

#include <tuple>
#include <vector>

namespace taeda::python {

// Note [Wrappers]
// A TensorImpl has at most one Python object and every Python object one impl,
// so identity, attributes and subclass survive a trip through C++. Usually the
// Python object holds the impl and the impl points back without owning. When
// the last Python reference goes while C++ still holds the impl, and the object
// has something to lose (attributes, weak references, a subclass), the
// direction turns: the impl owns the object (owns_python_object) and `value`
// is kept as a pointer that is not counted. Wrapping again turns it back.
struct PyTensor {
  PyObject_HEAD TensorBase value;
  PyObject* dict;
  PyObject* weakrefs;
  bool counted;  // whether `value` holds a count of the impl
};

// taeda._C.TensorBase, and the Python classes that plain results and parameters
// have; the latter two are set when the package is imported.
extern PyTypeObject* tensor_base_type;
extern PyTypeObject* tensor_class;
extern PyTypeObject* parameter_class;

inline PyTensor* as_tensor(PyObject* o) {
  return reinterpret_cast<PyTensor*>(o);
}
// Not an overriding subclass: what the fast paths ask.
inline bool is_plain_tensor(PyObject* o) {
  return Py_TYPE(o) == tensor_class || Py_TYPE(o) == parameter_class;
}
inline bool is_tensor(PyObject* o) {
  return is_plain_tensor(o) || PyObject_TypeCheck(o, tensor_base_type);
}
inline const TensorBase& unwrap(PyObject* o) { return as_tensor(o)->value; }
// Same, after a check: TypeError "NAME: expected Tensor, got ...".
const TensorBase& unwrap_checked(PyObject* o, const char* where);

// A new reference to the tensor's Python object; None for an undefined tensor.
PyObject* wrap(TensorBase t);
// A new object of a given class over an impl that has none yet.
PyObject* wrap_as(TensorBase t, PyTypeObject* type);

inline PyObject* wrap(bool v) { return PyBool_FromLong(v); }
inline PyObject* wrap(int64_t v) { return PyLong_FromLongLong(v); }
inline PyObject* wrap(double v) { return PyFloat_FromDouble(v); }
PyObject* wrap(const Scalar& v);
PyObject* wrap(ScalarType v);
PyObject* wrap(std::vector<TensorBase> v);
PyObject* wrap(const DimVector& v);

template <class... T>
PyObject* wrap(std::tuple<T...> v) {
  Ref out = checked(PyTuple_New(sizeof...(T)));
  Py_ssize_t i = 0;
  std::apply(
      [&](auto&&... item) {
        auto put = [&](PyObject* object) {
          if (object == nullptr) throw PythonError();
          PyTuple_SET_ITEM(out.get(), i++, object);
        };
        (put(wrap(std::move(item))), ...);
      },
      std::move(v));
  return out.release();
}

// Getters, methods and slots, defined by their own files.
extern PyGetSetDef tensor_getset[];
extern PyMethodDef tensor_methods[];
std::vector<PyType_Slot> tensor_number_slots();

}  // namespace taeda::python
