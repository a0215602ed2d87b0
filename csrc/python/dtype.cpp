// The objects of dtypes, layouts and memory formats.
#include <taeda/csrc/python/init.h>
#include <taeda/csrc/python/values.h>

namespace taeda::python {

PyTypeObject* dtype_type = nullptr;
PyTypeObject* layout_type = nullptr;
PyTypeObject* memory_format_type = nullptr;

namespace {
// Filled at import, constant after that; by value.
PyObject* dtypes[kNumScalarTypes];
PyObject* layouts[8];
PyObject* formats[4];

// What all three kinds of objects have; Name gives a value's name.
template <class T, std::string_view (*Name)(T)>
struct Kind {
  static PyObject* repr(PyObject* self) {
    return new_text(str_cat(library_name(), ".", Name(value_of<T>(self))))
        .release();
  }
  // Pickled as the global NAME of the type's module (as_torch names it anew).
  static PyObject* reduce(PyObject* self, PyObject*) {
    return new_text(Name(value_of<T>(self))).release();
  }

  // The type, and its objects under their names. Not all numbers are values.
  template <size_t N>
  static PyTypeObject* add(PyObject* module,
                           const char* name,
                           const char* doc,
                           PyObject* (&objects)[N]) {
    static PyMethodDef methods[] = {
        {"__reduce__", reduce, METH_NOARGS, nullptr},
        {nullptr, nullptr, 0, nullptr},
    };
    PyTypeObject* type = add_type(
        module,
        name,
        sizeof(PyValue<T>),
        {slot(Py_tp_repr, repr), {Py_tp_methods, methods}, doc_slot(doc)},
        Py_TPFLAGS_DISALLOW_INSTANTIATION);
    for (size_t i = 0; i < N; ++i) {
      auto value = static_cast<T>(i);
      if (Name(value) == "undefined") continue;
      objects[i] = checked(type->tp_alloc(type, 0)).release();
      reinterpret_cast<PyValue<T>*>(objects[i])->value = value;
      add_object(module, std::string(Name(value)).c_str(), objects[i]);
    }
    return type;
  }
};

ScalarType type_of(PyObject* self) { return value_of<ScalarType>(self); }

template <bool (*F)(ScalarType)>
PyObject* fact(PyObject* self, void*) {
  return boolean(F(type_of(self)));
}
PyObject* get_itemsize(PyObject* self, void*) {
  return PyLong_FromSize_t(element_size(type_of(self)));
}
PyGetSetDef dtype_getset[] = {
    {"is_floating_point", fact<is_floating>, nullptr, "Of floats.", nullptr},
    {"is_complex", fact<is_complex>, nullptr, "Of complex numbers.", nullptr},
    {"is_signed", fact<is_signed>, nullptr, "Below 0, too.", nullptr},
    {"itemsize", get_itemsize, nullptr, "Bytes of an element.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};
constexpr std::pair<const char*, ScalarType> kOtherNames[] = {
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

PyObject* layout_object(Layout l) { return layouts[static_cast<int>(l)]; }
PyObject* memory_format_object(MemoryFormat f) {
  return formats[static_cast<int>(f)];
}
PyObject* dtype_object(ScalarType t) { return dtypes[static_cast<int>(t)]; }

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
  raise(PyExc_TypeError, "expected a dtype, got {}", type_name_of(o));
}

void init_dtype(PyObject* module) {
  dtype_type = Kind<ScalarType, dtype_name>::add(
      module, "taeda.dtype", "The element type of a tensor.", dtypes);
  static PyMethodDef no_methods[] = {{nullptr, nullptr, 0, nullptr}};
  add_members(dtype_type, no_methods, dtype_getset);
  for (const auto& [name, type] : kOtherNames) {
    add_object(module, name, dtype_object(type));
  }
  layout_type = Kind<Layout, layout_name>::add(
      module, "taeda.layout", "Dense, or which sparse format.", layouts);
  memory_format_type = Kind<MemoryFormat, memory_format_name>::add(
      module, "taeda.memory_format", "An order of dims in memory.", formats);
}

}  // namespace taeda::python
