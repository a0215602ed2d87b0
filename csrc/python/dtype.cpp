#include <taeda/csrc/python/dtype.h>

namespace taeda::python {

PyTypeObject* dtype_type = nullptr;

namespace {
PyObject* objects[kNumScalarTypes];

ScalarType type_of(PyObject* self) {
  return reinterpret_cast<PyDtype*>(self)->type;
}

PyObject* repr(PyObject* self) {
  std::string text = library_name();
  text.push_back('.');
  text.append(dtype_name(type_of(self)));
  return new_text(text).release();
}
// Pickled as the global taeda.NAME.
PyObject* reduce(PyObject* self, PyObject*) {
  return new_text(dtype_name(type_of(self))).release();
}
PyObject* get_floating(PyObject* self, void*) {
  return boolean(is_floating(type_of(self)));
}
PyObject* get_complex(PyObject* self, void*) {
  return boolean(is_complex(type_of(self)));
}
PyObject* get_signed(PyObject* self, void*) {
  return boolean(is_signed(type_of(self)));
}
PyObject* get_itemsize(PyObject* self, void*) {
  return PyLong_FromSize_t(element_size(type_of(self)));
}
PyObject* get_module(PyObject*, void*) {
  return new_text(library_name()).release();
}
PyObject* to_real(PyObject* self, PyObject*) {
  return Py_NewRef(dtype_object(real_type_of(type_of(self))));
}
PyObject* to_complex(PyObject* self, PyObject*) {
  return guarded(
      [&] { return Py_NewRef(dtype_object(complex_type_of(type_of(self)))); });
}
PyObject* same(PyObject* self, PyObject*) { return Py_NewRef(self); }

PyGetSetDef getset[] = {
    {"is_floating_point", get_floating, nullptr, nullptr, nullptr},
    {"is_complex", get_complex, nullptr, nullptr, nullptr},
    {"is_signed", get_signed, nullptr, nullptr, nullptr},
    {"itemsize", get_itemsize, nullptr, nullptr, nullptr},
    {"__module__", get_module, nullptr, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};
PyMethodDef methods[] = {
    {"__reduce__", reduce, METH_NOARGS, nullptr},
    {"__copy__", same, METH_NOARGS, nullptr},
    {"__deepcopy__", same, METH_O, nullptr},
    {"to_real", to_real, METH_NOARGS, "The dtype of the real part."},
    {"to_complex", to_complex, METH_NOARGS, "The complex dtype of that width."},
    {nullptr, nullptr, 0, nullptr},
};
PyType_Slot slots[] = {
    {Py_tp_repr, reinterpret_cast<void*>(repr)},
    {Py_tp_getset, getset},
    {Py_tp_methods, methods},
    {Py_tp_doc, const_cast<char*>("The element type of a tensor.")},
    {0, nullptr},
};
PyType_Spec spec = {"taeda.dtype",
                    sizeof(PyDtype),
                    0,
                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                    slots};

struct OtherName {
  const char* name;
  ScalarType type;
};
constexpr OtherName kOtherNames[] = {
    {"float", kFloat},
    {"double", kDouble},
    {"half", kHalf},
    {"long", kLong},
    {"int", kInt},
    {"short", kShort},
    {"cfloat", kComplexFloat},
    {"cdouble", kComplexDouble},
    {"chalf", kComplexHalf},
};
}  // namespace

PyObject* dtype_object(ScalarType t) { return objects[static_cast<int>(t)]; }

bool is_dtype_like(PyObject* o) {
  return Py_TYPE(o) == dtype_type ||
         o == reinterpret_cast<PyObject*>(&PyFloat_Type) ||
         o == reinterpret_cast<PyObject*>(&PyLong_Type) ||
         o == reinterpret_cast<PyObject*>(&PyBool_Type) ||
         o == reinterpret_cast<PyObject*>(&PyComplex_Type);
}

ScalarType to_dtype(PyObject* o) {
  if (Py_TYPE(o) == dtype_type) return type_of(o);
  if (o == reinterpret_cast<PyObject*>(&PyFloat_Type)) return kDouble;
  if (o == reinterpret_cast<PyObject*>(&PyLong_Type)) return kLong;
  if (o == reinterpret_cast<PyObject*>(&PyBool_Type)) return kBool;
  if (o == reinterpret_cast<PyObject*>(&PyComplex_Type)) return kComplexDouble;
  raise(PyExc_TypeError,
        str_cat("expected a dtype, got ", Py_TYPE(o)->tp_name));
}

void init_dtype(PyObject* module) {
  dtype_type = add_type(module, spec);
#define _(type_name, cpp, number, text)                                     \
  {                                                                         \
    Ref object = checked(dtype_type->tp_alloc(dtype_type, 0));              \
    reinterpret_cast<PyDtype*>(object.get())->type = ScalarType::type_name; \
    add_object(module, text, object.get());                                 \
    objects[number] = object.release();                                     \
  }
  TAEDA_FORALL_TYPES(_)
#undef _
  for (const OtherName& other : kOtherNames) {
    add_object(module, other.name, dtype_object(other.type));
  }
}

}  // namespace taeda::python
