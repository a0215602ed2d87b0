#include <taeda/csrc/python/init.h>
#include <taeda/csrc/python/values.h>

#include <taeda/csrc/python/symbolic.h>
#include <taeda/csrc/python/tensor_type.h>

namespace taeda::python {

PyTypeObject* size_type = nullptr;

namespace {
// A Size of `count` items from new references.
template <class F>
Ref make_size(size_t count, F&& make) {
  auto n = static_cast<Py_ssize_t>(count);
  Ref out = checked(size_type->tp_alloc(size_type, n));
  for (Py_ssize_t i = 0; i < n; ++i) {
    PyTuple_SET_ITEM(out.get(), i, checked(make(i)).release());
  }
  return out;
}

// Results of tuple's own operations become Size again.
PyObject* as_size(PyObject* result) {
  if (result == nullptr || !PyTuple_CheckExact(result)) return result;
  return guarded([&] {
    Ref tuple(result);
    ArrayRef<PyObject*> items = items_of(result);
    return make_size(items.size(),
                     [&](size_t i) { return Py_NewRef(items[i]); })
        .release();
  });
}

// Each item must be an int, or a tensor of one integer.
Ref checked_item(PyObject* item, Py_ssize_t at) {
  if (PyLong_Check(item) || is_symbol(item)) return Ref::borrow(item);
  if (PyIndex_Check(item)) {
    Ref index(PyNumber_Index(item));
    if (index) return index;
    PyErr_Clear();
  }
  raise(PyExc_TypeError,
        "{}.Size() takes an iterable of 'int' (item {} is '{}')",
        library_name(),
        at,
        type_name_of(item));
}

PyObject* make(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  return guarded([&] {
    Ref self = checked(PyTuple_Type.tp_new(type, args, kwargs));
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(self.get()); ++i) {
      PyObject* item = PyTuple_GET_ITEM(self.get(), i);
      Ref fresh = checked_item(item, i);
      if (fresh.get() == item) continue;
      PyTuple_SET_ITEM(self.get(), i, fresh.release());
      Py_DECREF(item);
    }
    return self.release();
  });
}

PyObject* repr(PyObject* self) {
  return guarded([&] {
    std::string items;
    for (PyObject* item : items_of(self)) {
      items += (items.empty() ? "" : ", ") + repr_of(item);
    }
    return new_text(str_cat(library_name(), ".Size([", items, "])")).release();
  });
}

PyObject* concat(PyObject* a, PyObject* b) {
  if (!PyTuple_Check(a) || !PyTuple_Check(b)) {
    PyErr_Format(PyExc_TypeError,
                 "can only concatenate tuple (not %s) to %s.Size",
                 Py_TYPE(PyTuple_Check(a) ? b : a)->tp_name,
                 library_name());
    return nullptr;
  }
  Ref left(PySequence_Tuple(a));
  return as_size(PyTuple_Type.tp_as_sequence->sq_concat(left.get(), b));
}
PyObject* add(PyObject* a, PyObject* b) {
  if (!PyTuple_Check(a) || !PyTuple_Check(b)) Py_RETURN_NOTIMPLEMENTED;
  return concat(a, b);
}
PyObject* repeat(PyObject* self, Py_ssize_t n) {
  Ref tuple(PyTuple_Type.tp_as_sequence->sq_repeat(self, n));
  if (!tuple) return nullptr;
  Ref plain(PySequence_Tuple(tuple.get()));
  return as_size(plain.release());
}
PyObject* subscript(PyObject* self, PyObject* index) {
  PyObject* out = PyTuple_Type.tp_as_mapping->mp_subscript(self, index);
  return PySlice_Check(index) ? as_size(out) : out;
}
}  // namespace

PyObject* new_size(IntArrayRef sizes) {
  return make_size(sizes.size(), [&](size_t i) { return wrap(sizes[i]); })
      .release();
}

PyObject* new_symbolic_size(ArrayRef<SymInt> sizes) {
  return make_size(sizes.size(), [&](size_t i) { return wrap(sizes[i]); })
      .release();
}

PyObject* new_int_tuple(IntArrayRef values) {
  return new_tuple(values.size(), [&](size_t i) { return wrap(values[i]); })
      .release();
}

void init_size(PyObject* module) {
  size_type = add_type(module,
                       "taeda.Size",
                       0,
                       {slot(Py_tp_new, make),
                        slot(Py_tp_repr, repr),
                        slot(Py_sq_concat, concat),
                        slot(Py_nb_add, add),
                        slot(Py_sq_repeat, repeat),
                        slot(Py_mp_subscript, subscript),
                        doc_slot("The shape of a tensor.")},
                       0,
                       &PyTuple_Type);
}

}  // namespace taeda::python
