// taeda.UntypedStorage: the bytes behind tensors.
#include <taeda/aten/iter/derived.h>
#include <taeda/csrc/python/device.h>
#include <taeda/csrc/python/exchange.h>
#include <taeda/csrc/python/late_op.h>

#include <structmember.h>
#include <cstring>

namespace taeda::python {

namespace {
PyTypeObject* storage_type = nullptr;

struct PyStorage {
  PyObject_HEAD Storage value;
  PyObject* weakrefs;
};

StorageImpl& impl_of(PyObject* self) {
  return *reinterpret_cast<PyStorage*>(self)->value;
}

// A storage has one Python object at a time, so that `is` works.
PyObject* wrap_storage(const Storage& s) {
  if (s->python_object != nullptr) {
    return Py_NewRef(static_cast<PyObject*>(s->python_object));
  }
  PyObject* self = storage_type->tp_alloc(storage_type, 0);
  if (self == nullptr) throw PythonError();
  new (&reinterpret_cast<PyStorage*>(self)->value) Storage(s);
  s->python_object = self;
  return self;
}

PyObject* make(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"size", "device", nullptr};
  PyObject* given = nullptr;
  PyObject* device = Py_None;
  if (!PyArg_ParseTupleAndKeywords(args,
                                   kwargs,
                                   "|OO:UntypedStorage",
                                   const_cast<char**>(names),
                                   &given,
                                   &device)) {
    return nullptr;
  }
  return guarded([&] {
    Device place = device == Py_None ? Device() : to_device(device);
    bool is_size = given == nullptr || PyLong_Check(given);
    int64_t n = given == nullptr ? 0
                : is_size        ? to_int(given)
                                 : PySequence_Size(given);
    if (n < 0 && PyErr_Occurred()) throw PythonError();
    TAEDA_CHECK(n >= 0, "UntypedStorage: negative size ", n);
    auto storage = make_intrusive<StorageImpl>(
        static_cast<size_t>(n), allocator_for(place.type), place);
    for (int64_t i = 0; !is_size && i < n; ++i) {
      Ref item = checked(PySequence_GetItem(given, i));
      int64_t byte = to_int(item.get());
      static_cast<uint8_t*>(storage->mutable_data())[i] =
          static_cast<uint8_t>(byte);
    }
    return wrap_storage(storage);
  });
}

void dealloc(PyObject* self) {
  auto* s = reinterpret_cast<PyStorage*>(self);
  if (s->weakrefs != nullptr) PyObject_ClearWeakRefs(self);
  if (s->value) s->value->python_object = nullptr;
  s->value.reset();
  PyTypeObject* type = Py_TYPE(self);
  type->tp_free(self);
  Py_DECREF(type);
}

int get_buffer(PyObject* self, Py_buffer* view, int flags) {
  StorageImpl& s = impl_of(self);
  if (!s.device().is_cpu()) {
    PyErr_SetString(PyExc_BufferError, "only CPU storages have a buffer");
    return -1;
  }
  return PyBuffer_FillInfo(view,
                           self,
                           s.mutable_data(),
                           static_cast<Py_ssize_t>(s.nbytes()),
                           /*readonly=*/0,
                           flags);
}

// Queries
// -----------------------------------------------------------------------

PyObject* nbytes(PyObject* self, PyObject*) {
  return PyLong_FromSize_t(impl_of(self).nbytes());
}
PyObject* data_ptr(PyObject* self, PyObject*) {
  return PyLong_FromVoidPtr(impl_of(self).mutable_data());
}
PyObject* element_size(PyObject*, PyObject*) { return PyLong_FromLong(1); }
PyObject* resizable(PyObject* self, PyObject*) {
  return boolean(impl_of(self).resizable());
}
PyObject* get_device(PyObject* self, PyObject*) {
  return PyLong_FromLong(impl_of(self).device().index);
}
PyObject* use_count(PyObject* self, PyObject*) {
  return PyLong_FromUnsignedLong(impl_of(self).use_count());
}
PyObject* tolist(PyObject* self, PyObject*) {
  return guarded([&] {
    StorageImpl& s = impl_of(self);
    const auto* bytes = static_cast<const uint8_t*>(s.data());
    Ref out = checked(PyList_New(static_cast<Py_ssize_t>(s.nbytes())));
    for (size_t i = 0; i < s.nbytes(); ++i) {
      PyList_SET_ITEM(
          out.get(), static_cast<Py_ssize_t>(i), PyLong_FromLong(bytes[i]));
    }
    return out.release();
  });
}
Py_ssize_t length(PyObject* self) {
  return static_cast<Py_ssize_t>(impl_of(self).nbytes());
}

uint8_t* byte_at(PyObject* self, PyObject* key) {
  StorageImpl& s = impl_of(self);
  int64_t i = to_int(key), n = static_cast<int64_t>(s.nbytes());
  TAEDA_CHECK_AS(Index,
                 i >= -n && i < n,
                 "index ",
                 i,
                 " out of range for storage of size ",
                 n);
  return static_cast<uint8_t*>(s.mutable_data()) + (i < 0 ? i + n : i);
}
// A slice shares memory with the whole, which it keeps alive.
Storage slice_of(PyObject* self, PyObject* slice) {
  const Storage& whole = reinterpret_cast<PyStorage*>(self)->value;
  Py_ssize_t start, stop, step;
  check_status(PySlice_Unpack(slice, &start, &stop, &step));
  auto size = static_cast<Py_ssize_t>(whole->nbytes());
  Py_ssize_t n = PySlice_AdjustIndices(size, &start, &stop, step);
  TAEDA_CHECK(step == 1, "slices of storages must have step 1, got ", step);
  auto release = [](void* context, size_t) {
    static_cast<StorageImpl*>(context)->release();
  };
  char* data = static_cast<char*>(whole->mutable_data()) + start;
  void* kept = Storage(whole).detach();
  return make_intrusive<StorageImpl>(
      DataPtr{data, kept, release}, static_cast<size_t>(n), whole->device());
}
PyObject* subscript(PyObject* self, PyObject* key) {
  return guarded([&]() -> PyObject* {
    if (PySlice_Check(key)) return wrap_storage(slice_of(self, key));
    return PyLong_FromLong(*byte_at(self, key));
  });
}
int assign(PyObject* self, PyObject* key, PyObject* value) {
  return guarded_status([&] {
    auto byte = static_cast<uint8_t>(value == nullptr ? 0 : to_int(value));
    if (!PySlice_Check(key)) {
      *byte_at(self, key) = byte;
      return;
    }
    Storage part = slice_of(self, key);
    if (part->nbytes() > 0) {
      std::memset(part->mutable_data(), byte, part->nbytes());
    }
  });
}

// Changes
// -------------------------------------------------------------------------

PyObject* resize(PyObject* self, PyObject* size) {
  return guarded([&] {
    int64_t n = to_int(size);
    TAEDA_CHECK(n >= 0, "resize_: negative size ", n);
    TAEDA_CHECK(impl_of(self).resizable(),
                "Trying to resize storage that is not resizable");
    impl_of(self).resize(static_cast<size_t>(n));
    return Py_NewRef(self);
  });
}
PyObject* fill(PyObject* self, PyObject* value) {
  return guarded([&] {
    StorageImpl& s = impl_of(self);
    int64_t byte = to_int(value);
    if (s.nbytes() > 0) {
      std::memset(s.mutable_data(), static_cast<int>(byte), s.nbytes());
    }
    return Py_NewRef(self);
  });
}
PyObject* copy_from(PyObject* self, PyObject* args) {
  PyObject* other;
  int non_blocking = 0;
  if (!PyArg_ParseTuple(args, "O|p:copy_", &other, &non_blocking)) {
    return nullptr;
  }
  return guarded([&] {
    if (Py_TYPE(other) != storage_type) {
      raise(PyExc_TypeError, "copy_: expected an UntypedStorage");
    }
    StorageImpl& to = impl_of(self);
    StorageImpl& from = impl_of(other);
    TAEDA_CHECK(to.nbytes() == from.nbytes(),
                "size does not match, self was ",
                static_cast<int64_t>(to.nbytes()),
                " bytes but src was ",
                static_cast<int64_t>(from.nbytes()),
                " bytes");
    if (to.nbytes() > 0) {
      std::memmove(to.mutable_data(), from.data(), to.nbytes());
    }
    return Py_NewRef(self);
  });
}
PyObject* clone(PyObject* self, PyObject*) {
  return guarded([&] {
    StorageImpl& s = impl_of(self);
    auto out = make_intrusive<StorageImpl>(
        s.nbytes(), allocator_for(s.device().type), s.device());
    if (s.nbytes() > 0) std::memcpy(out->mutable_data(), s.data(), s.nbytes());
    return wrap_storage(out);
  });
}
PyObject* deepcopy(PyObject* self, PyObject* memo) {
  Ref key(PyLong_FromVoidPtr(&impl_of(self)));
  PyObject* seen = PyDict_GetItem(memo, key.get());
  if (seen != nullptr) return Py_NewRef(seen);
  Ref out(clone(self, nullptr));
  if (!out || PyDict_SetItem(memo, key.get(), out.get()) < 0) return nullptr;
  return out.release();
}
PyObject* same(PyObject* self, PyObject*) { return Py_NewRef(self); }
PyObject* size_of(PyObject* self, PyObject*) {
  return PyLong_FromSize_t(sizeof(PyStorage) + impl_of(self).nbytes());
}

PyObject* device(PyObject* self, void*) {
  return new_device(impl_of(self).device());
}
PyObject* cdata(PyObject* self, void*) {
  return PyLong_FromVoidPtr(&impl_of(self));
}
PyObject* is_cuda(PyObject* self, void*) {
  return boolean(impl_of(self).device().is_cuda());
}
PyObject* no(PyObject*, void*) { return boolean(false); }

PyMethodDef methods[] = {
    {"nbytes", nbytes, METH_NOARGS, "Its length in bytes."},
    {"size", nbytes, METH_NOARGS, "Its length in bytes."},
    {"data_ptr", data_ptr, METH_NOARGS, "The address of its first byte."},
    {"element_size", element_size, METH_NOARGS, nullptr},
    {"resizable", resizable, METH_NOARGS, nullptr},
    {"get_device", get_device, METH_NOARGS, nullptr},
    {"_use_count", use_count, METH_NOARGS, nullptr},
    {"tolist", tolist, METH_NOARGS, "Its bytes as a list of ints."},
    {"resize_", resize, METH_O, "Changes the length, keeping what fits."},
    {"fill_", fill, METH_O, "Sets every byte."},
    {"copy_", copy_from, METH_VARARGS, "Copies another storage's bytes."},
    {"clone", clone, METH_NOARGS, "A copy."},
    {"cpu", same, METH_NOARGS, nullptr},
    {"untyped", same, METH_NOARGS, nullptr},
    {"__copy__", clone, METH_NOARGS, nullptr},
    {"__deepcopy__", deepcopy, METH_O, nullptr},
    {"__sizeof__", size_of, METH_NOARGS, "Bytes of memory, its data included."},
    {nullptr, nullptr, 0, nullptr},
};
PyGetSetDef getset[] = {
    {"device", device, nullptr, nullptr, nullptr},
    {"_cdata", cdata, nullptr, nullptr, nullptr},
    {"is_cuda", is_cuda, nullptr, nullptr, nullptr},
    {"is_hpu", no, nullptr, nullptr, nullptr},
    {"is_sparse", no, nullptr, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};
PyMemberDef members[] = {
    {"__weaklistoffset__",
     T_PYSSIZET,
     offsetof(PyStorage, weakrefs),
     READONLY,
     nullptr},
    {nullptr, 0, 0, 0, nullptr},
};
PyType_Slot slots[] = {
    {Py_tp_new, reinterpret_cast<void*>(make)},
    {Py_tp_dealloc, reinterpret_cast<void*>(dealloc)},
    {Py_mp_length, reinterpret_cast<void*>(length)},
    {Py_mp_subscript, reinterpret_cast<void*>(subscript)},
    {Py_mp_ass_subscript, reinterpret_cast<void*>(assign)},
    {Py_bf_getbuffer, reinterpret_cast<void*>(get_buffer)},
    {Py_tp_methods, methods},
    {Py_tp_members, members},
    {Py_tp_getset, getset},
    {Py_tp_doc, const_cast<char*>("Bytes that tensors are views of.")},
    {0, nullptr},
};
PyType_Spec spec = {
    "taeda.UntypedStorage", sizeof(PyStorage), 0, Py_TPFLAGS_DEFAULT, slots};

constexpr Param kSetParams[] = {
    {"input", nullptr, ParamType::Tensor, 0, 0},
    {"source", nullptr, ParamType::Tensor, Param::kHasDefault, 0},
    {"storage_offset", nullptr, ParamType::Int, Param::kHasDefault, 0},
    {"size", nullptr, ParamType::IntList, Param::kHasDefault, 0},
    {"stride", nullptr, ParamType::IntList, Param::kHasDefault, 0},
};
constexpr Overload kSetOverload[] = {
    {kSetParams,
     5,
     0,
     0,
     nullptr,
     "",
     "(Storage source, int storage_offset, tuple of ints size, tuple of ints "
     "stride)"}};
constexpr Function kSet = {"set_", "", kSetOverload, 1};

// Points `t` at a part of a storage, checked to lie inside.
void set_storage(const TensorBase& t,
                 const Storage& s,
                 int64_t offset,
                 IntArrayRef sizes,
                 IntArrayRef strides) {
  derived::check_writable(t);
  TAEDA_CHECK(offset >= 0, "Tensor: invalid storage offset ", offset);
  TAEDA_CHECK(sizes.size() == strides.size(),
              "mismatch in length of strides and shape: ",
              strides,
              " and ",
              sizes);
  checked_numel("set_", sizes);
  for (int64_t stride : strides) {
    TAEDA_CHECK(stride >= 0, "set_: negative stride in ", strides);
  }
  size_t need = required_bytes(sizes, strides, offset, t.itemsize());
  if (need > s->nbytes()) {
    TAEDA_CHECK(s->resizable(),
                "setStorage: sizes ",
                sizes,
                ", strides ",
                strides,
                ", storage offset ",
                offset,
                ", and itemsize ",
                static_cast<int64_t>(t.itemsize()),
                " requiring a storage size of ",
                static_cast<int64_t>(need),
                " are out of bounds for storage of size ",
                static_cast<int64_t>(s->nbytes()));
    s->resize(need);
  }
  TensorImpl& impl = *t.impl();
  impl.set_storage(s);
  impl.set_sizes_and_strides(sizes, strides, offset);
  impl.bump_version();
}

// set_() and set_(tensor): take over that tensor's memory and geometry.
void set_from_tensor(const TensorBase& t, const TensorBase& source) {
  derived::check_writable(t);
  TAEDA_CHECK(t.dtype() == source.dtype(),
              "Could not set tensor of type ",
              dtype_name(t.dtype()),
              " to a tensor of type ",
              dtype_name(source.dtype()));
  t.impl()->shallow_copy_from(*source.impl());
  t.impl()->bump_version();
}
}  // namespace

PyObject* untyped_storage_method(const TensorBase& t) {
  TAEDA_CHECK_AS(NotImplemented,
                 t.storage(),
                 "Cannot access storage of a tensor that has none");
  return wrap_storage(t.storage());
}

PyObject* set_method(const MethodArgs& m) {
  const TensorBase& t = m.tensor();
  TAEDA_CHECK(!(t.requires_grad() && grad_enabled()),
              "set_: not allowed on a tensor that requires grad; use no_grad");
  if (m.count == 0) {
    set_from_tensor(t, make_tensor("set_", {0}, t.dtype(), t.device()));
    return Py_NewRef(m.self);
  }
  PyObject* source = m.args[0];
  Ref untyped;
  if (!is_tensor(source) && Py_TYPE(source) != storage_type) {
    untyped = checked(PyObject_GetAttrString(source, "_untyped_storage"));
    source = untyped.get();
  }
  if (is_tensor(source) && m.count == 1) {
    set_from_tensor(t, unwrap(source));
    return Py_NewRef(m.self);
  }
  const Storage& s = is_tensor(source)
                         ? unwrap(source).storage()
                         : reinterpret_cast<PyStorage*>(source)->value;
  // The remaining arguments are parsed as if the storage were a tensor.
  std::vector<PyObject*> args(
      m.args, m.args + m.count + (m.names ? PyTuple_GET_SIZE(m.names) : 0));
  args[0] = m.self;
  BoundArgs a(kSet, {m.self, args.data(), m.count, m.names});
  auto count = static_cast<int64_t>(s->nbytes() / t.itemsize());
  DimVector sizes = a.given(3) ? a.ints(3) : DimVector({count});
  DimVector strides = a.given(4) ? a.ints(4) : contiguous_strides(sizes);
  set_storage(t, s, a.integer(2, 0), sizes, strides);
  return Py_NewRef(m.self);
}

void init_storage(PyObject* module) { storage_type = add_type(module, spec); }

}  // namespace taeda::python
