#include <taeda/csrc/python/size.h>

#include <taeda/csrc/python/tensor_type.h>

namespace taeda::python {

PyTypeObject* size_type = nullptr;

namespace {
void fill(PyObject* tuple, IntArrayRef values) {
  for (size_t i = 0; i < values.size(); ++i) {
    PyObject* item = PyLong_FromLongLong(values[i]);
    if (item == nullptr) throw PythonError();
    PyTuple_SET_ITEM(tuple, static_cast<Py_ssize_t>(i), item);
  }
}

// Results of tuple's own operations become Size again.
PyObject* as_size(PyObject* result) {
  if (result == nullptr || !PyTuple_CheckExact(result)) return result;
  Ref tuple(result);
  Py_ssize_t n = PyTuple_GET_SIZE(result);
  PyObject* out = size_type->tp_alloc(size_type, n);
  if (out == nullptr) return nullptr;
  for (Py_ssize_t i = 0; i < n; ++i) {
    PyTuple_SET_ITEM(out, i, Py_NewRef(PyTuple_GET_ITEM(result, i)));
  }
  return out;
}

// Each item must be an int, or a tensor of one integer.
Ref checked_item(PyObject* item, Py_ssize_t at) {
  if (PyLong_Check(item)) return Ref::borrow(item);
  if (PyIndex_Check(item)) {
    Ref index(PyNumber_Index(item));
    if (index) return index;
    PyErr_Clear();
  }
  raise(PyExc_TypeError,
        str_cat(library_name(),
                ".Size() takes an iterable of 'int' (item ",
                static_cast<int64_t>(at),
                " is '",
                Py_TYPE(item)->tp_name,
                "')"));
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
    std::string text = str_cat(library_name(), ".Size([");
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(self); ++i) {
      if (i > 0) text.append(", ");
      Ref item = checked(PyObject_Repr(PyTuple_GET_ITEM(self, i)));
      text.append(utf8(item.get()));
    }
    text.append("])");
    return new_text(text).release();
  });
}

PyObject* numel(PyObject* self, PyObject*) {
  Ref product(PyLong_FromLong(1));
  for (Py_ssize_t i = 0; product && i < PyTuple_GET_SIZE(self); ++i) {
    product = Ref(PyNumber_Multiply(product.get(), PyTuple_GET_ITEM(self, i)));
  }
  return product.release();
}

PyObject* reduce(PyObject* self, PyObject*) {
  Ref items(PyList_AsTuple(Ref(PySequence_List(self)).get()));
  if (!items) return nullptr;
  return Py_BuildValue("(O(O))", size_type, items.get());
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

PyMethodDef methods[] = {
    {"numel", numel, METH_NOARGS, "The number of elements of that shape."},
    {"__reduce__", reduce, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};
PyType_Slot slots[] = {
    {Py_tp_new, reinterpret_cast<void*>(make)},
    {Py_tp_repr, reinterpret_cast<void*>(repr)},
    {Py_sq_concat, reinterpret_cast<void*>(concat)},
    {Py_nb_add, reinterpret_cast<void*>(add)},
    {Py_sq_repeat, reinterpret_cast<void*>(repeat)},
    {Py_mp_subscript, reinterpret_cast<void*>(subscript)},
    {Py_tp_methods, methods},
    {Py_tp_doc, const_cast<char*>("The shape of a tensor.")},
    {0, nullptr},
};
PyType_Spec spec = {"taeda.Size", 0, 0, Py_TPFLAGS_DEFAULT, slots};
}  // namespace

PyObject* new_size(IntArrayRef sizes) {
  Ref out = checked(
      size_type->tp_alloc(size_type, static_cast<Py_ssize_t>(sizes.size())));
  fill(out.get(), sizes);
  return out.release();
}

PyObject* new_int_tuple(IntArrayRef values) {
  Ref out = checked(PyTuple_New(static_cast<Py_ssize_t>(values.size())));
  fill(out.get(), values);
  return out.release();
}

void init_size(PyObject* module) {
  Ref bases =
      checked(PyTuple_Pack(1, reinterpret_cast<PyObject*>(&PyTuple_Type)));
  Ref type = checked(PyType_FromSpecWithBases(&spec, bases.get()));
  add_object(module, "Size", type.get());
  size_type = reinterpret_cast<PyTypeObject*>(type.release());
}

}  // namespace taeda::python
