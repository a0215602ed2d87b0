// Numbers and sizes that differ from call to call, as captured code sees them:
// Note [Sizes that differ].
#include <taeda/aten/iter/symbolic.h>
#include <taeda/c10/core/symbolic_geometry.h>
#include <taeda/csrc/compiler/capture/capture.h>

namespace taeda::capture {

// Parameters, and what modules hold.
bool Capture::has_fixed_sizes(PyObject* tensor, int place) const {
  if (dynamic.settings.static_parameters &&
      type_of(tensor) == library().parameter.get()) {
    return true;
  }
  return dynamic.settings.static_members && is_of_module(place);
}

bool Capture::is_of_module(int place) const {
  auto* module = reinterpret_cast<PyTypeObject*>(library().module.get());
  std::set<int> above;
  for (const Step* s = &entry.guards.step_of(place);
       s->what != Do::Slot && s->parent >= 0;
       s = &entry.guards.step_of(s->parent)) {
    above.insert(s->parent);
  }
  for (const auto& s : order) {
    if (above.contains(s->place) &&
        PyObject_TypeCheck(s->outer.get(), module)) {
      return true;
    }
  }
  return false;
}

Ref Capture::number(PyObject* o, int place) {
  if (PyLong_CheckExact(o)) {
    if (dynamic.settings.static_members && is_of_module(place)) return {};
    return dynamic.integer(o, place);
  }
  if (!PyFloat_CheckExact(o) || is_of_module(place) ||
      !dynamic.float_differs(o, place)) {
    return {};
  }
  entry.guards.check(Do::CheckType, place, type_of(o));
  int node = entry.graph.add_input(place);
  dynamic.inputs.push_back({node, -1});
  std::string name = "f" + std::to_string(node);
  Ref inner = checked(
      PyObject_CallFunction(library().float_input.get(), "s", name.c_str()));
  note_value(inner.get(), node);
  places_of_tensors[inner.get()] = {Ref::borrow(o), place};
  kept.push_back(inner);
  return inner;
}

Ref Capture::fixed_number(PyObject* inner) {
  auto at = places_of_tensors.find(inner);
  if (at == places_of_tensors.end()) break_graph("a number from data is read");
  auto [outer, place] = at->second;
  entry.guards.check(Do::CheckEqual, place, outer.get());
  return outer;
}

int Capture::program_of(PyObject* symbol) {
  try {
    return dynamic.program_of(symbol);
  } catch (const Error& e) {
    break_graph(e.what());
  }
}

// Of a number that depends on symbols; a condition is decided.
Argument Capture::symbolic_argument(PyObject* value) {
  if (is_sym_float(value)) {
    Argument out{Argument::Apply, -1, python::attribute(value, "_compute"), {}};
    Ref parts = python::attribute(value, "_parts");
    for (PyObject* each : python::items_of(parts.get())) {
      out.items.push_back(argument(each));
    }
    return out;
  }
  if (type_of(value) == library().sym_int.get()) {
    return {Argument::Size, program_of(value), {}, {}};
  }
  int truth = PyObject_IsTrue(value);
  python::check_status(truth);
  return {Argument::Constant, -1, Ref(PyBool_FromLong(truth)), {}};
}

PyObject* Capture::record_number(Call call, bool integral) {
  refuse_after_pass("a number from a tensor");
  note_place(call);
  note_modes();
  Ref inner;
  if (integral) inner = wrap_symbol(dynamic.unbacked(call.defines));
  int node = entry.graph.add_call(std::move(call));
  if (!integral) {
    std::string text = "zuf" + std::to_string(node);
    inner = checked(
        PyObject_CallFunction(library().float_input.get(), "s", text.c_str()));
  }
  kept.push_back(inner);
  note_value(inner.get(), node);
  return inner.release();
}

PyObject* Capture::record_item(PyObject* reader, PyObject* tensor) {
  const TensorBase& t = python::unwrap(tensor);
  bool integral = is_integral(t.dtype(), /*include_bool=*/false);
  if (!integral && !is_floating(t.dtype())) return nullptr;
  Ref name = python::attribute(reader, "__name__");
  if (PyUnicode_CompareWithASCIIString(name.get(), "item") != 0) {
    integral = PyUnicode_CompareWithASCIIString(name.get(), "__int__") == 0;
  }
  auto [at, added] = items.try_emplace({tensor, t.impl()->version(), reader});
  if (added) {
    Call call;
    call.function = Ref::borrow(reader);
    call.args.push_back(argument(tensor));
    at->second = Ref(record_number(std::move(call), integral));
  }
  return Py_NewRef(at->second.get());
}

// Arguments with numbers in place of the tensors that hold them: bounds of
// slices, or `everywhere` all tensors of one integer.
Ref Capture::with_items(PyObject* value, bool everywhere, bool floats) {
  bool is_slice = PySlice_Check(value);
  bool counts = is_tensor(value) && python::unwrap(value).dim() == 0 &&
                (is_integral(python::unwrap(value).dtype(), false) ||
                 (floats && is_floating(python::unwrap(value).dtype())));
  if (counts && everywhere) {
    Ref reader = python::attribute(library().tensor.get(), "item");
    Ref number(record_item(reader.get(), value));
    return number ? number : Ref::borrow(value);
  }
  if (is_slice) {
    auto* s = reinterpret_cast<PySliceObject*>(value);
    Ref start = with_items(s->start, true), stop = with_items(s->stop, true);
    if (start.get() == s->start && stop.get() == s->stop) {
      return Ref::borrow(value);
    }
    return checked(PySlice_New(start.get(), stop.get(), s->step));
  }
  if (!PyTuple_CheckExact(value) && !PyList_CheckExact(value)) {
    return Ref::borrow(value);
  }
  bool same = true;
  Ref out = python::new_tuple(Py_SIZE(value), [&](size_t i) {
    PyObject* each = PySequence_Fast_ITEMS(value)[i];
    Ref made = with_items(each, everywhere, floats);
    same &= made.get() == each;
    return made.release();
  });
  if (same) return Ref::borrow(value);
  return PyList_CheckExact(value) ? checked(PySequence_List(out.get())) : out;
}

void Capture::record_assertions() {
  for (int program : dynamic.new_assertions()) {
    Call call;
    call.function = library().holds;
    call.args.push_back({Argument::Size, program, {}, {}});
    std::string text = dynamic.text_of_program(program);
    call.args.push_back({Argument::Constant, -1, python::new_text(text), {}});
    note_place(call);
    entry.graph.add_call(std::move(call));
  }
}

// What stands for a result whose sizes the elements decide; null for others.
Ref Capture::counted_result(PyObject* name, PyObject* args, PyObject* kwargs) {
  const Ref& rules =
      dynamic.settings.counted_outputs ? library().counted : library().numbered;
  PyObject* rule = PyDict_GetItem(rules.get(), name);
  if (rule == nullptr) return {};
  new_sizes.clear();
  PyObject* named = kwargs == nullptr ? Py_None : kwargs;
  Suspended suspended(*this);
  // `new_size` makes the first symbol, if there is none.
  dynamic.begin_symbols();
  Dynamic::LayingOut laying_out(dynamic);
  Ref out = checked(PyObject_CallFunctionObjArgs(rule, args, named, nullptr));
  return out.get() == Py_NotImplemented ? Ref() : std::move(out);
}

namespace {

// Calls f(tensor, dim) for each dim that has a symbol.
template <class F>
void each_symbol(PyObject* value, F&& f) {
  if (is_tensor(value)) {
    SymIntArrayRef sizes = sym_sizes(*python::unwrap(value).impl());
    for (size_t d = 0; d < sizes.size(); ++d) {
      if (sizes[d].is_symbolic()) f(value, d, sizes[d].node()->id);
    }
  } else if (python::is_sequence(value)) {
    for (PyObject* each : python::items_of(value)) each_symbol(each, f);
  }
}

}  // namespace

// The call, and for each of its new sizes one that reads it off the result.
PyObject* Capture::record_counted(Call call, Ref out) {
  refuse_after_pass("a size that elements decide");
  offsets_differ = true;  // of many of them; the rules do not say of which
  record_assertions();
  note_place(call);
  note_modes();
  note_result(out.get(), entry.graph.add_call(std::move(call)));
  std::map<symbolic::Id, int> left(new_sizes.begin(), new_sizes.end());
  each_symbol(out.get(), [&](PyObject* tensor, size_t dim, symbolic::Id id) {
    auto at = left.find(id);
    if (at == left.end()) return;
    Call size;
    size.function = python::attribute(library().tensor.get(), "size");
    size.args.push_back(argument(tensor));
    size.args.push_back(
        {Argument::Constant, -1, checked(PyLong_FromSize_t(dim)), {}});
    size.defines = at->second;
    left.erase(at);
    Ref inner = wrap_symbol(sym_sizes(*python::unwrap(tensor).impl())[dim]);
    int node = entry.graph.add_call(std::move(size));
    kept.push_back(inner);
    note_value(inner.get(), node);
  });
  return out.release();
}

// What a float came to when the part was captured. No size depends on it but
// those of the functions that `decides_by_floats` names.
Ref Capture::hint_of_float(PyObject* value) {
  if (is_symbol(value)) {
    Ref node = python::attribute(value, "node");
    return checked(PyObject_CallMethod(node.get(), "hint", nullptr));
  }
  if (!is_sym_float(value)) return Ref::borrow(value);
  auto at = places_of_tensors.find(value);
  if (at != places_of_tensors.end()) return at->second.first;
  if (nodes.contains(value)) return checked(PyFloat_FromDouble(1.5));
  Ref compute = python::attribute(value, "_compute");
  Ref parts = python::attribute(value, "_parts");
  Ref args = python::new_tuple(PyTuple_GET_SIZE(parts.get()), [&](size_t i) {
    return hint_of_float(PyTuple_GET_ITEM(parts.get(), i)).release();
  });
  return checked(PyObject_Call(compute.get(), args.get(), nullptr));
}

Ref Capture::with_float_hints(Ref arguments) {
  bool is_dict = PyDict_Check(arguments.get());
  Ref values = is_dict ? checked(PyDict_Values(arguments.get())) : arguments;
  bool any = false;
  for (PyObject* a : python::items_of(values.get())) any |= is_sym_float(a);
  if (!any) return arguments;
  if (is_dict) {
    Ref out = checked(PyDict_Copy(arguments.get()));
    PyObject *key, *value;
    Py_ssize_t at = 0;
    while (PyDict_Next(arguments.get(), &at, &key, &value)) {
      if (!is_sym_float(value)) continue;
      python::check_status(
          PyDict_SetItem(out.get(), key, hint_of_float(value).get()));
    }
    return out;
  }
  return python::new_tuple(PyTuple_GET_SIZE(arguments.get()), [&](size_t i) {
    PyObject* a = PyTuple_GET_ITEM(arguments.get(), i);
    return is_sym_float(a) ? hint_of_float(a).release() : Py_NewRef(a);
  });
}

}  // namespace taeda::capture
