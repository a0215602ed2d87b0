// What kinds of objects there are, by their types alone.
#include <taeda/csrc/compiler/capture/interpreter.h>

#include <algorithm>
#include <string_view>

namespace taeda::capture {

bool is_singleton(PyObject* o) {
  return o == Py_None || o == Py_True || o == Py_False || o == Py_Ellipsis ||
         o == Py_NotImplemented;
}

namespace {

// Numbers of NumPy's. Their module is not loaded for a look at a type.
bool is_numpy_scalar(PyTypeObject* type) {
  if (strncmp(type->tp_name, "numpy.", 6) != 0) return false;
  std::string_view name = type->tp_name + 6;
  for (std::string_view kind : {"float", "int", "uint", "bool", "complex"}) {
    if (!name.starts_with(kind)) continue;
    std::string_view rest = name.substr(kind.size());
    return rest.find_first_not_of("0123456789_") == rest.npos;
  }
  return false;
}

}  // namespace

bool is_value(PyObject* o) {
  return is_numpy_scalar(Py_TYPE(o)) || PyLong_CheckExact(o) ||
         PyFloat_CheckExact(o) || PyUnicode_CheckExact(o) ||
         PyBytes_CheckExact(o) || PyComplex_CheckExact(o) || PyRange_Check(o);
}

namespace {

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
                            "numpy.ufunc",
                            "numpy._ArrayFunctionDispatcher",
                            "decimal.Decimal",
                            "datetime.date",
                            "datetime.time",
                            "datetime.datetime",
                            "datetime.timedelta",
                            "datetime.timezone"}) {
    if (strcmp(name, known) == 0) return true;
  }
  return strncmp(name, "numpy.dtype", 11) == 0;
}

}  // namespace

// Objects that are themselves inside too: what they are is known by identity,
// and an attempt to write to them ends the graph.
bool is_transparent(PyObject* o) {
  // A bare object is there to be compared with; text of a class of its own
  // (a version) does not change.
  return Py_TYPE(o) == &PyBaseObject_Type || PyType_Check(o) ||
         PyUnicode_Check(o) || PyModule_Check(o) || PyFunction_Check(o) ||
         PyCFunction_Check(o) || PyCode_Check(o) ||
         Py_TYPE(o) == &PyMethodDescr_Type ||
         Py_TYPE(o) == &PyWrapperDescr_Type ||
         Py_TYPE(o) == &PyClassMethodDescr_Type ||
         Py_TYPE(o) == &PyGetSetDescr_Type ||
         Py_TYPE(o) == &PyMemberDescr_Type || Py_TYPE(o) == &PyProperty_Type ||
         Py_TYPE(o) == &PyClassMethod_Type ||
         Py_TYPE(o) == &PyStaticMethod_Type ||
         Py_TYPE(o) == &Py_GenericAliasType ||
         is_immutable(Py_TYPE(o)->tp_name) || compiled_function(o) != nullptr ||
         type_of(o) == library().device_type.get() ||
         type_of(o) == library().dtype_type.get() ||
         PySet_Contains(library().operator_types.get(), type_of(o)) == 1;
}

bool is_enum(PyObject* o) {
  return PyObject_IsInstance(o, library().enum_type.get()) == 1;
}

namespace {

// What the classes that Python code defined are derived from; null where one of
// them is C code's. Those of Python code share a destructor.
PyTypeObject* native_base(PyTypeObject* type) {
  auto* python_class =
      reinterpret_cast<PyTypeObject*>(library().enum_type.get());
  while (type->tp_flags & Py_TPFLAGS_HEAPTYPE) {
    if (type->tp_dealloc != python_class->tp_dealloc) return nullptr;
    type = type->tp_base;
  }
  return type;
}

bool has_python_state(PyTypeObject* type) {
  if (!(type->tp_flags & Py_TPFLAGS_HEAPTYPE)) return false;
  if (native_base(type) != &PyBaseObject_Type) return false;
  // A class whose state is a struct in C is larger than its references.
  Py_ssize_t references =
      (type->tp_dictoffset > 0) + (type->tp_weaklistoffset > 0);
  each_slot(type, [&](PyObject*) { ++references; });
  auto size = static_cast<Py_ssize_t>(sizeof(PyObject));
  size += references * static_cast<Py_ssize_t>(sizeof(PyObject*));
  return type->tp_basicsize == size;
}

}  // namespace

namespace {
// "taeda", or "torch" for a program that runs under as_torch.
std::string_view library_name() {
  return PyModule_GetName(PyImport_AddModule("taeda"));
}
}  // namespace

bool is_own_module(const char* module) {
  std::string_view path = module;
  std::string_view root = path.substr(0, path.find('.'));
  return root == "taeda" || root == library_name();
}

bool of_library(PyTypeObject* type) {
  PyObject* own = type->tp_dict;
  PyObject* name = own ? PyDict_GetItemString(own, "__module__") : nullptr;
  if (name == nullptr || !PyUnicode_Check(name)) return false;
  const char* path = PyUnicode_AsUTF8(name);
  return strchr(path, '.') != nullptr && is_own_module(path);
}

bool is_dict_kind(PyObject* o) {
  return PyDict_CheckExact(o) ||
         strcmp(Py_TYPE(o)->tp_name, "collections.OrderedDict") == 0 ||
         strcmp(Py_TYPE(o)->tp_name, "collections.defaultdict") == 0;
}

bool is_array(PyObject* o) {
  PyTypeObject* base = Py_TYPE(o)->tp_base;
  return base != nullptr && strcmp(base->tp_name, "numpy.ndarray") == 0 &&
         strcmp(Py_TYPE(o)->tp_name, "StandIn") == 0;
}

bool is_deque(PyObject* o) {
  return strcmp(Py_TYPE(o)->tp_name, "collections.deque") == 0;
}

bool is_size(PyObject* o) {
  std::string_view name = Py_TYPE(o)->tp_name;
  std::string_view root = library_name();
  return name.starts_with(root) && name.substr(root.size()) == ".Size";
}

bool is_container_subclass(PyObject* o) {
  PyTypeObject* type = Py_TYPE(o);
  if (!(type->tp_flags & Py_TPFLAGS_HEAPTYPE)) return false;
  PyTypeObject* base = native_base(type);
  return base == &PyDict_Type || base == &PyODict_Type || base == &PyList_Type;
}
bool is_tuple_kind(PyObject* o) {
  if (PyTuple_CheckExact(o) || is_size(o)) return true;
  return PyTuple_Check(o) && native_base(Py_TYPE(o)) == &PyTuple_Type;
}
Ref tuple_of(PyTypeObject* type, PyObject* items) {
  if (type == &PyTuple_Type) return Ref::borrow(items);
  if (native_base(type) != &PyTuple_Type) {
    return checked(
        PyObject_CallOneArg(reinterpret_cast<PyObject*>(type), items));
  }
  Ref args = checked(PyTuple_Pack(1, items));
  return checked(PyTuple_Type.tp_new(type, args.get(), nullptr));
}
Ref empty_of(PyTypeObject* type) {
  Ref none = checked(PyTuple_New(0));
  return checked(native_base(type)->tp_new(type, none.get(), nullptr));
}
Ref keys_of(PyObject* dict) {
  if (!PyODict_Check(dict)) {
    Ref keys = checked(PyDict_Keys(dict));
    return checked(PyList_AsTuple(keys.get()));
  }
  Ref iterator = checked(PyODict_Type.tp_iter(dict));
  return checked(PySequence_Tuple(iterator.get()));
}
const char* view_of(PyObject* o) {
  if (PyDictKeys_Check(o)) return "keys";
  if (PyDictValues_Check(o)) return "values";
  return PyDictItems_Check(o) ? "items" : nullptr;
}
bool is_alive(PyObject* o) {
  return PyWeakref_CheckRefExact(o) && PyWeakref_GetObject(o) != Py_None;
}
bool is_mapping_proxy(PyObject* o) { return Py_TYPE(o) == &PyDictProxy_Type; }
PyObject* mapping_of(PyObject* proxy) {
  PyObject* found = nullptr;
  auto note = [](PyObject* each, void* into) {
    *static_cast<PyObject**>(into) = each;
    return 0;
  };
  Py_TYPE(proxy)->tp_traverse(proxy, note, &found);
  return found;
}
void set_item(PyObject* dict, PyObject* key, PyObject* value) {
  python::check_status(PyODict_Check(dict) ? PyODict_SetItem(dict, key, value)
                                           : PyDict_SetItem(dict, key, value));
}

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
int set_own(PyObject* o, PyObject* name, PyObject* value) {
  PyObject* on_type = _PyType_Lookup(Py_TYPE(o), name);
  bool python = on_type != nullptr &&
                (Py_IS_TYPE(on_type, &PyProperty_Type) ||
                 PyType_HasFeature(Py_TYPE(on_type), Py_TPFLAGS_HEAPTYPE));
  if (!python || Py_TYPE(on_type)->tp_descr_set == nullptr)
    return PyObject_GenericSetAttr(o, name, value);
  Ref dict(PyObject_GenericGetDict(o, nullptr));
  if (!dict) return -1;
  return value != nullptr ? PyDict_SetItem(dict.get(), name, value)
                          : PyDict_DelItem(dict.get(), name);
}
// What is given may be borrowed, while the interpreter's function replaces a
// reference that is owned.
Ref interned(PyObject* text) {
  Py_INCREF(text);
  PyUnicode_InternInPlace(&text);
  return Ref(text);
}
bool is_bound(PyObject* function) {
  PyObject* self = PyCFunction_GET_SELF(function);
  return self != nullptr && !PyModule_Check(self) && !PyType_Check(self) &&
         strncmp(Py_TYPE(self)->tp_name, "pybind11_", 9) != 0;
}
bool has_identity(PyObject* o) {
  return is_tensor(o) ||
         (Py_TYPE(o)->tp_hash == PyBaseObject_Type.tp_hash &&
          Py_TYPE(o)->tp_richcompare == PyBaseObject_Type.tp_richcompare);
}
bool is_tuple_of_values(PyObject* o) {
  if (!PyTuple_CheckExact(o) && !is_size(o)) return false;
  auto items = python::items_of(o);
  return std::all_of(items.begin(), items.end(), [](PyObject* each) {
    return is_shared(each) || is_tuple_of_values(each);
  });
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
namespace {

// From 3.12 on an iterator of a range forgets what it has passed.
bool forgets(PyObject* iterator) {
  return kPython312 && Py_TYPE(iterator) == &PyRangeIter_Type;
}
Ref left_of(PyObject* iterator) {
  return checked(PyObject_CallMethod(iterator, "__length_hint__", nullptr));
}

}  // namespace

void set_position(PyObject* iterator, PyObject* position) {
  Ref state = Ref::borrow(position);
  if (forgets(iterator)) {
    Ref left = left_of(iterator);
    state = checked(PyNumber_Subtract(left.get(), position));
  }
  checked(call_method(iterator, "__setstate__", state.get()));
}
Ref position_of(PyObject* iterator) {
  if (forgets(iterator)) return left_of(iterator);
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
bool is_namespace(PyTypeObject* type) {
  return strcmp(type->tp_name, "types.SimpleNamespace") == 0;
}
bool is_plain_instance(PyObject* o) {
  return has_python_state(Py_TYPE(o)) || is_namespace(Py_TYPE(o));
}
Ref new_plain_instance(PyTypeObject* type) {
  auto* class_object = reinterpret_cast<PyObject*>(type);
  if (is_namespace(type)) return checked(PyObject_CallNoArgs(class_object));
  return checked(type->tp_alloc(type, 0));
}

}  // namespace taeda::capture
