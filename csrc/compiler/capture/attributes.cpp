// Attributes, globals and contents of cells, as the captured code reads them.
#include <taeda/csrc/compiler/capture/evaluate.h>
#include <taeda/csrc/compiler/capture/pieces.h>

#include <taeda/c10/core/tensor_impl.h>

#include <algorithm>

namespace taeda::capture {

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
  if (changed.contains(s.inner.get()) &&
      (PyUnicode_CompareWithASCIIString(name, "state") == 0 ||
       PyUnicode_CompareWithASCIIString(name, "_plans") == 0)) {
    break_graph("the state of an optimizer is read after its step");
  }
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
  python::check_status(set_own(s.inner.get(), name, inner.get()));
  return true;
}

// For code that looks at all attributes at once.
void Capture::fill(Shadow& s) {
  each_slot(Py_TYPE(s.inner.get()),
            [&](PyObject* name) { load_slot(s, interned(name).get()); });
  PyObject** dict = _PyObject_GetDictPtr(s.outer.get());
  if (dict == nullptr) return;
  Ref keys = *dict == nullptr ? checked(PyTuple_New(0)) : keys_of(*dict);
  if (!std::exchange(s.filled, true)) {
    // No more of them came while nobody looked for these.
    entry.guards.check(Do::CheckOwnKeys, s.place, keys.get());
  }
  for (PyObject* key : python::items_of(keys.get())) {
    load_attribute(s, interned(key).get());
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

namespace {

// A property, or a method that Python code defined.
bool is_replaceable(PyObject* descriptor) {
  if (Py_IS_TYPE(descriptor, &PyProperty_Type) ||
      PyFunction_Check(descriptor)) {
    return true;
  }
  if (!Py_IS_TYPE(descriptor, &PyStaticMethod_Type)) return false;
  return PyFunction_Check(python::attribute(descriptor, "__func__").get());
}

}  // namespace

// What a program may replace on its class.
void Capture::note_descriptor(PyTypeObject* type,
                              PyObject* found,
                              PyObject* name) {
  bool user = (type->tp_flags & Py_TPFLAGS_HEAPTYPE) && !of_library(type);
  // A metaclass may have another one of this name.
  if (user && _PyType_Lookup(Py_TYPE(type), name) == nullptr &&
      is_replaceable(found)) {
    guarded_attribute(reinterpret_cast<PyObject*>(type), name);
  }
}

Ref Capture::instance_attribute(Shadow& s, PyObject* name, bool plain) {
  PyObject* inner = s.inner.get();
  PyTypeObject* type = Py_TYPE(inner);
  if (PyUnicode_CompareWithASCIIString(name, "__dict__") == 0) {
    fill(s);
    return checked(PyObject_GenericGetAttr(inner, name));
  }
  PyObject* on_type = _PyType_Lookup(type, name);
  if (on_type != nullptr && Py_TYPE(on_type)->tp_descr_set != nullptr) {
    if (Ref out = by_descriptor(inner, type, on_type, name)) return out;
    if (is_slot(on_type)) load_slot(s, name);
    note_descriptor(type, on_type, name);
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
      if (Ref out = by_descriptor(inner, type, on_type, name)) return out;
      note_descriptor(type, on_type, name);
      return checked(PyObject_GenericGetAttr(inner, name));
    }
    return guarded_attribute(type_of(inner), name);
  }
  if (plain) return checked(PyObject_GenericGetAttr(inner, name));
  PyObject* fallback = _PyType_Lookup(type, python::interned<"__getattr__">());
  if (fallback == library().module_getattr.get()) {
    Ref member = module_member(s, name);
    if (member) return member;
  }
  return checked(PyObject_GetAttr(inner, name));
}

// Only plain values that stand in for plain values: what a class does with
// descriptors, and what C code keeps of it, stays as it is.
bool Capture::write_to_class(PyObject* o, PyObject* name, PyObject* value) {
  auto* type = reinterpret_cast<PyTypeObject*>(o);
  bool user = (type->tp_flags & Py_TPFLAGS_HEAPTYPE) && !of_library(type) &&
              Py_TYPE(o)->tp_setattro == PyType_Type.tp_setattro;
  PyObject* found = user ? PyDict_GetItem(type->tp_dict, name) : nullptr;
  const char* text = PyUnicode_AsUTF8(name);
  if (found == nullptr || value == nullptr || text == nullptr ||
      strncmp(text, "__", 2) == 0 || Py_TYPE(found)->tp_descr_get != nullptr ||
      Py_TYPE(value)->tp_descr_get != nullptr) {
    return false;
  }
  guarded_attribute(o, name);
  kept.push_back(Ref::borrow(value));
  globals[{o, name}] = Ref::borrow(value);
  stored_on_classes.emplace(o, name);
  return true;
}

PyObject* Capture::written_to_class(PyTypeObject* type, PyObject* name) {
  if (stored_on_classes.empty()) return nullptr;
  for (PyObject* base : python::items_of(type->tp_mro)) {
    if (stored_on_classes.contains({base, name})) {
      return globals.at({base, name}).get();
    }
    PyObject* own = reinterpret_cast<PyTypeObject*>(base)->tp_dict;
    if (own != nullptr && PyDict_Contains(own, name) == 1) return nullptr;
  }
  return nullptr;
}

namespace {

bool is_ours(PyObject* module) {
  const char* name = PyModule_GetName(module);
  if (name == nullptr) PyErr_Clear();
  return name != nullptr && is_own_module(name);
}

}  // namespace

// As a global of it is: who reads the one sees the other.
bool Capture::write_to_module(PyObject* module,
                              PyObject* name,
                              PyObject* value) {
  if (!PyModule_CheckExact(module) || value == nullptr || is_ours(module)) {
    return false;
  }
  kept.push_back(Ref::borrow(name));
  auto key = std::pair(PyModule_GetDict(module), name);
  globals[key] = Ref::borrow(value);
  stored_globals.insert(key);
  return true;
}

bool Capture::write_attribute(PyObject* object,
                              PyObject* name,
                              PyObject* value) {
  if (PyType_Check(object) && write_to_class(object, name, value)) return true;
  bool is_cache = PyType_Check(object) && value != nullptr &&
                  PyUnicode_CompareWithASCIIString(name, "__slotnames__") == 0;
  if (is_cache) {  // copyreg's, of names that the class has anyway
    python::check_status(PyObject_SetAttr(object, name, value));
    return true;
  }
  if (PyModule_Check(object) && write_to_module(object, name, value)) {
    return true;
  }
  if (PyType_Check(object) || PyModule_Check(object) ||
      (PyFunction_Check(object) && !own_functions.contains(object))) {
    break_graph(std::string("an attribute of a ") + Py_TYPE(object)->tp_name +
                " is written: " + PyUnicode_AsUTF8(name));
  }
  if (value != nullptr && is_tensor(object)) {
    store_on_tensor(object, name, value);
    return true;
  }
  // The attribute's earlier value decides whether there is an effect.
  if (Shadow* s = shadow_of(object)) {
    if (is_mode(object)) break_graph("an attribute of a mode is written");
    look(*s, name);
  }
  return false;
}

namespace {

// What a module's `__getattr__` does to find an attribute, imports and notes of
// what it found among them, is no part of the captured code.
Ref outside(Capture& c, PyObject* object, PyObject* name) {
  Suspended suspended(c);
  return checked(PyObject_GetAttr(object, name));
}

}  // namespace

// Of a module, class, function or member that is itself known by identity.
Ref Capture::guarded_attribute(PyObject* object, PyObject* name) {
  if (PyType_Check(object)) {
    auto* type = reinterpret_cast<PyTypeObject*>(object);
    if (PyObject* now = written_to_class(type, name)) return Ref::borrow(now);
  }
  Ref value = outside(*this, object, name);
  auto key = std::pair(object, name);
  auto [at, added] = globals.try_emplace(key, Ref());
  if (!added) return at->second;
  kept.push_back(Ref::borrow(name));
  int place = entry.guards.fetch(Do::Attribute, constant(object), name);
  Ref inner = realize(value.get(), place);
  globals[key] = inner;
  return inner;
}

// Null where the tensor's class has the answer.
Ref Capture::attribute_on_tensor(PyObject* tensor, PyObject* name) {
  auto at = places_of_tensors.find(tensor);
  if (at == places_of_tensors.end()) return {};
  if (_PyType_Lookup(Py_TYPE(tensor), name) != nullptr) return {};
  auto own = [&](PyObject* o) -> PyObject* {
    PyObject** dict = _PyObject_GetDictPtr(o);
    return dict && *dict ? PyDict_GetItemWithError(*dict, name) : nullptr;
  };
  if (own(tensor) != nullptr) return {};
  PyObject* value = own(at->second.first.get());
  int place = at->second.second;
  if (value == nullptr) {
    entry.guards.check(Do::CheckAbsent, place, name);
    return {};
  }
  kept.push_back(Ref::borrow(name));
  return realize(value, entry.guards.fetch(Do::InstanceItem, place, name));
}

void Capture::store_on_tensor(PyObject* tensor,
                              PyObject* name,
                              PyObject* value) {
  PyObject* on_type = _PyType_Lookup(Py_TYPE(tensor), name);
  bool set_by_type = on_type && Py_TYPE(on_type)->tp_descr_set != nullptr;
  python::check_status(PyObject_SetAttr(tensor, name, value));
  if (set_by_type) return;
  Ref setattr = python::attribute(library().builtins.get(), "setattr");
  Ref args = checked(PyTuple_Pack(3, tensor, name, value));
  emit(*this, setattr.get(), args.get(), nullptr, Py_None);
}

// Guards what a class behind another one in the order of classes holds. Null
// where `super` has to make something of it.
Ref Capture::attribute_of_super(PyObject* super, PyObject* name) {
  Suspended suspended(*this);
  Ref type = python::attribute(super, "__self_class__");
  Ref after = python::attribute(super, "__thisclass__");
  if (!PyType_Check(type.get())) return {};
  bool behind = false;
  PyObject* order = reinterpret_cast<PyTypeObject*>(type.get())->tp_mro;
  for (PyObject* each : python::items_of(order)) {
    auto* base = reinterpret_cast<PyTypeObject*>(each);
    PyObject* own =
        behind && base->tp_dict != nullptr ? base->tp_dict : nullptr;
    behind |= each == after.get();
    PyObject* found = own ? PyDict_GetItemWithError(own, name) : nullptr;
    if (found == nullptr) continue;
    bool user = (base->tp_flags & Py_TPFLAGS_HEAPTYPE) && !of_library(base);
    bool plain = Py_TYPE(found)->tp_descr_get == nullptr;
    if (!user || !(plain || PyFunction_Check(found))) return {};
    Ref value = guarded_attribute(each, name);
    return plain ? value : Ref();
  }
  return {};
}

Ref Capture::plain_attribute(PyObject* object, PyObject* name) {
  Shadow* s = is_plain_instance(object) ? shadow_of(object) : nullptr;
  if (s != nullptr) return instance_attribute(*s, name, /*plain=*/true);
  return checked(PyObject_GenericGetAttr(object, name));
}

// What a program reads of a symbol as of the number that it stands for; null
// for all that the symbol has itself.
static Ref attribute_of_symbol(PyObject* symbol, PyObject* name) {
  auto* type_of_number = reinterpret_cast<PyObject*>(&PyType_Type);
  Ref type = symbolic_call(type_of_number, &symbol, 1);
  if (PyUnicode_CompareWithASCIIString(name, "__class__") == 0) return type;
  auto* number = reinterpret_cast<PyTypeObject*>(type.get());
  bool own = _PyType_Lookup(Py_TYPE(symbol), name) != nullptr;
  if (own || _PyType_Lookup(number, name) == nullptr) return {};
  Ref plain = checked(PyObject_CallOneArg(type.get(), symbol));
  return checked(PyObject_GetAttr(plain.get(), name));
}

// A function of the library that a program replaces, or a setting.
Ref Capture::attribute_of_library(PyObject* module, PyObject* name) {
  Ref value = outside(*this, module, name);
  PyObject* dict = PyModule_GetDict(module);
  bool own = PyDict_GetItemWithError(dict, name) == value.get();
  bool setting = is_value(value.get()) || is_singleton(value.get());
  if (!own && !setting) return value;
  auto [at, added] = globals.try_emplace({dict, name}, value);
  if (!added) return value;
  kept.push_back(Ref::borrow(name));
  Guards& guards = entry.guards;
  int place = own ? guards.fetch(Do::DictItem, constant(dict), name)
                  : guards.fetch(Do::Attribute, constant(module), name);
  bool by_value = is_value(value.get()) && !is_singleton(value.get());
  guards.check(by_value ? Do::CheckEqual : Do::CheckIs, place, value.get());
  return value;
}

// What programs hang on functions, and their names.
Ref Capture::attribute_of_function(PyObject* function, PyObject* name) {
  Ref value = checked(PyObject_GetAttr(function, name));
  PyObject** own = _PyObject_GetDictPtr(function);
  bool hangs = own && *own && PyDict_Contains(*own, name) == 1;
  bool fixed = made_anew.contains(function) ||
               !(hangs || is_value(value.get()) || is_singleton(value.get()));
  if (fixed) return value;
  auto [at, added] = globals.try_emplace({function, name}, Ref());
  if (added) {
    kept.push_back(Ref::borrow(name));
    int place = entry.guards.fetch(
        hangs ? Do::InstanceItem : Do::Attribute, constant(function), name);
    at->second = realize(value.get(), place);
  }
  return globals.at({function, name});
}

// Whether a class is of Python's library (`cached_property`), whose descriptors
// do what they were made for.
static bool is_of_python(PyTypeObject* type) {
  PyObject* module = PyDict_GetItemString(type->tp_dict, "__module__");
  PyObject* known = PySys_GetObject("stdlib_module_names");
  return module != nullptr && known != nullptr &&
         PySet_Contains(known, module) == 1;
}

// An attribute that an object on the class makes, with a stand-in of that
// object; null where it is no object of a program's.
Ref Capture::by_descriptor(PyObject* object,
                           PyTypeObject* type,
                           PyObject* found,
                           PyObject* name) {
  bool makes = found != nullptr && is_plain_instance(found) &&
               Py_TYPE(found)->tp_descr_get != nullptr &&
               !of_library(Py_TYPE(found)) && !is_of_python(Py_TYPE(found));
  if (!makes) return {};
  for (PyObject* each : python::items_of(type->tp_mro)) {
    PyObject* dict = reinterpret_cast<PyTypeObject*>(each)->tp_dict;
    if (!dict || PyDict_GetItemWithError(dict, name) != found) continue;
    auto [at, added] = globals.try_emplace({dict, name}, Ref());
    if (added) {
      kept.push_back(Ref::borrow(name));
      int place = entry.guards.fetch(Do::DictItem, constant(dict), name);
      Ref inner = realize(found, place);
      globals[{dict, name}] = inner;
    }
    Ref inner = globals.at({dict, name});
    return checked(Py_TYPE(inner.get())
                       ->tp_descr_get(inner.get(),
                                      object,
                                      reinterpret_cast<PyObject*>(type)));
  }
  return {};
}

namespace {

// Whether it stands in the object's own dict, which a lookup asks for it.
bool is_own_attribute(PyObject* object, PyObject* name) {
  PyObject** own = _PyObject_GetDictPtr(object);
  if (!own || !*own || PyDict_Contains(*own, name) != 1) return false;
  PyObject* found = _PyType_Lookup(Py_TYPE(object), name);
  return found == nullptr || Py_TYPE(found)->tp_descr_set == nullptr;
}

}  // namespace

Ref Capture::attribute(PyObject* object, PyObject* name) {
  if (is_symbol(object) || is_sym_float(object)) {
    if (Ref found = attribute_of_symbol(object, name)) return found;
  }
  if (is_tensor(object)) {
    if (Ref found = attribute_on_tensor(object, name)) return found;
  }
  if (Py_TYPE(object) == &PySuper_Type) {
    if (Ref found = attribute_of_super(object, name)) return found;
    return checked(PyObject_GetAttr(object, name));
  }
  if (Shadow* s = shadow_of(object)) {
    PyTypeObject* type = Py_TYPE(object);
    bool plain = type->tp_getattro == PyObject_GenericGetAttr ||
                 _PyType_Lookup(type, python::interned<"__getattribute__">()) ==
                     _PyType_Lookup(&PyBaseObject_Type,
                                    python::interned<"__getattribute__">());
    if (plain && (is_plain_instance(object) || PyTuple_Check(object))) {
      return instance_attribute(*s, name);
    }
    return checked(PyObject_GetAttr(object, name));
  }
  pin(object);
  if (is_enum(object) && is_own_attribute(object, name)) {
    return guarded_attribute(object, name);
  }
  if (PyModule_Check(object)) {
    auto key = std::pair(PyModule_GetDict(object), name);
    if (stored_globals.contains(key)) return globals.at(key);
    if (!is_ours(object)) return guarded_attribute(object, name);
    return attribute_of_library(object, name);
  } else if (PyType_Check(object)) {
    auto* type = reinterpret_cast<PyTypeObject*>(object);
    bool user = (type->tp_flags & Py_TPFLAGS_HEAPTYPE) && !of_library(type);
    PyObject* found = user ? _PyType_Lookup(type, name) : nullptr;
    bool held = found != nullptr &&
                (!Py_TYPE(found)->tp_descr_get || is_replaceable(found));
    // What the class of the class holds is looked up behind it.
    auto* kind = Py_TYPE(object);
    PyObject* behind = user && found == nullptr && kind != &PyType_Type
                           ? _PyType_Lookup(kind, name)
                           : nullptr;
    held |= behind != nullptr && !Py_TYPE(behind)->tp_descr_get;
    if (held) return guarded_attribute(object, name);
    if (Ref out = user ? by_descriptor(nullptr, type, found, name) : Ref()) {
      return out;
    }
  } else if (PyFunction_Check(object) && !own_functions.contains(object)) {
    return attribute_of_function(object, name);
  } else if (is_plain_instance(object) && !of_library(Py_TYPE(object))) {
    // Made inside, but what its class holds is outside.
    PyObject* found = _PyType_Lookup(Py_TYPE(object), name);
    if (found != nullptr && !Py_TYPE(found)->tp_descr_get &&
        !is_own_attribute(object, name)) {
      return guarded_attribute(type_of(object), name);
    }
    if (found != nullptr) note_descriptor(Py_TYPE(object), found, name);
  } else if (PySet_Contains(library().operator_types.get(), type_of(object)) ==
             1) {
    // Operators are made when they are first named.
    return outside(*this, object, name);
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
  if (globals.try_emplace({f.builtins, name}, Ref::borrow(value)).second) {
    int place = guards.fetch(Do::DictItem, constant(f.builtins), name);
    guards.check(Do::CheckIs, place, value);
  }
  globals[key] = Ref::borrow(value);
  return globals[key];
}

namespace {

// The variable whose cell it is, where the innermost frame has it.
PyObject* name_of_cell(const Frames& frames, PyObject* cell) {
  if (frames.empty()) return nullptr;
  const Frame& f = *frames.back();
  PyCodeObject* code = f.info->object();
  for (int i = 0; i < code->co_nlocalsplus; ++i) {
    if (f.slots[i] != cell) continue;
    return PyTuple_GET_ITEM(code->co_localsplusnames, i);
  }
  return nullptr;
}

}  // namespace

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
      // Of a function that was found, it is an element of its closure.
      bool varies = entry.guards.step_of(place).what == Do::Item;
      PyObject* name = varies ? nullptr : name_of_cell(frames, cell);
      if (name != nullptr) {
        const char* text = PyUnicode_AsUTF8(name);
        entry.guards.label(content, std::string("L['") + text + "']");
      }
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

PyObject* Capture::identity(PyObject* inner) {
  PyObject* outer = nullptr;
  int place = -1;
  if (Shadow* s = shadow_of(inner)) {
    outer = s->outer.get();
    place = s->place;
  }
  auto tensor = places_of_tensors.find(inner);
  if (tensor != places_of_tensors.end()) {
    outer = tensor->second.first.get();
    place = tensor->second.second;
  }
  pin(inner);
  if (outer != nullptr) {
    entry.guards.check(Do::CheckIs, place, outer);
    return outer;
  }
  return inner;
}

Ref Capture::call_cached(PyObject* function,
                         PyObject* const* args,
                         size_t count,
                         PyObject* names) {
  size_t all_given = count + (names ? PyTuple_GET_SIZE(names) : 0);
  bool shared = std::all_of(args, args + all_given, is_shared);
  if (!shared && dynamic.settings.scalar_outputs) {
    // Whether the cache has it is not known. Where a break is an error it is
    // worked out, as in PyTorch.
    Ref whole = python::attribute(function, "__wrapped__");
    return checked(PyObject_Vectorcall(whole.get(), args, count, names));
  }
  // If the function has to run, it runs now, and must find things as they are.
  bool written = !stored_globals.empty();
  for (auto [tensor, version] : versions) {
    written |= python::unwrap(tensor).impl()->version() != version;
  }
  if (!shared || written) break_graph("call of a cached function");
  Ref given =
      python::new_tuple(count, [&](size_t i) { return Py_NewRef(args[i]); });
  Ref named = checked(PyDict_New());
  for (size_t i = count; i < all_given; ++i) {
    PyObject* name = PyTuple_GET_ITEM(names, i - count);
    python::check_status(PyDict_SetItem(named.get(), name, args[i]));
  }
  Ref all = checked(PyTuple_Pack(2, given.get(), named.get()));
  int place = entry.guards.fetch(Do::Called, constant(function), all.get());
  ++suspended;
  Ref value(PyObject_Call(function, given.get(), named.get()));
  --suspended;
  if (!value) throw PythonError();
  kept.push_back(value);
  return realize(value.get(), place);
}

}  // namespace taeda::capture
