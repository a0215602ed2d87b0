#include <taeda/csrc/python/symbolic.h>

#include <taeda/csrc/python/casters.h>
#include <taeda/csrc/python/init.h>

#include <cstring>

namespace taeda::python {

PyTypeObject* sym_int_type = nullptr;

namespace {
SymInt number_in(PyObject* o) {
  return symbol_nodes().value(attribute<"node">(o).get());
}
}  // namespace

SymInt to_symbol(PyObject* o) {
  return is_symbol(o) ? number_in(o) : SymInt(to_int(o));
}

Dims<SymInt> to_symbols(PyObject* o, const char* where) {
  Dims<SymInt> out;
  Ref items(is_symbol(o) ? PyTuple_Pack(1, o) : PySequence_Fast(o, where));
  if (!items) throw PythonError();
  for (PyObject* item : items_of(items.get())) {
    if (!is_symbol(item) && !is_int_like(item) && !PyIndex_Check(item)) {
      raise(PyExc_TypeError,
            "{}: expected tuple of ints, but found element of type {}",
            where,
            type_name_of(item));
    }
    out.push_back(to_symbol(item));
  }
  return out;
}

PyObject* wrap(const SymInt& v) {
  if (!v.is_symbolic()) return PyLong_FromLongLong(v.plain());
  // What is known by now may have made it an integer.
  SymInt now = v + SymInt(0);
  if (!now.is_symbolic()) return PyLong_FromLongLong(now.plain());
  Ref node(symbol_nodes().make(now));
  return PyObject_CallOneArg(imported("taeda._symbols", "SymInt").get(),
                             node.get());
}

PyObject* new_symbolic_tuple(ArrayRef<SymInt> values) {
  return new_tuple(values.size(), [&](size_t i) { return wrap(values[i]); })
      .release();
}
PyObject* new_symbolic_list(ArrayRef<SymInt> values) {
  return new_list(values.size(), [&](size_t i) { return wrap(values[i]); })
      .release();
}

// The call that Args has bound, made again through the operator's object in
// Python, which takes symbols. The names of its arguments, as the schema has
// them, stand behind the signature's text; one that is empty has no place in
// the schema.
PyObject* call_symbolic(const Args& args) {
  const Overload& overload = args.overload();
  const char* text = overload.signature + std::strlen(overload.signature) + 1;
  auto next = [&] {
    const char* part = text;
    text += std::strlen(part) + 1;
    return part;
  };
  const char* name = next();
  const char* variant = next();
  Ref keywords = checked(PyDict_New());
  bool requires_grad = false;
  for (int i = 0; i < overload.count; ++i) {
    const char* argument = next();
    if (args[i] == nullptr) continue;
    if (*argument == '\0') {
      bool is_out = std::strcmp(overload.params[i].name, "out") == 0;
      TAEDA_CHECK_AS(NotImplemented,
                     !is_out || !args.given(i),
                     name,
                     ": out= is not there for calls with symbolic integers");
      bool grad = std::strcmp(overload.params[i].name, "requires_grad") == 0;
      requires_grad |= grad && args.flag(i);
      continue;
    }
    ArrayRef<PyObject*> list = args.variadic(i);
    Ref value = Ref::borrow(args[i]);
    if (!list.empty()) {
      value =
          new_tuple(list.size(), [&](size_t k) { return Py_NewRef(list[k]); });
    }
    check_status(PyDict_SetItemString(keywords.get(), argument, value.get()));
  }
  Ref operation = checked(PyObject_CallFunction(
      imported("taeda._ops", "overload_of").get(), "ss", name, variant));
  Ref none_of_it = checked(PyTuple_New(0));
  Ref out =
      checked(PyObject_Call(operation.get(), none_of_it.get(), keywords.get()));
  if (requires_grad) {
    checked(PyObject_CallMethod(out.get(), "requires_grad_", nullptr));
  }
  return out.release();
}

SymbolNodes& symbol_nodes() {
  static SymbolNodes nodes;
  return nodes;
}

void bind_symbolic(PyObject* module) {
  as_module(module).def("_set_sym_int_type", [](py::handle type) {
    sym_int_type = reinterpret_cast<PyTypeObject*>(Py_NewRef(type.ptr()));
  });
}

}  // namespace taeda::python
