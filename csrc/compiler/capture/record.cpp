// Calls of the library, as the function mode that capture enters sees them.
#include <taeda/csrc/compiler/capture/capture.h>

#include <cstring>

namespace taeda::capture {

thread_local Capture* active = nullptr;

namespace {

// Set once by setup(), before anything is captured; the GIL guards it. Never
// destroyed: that would be after the interpreter.
Library& known_library = *new Library();

bool contains(PyObject* set, PyObject* item) {
  int found = PySet_Contains(set, item);
  if (found < 0) PyErr_Clear();
  return found == 1;
}

bool is_device(PyObject* o) {
  return reinterpret_cast<PyObject*>(Py_TYPE(o)) == library().device_type.get();
}

// Stand-ins are on the device "meta", whatever a program asks for.
Ref on_meta(PyObject* args, bool to) {
  bool found = false;
  for (PyObject* a : python::items_of(args)) {
    found |= is_device(a) || (to && PyUnicode_Check(a));
  }
  if (!found) return Ref::borrow(args);
  return python::new_tuple(Py_SIZE(args), [&](size_t i) {
    PyObject* a = PyTuple_GET_ITEM(args, i);
    bool device = is_device(a) || (to && PyUnicode_Check(a));
    return Py_NewRef(device ? library().meta.get() : a);
  });
}

Ref name_of(PyObject* function) {
  Ref name(PyObject_GetAttrString(function, "__name__"));
  if (name && PyUnicode_Check(name.get())) return name;
  PyErr_Clear();
  return python::new_text("");
}

bool is(PyObject* name, const char* text) {
  return PyUnicode_CompareWithASCIIString(name, text) == 0;
}

bool reads_device(PyObject* function) {
  Ref owner(PyObject_GetAttrString(function, "__self__"));
  Ref name = owner ? name_of(owner.get()) : Ref();
  if (!name) {
    PyErr_Clear();
    return false;
  }
  return is(name.get(), "device") || is(name.get(), "is_cpu") ||
         is(name.get(), "is_cuda") || is(name.get(), "is_meta") ||
         is(name.get(), "grad");
}

}  // namespace

const Library& library() { return known_library; }

void set_library(Library lib) { known_library = std::move(lib); }

bool is_tensor(PyObject* o) {
  return PyObject_TypeCheck(
      o, reinterpret_cast<PyTypeObject*>(library().tensor_base.get()));
}

void break_graph(const std::string& reason) {
  if (active != nullptr) {
    active->broken = true;
    active->reason = reason;
  }
  PyErr_SetString(library().break_error.get(), reason.c_str());
  throw PythonError();
}

bool is_break() { return active != nullptr && active->broken; }

Argument Capture::argument(PyObject* value) {
  auto node = nodes.find(value);
  if (node != nodes.end()) return {Argument::Node, node->second, {}, {}};
  if (is_tensor(value)) break_graph("a tensor that capture has not seen made");
  auto items = [&](Argument::Kind kind, Ref object) {
    Argument out{kind, -1, std::move(object), {}};
    for (PyObject* each : python::items_of(value)) {
      out.items.push_back(argument(each));
    }
    return out;
  };
  if (PyTuple_Check(value)) {
    Argument out =
        items(Argument::Tuple,
              Ref::borrow(reinterpret_cast<PyObject*>(Py_TYPE(value))));
    bool constant = true;
    for (const Argument& a : out.items)
      constant &= a.kind == Argument::Constant;
    if (constant) return {Argument::Constant, -1, Ref::borrow(value), {}};
    return out;
  }
  if (PyList_Check(value)) return items(Argument::List, Ref());
  if (PyDict_Check(value)) {
    Ref keys = checked(PyDict_Keys(value));
    Argument out{Argument::Dict, -1, checked(PyList_AsTuple(keys.get())), {}};
    for (PyObject* key : python::items_of(out.object.get())) {
      out.items.push_back(argument(PyDict_GetItem(value, key)));
    }
    return out;
  }
  if (PySlice_Check(value)) {
    auto* s = reinterpret_cast<PySliceObject*>(value);
    Argument out{Argument::Slice, -1, {}, {}};
    for (PyObject* each : {s->start, s->stop, s->step}) {
      out.items.push_back(argument(each));
    }
    return out;
  }
  if (shadows.contains(value)) {
    break_graph(std::string("an object of class ") + Py_TYPE(value)->tp_name +
                " as an argument of a tensor function");
  }
  return {Argument::Constant, -1, Ref::borrow(value), {}};
}

// Names what a call returned; elements of containers are read when needed.
void Capture::note_result(PyObject* value, int node) {
  if (nodes.contains(value)) return;
  if (is_tensor(value)) {
    kept.push_back(Ref::borrow(value));
    nodes[value] = node;
    return;
  }
  if (!python::is_sequence(value)) return;
  for (Py_ssize_t i = 0; i < Py_SIZE(value); ++i) {
    PyObject* each = PySequence_Fast_ITEMS(value)[i];
    if (!is_tensor(each) && !python::is_sequence(each)) continue;
    Call read;
    read.function = library().getitem;
    read.args.push_back({Argument::Node, node, {}, {}});
    read.args.push_back(
        {Argument::Constant, -1, checked(PyLong_FromSsize_t(i)), {}});
    note_result(each, entry.graph.add_call(std::move(read)));
  }
}

namespace {

bool holds_tensor(PyObject* o) {
  if (is_tensor(o)) return true;
  if (!python::is_sequence(o)) return false;
  for (PyObject* each : python::items_of(o)) {
    if (holds_tensor(each)) return true;
  }
  return false;
}

}  // namespace

PyObject* Capture::record(PyObject* function,
                          PyObject* args,
                          PyObject* kwargs) {
  Ref name = name_of(function);
  const Library& lib = library();
  if (contains(lib.readers.get(), name.get())) {
    break_graph(std::string("the value of a tensor is read by ") +
                PyUnicode_AsUTF8(name.get()));
  }
  if (is(name.get(), "__iter__")) {
    Ref rows(record(lib.unbind.get(), args, nullptr));
    return checked(PyObject_GetIter(rows.get())).release();
  }
  bool getter = is(name.get(), "__get__");
  if (getter && reads_device(function)) {
    auto at = places_of_tensors.find(PyTuple_GET_ITEM(args, 0));
    Ref owner = python::attribute(function, "__self__");
    bool grad = is(name_of(owner.get()).get(), "grad");
    if (at == places_of_tensors.end() && !grad) {
      // All on one device for now: that of the inputs.
      return PyObject_GetAttr(lib.cpu_tensor.get(), name_of(owner.get()).get());
    }
    if (at != places_of_tensors.end()) {
      Ref text = name_of(owner.get());
      ++suspended;
      Ref value(PyObject_GetAttr(at->second.first.get(), text.get()));
      --suspended;
      if (!value) throw PythonError();
      if (!grad) return value.release();
      int place =
          entry.guards.fetch(Do::Attribute, at->second.second, text.get());
      kept.push_back(value);
      return realize(value.get(), place).release();
    }
  }
  Ref given = on_meta(args, is(name.get(), "to"));
  Ref named = kwargs == nullptr || kwargs == Py_None
                  ? checked(PyDict_New())
                  : checked(PyDict_Copy(kwargs));
  bool factory = contains(lib.factories.get(), name.get());
  PyObject* device = PyDict_GetItemString(named.get(), "device");
  if (factory || (device != nullptr && device != Py_None)) {
    python::check_status(
        PyDict_SetItemString(named.get(), "device", lib.meta.get()));
  }
  // Containers may change while the function runs.
  Call call;
  call.function = Ref::borrow(function);
  for (PyObject* a : python::items_of(args)) call.args.push_back(argument(a));
  if (kwargs != nullptr && kwargs != Py_None && PyDict_GET_SIZE(kwargs) > 0) {
    Ref keys = checked(PyDict_Keys(kwargs));
    call.names = checked(PyList_AsTuple(keys.get()));
    for (PyObject* key : python::items_of(call.names.get())) {
      call.args.push_back(argument(PyDict_GetItem(kwargs, key)));
    }
  }
  ++suspended;
  // The stand-in is where the tensor will be already.
  Ref out = is(name.get(), "cpu")
                ? Ref::borrow(PyTuple_GET_ITEM(args, 0))
                : Ref(PyObject_Call(function, given.get(), named.get()));
  --suspended;
  if (!out) {
    if (PyErr_ExceptionMatches(PyExc_NotImplementedError)) {
      PyErr_Clear();
      break_graph(std::string("no rule tells the shape of ") +
                  PyUnicode_AsUTF8(name.get()));
    }
    throw PythonError();
  }
  bool made = holds_tensor(out.get());
  if (made || (out.get() == Py_None && !getter)) {
    if (!frames.empty()) {
      Frame& f = *frames.back();
      call.file = Ref::borrow(f.info->object()->co_filename);
      call.line = f.line();
    }
    note_modes();
    int node = entry.graph.add_call(std::move(call));
    note_result(out.get(), node);
  }
  return out.release();
}

void Capture::note_modes() {
  Modes now = current_modes();
  if (now == modes) return;
  bool only_grad =
      now.inference == modes.inference && now.forward == modes.forward;
  modes = now;
  Call call;
  auto add = [&](bool on) {
    Ref value = Ref::borrow(on ? Py_True : Py_False);
    call.args.push_back({Argument::Constant, -1, std::move(value), {}});
  };
  add(now.grad);
  call.function = library().grad_setter;
  if (!only_grad) {
    call.function = library().mode_setter;
    add(now.inference);
    add(now.forward);
  }
  entry.graph.add_call(std::move(call));
}

namespace {

PyObject* torch_function(PyObject*, PyObject* const* args, Py_ssize_t n) {
  // Called as (func, types, args, kwargs).
  Capture* c = active;
  PyObject* kwargs = n > 3 ? args[3] : nullptr;
  if (c == nullptr || c->suspended > 0) {
    PyObject* named = kwargs == Py_None ? nullptr : kwargs;
    return PyObject_Call(args[0], args[2], named);
  }
  try {
    return c->record(args[0], args[2], kwargs);
  } catch (const PythonError&) {
    return nullptr;
  }
}

PyMethodDef recorder_methods[] = {
    {"__torch_function__",
     (PyCFunction)(void (*)(void))torch_function,
     METH_FASTCALL,
     "Records a call of the library in the graph that is captured."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

Ref make_recorder() {
  PyType_Slot slots[] = {{Py_tp_methods, recorder_methods}, {0, nullptr}};
  PyType_Spec spec = {"taeda._capture.Recorder",
                      sizeof(PyObject),
                      0,
                      Py_TPFLAGS_DEFAULT,
                      slots};
  Ref type = checked(PyType_FromSpec(&spec));
  return checked(PyObject_CallNoArgs(type.get()));
}

}  // namespace taeda::capture
