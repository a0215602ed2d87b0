// Outside objects as the captured code sees them.
#include <taeda/csrc/compiler/capture/capture.h>

#include <taeda/c10/core/tensor_impl.h>

namespace taeda::capture {
namespace {

PyObject* type_of(PyObject* o) {
  return reinterpret_cast<PyObject*>(Py_TYPE(o));
}

bool is_singleton(PyObject* o) {
  return o == Py_None || o == Py_True || o == Py_False || o == Py_Ellipsis ||
         o == Py_NotImplemented;
}

bool is_value(PyObject* o) {
  return PyLong_CheckExact(o) || PyFloat_CheckExact(o) ||
         PyUnicode_CheckExact(o) || PyBytes_CheckExact(o) ||
         PyComplex_CheckExact(o) || PyRange_Check(o);
}

// Classes in C whose objects never change, or only how quick they are. Python
// code makes no class whose tp_name has a dot.
bool is_immutable(const char* name) {
  for (const char* known : {"types.UnionType",
                            "functools._lru_cache_wrapper",
                            "re.Pattern",
                            "re.Match",
                            "operator.itemgetter",
                            "operator.attrgetter",
                            "operator.methodcaller",
                            "decimal.Decimal",
                            "datetime.date",
                            "datetime.time",
                            "datetime.datetime",
                            "datetime.timedelta",
                            "datetime.timezone"}) {
    if (strcmp(name, known) == 0) return true;
  }
  return false;
}

// Objects that are themselves inside too: what they are is known by identity,
// and an attempt to write to them ends the graph.
bool is_transparent(PyObject* o) {
  // A bare object is there to be compared with.
  return Py_TYPE(o) == &PyBaseObject_Type || PyType_Check(o) ||
         PyModule_Check(o) || PyFunction_Check(o) || PyCFunction_Check(o) ||
         PyCode_Check(o) || Py_TYPE(o) == &PyMethodDescr_Type ||
         Py_TYPE(o) == &PyWrapperDescr_Type ||
         Py_TYPE(o) == &PyClassMethodDescr_Type ||
         Py_TYPE(o) == &PyGetSetDescr_Type ||
         Py_TYPE(o) == &PyMemberDescr_Type || Py_TYPE(o) == &PyProperty_Type ||
         Py_TYPE(o) == &PyClassMethod_Type ||
         Py_TYPE(o) == &PyStaticMethod_Type ||
         Py_TYPE(o) == &Py_GenericAliasType ||
         is_immutable(Py_TYPE(o)->tp_name) || compiled_function(o) != nullptr ||
         type_of(o) == library().device_type.get() ||
         type_of(o) == library().dtype_type.get();
}

bool is_enum(PyObject* o) {
  return PyObject_IsInstance(o, library().enum_type.get()) == 1;
}

// The slots of a class and its bases, by name.
template <class F>
void each_slot(PyTypeObject* type, F f) {
  for (PyObject* each : python::items_of(type->tp_mro)) {
    PyObject *name, *value;
    Py_ssize_t at = 0;
    PyObject* own = reinterpret_cast<PyTypeObject*>(each)->tp_dict;
    while (own != nullptr && PyDict_Next(own, &at, &name, &value)) {
      if (is_slot(value)) f(name);
    }
  }
}

bool has_python_state(PyTypeObject* type) {
  if (!(type->tp_flags & Py_TPFLAGS_HEAPTYPE)) return false;
  // Classes that Python code defined, all the way down, share a destructor.
  auto* python_class =
      reinterpret_cast<PyTypeObject*>(library().enum_type.get());
  PyTypeObject* base = type;
  while (base->tp_flags & Py_TPFLAGS_HEAPTYPE) {
    if (base->tp_dealloc != python_class->tp_dealloc) return false;
    base = base->tp_base;
  }
  if (base != &PyBaseObject_Type) return false;
  // A class whose state is a struct in C is larger than its references.
  Py_ssize_t references =
      (type->tp_dictoffset > 0) + (type->tp_weaklistoffset > 0);
  each_slot(type, [&](PyObject*) { ++references; });
  auto size = static_cast<Py_ssize_t>(sizeof(PyObject));
  size += references * static_cast<Py_ssize_t>(sizeof(PyObject*));
  return type->tp_basicsize == size;
}

bool of_library(PyTypeObject* type) {
  PyObject* own = type->tp_dict;
  PyObject* name = own ? PyDict_GetItemString(own, "__module__") : nullptr;
  if (name == nullptr || !PyUnicode_Check(name)) return false;
  return strncmp(PyUnicode_AsUTF8(name), "taeda.", 6) == 0;
}

bool is_dict_kind(PyObject* o) {
  return PyDict_CheckExact(o) ||
         strcmp(Py_TYPE(o)->tp_name, "collections.OrderedDict") == 0 ||
         strcmp(Py_TYPE(o)->tp_name, "collections.defaultdict") == 0;
}

bool is_deque(PyObject* o) {
  return strcmp(Py_TYPE(o)->tp_name, "collections.deque") == 0;
}

}  // namespace

bool is_shared(PyObject* o) {
  return is_singleton(o) || is_value(o) || is_transparent(o) || is_enum(o);
}
bool is_mode(PyObject* o) {
  return PySet_Contains(library().mode_types.get(), type_of(o)) == 1;
}
bool is_slot(PyObject* descriptor) {
  if (Py_TYPE(descriptor) != &PyMemberDescr_Type) return false;
  PyMemberDef* m = reinterpret_cast<PyMemberDescrObject*>(descriptor)->d_member;
  return m->type == T_OBJECT_EX && !(m->flags & READONLY);
}
Ref attributes_of(PyObject* o) {
  PyObject** dict = _PyObject_GetDictPtr(o);
  Ref out = checked(dict && *dict ? PyDict_Copy(*dict) : PyDict_New());
  each_slot(Py_TYPE(o), [&](PyObject* name) {
    Ref value(PyObject_GenericGetAttr(o, name));
    if (!value) return PyErr_Clear();
    python::check_status(PyDict_SetItem(out.get(), name, value.get()));
  });
  return out;
}
bool is_cached(PyObject* o) {
  return strcmp(Py_TYPE(o)->tp_name, "functools._lru_cache_wrapper") == 0;
}
bool is_dict_iterator(PyObject* o) {
  PyTypeObject* type = Py_TYPE(o);
  return type == &PyDictIterKey_Type || type == &PyDictIterValue_Type ||
         type == &PyDictIterItem_Type;
}
bool is_iterator(PyObject* o) {
  PyTypeObject* type = Py_TYPE(o);
  return type == &PyRangeIter_Type || type == &PyListIter_Type ||
         type == &PyTupleIter_Type || type == &PyEnum_Type ||
         type == &PyZip_Type || type == &PyListRevIter_Type ||
         is_dict_iterator(o);
}
Ref position_of(PyObject* iterator) {
  if (Py_TYPE(iterator) == &PyZip_Type) return Ref::borrow(Py_None);
  Ref reduced = checked(
      PyObject_CallMethodNoArgs(iterator, python::interned<"__reduce__">()));
  if (Py_TYPE(iterator) == &PyEnum_Type) {
    PyObject* args = PyTuple_GET_ITEM(reduced.get(), 1);
    return Ref::borrow(PyTuple_GET_ITEM(args, 1));
  }
  if (PyTuple_GET_SIZE(reduced.get()) > 2) {
    return Ref::borrow(PyTuple_GET_ITEM(reduced.get(), 2));
  }
  // It has ended.
  bool backwards = Py_TYPE(iterator) == &PyListRevIter_Type;
  return checked(PyLong_FromSsize_t(backwards ? -1 : PY_SSIZE_T_MAX));
}
bool is_of_library(PyObject* o) { return of_library(Py_TYPE(o)); }
bool is_plain_instance(PyObject* o) { return has_python_state(Py_TYPE(o)); }

int Capture::constant(PyObject* object) {
  auto [at, added] = places_of_constants.try_emplace(object, 0);
  if (added) at->second = entry.guards.fetch(Do::Constant, -1, object);
  return at->second;
}

Shadow* Capture::shadow_of(PyObject* inner) {
  auto at = shadows.find(inner);
  return at == shadows.end() ? nullptr : at->second;
}

Ref Capture::realize(PyObject* o, int place) {
  Guards& guards = entry.guards;
  if (is_singleton(o)) {
    guards.check(Do::CheckIs, place, o);
    return Ref::borrow(o);
  }
  if (is_value(o)) {
    guards.check(Do::CheckEqual, place, o);
    return Ref::borrow(o);
  }
  auto found = known.find(o);
  if (found != known.end()) {
    if (found->second.second != place) {
      guards.check(Do::CheckSame, place, nullptr, found->second.second);
    }
    return found->second.first;
  }
  if (shadows.contains(o)) return Ref::borrow(o);
  if (is_tensor(o)) return tensor(o, place);
  if (PyCFunction_Check(o)) {
    PyObject* self = PyCFunction_GET_SELF(o);
    if (self != nullptr && !PyModule_Check(self) && !PyType_Check(self)) {
      return bound_method(o, place);
    }
  }
  if (is_transparent(o) || is_enum(o)) {
    guards.check(Do::CheckIs, place, o);
    return Ref::borrow(o);
  }
  guards.check(Do::CheckType, place, type_of(o));
  return shadow(o, place);
}

Ref Capture::tensor(PyObject* outer, int place) {
  const Library& lib = library();
  if (type_of(outer) != lib.tensor.get() &&
      type_of(outer) != lib.parameter.get()) {
    break_graph(std::string("a tensor of class ") + Py_TYPE(outer)->tp_name);
  }
  entry.guards.check_tensor(place, outer);
  ++suspended;
  Ref inner(PyObject_CallFunction(
      lib.empty_strided.get(),
      "OO",
      outer,
      type_of(outer) == lib.parameter.get() ? Py_True : Py_False));
  --suspended;
  if (!inner) throw PythonError();
  known[outer] = {inner, place};
  entry.graph.add_input(place);
  note_value(inner.get(), static_cast<int>(entry.graph.calls().size()) - 1);
  places_of_tensors[inner.get()] = {Ref::borrow(outer), place};
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

// Tuples cannot be changed: there is nothing to compare with afterwards.
Ref Capture::shadow_tuple(PyObject* o, int place) {
  entry.guards.check(Do::CheckLength, place, nullptr, Py_SIZE(o));
  Ref items = checked(PyTuple_New(Py_SIZE(o)));
  for (Py_ssize_t i = 0; i < Py_SIZE(o); ++i) {
    PyTuple_SET_ITEM(items.get(), i, item(o, place, i).release());
  }
  if (!PyTuple_CheckExact(o)) {
    ++suspended;
    items = Ref(call_method(type_of(o), "_make", items.get()));
    --suspended;
    if (!items) throw PythonError();
  }
  known[o] = {items, place};
  places_of_tensors[items.get()] = {Ref::borrow(o), place};
  kept.push_back(items);
  return items;
}

Ref Capture::shadow_dict(PyObject* o, int place) {
  Guards& guards = entry.guards;
  Ref keys = checked(PyDict_Keys(o));
  keys = checked(PyList_AsTuple(keys.get()));
  for (PyObject* key : python::items_of(keys.get())) {
    if (!is_shared(key)) {
      break_graph(std::string("a dict whose keys are of class ") +
                  Py_TYPE(key)->tp_name);
    }
  }
  guards.check(Do::CheckKeys, place, keys.get());
  Ref inner = keep(checked(PyObject_CallMethod(o, "copy", nullptr)), o, place);
  for (PyObject* key : python::items_of(keys.get())) {
    PyObject* each = PyDict_GetItem(o, key);
    Ref value = realize(each, guards.fetch(Do::DictItem, place, key));
    python::check_status(PyObject_SetItem(inner.get(), key, value.get()));
  }
  order_of(inner.get())->before = checked(PyDict_Copy(inner.get()));
  return inner;
}

Ref Capture::shadow_set(PyObject* o, int place) {
  Ref items = checked(PySequence_List(o));
  for (PyObject* each : python::items_of(items.get())) {
    if (!is_shared(each)) {
      break_graph(std::string("a set of objects of class ") +
                  Py_TYPE(each)->tp_name);
    }
  }
  // A copy: the set itself may change after this.
  Ref copy = checked(PySet_Check(o) ? PySet_New(o) : PyFrozenSet_New(o));
  entry.guards.check(Do::CheckSet, place, copy.get());
  if (!PySet_Check(o)) return Ref::borrow(o);
  Ref inner = keep(checked(PySet_New(o)), o, place);
  order_of(inner.get())->before = copy;
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
  if (PyTuple_GET_SIZE(inside.get()) > 2) {
    PyObject* state = PyTuple_GET_ITEM(inside.get(), 2);
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

// What stands for an object that is looked at for the first time.
Ref Capture::shadow(PyObject* o, int place) {
  if (PyList_CheckExact(o)) return shadow_list(o, place);
  if (PyTuple_CheckExact(o) ||
      (PyTuple_Check(o) && PyObject_HasAttrString(o, "_fields"))) {
    return shadow_tuple(o, place);
  }
  if (is_dict_kind(o)) return shadow_dict(o, place);
  if (PyAnySet_CheckExact(o)) return shadow_set(o, place);
  if (is_deque(o)) return shadow_deque(o, place);
  if (is_mode(o)) return shadow_mode(o, place);
  if (is_iterator(o)) return shadow_iterator(o, place);
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
  if (has_python_state(Py_TYPE(o))) {
    PyTypeObject* type = Py_TYPE(o);
    return keep(checked(type->tp_alloc(type, 0)), o, place);
  }
  break_graph(std::string("an object of class ") + Py_TYPE(o)->tp_name);
}

Shadow* Capture::order_of(PyObject* inner) { return shadows.at(inner); }

void Capture::load_slot(Shadow& s, PyObject* name) {
  if (!s.looked.insert(name).second) return;
  Py_INCREF(name);
  kept.emplace_back(name);
  Ref value(PyObject_GenericGetAttr(s.outer.get(), name));
  if (!value) {
    PyErr_Clear();
    entry.guards.check(Do::CheckUnset, s.place, name);
    return;
  }
  Ref inner =
      realize(value.get(), entry.guards.fetch(Do::Attribute, s.place, name));
  if (!s.before) s.before = checked(PyDict_New());
  python::check_status(PyDict_SetItem(s.before.get(), name, inner.get()));
  python::check_status(
      PyObject_GenericSetAttr(s.inner.get(), name, inner.get()));
}

// Copies one attribute of the outside object's own, if it has it.
bool Capture::load_attribute(Shadow& s, PyObject* name) {
  PyObject* on_type = _PyType_Lookup(Py_TYPE(s.inner.get()), name);
  if (on_type != nullptr && is_slot(on_type)) {
    load_slot(s, name);
    return true;
  }
  if (!s.looked.insert(name).second) return false;
  PyObject** own = _PyObject_GetDictPtr(s.inner.get());
  // Written by C code before anybody looked: that is what counts.
  if (own && *own && PyDict_Contains(*own, name) == 1) return false;
  PyObject** dict = _PyObject_GetDictPtr(s.outer.get());
  PyObject* value =
      dict && *dict ? PyDict_GetItemWithError(*dict, name) : nullptr;
  Py_INCREF(name);
  kept.emplace_back(name);
  if (value == nullptr) {
    entry.guards.check(Do::CheckAbsent, s.place, name);
    return false;
  }
  Ref inner =
      realize(value, entry.guards.fetch(Do::InstanceItem, s.place, name));
  if (!s.before) s.before = checked(PyDict_New());
  python::check_status(PyDict_SetItem(s.before.get(), name, inner.get()));
  python::check_status(
      PyObject_GenericSetAttr(s.inner.get(), name, inner.get()));
  return true;
}

// For code that looks at all attributes at once.
void Capture::fill(Shadow& s) {
  each_slot(Py_TYPE(s.inner.get()), [&](PyObject* name) {
    PyUnicode_InternInPlace(&name);
    load_slot(s, name);
  });
  PyObject** dict = _PyObject_GetDictPtr(s.outer.get());
  if (dict == nullptr || *dict == nullptr) return;
  Ref keys = checked(PyDict_Keys(*dict));
  for (PyObject* key : python::items_of(keys.get())) {
    PyUnicode_InternInPlace(&key);
    load_attribute(s, key);
  }
}

// A member of one of the tables of a module, as Module.__getattr__ finds it.
Ref Capture::module_member(Shadow& s, PyObject* name) {
  static const char* const tables[] = {"_parameters", "_modules", "_buffers"};
  PyObject** dict = _PyObject_GetDictPtr(s.outer.get());
  PyObject** own = _PyObject_GetDictPtr(s.inner.get());
  if (dict == nullptr || *dict == nullptr) return {};
  for (const char* table : tables) {
    // Once the tables themselves were looked at, they are what counts.
    PyObject* filled =
        own && *own ? PyDict_GetItemString(*own, table) : nullptr;
    if (filled != nullptr) {
      PyObject* value = PyDict_GetItemWithError(filled, name);
      if (value != nullptr) return Ref::borrow(value);
      continue;
    }
    PyObject* members = PyDict_GetItemString(*dict, table);
    if (members == nullptr || !PyDict_CheckExact(members)) return {};
    PyObject* value = PyDict_GetItemWithError(members, name);
    if (value == nullptr) continue;
    Ref text = checked(PyUnicode_InternFromString(table));
    auto key = std::pair(s.inner.get(), text.get());
    auto [at, added] = member_tables.try_emplace(key, 0);
    if (added) {
      at->second = entry.guards.fetch(Do::InstanceItem, s.place, text.get());
      entry.guards.check(Do::CheckType, at->second, type_of(members));
    }
    auto member = std::pair(members, name);
    auto [place, first] = member_places.try_emplace(member, 0);
    if (!first) return member_values[place->second];
    place->second = entry.guards.fetch(Do::DictItem, at->second, name);
    Ref inner = realize(value, place->second);
    member_values[place->second] = inner;
    return inner;
  }
  return {};
}

Ref Capture::instance_attribute(Shadow& s, PyObject* name) {
  PyObject* inner = s.inner.get();
  PyTypeObject* type = Py_TYPE(inner);
  if (PyUnicode_CompareWithASCIIString(name, "__dict__") == 0) {
    fill(s);
    return checked(PyObject_GetAttr(inner, name));
  }
  PyObject* on_type = _PyType_Lookup(type, name);
  if (on_type != nullptr && Py_TYPE(on_type)->tp_descr_set != nullptr) {
    if (is_slot(on_type)) load_slot(s, name);
    return checked(PyObject_GenericGetAttr(inner, name));
  }
  load_attribute(s, name);
  PyObject** own = _PyObject_GetDictPtr(inner);
  PyObject* value = own && *own ? PyDict_GetItem(*own, name) : nullptr;
  if (value != nullptr) return Ref::borrow(value);
  if (on_type != nullptr) {
    if (PyFunction_Check(on_type)) {
      // A method that a program replaces on its class is another object.
      if (!of_library(type)) guarded_attribute(type_of(inner), name);
      return checked(PyMethod_New(on_type, inner));
    }
    if (Py_TYPE(on_type)->tp_descr_get != nullptr) {
      return checked(PyObject_GenericGetAttr(inner, name));
    }
    return guarded_attribute(type_of(inner), name);
  }
  PyObject* fallback = _PyType_Lookup(type, python::interned<"__getattr__">());
  if (fallback == library().module_getattr.get()) {
    Ref member = module_member(s, name);
    if (member) return member;
  }
  return checked(PyObject_GetAttr(inner, name));
}

// Of a module, class or function that is itself known by identity.
Ref Capture::guarded_attribute(PyObject* object, PyObject* name) {
  Ref value = checked(PyObject_GetAttr(object, name));
  auto key = std::pair(object, name);
  auto [at, added] = globals.try_emplace(key, Ref());
  if (!added) return at->second;
  kept.push_back(Ref::borrow(name));
  int place = entry.guards.fetch(Do::Attribute, constant(object), name);
  Ref inner = realize(value.get(), place);
  globals[key] = inner;
  return inner;
}

Ref Capture::attribute(PyObject* object, PyObject* name) {
  if (Shadow* s = shadow_of(object)) {
    PyTypeObject* type = Py_TYPE(object);
    bool plain = type->tp_getattro == PyObject_GenericGetAttr ||
                 _PyType_Lookup(type, python::interned<"__getattribute__">()) ==
                     _PyType_Lookup(&PyBaseObject_Type,
                                    python::interned<"__getattribute__">());
    if (plain && has_python_state(type)) return instance_attribute(*s, name);
    return checked(PyObject_GetAttr(object, name));
  }
  if (PyModule_Check(object)) {
    const char* module = PyModule_GetName(object);
    if (module == nullptr) PyErr_Clear();
    bool ours = module != nullptr && strncmp(module, "taeda", 5) == 0;
    if (!ours) return guarded_attribute(object, name);
  } else if (PyType_Check(object)) {
    auto* type = reinterpret_cast<PyTypeObject*>(object);
    bool user = (type->tp_flags & Py_TPFLAGS_HEAPTYPE) && !of_library(type);
    PyObject* found = user ? _PyType_Lookup(type, name) : nullptr;
    if (found != nullptr && !Py_TYPE(found)->tp_descr_get) {
      return guarded_attribute(object, name);
    }
  } else if (is_plain_instance(object) && !of_library(Py_TYPE(object))) {
    // Made inside, but what its class holds is outside.
    PyObject* found = _PyType_Lookup(Py_TYPE(object), name);
    PyObject** own = _PyObject_GetDictPtr(object);
    if (found != nullptr && !Py_TYPE(found)->tp_descr_get &&
        !(own && *own && PyDict_Contains(*own, name) == 1)) {
      return guarded_attribute(type_of(object), name);
    }
  }
  return checked(PyObject_GetAttr(object, name));
}

Ref Capture::global(Frame& f, PyObject* name) {
  auto key = std::pair(f.globals, name);
  auto at = globals.find(key);
  if (at != globals.end() && at->second) return at->second;
  Guards& guards = entry.guards;
  PyObject* value =
      at == globals.end() ? PyDict_GetItemWithError(f.globals, name) : nullptr;
  if (value != nullptr) {
    int place = guards.fetch(Do::DictItem, constant(f.globals), name);
    Ref inner = realize(value, place);
    globals[key] = inner;
    return inner;
  }
  value = PyDict_GetItemWithError(f.builtins, name);
  if (value == nullptr) {
    PyErr_Format(PyExc_NameError, "name '%U' is not defined", name);
    throw PythonError();
  }
  if (at == globals.end()) {
    guards.check(Do::CheckNoItem, constant(f.globals), name);
  }
  globals[key] = Ref::borrow(value);
  return globals[key];
}

PyObject* Capture::cell_content(PyObject* cell) {
  if (own_cells.contains(cell)) return PyCell_GET(cell);
  auto [at, added] = cells.try_emplace(cell);
  Cell& c = at->second;
  if (added) {
    c.outer = Ref::borrow(cell);
    c.inner = checked(PyCell_New(nullptr));
    int place = constant(cell);
    if (PyCell_GET(cell) == nullptr) {
      entry.guards.check(Do::CheckEmpty, place, nullptr);
    } else {
      int content = entry.guards.fetch(Do::Content, place, nullptr);
      c.before = realize(PyCell_GET(cell), content);
      PyCell_Set(c.inner.get(), c.before.get());
    }
  }
  return PyCell_GET(c.inner.get());
}

void Capture::store_cell(PyObject* cell, PyObject* value) {
  if (own_cells.contains(cell)) {
    PyCell_Set(cell, value);
    return;
  }
  cell_content(cell);
  PyCell_Set(cells.at(cell).inner.get(), value);
}

Ref Capture::call_cached(PyObject* function,
                         PyObject* const* args,
                         size_t count,
                         PyObject* names) {
  bool shared = names == nullptr;
  for (size_t i = 0; i < count; ++i) shared = shared && is_shared(args[i]);
  // If the function has to run, it runs now, and must find things as they are.
  bool written = !stored_globals.empty();
  for (auto [tensor, version] : versions) {
    written |= python::unwrap(tensor).impl()->version() != version;
  }
  if (!shared || written) break_graph("call of a cached function");
  Ref all =
      python::new_tuple(count, [&](size_t i) { return Py_NewRef(args[i]); });
  int place = entry.guards.fetch(Do::Called, constant(function), all.get());
  ++suspended;
  Ref value(PyObject_Call(function, all.get(), nullptr));
  --suspended;
  if (!value) throw PythonError();
  kept.push_back(value);
  return realize(value.get(), place);
}

}  // namespace taeda::capture
