// Layouts and memory formats.
#include <taeda/csrc/python/dtype.h>

namespace taeda::python {

PyTypeObject* layout_type = nullptr;
PyTypeObject* memory_format_type = nullptr;

namespace {
constexpr int kLayouts = 8;
constexpr int kFormats = 4;
PyObject* layouts[kLayouts];
PyObject* formats[kFormats];

PyObject* qualified(std::string_view name) {
  return new_text(str_cat(library_name(), ".", name)).release();
}
PyObject* layout_repr(PyObject* self) {
  return qualified(layout_name(to_layout(self)));
}
PyObject* layout_reduce(PyObject* self, PyObject*) {
  return new_text(layout_name(to_layout(self))).release();
}
PyObject* format_repr(PyObject* self) {
  return qualified(memory_format_name(to_memory_format(self)));
}
PyObject* format_reduce(PyObject* self, PyObject*) {
  return new_text(memory_format_name(to_memory_format(self))).release();
}
PyObject* same(PyObject* self, PyObject*) { return Py_NewRef(self); }
PyObject* get_module(PyObject*, void*) {
  return new_text(library_name()).release();
}

PyGetSetDef getset[] = {
    {"__module__", get_module, nullptr, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};
PyMethodDef layout_methods[] = {
    {"__reduce__", layout_reduce, METH_NOARGS, nullptr},
    {"__copy__", same, METH_NOARGS, nullptr},
    {"__deepcopy__", same, METH_O, nullptr},
    {nullptr, nullptr, 0, nullptr},
};
PyMethodDef format_methods[] = {
    {"__reduce__", format_reduce, METH_NOARGS, nullptr},
    {"__copy__", same, METH_NOARGS, nullptr},
    {"__deepcopy__", same, METH_O, nullptr},
    {nullptr, nullptr, 0, nullptr},
};
PyType_Slot layout_slots[] = {
    {Py_tp_repr, reinterpret_cast<void*>(layout_repr)},
    {Py_tp_methods, layout_methods},
    {Py_tp_getset, getset},
    {0, nullptr},
};
PyType_Slot format_slots[] = {
    {Py_tp_repr, reinterpret_cast<void*>(format_repr)},
    {Py_tp_methods, format_methods},
    {Py_tp_getset, getset},
    {0, nullptr},
};
PyType_Spec layout_spec = {
    "taeda.layout",
    sizeof(PyLayout),
    0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    layout_slots};
PyType_Spec format_spec = {
    "taeda.memory_format",
    sizeof(PyMemoryFormat),
    0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    format_slots};
}  // namespace

PyObject* layout_object(Layout l) { return layouts[static_cast<int>(l)]; }
PyObject* memory_format_object(MemoryFormat f) {
  return formats[static_cast<int>(f)];
}

void init_enum_types(PyObject* module) {
  layout_type = add_type(module, layout_spec);
  for (int i = 0; i < kLayouts; ++i) {
    layouts[i] = checked(layout_type->tp_alloc(layout_type, 0)).release();
    auto value = static_cast<Layout>(i);
    reinterpret_cast<PyLayout*>(layouts[i])->layout = value;
    std::string name(layout_name(value));
    add_object(module, name.c_str(), layouts[i]);
  }
  memory_format_type = add_type(module, format_spec);
  for (int i = 0; i < kFormats; ++i) {
    PyTypeObject* type = memory_format_type;
    formats[i] = checked(type->tp_alloc(type, 0)).release();
    auto value = static_cast<MemoryFormat>(i);
    reinterpret_cast<PyMemoryFormat*>(formats[i])->format = value;
    std::string name(memory_format_name(value));
    add_object(module, name.c_str(), formats[i]);
  }
}

}  // namespace taeda::python
