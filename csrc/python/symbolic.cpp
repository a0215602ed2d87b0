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
  // That module sets what makes one.
  if (symbol_nodes().make == nullptr)
    imported("taeda._shapes", "shared_symbol");
  Ref node(symbol_nodes().make(now));
  return PyObject_CallOneArg(imported("taeda._symbols", "SymInt").get(),
                             node.get());
}

PyObject* new_symbolic_tuple(ArrayRef<SymInt> values) {
  return new_tuple(values.size(), [&](size_t i) { return wrap(values[i]); })
      .release();
}

// The call that Args has bound, made again through the operator's object in
// Python, which takes symbols. The names of its arguments, as the schema has
// them, stand behind the signature's text.
PyObject* call_symbolic(const Args& args) {
  const Overload& overload = args.overload();
  const char* text = overload.signature;
  auto next = [&] { return text += std::strlen(text) + 1; };
  const char* name = next();
  const char* variant = next();
  py::list rows;
  for (int i = 0; i < overload.count; ++i) {
    const char* argument = next();
    if (args[i] == nullptr) continue;
    ArrayRef<PyObject*> list = args.variadic(i);
    Ref value = Ref::borrow(args[i]);
    if (!list.empty()) {
      value =
          new_tuple(list.size(), [&](size_t k) { return Py_NewRef(list[k]); });
    }
    rows.append(
        py::make_tuple(overload.params[i].name, argument, owned(value)));
  }
  py::object call = owned(imported("taeda._symbols", "call_operator"));
  return call(name, variant, rows).release().ptr();
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
