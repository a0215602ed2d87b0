// Settings of the thread and of the process, and generators of random numbers.

#include <taeda/aten/cpu_capability.h>
#include <taeda/aten/parallel/parallel.h>
#include <taeda/c10/core/program_device.h>
#include <taeda/csrc/python/casters.h>
#include <taeda/csrc/python/init.h>

namespace taeda::python {

PyTypeObject* generator_type = nullptr;

namespace {
using SharedGenerator = Shared<GeneratorImpl>;
using Lock = std::lock_guard<std::mutex>;

void set_threads(py::handle count) {
  if (!PyLong_Check(count.ptr())) {
    raise(PyExc_RuntimeError,
          "set_num_threads expects an int, but got {}",
          type_name_of(count.ptr()));
  }
  int overflow = 0;
  int64_t n = PyLong_AsLongLongAndOverflow(count.ptr(), &overflow);
  TAEDA_CHECK(overflow == 0 && n > 0 && n <= std::numeric_limits<int>::max(),
              "set_num_threads: expects a positive integer, got ",
              overflow != 0 ? std::string("one of too many digits")
                            : std::to_string(n));
  set_num_threads(static_cast<int>(n));
}

void set_default(ScalarType t) {
  TAEDA_CHECK_AS(Type,
                 is_floating(t) && !is_float8(t),
                 "only floating-point types are supported as the default type");
  taeda::set_default_dtype(t);
}

// Generators -----------------------------------------------------------------

SharedGenerator new_generator(std::optional<Device> given) {
  return make_generator(given.value_or(Device()));
}

// Any 64 bits: negative seeds count from the top.
uint64_t to_seed(PyObject* o) {
  if (!PyLong_Check(o)) {
    raise(PyExc_RuntimeError,
          "manual_seed expected a long, but got {}",
          type_name_of(o));
  }
  uint64_t seed = PyLong_AsUnsignedLongLong(o);
  if (!PyErr_Occurred()) return seed;
  PyErr_Clear();
  return static_cast<uint64_t>(to_int(o));
}

SharedGenerator manual_seed(const SharedGenerator& g, py::handle seed) {
  uint64_t value = to_seed(seed.ptr());
  Lock lock(g->mutex());
  g->manual_seed(value);
  return g;
}

uint64_t initial_seed(const SharedGenerator& g) { return g->initial_seed(); }
uint64_t seed(const SharedGenerator& g) {
  Lock lock(g->mutex());
  return g->seed();
}
SharedGenerator clone_state(const SharedGenerator& g) {
  Lock lock(g->mutex());
  return g->clone();
}

TensorBase get_state(const SharedGenerator& g) {
  TensorBase out =
      make_tensor("get_state", {static_cast<int64_t>(g->state_size())}, kByte);
  Lock lock(g->mutex());
  g->get_state(out.mutable_data<uint8_t>());
  return out;
}

SharedGenerator set_state(const SharedGenerator& g, const TensorBase& t) {
  TAEDA_CHECK_AS(Type,
                 t.dtype() == kByte && t.is_cpu() && t.is_contiguous(),
                 "RNG state must be a torch.ByteTensor");
  Lock lock(g->mutex());
  g->set_state(t.const_data<uint8_t>(), static_cast<size_t>(t.numel()));
  return g;
}
}  // namespace

Generator to_generator(PyObject* o) {
  return py::cast<SharedGenerator>(py::handle(o));
}

PyObject* wrap(const Generator& generator) {
  return py::cast(SharedGenerator(generator)).release().ptr();
}

void init_generator(PyObject* module) {
  py::module_ m = as_module(module);
  auto c =
      new_class<GeneratorImpl>(m, "Generator", "A stream of random numbers.");
  c.def(py::init(&new_generator), py::arg("device") = py::none())
      .def("manual_seed", manual_seed, "Restarts the stream from a seed.")
      .def("seed", seed, "Seeds from the system; returns the seed.")
      .def("initial_seed", initial_seed, "The seed last set.")
      .def("get_state", get_state, "The state as a uint8 tensor.")
      .def("set_state", set_state, "Goes back to a saved state.")
      .def("clone_state", clone_state, "A generator that draws alike.")
      .def_property_readonly(
          "device",
          [](const SharedGenerator& g) { return g->device(); },
          "Where its numbers are made.")
      .def_property_readonly("_cdata", [](const SharedGenerator& g) {
        return reinterpret_cast<uintptr_t>(g.get());
      });
  generator_type = reinterpret_cast<PyTypeObject*>(c.ptr());
  m.attr("default_generator") =
      SharedGenerator(Generator::share(&default_cpu_generator()));
}

void init_state(PyObject* module) {
  py::module_ m = as_module(module);
  m.def("get_default_dtype",
        default_dtype,
        "The dtype of new floating-point tensors.");
  m.def("set_default_dtype",
        set_default,
        "Sets the dtype of new floating-point tensors.");
  m.def("_get_default_device", default_device);
  m.def("_set_default_device", [](std::optional<Device> device) {
    set_default_device(device.value_or(Device()));
  });
  m.def("get_num_threads",
        get_num_threads,
        "How many threads one operator uses.");
  m.def("set_num_threads",
        set_threads,
        "Sets how many threads one operator uses.");
  m.def("_cpu_capability", cpu_capability_name);
  m.def("_set_library_name", set_library_name);
  // As Python's own errors show a type of C; those of Python code have no dot.
  m.def("_name_type", [](py::type type, const std::string& name) {
    const char*& shown = reinterpret_cast<PyTypeObject*>(type.ptr())->tp_name;
    if (std::strchr(shown, '.')) shown = (new std::string(name))->c_str();
  });
}

}  // namespace taeda::python
