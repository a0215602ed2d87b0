// Calls of the library, as the function mode that capture enters sees them.
#include <taeda/csrc/autograd/variable.h>
#include <taeda/csrc/compiler/capture/pieces.h>

#include <algorithm>
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

// A tensor among the arguments counts as met where something is asked of it.
void Capture::use(PyObject* tensor) {
  auto at = nodes.find(tensor);
  if (at == nodes.end() || entry.graph.calls()[at->second].input < 0) return;
  size_t node = at->second;
  if (is_used.size() <= node) is_used.resize(node + 1);
  if (is_used[node]) return;
  is_used[node] = true;
  used.push_back(at->second);
}

Argument Capture::argument(PyObject* value) {
  use(value);
  auto node = nodes.find(value);
  if (node != nodes.end()) return {Argument::Node, node->second, {}, {}};
  if (is_symbol(value) || is_sym_float(value)) return symbolic_argument(value);
  if (is_tensor(value) || is_array(value)) {
    break_graph("a tensor that capture has not seen made");
  }
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
  if (is_made_inside(value)) {
    break_graph(std::string("an object of class ") + Py_TYPE(value)->tp_name +
                " as an argument of a tensor function");
  }
  pin(value);
  return {Argument::Constant, -1, Ref::borrow(value), {}};
}

bool Capture::is_made_inside(PyObject* value) const {
  return !is_shared(value) && is_plain_instance(value) &&
         !shadows.contains(value);
}

namespace {

bool holds_items(PyObject* o) {
  return python::is_sequence(o) || PyDict_CheckExact(o);
}

}  // namespace

// Names what a call returned; elements of containers are read when needed.
namespace {

// Whether calls with a tensor of this class give tensors of it.
bool passes_itself_on(PyTypeObject* type) {
  auto found_on = [](PyTypeObject* each) {
    return _PyType_Lookup(each, python::interned<"__torch_function__">());
  };
  auto class_of = [](const Ref& r) {
    return reinterpret_cast<PyTypeObject*>(r.get());
  };
  const Library& lib = library();
  return type != class_of(lib.tensor) &&
         found_on(type) != found_on(class_of(lib.parameter));
}

}  // namespace

void Capture::note_result(PyObject* value, int node) {
  if (nodes.contains(value)) return;
  if (is_tensor(value) || is_array(value)) {
    if (is_tensor(value) && passes_itself_on(Py_TYPE(value))) {
      entry.graph.calls()[node].kind = Ref::borrow(type_of(value));
    }
    kept.push_back(Ref::borrow(value));
    nodes[value] = node;
    return;
  }
  auto note_item = [&](PyObject* each, Ref key) {
    if (!is_tensor(each) && !is_array(each) && !holds_items(each)) return;
    Call read;
    read.function = library().getitem;
    read.args.push_back({Argument::Node, node, {}, {}});
    read.args.push_back({Argument::Constant, -1, std::move(key), {}});
    note_result(each, entry.graph.add_call(std::move(read)));
  };
  if (PyDict_CheckExact(value)) {
    PyObject *key, *each;
    Py_ssize_t at = 0;
    while (PyDict_Next(value, &at, &key, &each)) {
      note_item(each, Ref::borrow(key));
    }
  }
  if (!python::is_sequence(value)) return;
  for (Py_ssize_t i = 0; i < Py_SIZE(value); ++i) {
    note_item(PySequence_Fast_ITEMS(value)[i], checked(PyLong_FromSsize_t(i)));
  }
}

namespace {

bool holds_tensor(PyObject* o) {
  if (is_tensor(o)) return true;
  if (!holds_items(o)) return false;
  Ref values =
      PyDict_CheckExact(o) ? checked(PyDict_Values(o)) : Ref::borrow(o);
  for (PyObject* each : python::items_of(values.get())) {
    if (holds_tensor(each)) return true;
  }
  return false;
}

}  // namespace

namespace {

// While a call runs on stand-ins, they are subject to the CPU's autocast.
class StandInAutocast {
 public:
  StandInAutocast() : before_(autocast::settings()) {
    autocast::Settings now = before_;
    uint32_t cpu = uint32_t{1} << static_cast<int>(DeviceType::CPU);
    if ((now.enabled & cpu) == 0) return;
    now.enabled |= uint32_t{1} << static_cast<int>(DeviceType::Meta);
    now.dtypes[static_cast<int>(DeviceType::Meta)] =
        now.dtypes[static_cast<int>(DeviceType::CPU)];
    autocast::restore(now);
    changed_ = true;
  }
  StandInAutocast(const StandInAutocast&) = delete;
  StandInAutocast& operator=(const StandInAutocast&) = delete;
  ~StandInAutocast() {
    if (changed_) autocast::restore(before_);
  }

 private:
  autocast::Settings before_;
  bool changed_ = false;
};

// What a function of the library returns for stand-ins.
Ref call_on_stand_ins(PyObject* function, PyObject* args, PyObject* kwargs) {
  StandInAutocast autocast;
  return Ref(PyObject_Call(function, args, kwargs));
}

}  // namespace

Ref Capture::register_hook(PyObject* function,
                           PyObject* args,
                           PyObject* kwargs) {
  // Not on the stand-in: gradients of the graph would call it.
  ++suspended;
  Ref handle(PyObject_CallNoArgs(library().make_handle.get()));
  --suspended;
  if (!handle) throw PythonError();
  emit(*this, function, args, kwargs, handle.get());
  return handle;
}

// What is asked of the real tensor, since the stand-in has another answer. Null
// where the stand-in's is the right one.
Ref Capture::attribute_of_tensor(PyObject* function, PyObject* tensor) {
  if (!reads_device(function)) return {};
  auto at = places_of_tensors.find(tensor);
  Ref name = name_of(python::attribute(function, "__self__").get());
  bool grad = is(name.get(), "grad");
  if (grad && written_grads.contains(tensor)) return {};
  if (at == places_of_tensors.end()) {
    if (grad) return {};
    auto elsewhere = devices.find(tensor);
    Ref there =
        elsewhere == devices.end() ? library().cpu_tensor : elsewhere->second;
    return checked(PyObject_GetAttr(there.get(), name.get()));
  }
  ++suspended;
  Ref value(PyObject_GetAttr(at->second.first.get(), name.get()));
  --suspended;
  if (!value) throw PythonError();
  if (!grad) return value;
  int place = entry.guards.fetch(Do::Attribute, at->second.second, name.get());
  kept.push_back(value);
  Ref inner = realize(value.get(), place);
  // A pass adds to it.
  if (is_tensor(inner.get())) {
    autograd::set_grad(python::unwrap(tensor), python::unwrap(inner.get()));
  }
  return inner;
}

Ref Capture::device_of(PyObject* tensor) {
  auto input = places_of_tensors.find(tensor);
  auto made = devices.find(tensor);
  if (input == places_of_tensors.end() && made == devices.end()) return {};
  Suspended suspended(*this);
  PyObject* there =
      made != devices.end() ? made->second.get() : input->second.first.get();
  if (python::unwrap(there).impl()->device().is_cpu()) return {};
  return python::attribute(there, "device");
}

// Where a call's result is: where it asks for, or its operands are. Null for
// the CPU.
Ref Capture::device_of_result(PyObject* name,
                              PyObject* args,
                              PyObject* kwargs) {
  if (is(name, "cpu")) return {};
  PyObject* asked = kwargs ? PyDict_GetItemString(kwargs, "device") : nullptr;
  Ref found;
  bool known = false;
  for (PyObject* each : python::items_of(args)) {
    bool says = is_device(each) || (is(name, "to") && PyUnicode_Check(each));
    if (says && asked == nullptr) asked = each;
    bool is_list = PyList_CheckExact(each) || PyTuple_CheckExact(each);
    if (is_list && Py_SIZE(each) > 0) each = PySequence_Fast_ITEMS(each)[0];
    if (!is_tensor(each)) continue;
    // Numbers in tensors go with tensors of any device.
    bool decides =
        !known || is(name, "to") || (!found && python::unwrap(each).dim() > 0);
    known = true;
    if (decides) found = device_of(each);
  }
  if (asked != nullptr && asked != Py_None) found = Ref::borrow(asked);
  bool anywhere = !known && asked == nullptr && !default_device().is_cpu();
  if (anywhere && contains(library().factories.get(), name)) {
    Suspended suspended(*this);
    found = checked(PyObject_CallNoArgs(library().default_device.get()));
  }
  if (!found) return found;
  auto* make = reinterpret_cast<PyObject*>(library().device_type.get());
  Suspended suspended(*this);
  found = checked(PyObject_CallOneArg(make, found.get()));
  Ref kind = python::attribute(found.get(), "type");
  return is(kind.get(), "cpu") ? Ref() : found;
}

// Results that are not on the CPU, with an empty tensor of their device.
void Capture::note_device(PyObject* value, PyObject* device) {
  if (python::is_sequence(value)) {
    for (PyObject* each : python::items_of(value)) note_device(each, device);
  }
  if (!is_tensor(value) || places_of_tensors.contains(value)) return;
  Suspended suspended(*this);
  devices[value] = checked(
      PyObject_CallMethod(library().cpu_tensor.get(), "to", "O", device));
}

// Stand-ins are on one device, so that what moves one gives it back: another
// one in its place.
Ref Capture::moved(Ref out, PyObject* device) {
  Ref before = is_tensor(out.get()) ? device_of(out.get()) : Ref();
  bool same = !before && device == nullptr;
  if (before && device != nullptr) {
    same = PyObject_RichCompareBool(before.get(), device, Py_EQ) == 1;
  }
  if (same || !nodes.contains(out.get())) return out;
  Suspended suspended(*this);
  return checked(PyObject_CallMethod(out.get(), "clone", nullptr));
}

// Before the function runs: it may change containers among its arguments.
Call Capture::call_of(PyObject* function, PyObject* args, PyObject* kwargs) {
  Call call;
  call.function = Ref::borrow(function);
  // What the program allowed in graphs may take objects that it made.
  bool takes_objects = PySet_GET_SIZE(library().allowed.get()) > 0 &&
                       contains(library().allowed.get(), function);
  auto take = [&](PyObject* each) {
    Argument made = takes_objects ? object_argument(each) : argument(each);
    call.args.push_back(std::move(made));
  };
  for (PyObject* a : python::items_of(args)) take(a);
  if (kwargs == nullptr || PyDict_GET_SIZE(kwargs) == 0) return call;
  Ref keys = checked(PyDict_Keys(kwargs));
  call.names = checked(PyList_AsTuple(keys.get()));
  for (PyObject* key : python::items_of(call.names.get())) {
    take(PyDict_GetItem(kwargs, key));
  }
  return call;
}

namespace {

bool decides_by_floats(PyObject* name) {
  return is(name, "arange") || is(name, "range") || is(name, "interpolate") ||
         is(name, "upsample");
}

}  // namespace

namespace {

// Whether the error is that of a stand-in whose number is asked for; clears it.
bool wants_number() {
  PyObject *kind, *value, *trace;
  PyErr_Fetch(&kind, &value, &trace);
  Ref text(value == nullptr ? nullptr : PyObject_Str(value));
  PyErr_Clear();
  const char* said = text ? PyUnicode_AsUTF8(text.get()) : nullptr;
  bool wants =
      said != nullptr &&
      strstr(said, "Tensor.item() cannot be called on meta") != nullptr;
  if (!wants) {
    PyErr_Restore(kind, value, trace);
    return false;
  }
  Py_XDECREF(kind);
  Py_XDECREF(value);
  Py_XDECREF(trace);
  return true;
}

}  // namespace

// Null where a number is read off one of the arguments.
Ref Capture::result_for_stand_ins(PyObject* name,
                                  PyObject* function,
                                  PyObject* args,
                                  PyObject* kwargs) {
  // The stand-in is where the tensor will be already.
  if (is(name, "cpu")) return Ref::borrow(PyTuple_GET_ITEM(args, 0));
  Ref given = on_meta(args, is(name, "to"));
  Ref named = checked(kwargs ? PyDict_Copy(kwargs) : PyDict_New());
  // `normal` of tensors is where these are, and takes no device.
  bool of_tensors = is(name, "normal") &&
                    (holds_tensor(args) || (kwargs && holds_tensor(kwargs)));
  bool factory = contains(library().factories.get(), name) && !of_tensors;
  PyObject* device = PyDict_GetItemString(named.get(), "device");
  if (factory || (device != nullptr && device != Py_None)) {
    python::check_status(
        PyDict_SetItemString(named.get(), "device", library().meta.get()));
  }
  if (!decides_by_floats(name)) {
    given = with_float_hints(std::move(given));
    named = with_float_hints(std::move(named));
  }
  ++suspended;
  Dynamic::LayingOut laying_out(dynamic);
  Ref out = call_on_stand_ins(function, given.get(), named.get());
  --suspended;
  if (out) return out;
  if (PyErr_ExceptionMatches(PyExc_NotImplementedError)) {
    PyErr_Clear();
    break_graph(std::string("no rule tells the shape of ") +
                PyUnicode_AsUTF8(name));
  }
  if (wants_number()) return {};
  throw PythonError();
}

// Factors, which are numbers in all operators, with their numbers in place of
// tensors that hold them; null where there is none.
Ref Capture::factors_with_items(PyObject* kwargs) {
  Ref out;
  Ref reader = python::attribute(library().tensor.get(), "item");
  for (const char* name : {"value", "alpha", "beta"}) {
    PyObject* each = PyDict_GetItemString(kwargs, name);
    bool holds = each && is_tensor(each) && python::unwrap(each).dim() == 0;
    Ref number(holds ? record_item(reader.get(), each) : nullptr);
    if (!number) continue;
    if (!out) out = checked(PyDict_Copy(kwargs));
    python::check_status(PyDict_SetItemString(out.get(), name, number.get()));
  }
  return out;
}

// A call that reads a number off a tensor among its arguments (a size, say):
// again with the number, if the graph has one.
PyObject* Capture::record_with_items(PyObject* name,
                                     PyObject* function,
                                     PyObject* args,
                                     PyObject* kwargs) {
  Ref given = Ref::borrow(args);
  if (dynamic.settings.scalar_outputs) {
    bool factory = contains(library().factories.get(), name);
    Ref named = kwargs ? factors_with_items(kwargs) : Ref();
    bool same = !named;
    if (!named && kwargs) named = Ref::borrow(kwargs);
    // Floats where no integer was it: in place of a tensor a number may make
    // results of another dtype.
    for (bool floats : {false, true}) {
      if (floats && !same) break;
      given = python::new_tuple(PyTuple_GET_SIZE(args), [&](size_t i) {
        PyObject* each = PyTuple_GET_ITEM(args, i);
        bool is_self = i == 0 && !factory;
        Ref made = is_self ? Ref::borrow(each) : with_items(each, true, floats);
        same &= made.get() == each;
        return made.release();
      });
    }
    if (!same) return record(function, given.get(), named.get());
  }
  break_graph(std::string("the value of a tensor is read by ") +
              PyUnicode_AsUTF8(name));
}

// Where such a one begins no guard says, and its stand-in does not know.
bool Capture::is_in_memory_of_input(PyObject* tensor) const {
  const Storage& memory = python::unwrap(tensor).impl()->storage();
  return std::any_of(
      places_of_tensors.begin(), places_of_tensors.end(), [&](const auto& at) {
        return is_tensor(at.first) &&
               python::unwrap(at.first).impl()->storage().get() == memory.get();
      });
}

// Ends the graph at what no stand-in knows.
void Capture::refuse_reading(PyObject* name, PyObject* args) const {
  if (contains(library().readers.get(), name)) {
    break_graph(std::string("the value of a tensor is read by ") +
                PyUnicode_AsUTF8(name));
  }
  if (!is(name, "storage_offset")) return;
  if (offsets_differ) {
    break_graph("elements of a tensor decide where a view begins");
  }
  if (is_in_memory_of_input(PyTuple_GET_ITEM(args, 0))) {
    break_graph("where a tensor from outside begins");
  }
}

PyObject* Capture::record(PyObject* function,
                          PyObject* args,
                          PyObject* kwargs) {
  const Library& lib = library();
  Written as_written = std::exchange(written, {});
  for (PyObject* each : python::items_of(args)) use(each);
  changed_last = {nullptr, -1};
  if (kwargs == Py_None) kwargs = nullptr;
  Ref name = name_of(function);
  if (contains(lib.operator_types.get(), type_of(function))) {
    // An overload's name is that of its operator and its own.
    Ref parts = checked(PyObject_CallMethod(name.get(), "split", "s", "."));
    name = Ref::borrow(PyList_GET_ITEM(parts.get(), 0));
  }
  bool numbers = dynamic.settings.scalar_outputs;
  if (numbers && is(name.get(), "item")) {
    PyObject* number = record_item(function, PyTuple_GET_ITEM(args, 0));
    if (number != nullptr) return number;
  }
  if (numbers && is(name.get(), "tolist")) {
    Suspended suspended(*this);
    Ref list = checked(PyObject_Call(lib.list_handler.get(), args, kwargs));
    if (list.get() != Py_NotImplemented) return list.release();
  }
  Ref given = Ref::borrow(args);
  if (numbers) given = with_items(args, /*everywhere=*/false);
  bool is_as_written = as_written.function == function && given.get() == args &&
                       is_written(as_written);
  args = given.get();
  if (numbers || dynamic.settings.counted_outputs) {
    Ref out = counted_result(name.get(), args, kwargs);
    if (out) {
      return record_counted(call_of(function, args, kwargs), std::move(out));
    }
  }
  bool pass = is(name.get(), "backward") && begin_pass(kwargs);
  if (!pass) refuse_reading(name.get(), args);
  if (is(name.get(), "__iter__")) {
    Ref rows(record(lib.unbind.get(), args, nullptr));
    return checked(PyObject_GetIter(rows.get())).release();
  }
  if (is(name.get(), "register_hook") ||
      is(name.get(), "register_post_accumulate_grad_hook")) {
    return register_hook(function, args, kwargs).release();
  }
  if (is(name.get(), "numpy")) {
    Suspended suspended(*this);
    return checked(PyObject_Call(lib.numpy_handler.get(), args, kwargs))
        .release();
  }
  bool getter = is(name.get(), "__get__");
  PyObject* self = Py_SIZE(args) > 0 ? PyTuple_GET_ITEM(args, 0) : nullptr;
  if (getter) {
    if (Ref value = attribute_of_tensor(function, self)) return value.release();
  }
  Call call = is_as_written ? call_as_written(as_written)
                            : call_of(function, args, kwargs);
  Ref out = result_for_stand_ins(name.get(), function, args, kwargs);
  if (!out) return record_with_items(name.get(), function, args, kwargs);
  Ref device = device_of_result(name.get(), args, kwargs);
  if (is(name.get(), "to") || is(name.get(), "cpu") || is(name.get(), "cuda")) {
    out = moved(std::move(out), device.get());
  }
  record_assertions();
  if (pass) end_pass();
  if (is(name.get(), "__set__")) written_grads.insert(self);
  if (holds_tensor(out.get()) || (out.get() == Py_None && !getter)) {
    note_place(call);
    note_modes();
    note_result(out.get(), entry.graph.add_call(std::move(call)));
    if (device) note_device(out.get(), device.get());
  }
  return out.release();
}

// By a class of tensors that says itself what calls do: its code is seen
// through, with the calls that it makes.
Ref Capture::call_override(PyObject* function,
                           PyObject* types,
                           PyObject* args,
                           PyObject* kwargs) {
  const Library& lib = library();
  PyObject* inherited =
      _PyType_Lookup(reinterpret_cast<PyTypeObject*>(lib.tensor.get()),
                     python::interned<"__torch_function__">());
  for (PyObject* type : python::items_of(types)) {
    PyObject* found = _PyType_Lookup(reinterpret_cast<PyTypeObject*>(type),
                                     python::interned<"__torch_function__">());
    if (found == nullptr || found == inherited) continue;
    // Numbers that differ are no tensors: calls with them are like others.
    if (PyType_IsSubtype(
            reinterpret_cast<PyTypeObject*>(type),
            reinterpret_cast<PyTypeObject*>(lib.sym_float.get()))) {
      continue;
    }
    Ref method = python::attribute(type, "__torch_function__");
    if (!PyMethod_Check(method.get())) continue;
    // This mode was set aside; what the code calls comes here again.
    checked(PyObject_CallOneArg(lib.push_mode.get(), lib.recorder.get()));
    Ref empty = checked(PyDict_New());
    PyObject* named = kwargs && kwargs != Py_None ? kwargs : empty.get();
    Ref out(PyObject_CallFunctionObjArgs(
        method.get(), function, types, args, named, nullptr));
    PyObject *kind, *value, *trace;
    PyErr_Fetch(&kind, &value, &trace);
    checked(PyObject_CallNoArgs(lib.pop_mode.get()));
    PyErr_Restore(kind, value, trace);
    if (!out) throw PythonError();
    if (out.get() != Py_NotImplemented) return out;
  }
  return {};
}

void Capture::note_place(Call& call) const {
  if (frames.empty()) return;
  const Frame& f = *frames.back();
  call.file = Ref::borrow(f.info->object()->co_filename);
  call.line = f.line();
}

void Capture::note_modes() {
  Modes now = current_modes();
  if (now == modes) return;
  Modes before = std::exchange(modes, now);
  auto add = [&](const Ref& function, const Ref& args) {
    Call call;
    call.function = function;
    for (PyObject* each : python::items_of(args.get())) {
      call.args.push_back({Argument::Constant, -1, Ref::borrow(each), {}});
    }
    entry.graph.add_call(std::move(call));
  };
  auto boolean = [](bool on) { return on ? Py_True : Py_False; };
  const Library& lib = library();
  if (now.inference != before.inference || now.forward != before.forward) {
    add(lib.mode_setter,
        checked(PyTuple_Pack(3,
                             boolean(now.grad),
                             boolean(now.inference),
                             boolean(now.forward))));
  } else if (now.grad != before.grad) {
    add(lib.grad_setter, checked(PyTuple_Pack(1, boolean(now.grad))));
  }
  if (!now.has_same_autocast(before)) {
    add(lib.autocast_setter, arguments_of_autocast(now));
  }
  if (now.default_dtype != before.default_dtype) {
    Ref dtype = checked(PyObject_CallNoArgs(lib.default_dtype.get()));
    add(lib.default_dtype_setter, checked(PyTuple_Pack(1, dtype.get())));
  }
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
    Ref own = c->call_override(args[0], args[1], args[2], kwargs);
    if (own) return own.release();
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
