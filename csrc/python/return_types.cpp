#include <taeda/csrc/python/init.h>
#include <taeda/csrc/python/return_types.h>

#include <taeda/csrc/python/arg_parser.h>

#include <cstring>

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
    return new_text(
               message(
                   "{}.return_types.{}(\n{})", library_name(), name, fields))
        .release();
  });
}

template <class F>
void for_each_struct(F&& f) {
  for (auto* const* shard = function_shards; *shard != nullptr; ++shard) {
    for (StructType* const* s = (*shard)->structs; *s != nullptr; ++s) f(**s);
  }
}
// The type of an operator's results; KeyError if it has none.
PyObject* find_return_type(PyObject*, PyObject* name) {
  return guarded([&] {
    std::string_view wanted = utf8(name);
    PyTypeObject* found = nullptr;
    for_each_struct([&](StructType& s) {
      if (found == nullptr && wanted == s.name) found = struct_type(s);
    });
    if (found == nullptr) raise(PyExc_KeyError, "{}", wanted);
    return Py_NewRef(reinterpret_cast<PyObject*>(found));
  });
}
PyObject* names(PyObject*, PyObject*) {
  Ref out(PyList_New(0));
  for_each_struct(
      [&](StructType& s) { PyList_Append(out.get(), new_text(s.name).get()); });
  return out.release();
}
PyMethodDef functions[] = {
    {"_return_type", find_return_type, METH_O, nullptr},
    {"_return_type_names", names, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};
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
  auto* name = new std::string(str_cat("taeda.return_types.", type.name));
  PyStructSequence_Desc description = {
      name->c_str(), nullptr, fields.data(), count};
  PyTypeObject* made = PyStructSequence_NewType(&description);
  if (made == nullptr) throw PythonError();
  made->tp_repr = repr;
  check_status(PyObject_SetAttrString(reinterpret_cast<PyObject*>(made),
                                      "__module__",
                                      new_text("taeda.return_types").get()));
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

void init_return_types(PyObject* module) {
  check_status(PyModule_AddFunctions(module, functions));
}

}  // namespace taeda::python
