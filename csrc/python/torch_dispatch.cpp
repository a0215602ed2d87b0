#include <taeda/csrc/python/torch_dispatch.h>

#include <taeda/aten/core/dispatcher.h>
#include <taeda/csrc/python/casters.h>
#include <taeda/csrc/python/init.h>

namespace taeda::python {

namespace {
constexpr DispatchKeySet kPython{DispatchKey::Python};

PyObject* disabled_impl = nullptr;  // set once, when the module is made

py::object run_without(const py::object& function,
                       const py::object&,
                       const py::object& args,
                       const py::object& kwargs) {
  ExcludeKeysGuard off(kPython);
  py::tuple packed(args);
  PyObject* keywords = kwargs.is_none() ? nullptr : kwargs.ptr();
  return owned(PyObject_Call(function.ptr(), packed.ptr(), keywords));
}
}  // namespace

bool has_torch_dispatch(PyTypeObject* type) {
  PyObject* found = _PyType_Lookup(type, interned<"__torch_dispatch__">());
  return found != nullptr && found != disabled_impl;
}

void settle_protocols(PyTypeObject* type) {
  if (tensor_class == nullptr || !has_torch_dispatch(type)) return;
  PyObject* name = interned<"__torch_function__">();
  if (_PyType_Lookup(type, name) != _PyType_Lookup(tensor_class, name)) return;
  Ref none_of_it = imported("taeda._C", "_disabled_torch_function_impl");
  check_status(PyObject_SetAttr(
      reinterpret_cast<PyObject*>(type), name, none_of_it.get()));
}

PyObject* wrap_for(TensorBase t, PyTypeObject* type) {
  // A handler's own tensor stays what it is.
  if (t.impl()->python_object() != nullptr) return wrap(std::move(t));
  if (has_torch_dispatch(type)) {
    imported("taeda._boxed", "__name__");  // has the kernel of the key
    t.impl()->add_key(DispatchKey::Python);
  } else {
    t.impl()->remove_key(DispatchKey::Python);
  }
  return wrap_as(std::move(t), type);
}

void init_torch_dispatch(PyObject* module) {
  as_module(module).def(
      "_disabled_torch_dispatch_impl",
      run_without,
      "Assigned as __torch_dispatch__, it leaves operators to the backends.",
      py::arg("func"),
      py::arg("types"),
      py::arg("args") = py::tuple(),
      py::arg("kwargs") = py::none());
  disabled_impl = attribute(module, "_disabled_torch_dispatch_impl").release();
}

void bind_torch_dispatch(PyObject* module) {
  as_module(module).def("_has_torch_dispatch", [](py::handle type) {
    return has_torch_dispatch(reinterpret_cast<PyTypeObject*>(type.ptr()));
  });
}

}  // namespace taeda::python
