// What kinds of objects there are, by their types alone.
#pragma once

#include <taeda/csrc/compiler/capture/graph.h>

namespace taeda::capture {

inline PyObject* type_of(PyObject* o) {
  return reinterpret_cast<PyObject*>(Py_TYPE(o));
}
// None, True, False, ...: one object each.
bool is_singleton(PyObject* o);
// Numbers and text: compared by value.
bool is_value(PyObject* o);
// Itself inside too, compared by identity.
bool is_transparent(PyObject* o);
bool is_enum(PyObject* o);
bool is_dict_kind(PyObject* o);
bool is_deque(PyObject* o);
// A tensor's size, as programs keep and pass one.
bool is_size(PyObject* o);
// A stand-in of an array (compiler/_arrays.py).
bool is_array(PyObject* o);
// Of a class that Python code derived from dict, OrderedDict or list.
bool is_container_subclass(PyObject* o);
// A tuple, or one of a class that Python code derived from it.
bool is_tuple_kind(PyObject* o);
// One of a class, past a `__new__` that the class may have.
Ref tuple_of(PyTypeObject* type, PyObject* items);
// A container of a class that Python code derived from one, empty and likewise.
Ref empty_of(PyTypeObject* type);
// A dict's keys in the order that it tells, which of an OrderedDict is not that
// of its memory where some were moved. A tuple.
Ref keys_of(PyObject* dict);
// As the classes' own __setitem__ does, whatever a subclass makes of it.
void set_item(PyObject* dict, PyObject* key, PyObject* value);
// Whether the class is the library's own.
bool of_library(PyTypeObject* type);
// Of what `d.keys()`, `d.values()` or `d.items()` gave: the name of that
// method; null for all else.
const char* view_of(PyObject* o);
// A weak reference to something that is there.
bool is_alive(PyObject* o);
bool is_mapping_proxy(PyObject* o);
// What a mapping proxy shows, borrowed.
PyObject* mapping_of(PyObject* proxy);
// Whether a module's name is this library's or as_torch's.
bool is_own_module(const char* module);
bool is_tensor(PyObject* o);
// Objects that are the same inside and outside.
bool is_shared(PyObject* o);
// Instances whose whole state is their __dict__ and their __slots__.
bool is_plain_instance(PyObject* o);
// One without state.
Ref new_plain_instance(PyTypeObject* type);
// That state as a dict.
Ref attributes_of(PyObject* o);
bool is_slot(PyObject* descriptor);
// Sets an attribute that `attributes_of` has, or takes it away (no value): past
// what a property of that name would do, since the object's dict has it then.
int set_own(PyObject* o, PyObject* name, PyObject* value);
// The interned text that is equal to this one: names are told apart by address.
Ref interned(PyObject* text);
// The names of the slots of a class and its bases.
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
// Whether a function of C's is the method of an object: not a module's, a
// class's, or one that pybind11 bound.
bool is_bound(PyObject* function);
// Whether other objects are equal to it only by being it.
bool has_identity(PyObject* o);
// Tuples of values, which are equal where their items are.
bool is_tuple_of_values(PyObject* o);
// Functions behind functools.lru_cache.
bool is_cached(PyObject* o);
// The function of what `capture` returned, borrowed; null for all else.
PyObject* compiled_function(PyObject* o);
// An object of no_grad, enable_grad or inference_mode.
bool is_mode(PyObject* o);
// C iterators that loops stand on, whose position __reduce__ tells.
bool is_iterator(PyObject* o);
bool is_dict_iterator(PyObject* o);
// How far one has come: as __setstate__ takes it, the count of enumerate, or
// what is left of a range.
Ref position_of(PyObject* iterator);
void set_position(PyObject* iterator, PyObject* position);
// Whether the object's class is the library's own.
bool is_of_library(PyObject* o);

}  // namespace taeda::capture
