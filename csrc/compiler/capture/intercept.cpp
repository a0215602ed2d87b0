// Calls that graphs hold though the function mode does not see them.
#include <taeda/csrc/compiler/capture/pieces.h>

#include <taeda/aten/core/level.h>
#include <taeda/csrc/autograd/variable.h>

namespace taeda::capture {
namespace {

Ref pack(PyObject* const* args, size_t count) {
  return python::new_tuple(count, [&](size_t i) { return Py_NewRef(args[i]); });
}

Ref pack_named(PyObject* const* values, PyObject* names) {
  Ref out = checked(PyDict_New());
  Py_ssize_t n = names == nullptr ? 0 : PyTuple_GET_SIZE(names);
  for (Py_ssize_t i = 0; i < n; ++i) {
    python::check_status(
        PyDict_SetItem(out.get(), PyTuple_GET_ITEM(names, i), values[i]));
  }
  return out;
}

bool in_set(PyObject* set, PyObject* item) {
  return PySet_Contains(set, item) == 1;
}

// Levels of function transforms -----------------------------------------------

bool is_level(PyObject* o) {
  return in_set(library().level_types.get(), type_of(o));
}

bool is_transform_code(PyObject* file) {
  const char* path = PyUnicode_AsUTF8(file);
  return path != nullptr && strstr(path, "/taeda/_functorch/") != nullptr;
}

// Note [Breaks in transforms]
// A level lives on the thread's stack and in the wrappers of tensors; no part
// of a graph can begin inside of one. Where it must break there, it ends before
// the program's call of the transform, which runs as it is.
void note_level(Capture& c) {
  if (levels().size() <= c.levels_before) {
    c.level_began = -1;
    return;
  }
  if (c.level_began >= 0) return;
  c.level_began = c.count - 1;
  for (size_t i = c.frames.size(); i-- > 1;) {
    PyObject* file = c.frames[i]->info->object()->co_filename;
    if (!is_transform_code(file)) break;
    c.level_began = c.frames[i]->began;
  }
}

// What asks a level and changes nothing is a constant of the graph.
bool asks(PyObject* function) {
  return strcmp(reinterpret_cast<PyCFunctionObject*>(function)->m_ml->ml_name,
                "holds") == 0;
}

Ref call_level(Capture& c,
               PyObject* callable,
               PyObject* args,
               PyObject* kwargs) {
  Ref out;
  {
    Suspended suspended(c);
    out = checked(PyObject_Call(callable, args, kwargs));
  }
  emit(c, callable, args, kwargs, out.get());
  note_level(c);
  return out;
}

// Python functions of the compiler --------------------------------------------

Ref handler_of(PyObject* callable) {
  const Library& lib = library();
  if (PyFunction_Check(callable) || PyType_Check(callable) ||
      PyCFunction_Check(callable)) {
    return Ref::borrow(PyDict_GetItemWithError(lib.handlers.get(), callable));
  }
  return {};
}

bool applies_function(PyObject* callable) {
  if (!PyCFunction_Check(callable)) return false;
  auto* f = reinterpret_cast<PyCFunctionObject*>(callable);
  return f->m_self != nullptr && PyType_Check(f->m_self) &&
         strcmp(f->m_ml->ml_name, "apply") == 0 &&
         PyType_IsSubtype(
             reinterpret_cast<PyTypeObject*>(f->m_self),
             reinterpret_cast<PyTypeObject*>(library().function_base.get()));
}

// Of the tensor, which is the one method with a tensor as its result that does
// not ask for overrides.
bool makes_subclass(PyObject* callable) {
  return PyCFunction_Check(callable) &&
         PyCFunction_GET_SELF(callable) != nullptr &&
         is_tensor(PyCFunction_GET_SELF(callable)) &&
         strcmp(reinterpret_cast<PyCFunctionObject*>(callable)->m_ml->ml_name,
                "as_subclass") == 0;
}

bool lists_subclasses(PyObject* callable) {
  return PyCFunction_Check(callable) &&
         PyCFunction_GET_SELF(callable) != nullptr &&
         PyType_Check(PyCFunction_GET_SELF(callable)) &&
         strcmp(reinterpret_cast<PyCFunctionObject*>(callable)->m_ml->ml_name,
                "__subclasses__") == 0;
}

// A call of one of Python's generators of random numbers from outside: the
// function of its class and the generator go first.
std::vector<PyObject*> call_of_generator(Capture& c,
                                         PyObject* callable,
                                         PyObject* const* args,
                                         size_t count) {
  PyObject* type = library().random_class.get();
  PyObject* self = PyCFunction_Check(callable) ? PyCFunction_GET_SELF(callable)
                   : count > 0                 ? *args++
                                               : nullptr;
  if (self == nullptr || type_of(self) != type || !c.shadow_of(self)) return {};
  if (!PyCFunction_Check(callable)) return {callable, self};
  const char* name =
      reinterpret_cast<PyCFunctionObject*>(callable)->m_ml->ml_name;
  Ref method = python::attribute(type, name);
  c.kept.push_back(method);
  return {method.get(), self};
}

// What handles the call with the callable as its first argument.
Ref handler_with_callable(PyObject* callable) {
  const Library& lib = library();
  if (in_set(lib.operator_types.get(), type_of(callable))) {
    return lib.operator_handler;
  }
  if (PyFunction_Check(callable)) {
    PyObject* own = reinterpret_cast<PyFunctionObject*>(callable)->func_dict;
    PyObject* flag = python::interned<"held_whole">();
    bool whole = own != nullptr && PyDict_Contains(own, flag) == 1;
    return whole ? lib.whole_handler : Ref();
  }
  return applies_function(callable) ? lib.apply_handler : Ref();
}

}  // namespace

Ref intercept(Capture& c,
              PyObject* callable,
              PyObject* const* args,
              size_t count,
              PyObject* names) {
  const Library& lib = library();
  bool of_level = PyCFunction_Check(callable) && count > 0 && is_level(args[0]);
  bool makes_level =
      PyType_Check(callable) && in_set(lib.level_types.get(), callable);
  if (makes_level || (of_level && !asks(callable))) {
    Ref all = pack(args, count);
    return call_level(
        c, callable, all.get(), pack_named(args + count, names).get());
  }
  if (makes_subclass(callable) && count == 1 && names == nullptr) {
    Ref method = python::attribute(lib.tensor.get(), "as_subclass");
    Ref all = checked(PyTuple_Pack(2, PyCFunction_GET_SELF(callable), args[0]));
    return Ref(c.record(method.get(), all.get(), nullptr));
  }
  if (std::vector<PyObject*> all = call_of_generator(c, callable, args, count);
      !all.empty()) {
    size_t named = names == nullptr ? 0 : PyTuple_GET_SIZE(names);
    size_t first = PyCFunction_Check(callable) ? 0 : 1;
    all.insert(all.end(), args + first, args + count + named);
    Suspended suspended(c);
    return checked(PyObject_Vectorcall(
        lib.draw_handler.get(), all.data(), all.size() - named, names));
  }
  if (lists_subclasses(callable) && count == 0 && names == nullptr) {
    return c.subclasses_of(PyCFunction_GET_SELF(callable));
  }
  Ref handler = handler_with_callable(callable);
  bool named_first = handler.get() != nullptr;
  if (!named_first) handler = handler_of(callable);
  if (!handler) return {};
  std::vector<PyObject*> all;
  if (named_first) all.push_back(callable);
  size_t named = names == nullptr ? 0 : PyTuple_GET_SIZE(names);
  all.insert(all.end(), args, args + count + named);
  Ref out;
  {
    Suspended suspended(c);
    out = checked(PyObject_Vectorcall(
        handler.get(), all.data(), count + named_first, names));
  }
  return out.get() == Py_NotImplemented ? Ref() : out;
}

// `cls.__subclasses__()`, which is asked again when the guards are checked.
Ref Capture::subclasses_of(PyObject* cls) {
  Ref name = python::new_text("__subclasses__");
  Ref nothing = checked(Py_BuildValue("(){}"));
  int method = entry.guards.fetch(Do::Attribute, constant(cls), name.get());
  int place = entry.guards.fetch(Do::Called, method, nothing.get());
  Ref found = checked(PyObject_CallMethodNoArgs(cls, name.get()));
  kept.push_back(found);
  return realize(found.get(), place);
}

void emit(Capture& c,
          PyObject* function,
          PyObject* args,
          PyObject* kwargs,
          PyObject* result) {
  if (c.entry.has_pass) {
    Ref name(PyObject_GetAttrString(function, "__qualname__"));
    if (!name) PyErr_Clear();
    c.refuse_after_pass(name ? PyUnicode_AsUTF8(name.get()) : "a call");
  }
  Call call;
  call.function = Ref::borrow(function);
  for (PyObject* each : python::items_of(args)) {
    call.args.push_back(c.object_argument(each));
  }
  if (kwargs != nullptr && PyDict_GET_SIZE(kwargs) > 0) {
    Ref keys = checked(PyDict_Keys(kwargs));
    call.names = checked(PyList_AsTuple(keys.get()));
    for (PyObject* key : python::items_of(call.names.get())) {
      call.args.push_back(c.object_argument(PyDict_GetItem(kwargs, key)));
    }
  }
  c.note_place(call);
  c.note_modes();
  int node = c.entry.graph.add_call(std::move(call));
  if (!is_tensor(result) && !is_array(result) && !python::is_sequence(result) &&
      !is_shared(result)) {
    c.kept.push_back(Ref::borrow(result));
    c.note_value(result, node);
  } else {
    c.note_result(result, node);
  }
}

// Of the compiler's own calls also functions, objects, and nodes by number.
Argument Capture::object_argument(PyObject* value) {
  const Library& lib = library();
  auto node = nodes.find(value);
  if (node != nodes.end()) return {Argument::Node, node->second, {}, {}};
  if (type_of(value) == lib.node_marker.get()) {
    return {Argument::Node, static_cast<int>(PyLong_AsLong(value)), {}, {}};
  }
  Shadow* s = shadow_of(value);
  if (s != nullptr && !PyList_CheckExact(value) && !PyDict_Check(value)) {
    int input = entry.graph.add_input(s->place);
    note_value(value, input);
    return {Argument::Node, input, {}, {}};
  }
  if (PyMethod_Check(value)) {
    Call bind;
    bind.function = Ref::borrow(reinterpret_cast<PyObject*>(&PyMethod_Type));
    bind.args.push_back(object_argument(PyMethod_GET_FUNCTION(value)));
    bind.args.push_back(object_argument(PyMethod_GET_SELF(value)));
    return {Argument::Node, entry.graph.add_call(std::move(bind)), {}, {}};
  }
  bool bound = PyCFunction_Check(value) && is_bound(value);
  PyObject* owner = bound ? PyCFunction_GET_SELF(value) : nullptr;
  if (owner != nullptr && Py_TYPE(owner) != &PyCapsule_Type &&
      !is_shared(owner)) {
    Call get;
    get.function = python::attribute(lib.builtins.get(), "getattr");
    get.args.push_back(object_in_closure(owner));
    get.args.push_back(
        {Argument::Constant, -1, python::attribute(value, "__name__"), {}});
    return {Argument::Node, entry.graph.add_call(std::move(get)), {}, {}};
  }
  if (own_functions.contains(value)) return function_argument(value);
  if (PyTuple_CheckExact(value) || PyList_CheckExact(value)) {
    bool list = PyList_CheckExact(value);
    Argument out{list ? Argument::List : Argument::Tuple, -1, {}, {}};
    if (!list) out.object = Ref::borrow(type_of(value));
    for (PyObject* each : python::items_of(value)) {
      Argument item = object_argument(each);
      out.items.push_back(std::move(item));
    }
    return out;
  }
  if (is_made_inside(value)) return instance_argument(value);
  return argument(value);
}

// An object that the program made meanwhile, of what its attributes are now.
Argument Capture::instance_argument(PyObject* instance) {
  if (!building.insert(instance).second) {
    break_graph("an object that holds itself as an argument of an operator");
  }
  Ref state = attributes_of(instance);
  kept.push_back(state);
  Ref keys = checked(PyDict_Keys(state.get()));
  keys = checked(PyList_AsTuple(keys.get()));
  Argument attributes{Argument::Dict, -1, keys, {}};
  for (PyObject* key : python::items_of(keys.get())) {
    Argument item = object_argument(PyDict_GetItem(state.get(), key));
    attributes.items.push_back(std::move(item));
  }
  building.erase(instance);
  Call make;
  make.function = library().make_instance;
  make.args.push_back(
      {Argument::Constant, -1, Ref::borrow(type_of(instance)), {}});
  make.args.push_back(std::move(attributes));
  return {Argument::Node, entry.graph.add_call(std::move(make)), {}, {}};
}

// Others may write to what a closure holds: it has to be the object itself.
Argument Capture::object_in_closure(PyObject* content) {
  bool mutable_one =
      PyList_Check(content) || PyDict_Check(content) || PyAnySet_Check(content);
  Shadow* s = mutable_one ? shadow_of(content) : nullptr;
  if (mutable_one && s == nullptr) {
    break_graph(std::string("a function that holds a ") +
                Py_TYPE(content)->tp_name + " as an argument of an operator");
  }
  if (s == nullptr || nodes.contains(content)) return object_argument(content);
  int input = entry.graph.add_input(s->place);
  note_value(content, input);
  return {Argument::Node, input, {}, {}};
}

// A function that the program made meanwhile, with what its closure holds now.
Argument Capture::function_argument(PyObject* function) {
  auto* f = reinterpret_cast<PyFunctionObject*>(function);
  bool closed = f->func_closure != nullptr;
  if (f->func_defaults != nullptr || f->func_kwdefaults != nullptr) {
    break_graph("a function with defaults as an argument of an operator");
  }
  if (!closed) return {Argument::Constant, -1, Ref::borrow(function), {}};
  Call make;
  make.function = library().make_closure;
  make.args.push_back({Argument::Constant, -1, Ref::borrow(function), {}});
  for (PyObject* cell : python::items_of(f->func_closure)) {
    if (!own_cells.contains(cell)) {
      // One that an earlier part of the function made is another in each call.
      int place = constant(cell);
      if (entry.guards.step_of(place).what == Do::Constant) {
        make.args.push_back({Argument::Constant, -1, Ref::borrow(cell), {}});
      } else {
        int input = entry.graph.add_input(place);
        make.args.push_back({Argument::Node, input, {}, {}});
      }
      continue;
    }
    PyObject* content = PyCell_GET(cell);
    if (content == nullptr) break_graph("a function whose closure is empty");
    Argument a = object_in_closure(content);
    Call wrap;
    wrap.function = Ref::borrow(reinterpret_cast<PyObject*>(&PyCell_Type));
    wrap.args.push_back(std::move(a));
    int made = entry.graph.add_call(std::move(wrap));
    make.args.push_back({Argument::Node, made, {}, {}});
  }
  return {Argument::Node, entry.graph.add_call(std::move(make)), {}, {}};
}

namespace {

template <class F>
PyObject* in_capture(F f) {
  if (active == nullptr) {
    PyErr_SetString(PyExc_RuntimeError, "no graph is being captured");
    return nullptr;
  }
  try {
    return f(*active);
  } catch (const PythonError&) {
    return nullptr;
  }
}

// What Python hands over as (function, args, kwargs).
struct GivenCall {
  PyObject *function, *args, *kwargs;
  bool read(PyObject* all) {
    return PyArg_ParseTuple(all,
                            "OO!O!",
                            &function,
                            &PyTuple_Type,
                            &args,
                            &PyDict_Type,
                            &kwargs) != 0;
  }
};

// Calls what Python hands over. With a depth of 0
// capture looks at the call again, with 1 it does not.
template <int Depth>
PyObject* call_for_python(PyObject*, PyObject* all) {
  GivenCall call;
  if (!call.read(all)) return nullptr;
  return in_capture([&](Capture& c) {
    Suspended suspended(c, Depth);
    return checked(PyObject_Call(call.function, call.args, call.kwargs))
        .release();
  });
}

// Marks stand on a stack: an inner piece ends before the outer one does.
PyObject* begin_for_python(PyObject*, PyObject*) {
  return in_capture([&](Capture& c) {
    auto mark = std::make_unique<Mark>(begin_piece(c));
    PyObject* out = PyCapsule_New(mark.get(), nullptr, [](PyObject* capsule) {
      delete static_cast<Mark*>(PyCapsule_GetPointer(capsule, nullptr));
    });
    if (out != nullptr) mark.release();
    return out;
  });
}

PyObject* end_for_python(PyObject*, PyObject* all) {
  PyObject *capsule, *outputs, *arguments;
  if (!PyArg_ParseTuple(all,
                        "OO!O!",
                        &capsule,
                        &PyList_Type,
                        &outputs,
                        &PyList_Type,
                        &arguments)) {
    return nullptr;
  }
  auto* mark = static_cast<Mark*>(PyCapsule_GetPointer(capsule, nullptr));
  if (mark == nullptr) return nullptr;
  return in_capture([&](Capture& c) {
    std::vector<int> own;
    for (PyObject* each : python::items_of(arguments)) {
      own.push_back(static_cast<int>(PyLong_AsLong(each)));
    }
    CutPiece cut = end_piece(c, *mark, outputs, own);
    PyObject* marker = library().node_marker.get();
    Ref free = python::new_list(cut.free.size(), [&](size_t i) {
      return PyObject_CallFunction(marker, "i", cut.free[i]);
    });
    return PyTuple_Pack(2, cut.object.get(), free.get());
  });
}

PyObject* argument_for_python(PyObject*, PyObject* tensor) {
  return in_capture([&](Capture& c) {
    int node = c.entry.graph.add_nothing();
    c.kept.push_back(Ref::borrow(tensor));
    c.note_value(tensor, node);
    return PyObject_CallFunction(library().node_marker.get(), "i", node);
  });
}

PyObject* emit_for_python(PyObject*, PyObject* all) {
  PyObject *function, *args, *kwargs, *result;
  if (!PyArg_ParseTuple(all,
                        "OO!O!O",
                        &function,
                        &PyTuple_Type,
                        &args,
                        &PyDict_Type,
                        &kwargs,
                        &result)) {
    return nullptr;
  }
  return in_capture([&](Capture& c) {
    emit(c, function, args, kwargs, result);
    return Py_NewRef(Py_None);
  });
}

PyObject* record_for_python(PyObject*, PyObject* all) {
  GivenCall call;
  if (!call.read(all)) return nullptr;
  return in_capture([&](Capture& c) {
    return c.record(call.function, call.args, call.kwargs);
  });
}

PyObject* break_for_python(PyObject*, PyObject* reason) {
  return in_capture(
      [&](Capture&) -> PyObject* { break_graph(PyUnicode_AsUTF8(reason)); });
}

// An outside object is changed for good while it is captured, once: what was
// looked at of it may be no more.
PyObject* begin_anew(PyObject*, PyObject*) {
  return in_capture([&](Capture& c) -> PyObject* {
    c.again = true;
    break_graph("an outside object was changed for good");
  });
}

// The object outside that an object in here stands for, or this itself.
PyObject* outside(PyObject*, PyObject* o) {
  return in_capture([&](Capture& c) {
    const Shadow* s = c.shadow_of(o);
    return Py_NewRef(s == nullptr ? o : s->outer.get());
  });
}

// Whether calls before this function led to one of the inputs so far.
PyObject* has_history(PyObject*, PyObject*) {
  return in_capture([&](Capture& c) {
    for (const auto& [inner, outer] : c.places_of_tensors) {
      if (!is_tensor(outer.first.get())) continue;
      const TensorBase& t = python::unwrap(outer.first.get());
      if (t.requires_grad() && !autograd::is_leaf(t)) return Py_NewRef(Py_True);
    }
    return Py_NewRef(Py_False);
  });
}

// A size that the elements of an argument decide.
PyObject* new_size(PyObject*, PyObject*) {
  return in_capture([&](Capture& c) {
    int position = -1;
    SymInt made = c.dynamic.unbacked(position, 0);
    c.new_sizes.emplace_back(made.node()->id, position);
    return wrap_symbol(made).release();
  });
}

// The number that a call comes to when the graph runs: of integers, or floats.
PyObject* number_for_python(PyObject*, PyObject* all) {
  PyObject *function, *args;
  int integral;
  if (!PyArg_ParseTuple(
          all, "OO!p", &function, &PyTuple_Type, &args, &integral)) {
    return nullptr;
  }
  return in_capture([&](Capture& c) {
    Call call;
    call.function = Ref::borrow(function);
    for (PyObject* each : python::items_of(args)) {
      call.args.push_back(c.object_argument(each));
    }
    return c.record_number(std::move(call), integral != 0);
  });
}

// The number in a tensor, by the method that reads it; None where it has none.
PyObject* item_for_python(PyObject*, PyObject* all) {
  PyObject *reader, *tensor;
  if (!PyArg_ParseTuple(all, "OO", &reader, &tensor)) return nullptr;
  return in_capture([&](Capture& c) {
    PyObject* number = c.dynamic.settings.scalar_outputs
                           ? c.record_item(reader, tensor)
                           : nullptr;
    return number != nullptr ? number : Py_NewRef(Py_None);
  });
}

// The graph writes to tensors, and to what the object holds.
PyObject* note_changed(PyObject*, PyObject* o) {
  return in_capture([&](Capture& c) {
    c.entry.mutates = true;
    c.changed.insert(o);
    return Py_NewRef(Py_None);
  });
}

PyObject* is_node(PyObject*, PyObject* o) {
  return in_capture(
      [&](Capture& c) { return PyBool_FromLong(c.nodes.contains(o)); });
}

}  // namespace

PyMethodDef piece_functions[] = {
    {"run",
     call_for_python<0>,
     METH_VARARGS,
     "run(function, args, kwargs): a call that is captured."},
    {"quiet",
     call_for_python<1>,
     METH_VARARGS,
     "quiet(function, args, kwargs): a call that leaves no trace."},
    {"begin_piece",
     begin_for_python,
     METH_NOARGS,
     "Where a graph inside of the graph begins."},
    {"end_piece",
     end_for_python,
     METH_VARARGS,
     "end_piece(mark, tensors, arguments): the graph since then and the nodes "
     "it reads besides its arguments."},
    {"argument",
     argument_for_python,
     METH_O,
     "The node of a tensor that stands for an argument of a piece."},
    {"emit",
     emit_for_python,
     METH_VARARGS,
     "emit(function, args, kwargs, result): adds a call."},
    {"record",
     record_for_python,
     METH_VARARGS,
     "record(function, args, kwargs): a call that becomes a node."},
    {"break_graph", break_for_python, METH_O, "Ends the graph here."},
    {"begin_anew",
     begin_anew,
     METH_NOARGS,
     "Captures from the beginning, after a change of outside objects."},
    {"outside", outside, METH_O, "The outside object of one in a capture."},
    {"has_history",
     has_history,
     METH_NOARGS,
     "Whether an input is the result of calls that were recorded."},
    {"new_size",
     new_size,
     METH_NOARGS,
     "A symbol for a size of the result of the call that is recorded."},
    {"number",
     number_for_python,
     METH_VARARGS,
     "number(function, args, integral): the number that the call will be."},
    {"item",
     item_for_python,
     METH_VARARGS,
     "item(reader, tensor): the number that the method will read."},
    {"note_changed",
     note_changed,
     METH_O,
     "Says that the last call changes an outside object."},
    {"is_node", is_node, METH_O, "Whether an object is the value of a node."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace taeda::capture
