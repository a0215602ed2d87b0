// The state of autocast: switches, dtypes and the cache of casts.
#include <taeda/csrc/autograd/autocast.h>
#include <taeda/csrc/python/casters.h>
#include <taeda/csrc/python/init.h>

namespace taeda::python {

namespace {
constexpr DeviceType kCpu = DeviceType::CPU;
constexpr DeviceType kCuda = DeviceType::CUDA;

// Functions that name their device are those of old programs.
void deprecated(std::string_view old, std::string_view now) {
  std::string text =
      message("taeda.{} is deprecated. Please use taeda.{} instead.", old, now);
  check_status(PyErr_WarnEx(PyExc_DeprecationWarning, text.c_str(), 1));
}

// (device_type, enabled), or (enabled) for CUDA.
void set_enabled(py::object first, std::optional<bool> enabled) {
  if (enabled) {
    autocast::set_enabled(to_device(first.ptr()).type, *enabled);
    return;
  }
  TAEDA_CHECK_AS(Type,
                 PyBool_Check(first.ptr()),
                 "set_autocast_enabled(): expected (str device_type, bool "
                 "enabled) or (bool enabled), got ",
                 type_name_of(first.ptr()));
  autocast::set_enabled(kCuda, first.ptr() == Py_True);
}

void bind_state(py::module_ m) {
  auto device = py::arg("device_type");
  m.def(
      "_is_autocast_available",
      [](Device d) { return autocast::is_available(d.type); },
      device);
  m.def(
      "is_autocast_enabled",
      [](std::optional<Device> d) {
        return autocast::is_enabled(d ? d->type : kCuda);
      },
      "Whether autocast is on for a kind of device; \"cuda\" if none is named.",
      py::arg("device_type") = py::none());
  m.def("set_autocast_enabled",
        set_enabled,
        "Switches autocast for a kind of device.",
        device,
        py::arg("enabled") = py::none());
  m.def(
      "get_autocast_dtype",
      [](Device d) { return autocast::dtype_of(d.type); },
      "The dtype that autocast computes in.",
      device);
  m.def(
      "set_autocast_dtype",
      [](Device d, ScalarType t) { autocast::set_dtype(d.type, t); },
      "Sets the dtype that autocast computes in.",
      device,
      py::arg("dtype"));
}

void bind_cache(py::module_ m) {
  m.def("is_autocast_cache_enabled",
        autocast::cache_enabled,
        "Whether casts of parameters are kept within an autocast scope.");
  m.def("set_autocast_cache_enabled",
        autocast::set_cache_enabled,
        "Switches the keeping of casts.",
        py::arg("enabled"));
  m.def("clear_autocast_cache",
        autocast::clear_cache,
        "Drops the casts that are kept.");
  m.def("autocast_increment_nesting",
        autocast::increment_nesting,
        "Enters a scope; returns how many there are.");
  m.def("autocast_decrement_nesting",
        autocast::decrement_nesting,
        "Leaves a scope; returns how many are left.");
}

void bind_deprecated(py::module_ m) {
  m.def("is_autocast_cpu_enabled", [] {
    deprecated("is_autocast_cpu_enabled()", "is_autocast_enabled('cpu')");
    return autocast::is_enabled(kCpu);
  });
  m.def(
      "set_autocast_cpu_enabled",
      [](bool on) {
        deprecated("set_autocast_cpu_enabled(enabled)",
                   "set_autocast_enabled('cpu', enabled)");
        autocast::set_enabled(kCpu, on);
      },
      py::arg("enabled"));
  m.def("get_autocast_cpu_dtype", [] {
    deprecated("get_autocast_cpu_dtype()", "get_autocast_dtype('cpu')");
    return autocast::dtype_of(kCpu);
  });
  m.def("get_autocast_gpu_dtype", [] {
    deprecated("get_autocast_gpu_dtype()", "get_autocast_dtype('cuda')");
    return autocast::dtype_of(kCuda);
  });
  m.def(
      "set_autocast_cpu_dtype",
      [](ScalarType t) {
        deprecated("set_autocast_cpu_dtype(dtype)",
                   "set_autocast_dtype('cpu', dtype)");
        autocast::set_dtype(kCpu, t);
      },
      py::arg("dtype"));
  m.def(
      "set_autocast_gpu_dtype",
      [](ScalarType t) {
        deprecated("set_autocast_gpu_dtype(dtype)",
                   "set_autocast_dtype('cuda', dtype)");
        autocast::set_dtype(kCuda, t);
      },
      py::arg("dtype"));
}
}  // namespace

void bind_autocast(PyObject* module) {
  py::module_ m = as_module(module);
  bind_state(m);
  bind_cache(m);
  bind_deprecated(m);
}

}  // namespace taeda::python
