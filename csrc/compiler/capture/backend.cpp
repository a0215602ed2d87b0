// Graphs as backends that were written in Python receive them.
#include <taeda/csrc/compiler/capture/driver.h>

#include <algorithm>

namespace taeda::capture {
namespace {

// Like the argument, with instances of `marker` in place of nodes.
Ref spell(const Argument& a, PyObject* marker, const Entry* entry) {
  auto items = [&] {
    return python::new_list(a.items.size(), [&](size_t i) {
      return spell(a.items[i], marker, entry).release();
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
        Ref value = spell(a.items[i], marker, entry);
        python::check_status(PyDict_SetItem(
            parts.get(), PyTuple_GET_ITEM(a.object.get(), i), value.get()));
      }
      return parts;
    case Argument::Size:
      return checked(PyObject_CallFunction(
          library().size_marker.get(),
          "s",
          entry->dynamic->text_of_program(a.node).c_str()));
    case Argument::Apply:
      parts = items();
      parts = checked(PyList_AsTuple(parts.get()));
      return checked(PyObject_CallFunctionObjArgs(
          library().apply_marker.get(), a.object.get(), parts.get(), nullptr));
    case Argument::Slice:
      break;
  }
  parts = items();
  PyObject** part = PySequence_Fast_ITEMS(parts.get());
  return checked(PySlice_New(part[0], part[1], part[2]));
}

}  // namespace

Ref describe(const Call& call, PyObject* marker, const Entry* entry) {
  Ref args = python::new_list(call.args.size(), [&](size_t k) {
    return spell(call.args[k], marker, entry).release();
  });
  PyObject* names = call.names ? call.names.get() : Py_None;
  if (entry != nullptr && call.defines >= 0) {
    Ref symbol = entry->dynamic->symbol_at(call.defines);
    return checked(Py_BuildValue(
        "(OOOO)", call.function.get(), args.get(), names, symbol.get()));
  }
  return checked(
      Py_BuildValue("(OOO)", call.function.get(), args.get(), names));
}

Ref variables_of(const std::vector<Call>& calls) {
  return python::new_list(calls.size(), [&](size_t i) {
    PyObject* name = calls[i].variable.get();
    return Py_NewRef(name == nullptr ? Py_None : name);
  });
}

namespace {

// Tensors and numbers that are read, and symbols that something depends on.
void choose_inputs(Entry& entry) {
  entry.inputs.clear();
  Dynamic& dynamic = *entry.dynamic;
  // A symbol comes before the first tensor that has it, in the order of both.
  bool symbols = std::any_of(dynamic.inputs.begin(),
                             dynamic.inputs.end(),
                             [](const GraphInput& i) { return i.node < 0; });
  std::unordered_map<int, size_t> ranks;
  for (int node : entry.used) ranks.emplace(node, ranks.size());
  auto rank = [&](const GraphInput& i) {
    auto at = ranks.find(i.node);
    return at == ranks.end() ? ranks.size() : at->second;
  };
  if (!symbols) {
    std::stable_sort(dynamic.inputs.begin(),
                     dynamic.inputs.end(),
                     [&](const GraphInput& a, const GraphInput& b) {
                       return rank(a) < rank(b);
                     });
  }
  std::set<int> places;
  for (const GraphInput& i : dynamic.inputs) {
    bool read = i.node >= 0 && entry.graph.is_read(i.node);
    if (read) places.insert(entry.graph.calls()[i.node].input);
  }
  for (const GraphInput& i : dynamic.inputs) {
    bool read = i.node >= 0 ? entry.graph.is_read(i.node)
                            : dynamic.is_needed(i.symbol, places);
    if (read) entry.inputs.push_back(i);
  }
  // Objects that calls hold whole, which have no sizes.
  std::set<int> listed;
  for (const GraphInput& i : entry.inputs) listed.insert(i.node);
  const std::vector<Call>& calls = entry.graph.calls();
  for (size_t i = 0; i < calls.size(); ++i) {
    int node = static_cast<int>(i);
    if (calls[i].input < 0 || listed.contains(node)) continue;
    if (entry.graph.is_read(i)) entry.inputs.push_back({node, -1});
  }
}

Ref describe_input(const Entry& entry, const GraphInput& input) {
  if (input.node >= 0) return checked(PyLong_FromLong(input.node));
  const Dynamic& dynamic = *entry.dynamic;
  int place = dynamic.place_of_integer(input.symbol);
  std::string symbol = dynamic.name_of_symbol(input.symbol);
  std::string name = place < 0 ? symbol : entry.guards.name(place);
  return checked(Py_BuildValue("(ssN)",
                               name.c_str(),
                               symbol.c_str(),
                               dynamic.symbol_at(input.symbol).release()));
}

}  // namespace

Ref describe(Entry& entry, PyObject* marker) {
  choose_inputs(entry);
  const std::vector<Call>& calls = entry.graph.calls();
  Ref nodes = python::new_list(calls.size(), [&](size_t i) {
    const Call& call = calls[i];
    if (call.input >= 0) {
      // An input that nothing reads keeps its number and is not given.
      if (!entry.graph.is_read(i)) return Py_NewRef(Py_None);
      std::string name = entry.guards.name(call.input);
      Ref geometry = entry.dynamic->geometry_at(call.input);
      return Py_BuildValue("(sOO)",
                           name.c_str(),
                           entry.guards.value(call.input),
                           geometry.get());
    }
    if (!call.function) return Py_NewRef(Py_None);
    return describe(call, marker, &entry).release();
  });
  Ref outputs = python::new_list(entry.outputs.size(), [&](size_t i) {
    return PyLong_FromLong(entry.outputs[i]);
  });
  Ref inputs = python::new_list(entry.inputs.size(), [&](size_t i) {
    return describe_input(entry, entry.inputs[i]).release();
  });
  Ref sizes = python::new_list(entry.size_outputs.size(), [&](size_t i) {
    std::string text = entry.dynamic->text_of_program(entry.size_outputs[i]);
    return python::new_text(text).release();
  });
  Ref variables = variables_of(calls);
  return checked(PyTuple_Pack(5,
                              nodes.get(),
                              outputs.get(),
                              inputs.get(),
                              sizes.get(),
                              variables.get()));
}

std::vector<Ref> run_by_backend(Entry& entry,
                                std::span<const Ref> places,
                                SizeValues& sizes) {
  SmallVector<Ref, 4> numbers;
  SmallVector<PyObject*, 16> args;
  const std::vector<Call>& calls = entry.graph.calls();
  for (const GraphInput& i : entry.inputs) {
    if (i.node >= 0) {
      args.push_back(places[calls[i.node].input].get());
      continue;
    }
    numbers.push_back(checked(PyLong_FromLongLong(sizes.symbols.at(i.symbol))));
    args.push_back(numbers.back().get());
  }
  Ref out = checked(PyObject_Vectorcall(
      entry.run_graph.get(), args.data(), args.size(), nullptr));
  out = checked(PySequence_Fast(
      out.get(), "compile: the backend's function returned no sequence"));
  PyObject** found = PySequence_Fast_ITEMS(out.get());
  size_t tensors = entry.outputs.size();
  size_t expected = tensors + entry.size_outputs.size();
  if (PySequence_Fast_GET_SIZE(out.get()) !=
      static_cast<Py_ssize_t>(expected)) {
    PyErr_Format(PyExc_RuntimeError,
                 "compile: the backend's function returned %zd values, the "
                 "graph has %zu outputs",
                 PySequence_Fast_GET_SIZE(out.get()),
                 expected);
    throw PythonError();
  }
  std::vector<Ref> values(calls.size());
  for (size_t i = 0; i < tensors; ++i) {
    int node = entry.outputs[i];
    values[node] = Ref::borrow(found[i]);
    if (calls[node].kind && type_of(found[i]) == library().tensor.get()) {
      values[node] =
          checked(call_method(found[i], "as_subclass", calls[node].kind.get()));
    }
    if (calls[node].defines >= 0) {
      sizes.define(calls[node].defines, values[node].get());
    }
  }
  sizes.given.resize(entry.programs.size());
  for (size_t i = tensors; i < expected; ++i) {
    sizes.given[entry.size_outputs[i - tensors]] = Ref::borrow(found[i]);
  }
  return values;
}

}  // namespace taeda::capture
