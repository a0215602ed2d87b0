#include <taeda/csrc/python/return_types.h>

#include <taeda/csrc/python/casters.h>
#include <taeda/csrc/python/init.h>

#include <cstring>
#include <map>

namespace taeda::python {

namespace {
// "taeda.return_types.max(\nvalues=...,\nindices=...)"
PyObject* repr(PyObject* self) {
  return guarded([&] {
    std::string_view name = type_name_of(self);
    std::string fields;
    const PyMemberDef* member = Py_TYPE(self)->tp_members;
    for (PyObject* item : items_of(self)) {
      fields += fields.empty() ? "" : ",\n";
      fields += str_cat(member++->name, "=", repr_of(item));
    }
    name.remove_prefix(name.rfind('.') + 1);
    std::string place = str_cat(library_name(), ".return_types.", name);
    return new_text(str_cat(place, "(\n", fields, ")")).release();
  });
}

// Those of all operators, by name.
std::map<std::string_view, StructType*> struct_types() {
  std::map<std::string_view, StructType*> out;
  for (auto* const* shard = function_shards; *shard != nullptr; ++shard) {
    StructType* const* s = (*shard)->structs;
    for (; *s != nullptr; ++s) out.emplace((*s)->name, *s);
  }
  return out;
}

// The type of an operator's results.
py::object return_type(std::string_view name) {
  auto all = struct_types();
  auto found = all.find(name);
  if (found == all.end()) raise(PyExc_KeyError, "{}", name);
  return py::reinterpret_borrow<py::object>(
      reinterpret_cast<PyObject*>(struct_type(*found->second)));
}
std::vector<std::string_view> return_type_names() {
  std::vector<std::string_view> out;
  for (const auto& [name, type] : struct_types()) out.push_back(name);
  return out;
}
}  // namespace

PyTypeObject* struct_type(StructType& type) {
  if (type.type != nullptr) return type.type;
  std::vector<PyStructSequence_Field> fields;
  for (const char* f = type.fields; *f != '\0'; f += std::strlen(f) + 1) {
    fields.push_back({f, nullptr});
  }
  int count = static_cast<int>(fields.size());
  fields.push_back({nullptr, nullptr});
  // The type keeps the pointer to its name.
  auto* name =
      new std::string(str_cat(library_name(), ".return_types.", type.name));
  PyStructSequence_Desc description = {
      name->c_str(), nullptr, fields.data(), count};
  PyTypeObject* made = PyStructSequence_NewType(&description);
  if (made == nullptr) throw PythonError();
  made->tp_repr = repr;
  type.type = made;
  return made;
}

PyObject* wrap_struct(StructType& type, PyObject* sequence) {
  Ref items(PySequence_Fast(Ref(sequence).get(), "expected a tuple"));
  if (!items) throw PythonError();
  Ref out = checked(PyStructSequence_New(struct_type(type)));
  Py_ssize_t i = 0;
  for (PyObject* item : items_of(items.get())) {
    PyStructSequence_SetItem(out.get(), i++, Py_NewRef(item));
  }
  return out.release();
}

void bind_return_types(PyObject* module) {
  py::module_ m = as_module(module);
  m.def("_return_type", return_type);
  m.def("_return_type_names", return_type_names);
}

}  // namespace taeda::python
