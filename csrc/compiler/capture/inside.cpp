// Outside objects as the captured code sees them.
#include <taeda/csrc/compiler/capture/capture.h>

#include <taeda/c10/core/tensor_impl.h>

namespace taeda::capture {

int Capture::constant(PyObject* object) {
  auto [at, added] = places_of_constants.try_emplace(object, 0);
  if (added) at->second = entry.guards.fetch(Do::Constant, -1, object);
  return at->second;
}

Shadow* Capture::shadow_of(PyObject* inner) {
  auto at = shadows.find(inner);
  return at == shadows.end() ? nullptr : at->second;
}

void Capture::note_class(PyTypeObject* type) {
  bool may_change = (type->tp_flags & Py_TPFLAGS_HEAPTYPE) != 0;
  if (!may_change || !noted_classes.insert(type).second) return;
  entry.guards.check_class(constant(reinterpret_cast<PyObject*>(type)), type);
}

Ref Capture::realize(PyObject* o, int place) {
  Guards& guards = entry.guards;
  if (is_singleton(o)) {
    guards.check(Do::CheckIs, place, o);
    return Ref::borrow(o);
  }
  if (is_value(o)) {
    if (Ref inner = number(o, place)) return inner;
    guards.check(Do::CheckEqual, place, o);
    return Ref::borrow(o);
  }
  note_class(Py_TYPE(o));
  if (PyType_Check(o)) note_class(reinterpret_cast<PyTypeObject*>(o));
  auto found = known.find(o);
  if (found != known.end()) {
    if (found->second.second != place) {
      guards.check(Do::CheckSame, place, nullptr, found->second.second);
    }
    return found->second.first;
  }
  if (shadows.contains(o)) return Ref::borrow(o);
  if (is_tensor(o)) return tensor(o, place);
  if (PyCFunction_Check(o) && is_bound(o)) return bound_method(o, place);
  // What is imported meanwhile is no business of a graph.
  bool modules = o == PyImport_GetModuleDict();
  if (PyFunction_Check(o)) {
    places_of_functions.try_emplace(o, place);
    if (is_made_anew(o, place)) return function_made_anew(o, place);
  }
  if (modules || is_transparent(o) || is_enum(o)) {
    guards.check(Do::CheckIs, place, o);
    return Ref::borrow(o);
  }
  guards.check(Do::CheckType, place, type_of(o));
  return shadow(o, place);
}

namespace {

// Classes of tensors, but those that have operators of their own.
bool has_stand_in(PyTypeObject* type) {
  const Library& lib = library();
  if (reinterpret_cast<PyObject*>(type) == lib.tensor.get() ||
      reinterpret_cast<PyObject*>(type) == lib.parameter.get()) {
    return true;
  }
  return PyType_IsSubtype(type,
                          reinterpret_cast<PyTypeObject*>(lib.tensor.get())) &&
         _PyType_Lookup(type, python::interned<"__torch_dispatch__">()) ==
             _PyType_Lookup(reinterpret_cast<PyTypeObject*>(lib.tensor.get()),
                            python::interned<"__torch_dispatch__">());
}

}  // namespace

namespace {

// Whether some attribute led to it: it is met when that is read.
bool hangs_on_object(const Guards& guards, int place) {
  while (place >= 0) {
    const Step& s = guards.step_of(place);
    if (s.what == Do::InstanceItem || s.what == Do::Attribute) return true;
    if (s.what == Do::Slot || s.what == Do::Content) return false;
    place = s.parent;
  }
  return false;
}

}  // namespace

Ref Capture::tensor(PyObject* outer, int place) {
  const Library& lib = library();
  if (!has_stand_in(Py_TYPE(outer))) {
    break_graph(std::string("a tensor of class ") + Py_TYPE(outer)->tp_name);
  }
  // A strided stand-in would answer for it what it is not (`is_sparse`).
  if (python::unwrap(outer).layout() != Layout::Strided) {
    break_graph("a sparse tensor");
  }
  TensorFacts& facts = entry.guards.check_tensor(place, outer);
  Dynamic::Geometry geometry =
      dynamic.geometry_of(outer, place, has_fixed_sizes(outer, place));
  Ref sizes = Ref::borrow(Py_None), strides = Ref::borrow(Py_None);
  if (geometry.symbolic) {
    facts.leave(geometry.sizes, geometry.strides);
    sizes = wrap_symbols(geometry.sizes);
    strides = wrap_symbols(geometry.strides);
  }
  ++suspended;
  Ref inner(PyObject_CallFunctionObjArgs(
      lib.empty_strided.get(), outer, sizes.get(), strides.get(), nullptr));
  --suspended;
  if (!inner) throw PythonError();
  known[outer] = {inner, place};
  dynamic.inputs.push_back({entry.graph.add_input(place), -1});
  note_value(inner.get(), static_cast<int>(entry.graph.calls().size()) - 1);
  places_of_tensors[inner.get()] = {Ref::borrow(outer), place};
  if (hangs_on_object(entry.guards, place)) use(inner.get());
  versions.emplace_back(inner.get(),
                        python::unwrap(inner.get()).impl()->version());
  kept.push_back(inner);
  return inner;
}

Ref Capture::part_of(PyObject* o, int place, const char* name) {
  Ref text = python::new_text(name);
  Ref value = checked(PyObject_GetAttr(o, text.get()));
  kept.push_back(value);
  return realize(value.get(),
                 entry.guards.fetch(Do::Attribute, place, text.get()));
}

// Of the stand-in of its object.
Ref Capture::bound_method(PyObject* o, int place) {
  entry.guards.check(Do::CheckType, place, type_of(o));
  Ref self = part_of(o, place, "__self__");
  part_of(o, place, "__name__");
  Ref name = python::attribute(o, "__name__");
  Ref inner = checked(PyObject_GetAttr(self.get(), name.get()));
  if (!PyCFunction_Check(inner.get()) ||
      PyCFunction_GET_FUNCTION(inner.get()) != PyCFunction_GET_FUNCTION(o)) {
    break_graph(std::string("a method of a ") + Py_TYPE(self.get())->tp_name);
  }
  known[o] = {inner, place};
  kept.push_back(Ref::borrow(o));
  return inner;
}

// A new stand-in; known before its elements are, which may lead back to it.
Ref Capture::keep(Ref inner, PyObject* outer, int place) {
  auto s = std::make_unique<Shadow>();
  s->inner = inner;
  s->outer = Ref::borrow(outer);
  s->place = place;
  shadows[inner.get()] = s.get();
  known[outer] = {inner, place};
  order.push_back(std::move(s));
  return inner;
}

Ref Capture::item(PyObject* o, int place, Py_ssize_t i) {
  PyObject* each = PySequence_Fast_ITEMS(o)[i];
  return realize(each, entry.guards.fetch(Do::Item, place, nullptr, i));
}

Ref Capture::shadow_list(PyObject* o, int place) {
  entry.guards.check(Do::CheckLength, place, nullptr, Py_SIZE(o));
  Ref inner = keep(checked(PyList_New(0)), o, place);
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(o); ++i) {
    Ref each = item(o, place, i);
    python::check_status(PyList_Append(inner.get(), each.get()));
  }
  order_of(inner.get())->before = checked(PySequence_List(inner.get()));
  return inner;
}

// With its items, and all that hangs on it.
Ref Capture::shadow_subclass(PyObject* o, int place) {
  Ref inner = empty_of(Py_TYPE(o));
  keep(inner, o, place);
  if (PyDict_Check(o)) {
    copy_items(o, place, inner.get());
    order_of(inner.get())->before = checked(PyDict_Copy(inner.get()));
  } else {
    entry.guards.check(Do::CheckLength, place, nullptr, Py_SIZE(o));
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(o); ++i) {
      Ref each = item(o, place, i);
      python::check_status(PyList_Append(inner.get(), each.get()));
    }
    order_of(inner.get())->before = checked(PySequence_List(inner.get()));
  }
  Ref attributes = attributes_of(o);
  kept.push_back(attributes);
  PyObject *name, *value;
  Py_ssize_t at = 0;
  while (PyDict_Next(attributes.get(), &at, &name, &value)) {
    Ref each = realize(value, entry.guards.fetch(Do::Attribute, place, name));
    python::check_status(set_own(inner.get(), name, each.get()));
  }
  order_of(inner.get())->attributes = attributes_of(inner.get());
  return inner;
}

// An array of NumPy's, by shape, strides and dtype.
Ref Capture::shadow_array(PyObject* o, int place) {
  for (const char* name : {"shape", "strides", "dtype"})
    part_of(o, place, name);
  Suspended suspended(*this);
  Ref inner = checked(PyObject_CallOneArg(library().array_handler.get(), o));
  known[o] = {inner, place};
  kept.push_back(inner);
  note_value(inner.get(), entry.graph.add_input(place));
  places_of_tensors[inner.get()] = {Ref::borrow(o), place};
  return inner;
}

// Tuples cannot be changed: there is nothing to compare with afterwards.
Ref Capture::shadow_tuple(PyObject* o, int place) {
  entry.guards.check(Do::CheckLength, place, nullptr, Py_SIZE(o));
  Ref items = checked(PyTuple_New(Py_SIZE(o)));
  for (Py_ssize_t i = 0; i < Py_SIZE(o); ++i) {
    PyTuple_SET_ITEM(items.get(), i, item(o, place, i).release());
  }
  items = tuple_of(Py_TYPE(o), items.get());
  // A class of Python's has attributes besides, which may be written.
  if (_PyObject_GetDictPtr(items.get()) != nullptr)
    return keep(items, o, place);
  known[o] = {items, place};
  places_of_tensors[items.get()] = {Ref::borrow(o), place};
  kept.push_back(items);
  return items;
}

void Capture::copy_items(PyObject* o, int place, PyObject* inner) {
  Guards& guards = entry.guards;
  Ref keys = keys_of(o);
  bool replaced = false;
  for (PyObject* key : python::items_of(keys.get())) {
    if (is_shared(key) || is_tuple_of_values(key)) continue;
    if (!has_identity(is_alive(key) ? PyWeakref_GetObject(key) : key)) {
      break_graph(std::string("a dict whose keys are of class ") +
                  Py_TYPE(key)->tp_name);
    }
    replaced = true;
  }
  guards.check(Do::CheckKeys, place, keys.get());
  if (replaced) checked(PyObject_CallMethod(inner, "clear", nullptr));
  for (PyObject* key : python::items_of(keys.get())) {
    PyObject* each = PyDict_GetItem(o, key);
    Ref value = realize(each, guards.fetch(Do::DictItem, place, key));
    set_item(inner, stand_in_of_key(key).get(), value.get());
  }
}

// That the key is this very object is guarded where it is looked at.
Ref Capture::stand_in_of_key(PyObject* key) {
  if (is_shared(key) || is_tuple_of_values(key)) return Ref::borrow(key);
  if (is_alive(key)) {
    int place = entry.guards.fetch(Do::Referent, constant(key), nullptr);
    Ref to = realize(PyWeakref_GetObject(key), place);
    Ref inner = checked(PyWeakref_NewRef(to.get(), nullptr));
    places_of_tensors[inner.get()] = {Ref::borrow(key), constant(key)};
    kept.push_back(inner);
    return inner;
  }
  return realize(key, constant(key));
}

Ref Capture::shadow_dict(PyObject* o, int place) {
  Ref inner = keep(checked(PyObject_CallMethod(o, "copy", nullptr)), o, place);
  copy_items(o, place, inner.get());
  order_of(inner.get())->before = checked(PyDict_Copy(inner.get()));
  return inner;
}

Ref Capture::shadow_set(PyObject* o, int place) {
  Ref items = checked(PySequence_List(o));
  for (PyObject* each : python::items_of(items.get())) {
    bool known = is_shared(each) || is_tuple_of_values(each) ||
                 (has_identity(each) && !is_tensor(each) && PySet_Check(o));
    if (!known) {
      break_graph(std::string("a set of objects of class ") +
                  Py_TYPE(each)->tp_name);
    }
  }
  // A copy: the set itself may change after this.
  Ref copy = checked(PySet_Check(o) ? PySet_New(o) : PyFrozenSet_New(o));
  entry.guards.check(Do::CheckSet, place, copy.get());
  if (!PySet_Check(o)) return Ref::borrow(o);
  Ref inner = keep(checked(PySet_New(nullptr)), o, place);
  for (PyObject* each : python::items_of(items.get())) {
    python::check_status(PySet_Add(inner.get(), stand_in_of_key(each).get()));
  }
  order_of(inner.get())->before = checked(PySet_New(inner.get()));
  return inner;
}

Ref Capture::shadow_deque(PyObject* o, int place) {
  Guards& guards = entry.guards;
  Ref list = checked(PySequence_List(o));
  Ref inner = keep(checked(PyObject_CallMethod(o, "copy", nullptr)), o, place);
  checked(PyObject_CallMethod(inner.get(), "clear", nullptr));
  part_of(o, place, "maxlen");
  // Through a list of its elements, which is made anew at each check.
  int copy = guards.fetch(Do::Elements, place, nullptr);
  guards.check(Do::CheckLength, copy, nullptr, Py_SIZE(list.get()));
  for (Py_ssize_t i = 0; i < Py_SIZE(list.get()); ++i) {
    Ref each = item(list.get(), copy, i);
    checked(call_method(inner.get(), "append", each.get()));
  }
  order_of(inner.get())->before = checked(PySequence_List(inner.get()));
  return inner;
}

// Of the same kind over stand-ins of what the outside one runs over.
Ref Capture::shadow_iterator(PyObject* o, int place) {
  Ref reduced =
      checked(PyObject_CallMethodNoArgs(o, python::interned<"__reduce__">()));
  kept.push_back(reduced);
  int parts = entry.guards.fetch(Do::Reduced, place, nullptr);
  Ref inside = realize(reduced.get(), parts);
  PyObject* make = PyTuple_GET_ITEM(inside.get(), 0);
  PyObject* args = PyTuple_GET_ITEM(inside.get(), 1);
  Ref inner = checked(PyObject_Call(make, args, nullptr));
  Py_ssize_t parts_given = PyTuple_GET_SIZE(inside.get());
  PyObject* state =
      parts_given > 2 ? PyTuple_GET_ITEM(inside.get(), 2) : Py_None;
  if (state != Py_None) {
    checked(call_method(inner.get(), "__setstate__", state));
  }
  // What is left of a dict is a list.
  if (Py_TYPE(inner.get()) != Py_TYPE(o) && !is_dict_iterator(o)) {
    break_graph(std::string("a finished ") + Py_TYPE(o)->tp_name);
  }
  keep(inner, o, place);
  order_of(inner.get())->before = position_of(inner.get());
  return inner;
}

Ref Capture::shadow_mode(PyObject* o, int place) {
  if (PyDict_GET_SIZE(attributes_of(o).get()) > 0) {
    break_graph("a mode with attributes of its own");
  }
  Ref state = state_of_mode(o);
  entry.guards.check(Do::CheckMode, place, state.get());
  Ref inner = keep(make_mode(type_of(o), state.get()), o, place);
  order_of(inner.get())->before = state;
  return inner;
}

Ref Capture::shadow_partial(PyObject* o, int place) {
  Ref function = part_of(o, place, "func");
  Ref args = part_of(o, place, "args");
  Ref keywords = part_of(o, place, "keywords");
  Ref all = checked(PyList_New(0));
  python::check_status(PyList_Append(all.get(), function.get()));
  all = checked(PySequence_InPlaceConcat(all.get(), args.get()));
  Ref tuple = checked(PyList_AsTuple(all.get()));
  return checked(PyObject_Call(type_of(o), tuple.get(), keywords.get()));
}

// Of the stand-in of what it shows. Nothing can be written through it.
Ref Capture::shadow_of_proxy(PyObject* o, int place, const Ref& shown) {
  Ref inner = checked(PyDictProxy_New(shown.get()));
  known[o] = {inner, place};
  places_of_tensors[inner.get()] = {Ref::borrow(o), place};
  kept.push_back(inner);
  return inner;
}

// To the stand-in of what it leads to, or to nothing.
Ref Capture::shadow_reference(PyObject* o, int place) {
  PyObject* referent = PyWeakref_GetObject(o);
  Ref to = realize(referent, entry.guards.fetch(Do::Referent, place, nullptr));
  if (to.get() == Py_None) to = checked(PySet_New(nullptr));
  Ref inner = checked(PyWeakref_NewRef(to.get(), nullptr));
  known[o] = {inner, place};
  places_of_tensors[inner.get()] = {Ref::borrow(o), place};
  kept.push_back(inner);
  return inner;
}

// An object around the stand-in of this thread's attributes.
Ref Capture::shadow_thread_local(PyObject* o, int place) {
  Ref attributes = part_of(o, place, "__dict__");
  Ref types = checked(PyImport_ImportModule("types"));
  Ref inner =
      checked(PyObject_CallMethod(types.get(), "SimpleNamespace", nullptr));
  Py_SETREF(*_PyObject_GetDictPtr(inner.get()), Py_NewRef(attributes.get()));
  known[o] = {inner, place};
  places_of_tensors[inner.get()] = {Ref::borrow(o), place};
  kept.push_back(inner);
  return inner;
}

// A view of the stand-in of the dict that a view shows.
Ref Capture::shadow_view(PyObject* o, int place, const char* name) {
  Ref proxy = part_of(o, place, "mapping");
  Ref inner =
      checked(PyObject_CallMethod(mapping_of(proxy.get()), name, nullptr));
  known[o] = {inner, place};
  places_of_tensors[inner.get()] = {Ref::borrow(o), place};
  kept.push_back(inner);
  return inner;
}

// What stands for an object that is looked at for the first time.
Ref Capture::shadow(PyObject* o, int place) {
  if (PyList_CheckExact(o)) return shadow_list(o, place);
  if (is_tuple_kind(o)) return shadow_tuple(o, place);
  if (is_dict_kind(o)) return shadow_dict(o, place);
  if (is_container_subclass(o)) return shadow_subclass(o, place);
  if (PyAnySet_CheckExact(o)) return shadow_set(o, place);
  if (strcmp(Py_TYPE(o)->tp_name, "numpy.ndarray") == 0) {
    return shadow_array(o, place);
  }
  if (is_deque(o)) return shadow_deque(o, place);
  if (is_mode(o)) return shadow_mode(o, place);
  if (is_iterator(o)) return shadow_iterator(o, place);
  if (is_mapping_proxy(o)) {
    int shown = entry.guards.fetch(Do::Mapping, place, nullptr);
    return shadow_of_proxy(o, place, realize(mapping_of(o), shown));
  }
  if (const char* name = view_of(o)) return shadow_view(o, place, name);
  if (PyWeakref_CheckRefExact(o)) return shadow_reference(o, place);
  if (strcmp(Py_TYPE(o)->tp_name, "_thread._local") == 0) {
    return shadow_thread_local(o, place);
  }
  if (PyMethod_Check(o)) {
    Ref function = part_of(o, place, "__func__");
    Ref self = part_of(o, place, "__self__");
    return checked(PyMethod_New(function.get(), self.get()));
  }
  if (PySlice_Check(o)) {
    entry.guards.check(Do::CheckEqual, place, o);
    return Ref::borrow(o);
  }
  if (strcmp(Py_TYPE(o)->tp_name, "functools.partial") == 0) {
    return shadow_partial(o, place);
  }
  if (type_of(o) == library().random_class.get() &&
      dynamic.settings.scalar_outputs) {
    // Calls of it are the graph's: `intercept` sees to that.
    return keep(checked(PyObject_CallNoArgs(type_of(o))), o, place);
  }
  if (is_plain_instance(o)) {
    PyTypeObject* type = Py_TYPE(o);
    return keep(new_plain_instance(type), o, place);
  }
  break_graph(std::string("an object of class ") + Py_TYPE(o)->tp_name);
}

Shadow* Capture::order_of(PyObject* inner) { return shadows.at(inner); }

}  // namespace taeda::capture
