// Settings of the thread and of the process.
#include <taeda/csrc/python/state.h>

#include <taeda/aten/cpu_capability.h>
#include <taeda/aten/parallel/parallel.h>
#include <taeda/csrc/python/device.h>
#include <taeda/csrc/python/dtype.h>
#include <taeda/csrc/python/tensor_type.h>

namespace taeda::python {

namespace {
PyObject* get_grad_enabled(PyObject*, PyObject*) {
  return boolean(grad_enabled());
}
PyObject* set_grad_mode(PyObject*, PyObject* on) {
  if (!PyBool_Check(on)) {
    PyErr_Format(PyExc_TypeError,
                 "set_grad_enabled(): argument 'enabled' (position 1) must be "
                 "bool, not %s",
                 Py_TYPE(on)->tp_name);
    return nullptr;
  }
  set_grad_enabled(on == Py_True);
  Py_RETURN_NONE;
}
PyObject* get_inference(PyObject*, PyObject*) {
  return boolean(inference_mode());
}
PyObject* get_default_dtype(PyObject*, PyObject*) {
  return wrap(default_dtype());
}
PyObject* set_default(PyObject*, PyObject* dtype) {
  return guarded([&] {
    ScalarType t = to_dtype(dtype);
    TAEDA_CHECK_AS(Type,
                   is_floating(t) && !is_float8(t),
                   "only floating-point types are supported as the default "
                   "type");
    taeda::set_default_dtype(t);
    return none();
  });
}
PyObject* get_device(PyObject*, PyObject*) {
  return new_device(default_device());
}
PyObject* set_device(PyObject*, PyObject* device) {
  return guarded([&] {
    set_default_device(device == Py_None ? Device() : to_device(device));
    return none();
  });
}
PyObject* get_threads(PyObject*, PyObject*) {
  return PyLong_FromLong(get_num_threads());
}
PyObject* set_threads(PyObject*, PyObject* count) {
  return guarded([&] {
    if (!PyLong_Check(count)) {
      raise(PyExc_RuntimeError,
            str_cat("set_num_threads expects an int, but got ",
                    Py_TYPE(count)->tp_name));
    }
    long n = PyLong_AsLong(count);
    if (PyErr_Occurred()) throw PythonError();
    TAEDA_CHECK(n > 0, "set_num_threads: expects a positive integer, got ", n);
    set_num_threads(static_cast<int>(n));
    return none();
  });
}
PyObject* capability(PyObject*, PyObject*) {
  return new_text(cpu_capability_name()).release();
}
PyObject* promote(PyObject*, PyObject* args) {
  PyObject *a, *b;
  if (!PyArg_ParseTuple(args, "OO:promote_types", &a, &b)) return nullptr;
  return guarded([&] { return wrap(promote_types(to_dtype(a), to_dtype(b))); });
}
PyObject* castable(PyObject*, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"from_", "to", nullptr};
  PyObject *from, *to;
  if (!PyArg_ParseTupleAndKeywords(
          args, kwargs, "OO:can_cast", const_cast<char**>(names), &from, &to)) {
    return nullptr;
  }
  return guarded(
      [&] { return boolean(can_cast(to_dtype(from), to_dtype(to))); });
}
PyObject* set_name(PyObject*, PyObject* name) {
  return guarded([&] {
    set_library_name(std::string(utf8(name)));
    return none();
  });
}
PyObject* allocator_stats(PyObject*, PyObject*) {
  AllocatorStats s = cpu_allocator().stats();
  return Py_BuildValue("{sLsLsLsL}",
                       "allocated",
                       static_cast<long long>(s.allocated),
                       "peak_allocated",
                       static_cast<long long>(s.peak_allocated),
                       "cached",
                       static_cast<long long>(s.cached),
                       "allocations",
                       static_cast<long long>(s.allocations));
}
PyObject* reset_peak(PyObject*, PyObject*) {
  cpu_allocator().reset_peak();
  Py_RETURN_NONE;
}
PyObject* empty_cache(PyObject*, PyObject*) {
  cpu_allocator().empty_cache();
  Py_RETURN_NONE;
}

PyMethodDef functions[] = {
    {"is_grad_enabled",
     get_grad_enabled,
     METH_NOARGS,
     "Whether calls are recorded for backward."},
    {"_set_grad_enabled", set_grad_mode, METH_O, nullptr},
    {"is_inference_mode_enabled",
     get_inference,
     METH_NOARGS,
     "Whether inference mode is on."},
    {"get_default_dtype",
     get_default_dtype,
     METH_NOARGS,
     "The dtype of new floating-point tensors."},
    {"set_default_dtype",
     set_default,
     METH_O,
     "Sets the dtype of new floating-point tensors."},
    {"_get_default_device", get_device, METH_NOARGS, nullptr},
    {"_set_default_device", set_device, METH_O, nullptr},
    {"get_num_threads",
     get_threads,
     METH_NOARGS,
     "How many threads one operator uses."},
    {"set_num_threads",
     set_threads,
     METH_O,
     "Sets how many threads one operator uses."},
    {"_cpu_capability", capability, METH_NOARGS, nullptr},
    {"promote_types",
     promote,
     METH_VARARGS,
     "promote_types(type1, type2) -> dtype\n\nThe smallest dtype that holds "
     "values of both."},
    {"can_cast",
     (PyCFunction)(void (*)(void))castable,
     METH_VARARGS | METH_KEYWORDS,
     "can_cast(from_, to) -> bool\n\nWhether PyTorch's promotion rules allow "
     "writing one dtype into another."},
    {"_set_library_name", set_name, METH_O, nullptr},
    {"_cpu_allocator_stats", allocator_stats, METH_NOARGS, nullptr},
    {"_cpu_reset_peak", reset_peak, METH_NOARGS, nullptr},
    {"_cpu_empty_cache", empty_cache, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};
}  // namespace

void init_state(PyObject* module) {
  check_status(PyModule_AddFunctions(module, functions));
}

}  // namespace taeda::python
