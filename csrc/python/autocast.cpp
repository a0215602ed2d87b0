// The state of autocast: switches, dtypes and the cache of casts.
#include <taeda/csrc/autograd/autocast.h>
#include <taeda/csrc/python/casters.h>
#include <taeda/csrc/python/init.h>

namespace taeda::python {

namespace {
constexpr DeviceType kCuda = DeviceType::CUDA;

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
      "set_autocast_enabled",
      [](bool enabled) { autocast::set_enabled(kCuda, enabled); },
      py::kw_only(),
      py::arg("enabled"));
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
}  // namespace

void bind_autocast(PyObject* module) {
  py::module_ m = as_module(module);
  bind_state(m);
  bind_cache(m);
}

}  // namespace taeda::python
