// Graphs as backends that were written in Python receive them.
#include <taeda/csrc/compiler/capture/driver.h>

namespace taeda::capture {
namespace {

// Like the argument, with instances of `marker` in place of nodes.
Ref spell(const Argument& a, PyObject* marker) {
  auto items = [&] {
    return python::new_list(a.items.size(), [&](size_t i) {
      return spell(a.items[i], marker).release();
    });
  };
  Ref parts;
  switch (a.kind) {
    case Argument::Node:
      return checked(PyObject_CallFunction(marker, "i", a.node));
    case Argument::Constant:
      return a.object;
    case Argument::List:
      return items();
    case Argument::Tuple:
      parts = items();
      return checked(PyList_AsTuple(parts.get()));
    case Argument::Dict:
      parts = checked(PyDict_New());
      for (size_t i = 0; i < a.items.size(); ++i) {
        Ref value = spell(a.items[i], marker);
        python::check_status(PyDict_SetItem(
            parts.get(), PyTuple_GET_ITEM(a.object.get(), i), value.get()));
      }
      return parts;
    case Argument::Slice:
      break;
  }
  parts = items();
  PyObject** part = PySequence_Fast_ITEMS(parts.get());
  return checked(PySlice_New(part[0], part[1], part[2]));
}

}  // namespace

Ref describe(const Entry& entry, PyObject* marker) {
  const std::vector<Call>& calls = entry.graph.calls();
  Ref nodes = python::new_list(calls.size(), [&](size_t i) {
    const Call& call = calls[i];
    if (call.input >= 0) {
      std::string name = entry.guards.name(call.input);
      return Py_BuildValue(
          "(sO)", name.c_str(), entry.guards.value(call.input));
    }
    Ref args = python::new_list(call.args.size(), [&](size_t k) {
      return spell(call.args[k], marker).release();
    });
    PyObject* names = call.names ? call.names.get() : Py_None;
    return Py_BuildValue("(OOO)", call.function.get(), args.get(), names);
  });
  Ref outputs = python::new_list(entry.outputs.size(), [&](size_t i) {
    return PyLong_FromLong(entry.outputs[i]);
  });
  return checked(PyTuple_Pack(2, nodes.get(), outputs.get()));
}

std::vector<Ref> run_by_backend(Entry& entry, const std::vector<Ref>& places) {
  std::vector<PyObject*> inputs;
  const std::vector<Call>& calls = entry.graph.calls();
  for (const Call& call : calls) {
    if (call.input >= 0) inputs.push_back(places[call.input].get());
  }
  Ref out = checked(PyObject_Vectorcall(
      entry.run_graph.get(), inputs.data(), inputs.size(), nullptr));
  out = checked(PySequence_List(out.get()));
  if (PyList_GET_SIZE(out.get()) !=
      static_cast<Py_ssize_t>(entry.outputs.size())) {
    PyErr_Format(PyExc_RuntimeError,
                 "compile: the backend's function returned %zd values, the "
                 "graph has %zu outputs",
                 PyList_GET_SIZE(out.get()),
                 entry.outputs.size());
    throw PythonError();
  }
  std::vector<Ref> values(calls.size());
  for (size_t i = 0; i < entry.outputs.size(); ++i) {
    values[entry.outputs[i]] = Ref::borrow(PyList_GET_ITEM(out.get(), i));
  }
  return values;
}

}  // namespace taeda::capture
