// pybind11 for the bindings that are called seldom, see
// docs/design/bindings.md: our types as arguments and results. Included by
// sources alone: it is heavy.
#pragma once

#include <taeda/csrc/python/arg_parser.h>

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <pybind11/type_caster_pyobject_ptr.h>

namespace taeda::python {
namespace py = pybind11;

// Takes a reference over, the same way as PyTorch's handles do.
inline py::object owned(Ref r) {
  return py::reinterpret_steal<py::object>(r.release());
}
inline py::object owned(PyObject* fresh) { return owned(checked(fresh)); }
inline py::module_ as_module(PyObject* borrowed) {
  return py::reinterpret_borrow<py::module_>(borrowed);
}

// How pybind11's objects hold what has a count of its own. It makes one Python
// object of one C++ object, so `is` works. Methods take Shared<T> rather than
// T&, for then an object whose __init__ never ran is refused.
template <class T>
class Shared : public IntrusivePtr<T> {
 public:
  Shared() = default;
  Shared(IntrusivePtr<T> p) : IntrusivePtr<T>(std::move(p)) {}
  explicit Shared(T* p) : IntrusivePtr<T>(IntrusivePtr<T>::share(p)) {}
};

// A class that no other library in the process sees (PyTorch registers its own
// with the same pybind11), with `type` itself as its class.
template <class T>
py::class_<T, Shared<T>> new_class(py::module_ m,
                                   const char* name,
                                   const char* doc) {
  auto* type = reinterpret_cast<PyObject*>(&PyType_Type);
  return {m, name, doc, py::module_local(), py::metaclass(type)};
}
}  // namespace taeda::python

PYBIND11_DECLARE_HOLDER_TYPE(T, taeda::python::Shared<T>, true)

// Arguments of a wrong type raise our own TypeErrors: no function bound this
// way has overloads that could be tried instead.
namespace pybind11::detail {
#define TAEDA_CASTER(type, text, from, to)                           \
  template <>                                                        \
  struct type_caster<type> {                                         \
    PYBIND11_TYPE_CASTER(type, const_name(text));                    \
    bool load(handle source, bool) {                                 \
      PyObject* o = source.ptr();                                    \
      value = from;                                                  \
      return true;                                                   \
    }                                                                \
    static handle cast(const type& v, return_value_policy, handle) { \
      return to;                                                     \
    }                                                                \
  }
TAEDA_CASTER(taeda::TensorBase,
             "Tensor",
             taeda::python::unwrap_checked(o, "argument"),
             taeda::python::wrap(v));
TAEDA_CASTER(taeda::ScalarType,
             "dtype",
             taeda::python::to_dtype(o),
             taeda::python::wrap(v));
TAEDA_CASTER(taeda::Device,
             "device",
             taeda::python::to_device(o),
             taeda::python::new_device(v));
TAEDA_CASTER(taeda::Scalar,
             "Number",
             taeda::python::to_scalar(o),
             taeda::python::wrap(v));
#undef TAEDA_CASTER
}  // namespace pybind11::detail
