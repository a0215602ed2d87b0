#include <taeda/csrc/python/generator.h>

#include <taeda/csrc/python/device.h>
#include <taeda/csrc/python/tensor_type.h>

namespace taeda::python {

PyTypeObject* generator_type = nullptr;

namespace {
struct PyGenerator {
  PyObject_HEAD Generator value;
};

GeneratorImpl& impl_of(PyObject* self) {
  return *reinterpret_cast<PyGenerator*>(self)->value;
}

PyObject* new_object(PyTypeObject* type, Generator value) {
  PyObject* self = type->tp_alloc(type, 0);
  if (self == nullptr) throw PythonError();
  new (&reinterpret_cast<PyGenerator*>(self)->value)
      Generator(std::move(value));
  return self;
}

Generator make_for(Device device) {
  TAEDA_CHECK(device.is_cpu(),
              "Generator: no generator for device ",
              device,
              " (this build has the CPU only)");
  return make_cpu_generator();
}

PyObject* make(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"device", nullptr};
  PyObject* device = nullptr;
  if (!PyArg_ParseTupleAndKeywords(
          args, kwargs, "|O:Generator", const_cast<char**>(names), &device)) {
    return nullptr;
  }
  return guarded([&] {
    bool given = device != nullptr && device != Py_None;
    return new_object(type, make_for(given ? to_device(device) : Device()));
  });
}
void dealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  reinterpret_cast<PyGenerator*>(self)->value.reset();
  type->tp_free(self);
  Py_DECREF(type);
}

uint64_t to_seed(PyObject* o) {
  if (!PyLong_Check(o)) {
    raise(
        PyExc_RuntimeError,
        str_cat("manual_seed expected a long, but got ", Py_TYPE(o)->tp_name));
  }
  uint64_t seed = PyLong_AsUnsignedLongLong(o);
  if (!PyErr_Occurred()) return seed;
  PyErr_Clear();
  int64_t negative = PyLong_AsLongLong(o);
  if (PyErr_Occurred()) {
    PyErr_Clear();
    raise(PyExc_ValueError, "manual_seed: Overflow when unpacking long long");
  }
  return static_cast<uint64_t>(negative);
}

PyObject* manual_seed(PyObject* self, PyObject* seed) {
  return guarded([&] {
    uint64_t value = to_seed(seed);
    GeneratorImpl& g = impl_of(self);
    std::lock_guard lock(g.mutex());
    g.manual_seed(value);
    return Py_NewRef(self);
  });
}
PyObject* seed(PyObject* self, PyObject*) {
  GeneratorImpl& g = impl_of(self);
  std::lock_guard lock(g.mutex());
  return PyLong_FromUnsignedLongLong(g.seed());
}
PyObject* initial_seed(PyObject* self, PyObject*) {
  return PyLong_FromUnsignedLongLong(impl_of(self).initial_seed());
}
PyObject* get_state(PyObject* self, PyObject*) {
  return guarded([&] {
    GeneratorImpl& g = impl_of(self);
    auto size = static_cast<int64_t>(g.state_size());
    TensorBase out = make_tensor("get_state", {size}, kByte);
    std::lock_guard lock(g.mutex());
    g.get_state(out.mutable_data<uint8_t>());
    return wrap(std::move(out));
  });
}
PyObject* set_state(PyObject* self, PyObject* state) {
  return guarded([&] {
    const TensorBase& t = unwrap_checked(state, "set_state");
    TAEDA_CHECK_AS(Type,
                   t.dtype() == kByte && t.is_cpu() && t.is_contiguous(),
                   "RNG state must be a torch.ByteTensor");
    GeneratorImpl& g = impl_of(self);
    std::lock_guard lock(g.mutex());
    g.set_state(t.const_data<uint8_t>(), static_cast<size_t>(t.numel()));
    return Py_NewRef(self);
  });
}
PyObject* clone_state(PyObject* self, PyObject*) {
  return guarded([&] {
    GeneratorImpl& g = impl_of(self);
    std::lock_guard lock(g.mutex());
    return new_object(generator_type, g.clone());
  });
}
PyObject* get_device(PyObject* self, void*) {
  return new_device(impl_of(self).device());
}
PyObject* get_cdata(PyObject* self, void*) {
  return PyLong_FromVoidPtr(&impl_of(self));
}
PyObject* reduce(PyObject* self, PyObject*) {
  return guarded([&] {
    Ref state = checked(get_state(self, nullptr));
    Ref device =
        checked(PyObject_Str(checked(get_device(self, nullptr)).get()));
    Ref module = checked(PyImport_ImportModule("taeda.random"));
    Ref rebuild =
        checked(PyObject_GetAttrString(module.get(), "_rebuild_generator"));
    return Py_BuildValue("(O(OO))", rebuild.get(), device.get(), state.get());
  });
}

PyMethodDef methods[] = {
    {"manual_seed", manual_seed, METH_O, "Restarts the stream from a seed."},
    {"seed", seed, METH_NOARGS, "Seeds from the system; returns the seed."},
    {"initial_seed", initial_seed, METH_NOARGS, "The seed last set."},
    {"get_state", get_state, METH_NOARGS, "The state as a uint8 tensor."},
    {"set_state", set_state, METH_O, "Goes back to a saved state."},
    {"clone_state", clone_state, METH_NOARGS, "A generator that draws alike."},
    {"__reduce__", reduce, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};
PyGetSetDef getset[] = {
    {"device", get_device, nullptr, nullptr, nullptr},
    {"_cdata", get_cdata, nullptr, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};
PyType_Slot slots[] = {
    {Py_tp_new, reinterpret_cast<void*>(make)},
    {Py_tp_dealloc, reinterpret_cast<void*>(dealloc)},
    {Py_tp_methods, methods},
    {Py_tp_getset, getset},
    {Py_tp_doc, const_cast<char*>("A stream of random numbers.")},
    {0, nullptr},
};
PyType_Spec spec = {"taeda._C.Generator",
                    sizeof(PyGenerator),
                    0,
                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
                    slots};
}  // namespace

Generator to_generator(PyObject* o) {
  return reinterpret_cast<PyGenerator*>(o)->value;
}

PyObject* wrap(const Generator& generator) {
  return new_object(generator_type, generator);
}

void init_generator(PyObject* module) {
  generator_type = add_type(module, spec);
  auto shared = Generator::share(&default_cpu_generator());
  Ref object(new_object(generator_type, std::move(shared)));
  add_object(module, "default_generator", object.get());
}

}  // namespace taeda::python
