#include <taeda/csrc/python/tensor_functions.h>

#include <taeda/gen/ops/_to_copy.h>
#include <taeda/gen/ops/alias.h>

namespace taeda::python {

TensorBase alias_with_history(const TensorBase& t) { return ops::alias(t); }

TensorBase convert(const TensorBase& t,
                   ScalarType dtype,
                   Device device,
                   bool non_blocking,
                   bool copy,
                   MemoryFormat format) {
  bool same_device = t.device() == device ||
                     (t.device().type == device.type && !device.has_index());
  bool same_format =
      format == MemoryFormat::Preserve || t.suggest_memory_format() == format;
  if (!copy && same_device && t.dtype() == dtype && same_format) return t;
  bool large = !t.impl()->is_symbolic() && t.numel() > kReleaseGilAbove;
  GilRelease gil(large || !same_device);  // a device may take any time
  // Only what changes is named, for modes that look at the call.
  std::optional<ScalarType> new_dtype;
  if (t.dtype() != dtype) new_dtype = dtype;
  std::optional<Device> new_device;
  if (!same_device) new_device = device;
  std::optional<MemoryFormat> new_format;
  if (format != MemoryFormat::Preserve) new_format = format;
  return ops::_to_copy(t,
                       new_dtype,
                       std::nullopt,
                       new_device,
                       std::nullopt,
                       non_blocking,
                       new_format);
}

namespace {
constexpr Signature kToDevice(
    "(taeda.device device = None, taeda.dtype dtype = None, bool non_blocking "
    "= False, bool copy = False, *, taeda.memory_format memory_format = None)");
constexpr Signature kToDtype(
    "(taeda.dtype dtype, bool non_blocking = False, bool copy = False, *, "
    "taeda.memory_format memory_format = None)");
constexpr Signature kToTensor(
    "(Tensor tensor, bool non_blocking = False, bool copy = False, *, "
    "taeda.memory_format memory_format = None)");
constexpr Signature kCpu("(*, taeda.memory_format memory_format = None)");
constexpr Signature kCuda(
    "(taeda.device device = None, bool non_blocking = False, *, "
    "taeda.memory_format memory_format = None)");

MemoryFormat format_of(const Args& a, int slot) {
  return a.maybe<MemoryFormat>(slot).value_or(MemoryFormat::Preserve);
}

// The tensor's own object when nothing changes.
PyObject* result_of(const MethodArgs& m, TensorBase out) {
  if (out.is_same(m.tensor())) return Py_NewRef(m.self);
  return wrap(std::move(out));
}
}  // namespace

PyObject* to_method(const MethodArgs& m) {
  const TensorBase& t = m.tensor();
  BoundArgs a("to",
              {kToDevice.overload(), kToDtype.overload(), kToTensor.overload()},
              m);
  if (a.index() == 0) {
    ScalarType dtype = a.maybe<ScalarType>(2).value_or(t.dtype());
    Device device = a.maybe<Device>(1).value_or(t.device());
    return result_of(
        m, convert(t, dtype, device, a.flag(3), a.flag(4), format_of(a, 5)));
  }
  Device device = t.device();
  ScalarType dtype;
  if (a.index() == 1) {
    dtype = a.get<ScalarType>(1);
  } else {
    dtype = a.tensor(1).dtype();
    device = a.tensor(1).device();
  }
  return result_of(
      m, convert(t, dtype, device, a.flag(2), a.flag(3), format_of(a, 4)));
}

PyObject* cpu_method(const MethodArgs& m) {
  BoundArgs a("cpu", kCpu, m);
  const TensorBase& t = m.tensor();
  return result_of(
      m, convert(t, t.dtype(), Device(), false, false, format_of(a, 1)));
}

PyObject* cast_method(const MethodArgs& m, const char* name, ScalarType dtype) {
  BoundArgs a(name, kCpu, m);
  const TensorBase& t = m.tensor();
  return result_of(
      m, convert(t, dtype, t.device(), false, false, format_of(a, 1)));
}

PyObject* cuda_method(const MethodArgs& m) {
  BoundArgs a("cuda", kCuda, m);
  const TensorBase& t = m.tensor();
  Device device = a.given(1) ? a.get<Device>(1) : Device(DeviceType::CUDA);
  TAEDA_CHECK(device.is_cuda(), "Invalid device, must be cuda device");
  return result_of(
      m, convert(t, t.dtype(), device, a.flag(2), false, format_of(a, 3)));
}

}  // namespace taeda::python
