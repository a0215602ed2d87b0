#include <taeda/csrc/python/init.h>
#include <taeda/csrc/python/tensor_type.h>

#include <taeda/csrc/python/autograd_common.h>
#include <taeda/csrc/python/torch_dispatch.h>
#include <taeda/csrc/python/values.h>

namespace taeda::python {

PyTypeObject* tensor_base_type = nullptr;
PyTypeObject* tensor_class = nullptr;
PyTypeObject* parameter_class = nullptr;

namespace {
// Dead wrappers of exactly `tensor_class`, linked through `dict`. They keep
// their count of the type.
constexpr int kMaxFree = 256;
PyTensor* free_wrappers = nullptr;
int free_count = 0;

PyTensor* new_wrapper(PyTypeObject* type) {
  if (type == tensor_class && free_wrappers != nullptr) {
    PyTensor* self = free_wrappers;
    free_wrappers = as_tensor(self->dict);
    --free_count;
    self->dict = nullptr;
    _Py_NewReference(reinterpret_cast<PyObject*>(self));
    PyObject_GC_Track(self);
    return self;
  }
  PyObject* self = type->tp_alloc(type, 0);
  if (self == nullptr) throw PythonError();
  new (&as_tensor(self)->value) TensorBase();
  return as_tensor(self);
}

// Whether a wrapper has state that a new one would not have.
bool worth_keeping(PyTensor* self) {
  return Py_TYPE(self) != tensor_class || self->weakrefs != nullptr ||
         (self->dict != nullptr && PyDict_GET_SIZE(self->dict) > 0);
}

// Turns ownership around instead of dying; see Note [Wrappers].
bool survive(PyTensor* self) {
  if (!self->counted || !self->value.defined()) return false;
  TensorImpl* impl = self->value.impl();
  if (impl->python_object() != self || impl->use_count() <= 1 ||
      !worth_keeping(self)) {
    return false;
  }
  Py_SET_REFCNT(reinterpret_cast<PyObject*>(self), 1);
  impl->set_python_object(self, /*owns=*/true);
  self->counted = false;
  // May be the last count after all, if another thread let go meanwhile; then
  // the impl's destructor drops the object, and nothing may touch it here.
  impl->release();
  return true;
}

void let_go_of_impl(PyTensor* self) {
  if (!self->value.defined()) return;
  TensorImpl* impl = self->value.impl();
  if (impl->python_object() == self) impl->set_python_object(nullptr, false);
  if (self->counted) {
    self->value.reset();
  } else {
    self->value.release();
  }
}

// What a subclass's __slots__ hold. The descriptions stand behind the type
// object, where type.__new__ puts them.
void clear_slots(PyTypeObject* type, PyObject* self) {
  Py_ssize_t n = Py_SIZE(type);
  auto* member = reinterpret_cast<PyMemberDef*>(reinterpret_cast<char*>(type) +
                                                Py_TYPE(type)->tp_basicsize);
  for (Py_ssize_t i = 0; i < n; ++i, ++member) {
    if (member->type != T_OBJECT_EX || (member->flags & READONLY)) continue;
    auto** slot = reinterpret_cast<PyObject**>(reinterpret_cast<char*>(self) +
                                               member->offset);
    Py_CLEAR(*slot);
  }
}

void dealloc(PyObject* object) {
  PyTensor* self = as_tensor(object);
  PyTypeObject* type = Py_TYPE(object);
  if (type != tensor_class && type->tp_finalize != nullptr &&
      PyObject_CallFinalizerFromDealloc(object) < 0) {
    return;
  }
  if (survive(self)) return;
  PyObject_GC_UnTrack(object);
  if (self->weakrefs != nullptr) PyObject_ClearWeakRefs(object);
  let_go_of_impl(self);
  Py_CLEAR(self->dict);
  if (type == tensor_class && free_count < kMaxFree) {
    self->dict = reinterpret_cast<PyObject*>(free_wrappers);
    free_wrappers = self;
    ++free_count;
    return;
  }
  for (PyTypeObject* t = type; t != tensor_base_type; t = t->tp_base) {
    if (Py_SIZE(t) > 0) clear_slots(t, object);
  }
  type->tp_free(object);
  Py_DECREF(type);
}

int traverse(PyObject* object, visitproc visit, void* arg) {
  PyTensor* self = as_tensor(object);
  Py_VISIT(Py_TYPE(object));
  Py_VISIT(self->dict);
  return self->counted ? visit_hooks(self->value, visit, arg) : 0;
}

int clear(PyObject* object) {
  PyTensor* self = as_tensor(object);
  Py_CLEAR(self->dict);
  if (self->counted) clear_hooks(self->value);
  return 0;
}

// Given up by a dying impl that owned its Python object.
void release_object(void* object) {
  if (!Py_IsInitialized()) return;
  GilAcquire gil;
  PyTensor* self = static_cast<PyTensor*>(object);
  self->value.release();
  if (Py_REFCNT(reinterpret_cast<PyObject*>(self)) > 1) {
    // A weak reference led to it, past wrap(): a tensor without elements and
    // backend is left, that no operator takes.
    Storage none(make_intrusive<StorageImpl>(0, cpu_allocator(), Device()));
    self->value = TensorBase(
        make_intrusive<TensorImpl>(std::move(none), kFloat, DispatchKeySet()));
    self->value.impl()->set_python_object(self, /*owns=*/false);
    self->counted = true;
  }
  Py_DECREF(reinterpret_cast<PyObject*>(self));
}

// The metaclass gives every subclass the deallocator above; type's own would
// not know about survival.
int meta_init(PyObject* cls, PyObject* args, PyObject* kwargs) {
  if (PyType_Type.tp_init(cls, args, kwargs) < 0) return -1;
  auto* type = reinterpret_cast<PyTypeObject*>(cls);
  type->tp_dealloc = dealloc;
  return guarded_status([&] { settle_protocols(type); });
}

PyMemberDef members[] = {
    offset_member("__dictoffset__", offsetof(PyTensor, dict)),
    offset_member("__weaklistoffset__", offsetof(PyTensor, weakrefs)),
    {nullptr, 0, 0, 0, nullptr},
};

// The class of plain results, or of parameters; set by the package's import.
template <PyTypeObject** Which>
PyObject* set_class(PyObject*, PyObject* type) {
  *Which = reinterpret_cast<PyTypeObject*>(Py_NewRef(type));
  Py_RETURN_NONE;
}

// Each object stands for what the other stood for; classes and attributes stay.
PyObject* swap_tensor_impl(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return guarded([&]() -> PyObject* {
    if (n != 2) raise(PyExc_TypeError, "_swap_tensor_impl: expected 2 tensors");
    unwrap_checked(args[0], "_swap_tensor_impl");
    unwrap_checked(args[1], "_swap_tensor_impl");
    PyTensor *a = as_tensor(args[0]), *b = as_tensor(args[1]);
    // One that its impl owns was reached past wrap(), by a weak reference.
    TAEDA_CHECK(a->counted && b->counted,
                "_swap_tensor_impl: a tensor is only held by what shares it");
    std::swap(a->value, b->value);
    a->value.impl()->set_python_object(a, /*owns=*/false);
    b->value.impl()->set_python_object(b, /*owns=*/false);
    Py_RETURN_NONE;
  });
}

// How many hold the tensor: its object, and others in C++.
PyObject* tensor_use_count(PyObject*, PyObject* t) {
  return guarded([&] {
    return PyLong_FromLong(static_cast<long>(
        unwrap_checked(t, "_tensor_use_count").impl()->use_count()));
  });
}

PyMethodDef functions[] = {
    {"_swap_tensor_impl",
     reinterpret_cast<PyCFunction>(
         reinterpret_cast<void (*)()>(swap_tensor_impl)),
     METH_FASTCALL,
     nullptr},
    {"_tensor_use_count", tensor_use_count, METH_O, nullptr},
    {"_set_tensor_class", set_class<&tensor_class>, METH_O, nullptr},
    {"_set_parameter_class", set_class<&parameter_class>, METH_O, nullptr},
    {nullptr, nullptr, 0, nullptr},
};
}  // namespace

const TensorBase& unwrap_checked(PyObject* o, const char* where) {
  if (!is_tensor(o)) {
    raise(
        PyExc_TypeError, "{}: expected Tensor, got {}", where, type_name_of(o));
  }
  return unwrap(o);
}

PyObject* wrap_as(TensorBase t, PyTypeObject* type) {
  TAEDA_INTERNAL_ASSERT(t.impl()->python_object() == nullptr,
                        "the tensor has a Python object");
  PyTensor* self = new_wrapper(type);
  t.impl()->set_python_object(self, /*owns=*/false);
  self->value = std::move(t);
  self->counted = true;
  return reinterpret_cast<PyObject*>(self);
}

PyObject* wrap(TensorBase t) {
  if (!t.defined()) return none();
  TensorImpl* impl = t.impl();
  auto* self = static_cast<PyTensor*>(impl->python_object());
  if (self == nullptr) return wrap_as(std::move(t), tensor_class);
  auto* object = reinterpret_cast<PyObject*>(self);
  if (!impl->owns_python_object()) return Py_NewRef(object);
  impl->set_python_object(self, /*owns=*/false);
  self->counted = true;
  t.release();  // the count that `value` now stands for
  return object;
}

PyObject* wrap(const Scalar& v) {
  switch (v.kind()) {
    case Scalar::Kind::Bool:
      return PyBool_FromLong(v.to_bool());
    case Scalar::Kind::Double:
      return PyFloat_FromDouble(v.to_double());
    case Scalar::Kind::Complex: {
      complex<double> z = v.to_complex();
      return PyComplex_FromDoubles(z.real(), z.imag());
    }
    case Scalar::Kind::UInt:
      return PyLong_FromUnsignedLongLong(v.to<uint64_t>());
    default:
      return PyLong_FromLongLong(v.to_int());
  }
}

PyObject* wrap(ScalarType v) { return Py_NewRef(dtype_object(v)); }

PyObject* wrap(std::vector<TensorBase> v) {
  return new_tuple(v.size(), [&](size_t i) { return wrap(std::move(v[i])); })
      .release();
}

PyObject* wrap(const DimVector& v) {
  return new_tuple(v.size(), [&](size_t i) { return wrap(v[i]); }).release();
}

void init_tensor_type(PyObject* module) {
  release_python_object = release_object;
  PyTypeObject* meta = add_type(module,
                                "taeda._C._TensorMeta",
                                0,
                                {slot(Py_tp_init, meta_init)},
                                Py_TPFLAGS_BASETYPE,
                                &PyType_Type);
  std::vector<PyType_Slot> slots = tensor_number_slots();
  slots.insert(slots.end(),
               {slot(Py_tp_dealloc, dealloc),
                slot(Py_tp_traverse, traverse),
                slot(Py_tp_clear, clear),
                {Py_tp_members, members},
                {Py_tp_getset, tensor_getset},
                {Py_tp_methods, tensor_methods}});
  tensor_base_type = add_type(module,
                              "taeda._C.TensorBase",
                              sizeof(PyTensor),
                              std::move(slots),
                              Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC);
  // FromSpec cannot name a metaclass before 3.12; without a tp_init call of its
  // own the type takes one over by assignment.
  auto* object = reinterpret_cast<PyObject*>(tensor_base_type);
  Py_SET_TYPE(object, meta);
  PyModule_AddFunctions(module, functions);
}

}  // namespace taeda::python
