// The extension module taeda._boxed, loaded with the first operator that is
// called boxed, transform, or mode or class of __torch_dispatch__.
#include <taeda/csrc/boxed/module.h>

#include <taeda/csrc/python/lent.h>

namespace taeda::python {

namespace {
// An argument of a boxed call as an object, for the compiler's module.
PyObject* object_of(const IValue& v, const ArgInfo& info) {
  return to_object(v, kind_of(info)).release();
}
}  // namespace

}  // namespace taeda::python

PYBIND11_MODULE(_boxed, m) {
  using namespace taeda::python;
  borrow_from_native();
  bind_library(m);
  bind_torch_dispatch(m);
  bind_known_calls(m);
  bind_node_values(m);
  bind_levels(m);
  m.attr("_to_object") = py::capsule(reinterpret_cast<void*>(object_of),
                                     "taeda._boxed._to_object");
}
