// pybind11 for extension modules of users: Taeda's values as arguments and
// results of their functions.
#pragma once

#include <taeda/csrc/extension/bridge.h>
#include <taeda/torch_namespace.h>

#include <pybind11/functional.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

namespace taeda::extension {

inline const python::Bridge& bridge() {
  static const auto* const found = [] {
    auto* bridge = static_cast<const python::Bridge*>(
        PyCapsule_Import(python::Bridge::kName, /*no_block=*/0));
    if (bridge == nullptr) throw pybind11::error_already_set();
    if (bridge->layout != python::Bridge::kLayout) {
      throw pybind11::import_error(
          "this extension was built for another version of taeda");
    }
    return bridge;
  }();
  return *found;
}

// Calls f, whose exceptions are what the bridge throws.
template <class F>
auto bridged(F&& f) {
  try {
    return f();
  } catch (...) {
    bridge().translate();
  }
  throw pybind11::error_already_set();
}

#ifndef TAEDA_PLAIN_ERRORS
namespace {
// As in taeda._C the kind of an error is its type in Python. One registration
// for each source, since inline variables are shared between modules.
[[maybe_unused]] const bool errors_translated = [] {
  if (!Py_IsInitialized() || !PyGILState_Check()) return false;
  pybind11::register_local_exception_translator([](std::exception_ptr error) {
    try {
      std::rethrow_exception(error);
    } catch (const ::taeda::Error&) {
      bridge().translate();
    }
  });
  return true;
}();
}  // namespace
#endif
}  // namespace taeda::extension

namespace pybind11::detail {

// A value that the bridge reads and writes. `accepts` says whether an overload
// fits at all; what fits and is wrong raises our own error.
#define TAEDA_CASTER(type, text, accepts, read, write)                 \
  template <>                                                          \
  struct type_caster<type> {                                           \
    PYBIND11_TYPE_CASTER(type, const_name(text));                      \
    bool load(handle source, bool) {                                   \
      const auto& b = ::taeda::extension::bridge();                    \
      PyObject* o = source.ptr();                                      \
      if (!(accepts)) return false;                                    \
      value = ::taeda::extension::bridged([&] { return type(read); }); \
      return true;                                                     \
    }                                                                  \
    static handle cast(const type& v, return_value_policy, handle) {   \
      const auto& b = ::taeda::extension::bridge();                    \
      return ::taeda::extension::bridged([&] { return write; });       \
    }                                                                  \
  }
TAEDA_CASTER(taeda::Tensor,
             "Tensor",
             o == Py_None || PyObject_TypeCheck(o, b.tensor_type),
             o == Py_None ? taeda::TensorBase() : b.unwrap(o),
             b.wrap(v));
TAEDA_CASTER(taeda::Scalar,
             "number",
             PyNumber_Check(o),
             b.to_number(o),
             b.wrap_number(v));
TAEDA_CASTER(taeda::ScalarType,
             "dtype",
             !PyUnicode_Check(o) && !PyNumber_Check(o) && o != Py_None,
             b.to_dtype(o),
             b.wrap_dtype(v));
#undef TAEDA_CASTER

// The front end's device begins as none.
template <>
struct type_caster<taeda::front::Device> {
  PYBIND11_TYPE_CASTER(taeda::front::Device, const_name("device"));
  type_caster() : value(taeda::DeviceType::CPU) {}
  bool load(handle source, bool) {
    if (source.is_none()) return false;
    value = taeda::extension::bridged(
        [&] { return taeda::extension::bridge().to_device(source.ptr()); });
    return true;
  }
  static handle cast(taeda::front::Device v, return_value_policy, handle) {
    return taeda::extension::bridged(
        [&] { return taeda::extension::bridge().wrap_device(v); });
  }
};

// Lists are read into a vector that lives as long as the call.
template <class T>
struct type_caster<taeda::ArrayRef<T>> {
  using List = std::vector<T>;
  PYBIND11_TYPE_CASTER(taeda::ArrayRef<T>,
                       const_name("list[") + make_caster<T>::name +
                           const_name("]"));
  bool load(handle source, bool convert) {
    make_caster<List> caster;
    if (!caster.load(source, convert)) return false;
    list_ = cast_op<List&&>(std::move(caster));
    value = list_;
    return true;
  }
  static handle cast(taeda::ArrayRef<T> v,
                     return_value_policy policy,
                     handle parent) {
    return make_caster<List>::cast(List(v.begin(), v.end()), policy, parent);
  }

 private:
  List list_;
};

}  // namespace pybind11::detail
