#include <taeda/csrc/python/tensor_to.h>

#include <taeda/csrc/python/device.h>
#include <taeda/csrc/python/dtype.h>
#include <taeda/csrc/python/late_op.h>

namespace taeda::python {

namespace {
LateOp<TensorBase(const TensorBase&,
                  std::optional<ScalarType>,
                  std::optional<Layout>,
                  std::optional<Device>,
                  std::optional<bool>,
                  bool,
                  std::optional<MemoryFormat>)>
    to_copy_op("_to_copy", "");
LateOp<void(const TensorBase&, const TensorBase&, bool)> copy_op("copy_", "");
LateOp<TensorBase(const TensorBase&)> alias_op("alias", "");
LateOp<TensorBase(const TensorBase&, IntArrayRef)> view_op("view", "");

DimVector strides_for(const TensorBase& t, MemoryFormat format) {
  if (format == MemoryFormat::Preserve) {
    if (t.is_non_overlapping_and_dense()) return DimVector(t.strides());
    format = t.suggest_memory_format();
  }
  return format_strides(t.sizes(), format);
}

TensorBase converted(const TensorBase& t,
                     ScalarType dtype,
                     Device device,
                     bool non_blocking,
                     MemoryFormat format) {
  if (to_copy_op.exists()) {
    return to_copy_op(t.keys(),
                      t,
                      dtype,
                      std::nullopt,
                      device,
                      std::nullopt,
                      non_blocking,
                      format);
  }
  TensorBase out = make_tensor_strided(
      "to", t.sizes(), strides_for(t, format), dtype, device);
  copy_op(out.keys() | t.keys(), out, t, non_blocking);
  return out;
}
}  // namespace

TensorBase alias_with_history(const TensorBase& t) {
  return alias_op.exists() ? alias_op(t.keys(), t)
                           : view_op(t.keys(), t, t.sizes());
}

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
  GilRelease gil(t.numel() > kReleaseGilAbove);
  return converted(t, dtype, device, non_blocking, format);
}

namespace {
constexpr uint8_t kDefault = Param::kHasDefault;
constexpr uint8_t kNullable = Param::kHasDefault | Param::kNullable;
constexpr Param kSelf = {"input", nullptr, ParamType::Tensor, 0, 0};
constexpr Param kNonBlocking = {
    "non_blocking", nullptr, ParamType::Bool, kDefault, 0};
constexpr Param kCopy = {"copy", nullptr, ParamType::Bool, kDefault, 0};
constexpr Param kFormat = {"memory_format",
                           nullptr,
                           ParamType::MemoryFormat,
                           kNullable | Param::kKeywordOnly,
                           0};

constexpr Param kToDevice[] = {
    kSelf,
    {"device", nullptr, ParamType::Device, kNullable, 0},
    {"dtype", nullptr, ParamType::Dtype, kNullable, 0},
    kNonBlocking,
    kCopy,
    kFormat,
};
constexpr Param kToDtype[] = {
    kSelf,
    {"dtype", nullptr, ParamType::Dtype, 0, 0},
    kNonBlocking,
    kCopy,
    kFormat,
};
constexpr Param kToOther[] = {
    kSelf,
    {"other", nullptr, ParamType::Tensor, 0, 0},
    kNonBlocking,
    kCopy,
    kFormat,
};
constexpr Overload kToOverloads[] = {
    {kToDevice,
     6,
     0,
     0,
     nullptr,
     "",
     "(taeda.device device = None, taeda.dtype dtype = None, bool non_blocking "
     "= False, bool copy = False, *, taeda.memory_format memory_format = "
     "None)"},
    {kToDtype,
     5,
     0,
     0,
     nullptr,
     "",
     "(taeda.dtype dtype, bool non_blocking = False, bool copy = False, *, "
     "taeda.memory_format memory_format = None)"},
    {kToOther,
     5,
     0,
     0,
     nullptr,
     "",
     "(Tensor tensor, bool non_blocking = False, bool copy = False, *, "
     "taeda.memory_format memory_format = None)"},
};
constexpr Function kTo = {"to", "", kToOverloads, 3};

constexpr Param kCpu[] = {kSelf, kFormat};
constexpr Overload kCpuOverload[] = {
    {kCpu, 2, 0, 0, nullptr, "", "(*, taeda.memory_format memory_format)"}};
constexpr Function kCpuFunction = {"cpu", "", kCpuOverload, 1};

constexpr Param kCuda[] = {
    kSelf,
    {"device", nullptr, ParamType::Device, kNullable, 0},
    kNonBlocking,
    kFormat,
};
constexpr Overload kCudaOverload[] = {{kCuda,
                                       4,
                                       0,
                                       0,
                                       nullptr,
                                       "",
                                       "(taeda.device device = None, bool "
                                       "non_blocking = False, *, "
                                       "taeda.memory_format memory_format)"}};
constexpr Function kCudaFunction = {"cuda", "", kCudaOverload, 1};

MemoryFormat format_of(const Args& a, int slot) {
  return a.optional_memory_format(slot).value_or(MemoryFormat::Preserve);
}

// The tensor's own object when nothing changes.
PyObject* result_of(const MethodArgs& m, TensorBase out) {
  if (out.is_same(m.tensor())) return Py_NewRef(m.self);
  return wrap(std::move(out));
}
}  // namespace

PyObject* to_method(const MethodArgs& m) {
  const TensorBase& t = m.tensor();
  BoundArgs a(kTo, m);
  if (a.index() == 0) {
    ScalarType dtype = a.optional_dtype(2).value_or(t.dtype());
    Device device = a.optional_device(1).value_or(t.device());
    return result_of(
        m, convert(t, dtype, device, a.flag(3), a.flag(4), format_of(a, 5)));
  }
  Device device = t.device();
  ScalarType dtype;
  if (a.index() == 1) {
    dtype = a.dtype(1);
  } else {
    dtype = a.tensor(1).dtype();
    device = a.tensor(1).device();
  }
  return result_of(
      m, convert(t, dtype, device, a.flag(2), a.flag(3), format_of(a, 4)));
}

PyObject* cpu_method(const MethodArgs& m) {
  BoundArgs a(kCpuFunction, m);
  const TensorBase& t = m.tensor();
  return result_of(
      m, convert(t, t.dtype(), Device(), false, false, format_of(a, 1)));
}

PyObject* cast_method(const MethodArgs& m, const char* name, ScalarType dtype) {
  Function function = kCpuFunction;
  function.name = name;
  BoundArgs a(function, m);
  const TensorBase& t = m.tensor();
  return result_of(
      m, convert(t, dtype, t.device(), false, false, format_of(a, 1)));
}

PyObject* cuda_method(const MethodArgs& m) {
  BoundArgs a(kCudaFunction, m);
  const TensorBase& t = m.tensor();
  Device device = a.given(1) ? a.device(1) : Device(DeviceType::CUDA);
  TAEDA_CHECK(device.is_cuda(), "Invalid device, must be cuda device");
  return result_of(
      m, convert(t, t.dtype(), device, a.flag(2), false, format_of(a, 3)));
}

namespace {
// "taeda.FloatTensor"; accelerators have their name in the middle.
std::string type_string(const TensorBase& t) {
  std::string text = library_name();
  if (!t.is_cpu()) text += str_cat(".", device_type_name(t.device().type));
  return text + str_cat(".", type_name(t.dtype()), "Tensor");
}

std::pair<ScalarType, Device> parse_type_string(std::string_view text) {
  std::string_view rest = text;
  if (rest.starts_with("torch.")) rest.remove_prefix(6);
  if (rest.starts_with("taeda.")) rest.remove_prefix(6);
  Device device;
  if (rest.starts_with("cuda.")) {
    device = Device(DeviceType::CUDA);
    rest.remove_prefix(5);
  }
  if (rest == "Tensor") return {default_dtype(), device};
  for (int i = 0; i < kNumScalarTypes && rest.ends_with("Tensor"); ++i) {
    auto t = static_cast<ScalarType>(i);
    if (element_size(t) > 0 &&
        rest.substr(0, rest.size() - 6) == type_name(t)) {
      return {t, device};
    }
  }
  throw_error(ErrorKind::Value, str_cat("invalid type: '", text, "'"));
}
}  // namespace

PyObject* type_method(const MethodArgs& m) {
  const TensorBase& t = m.tensor();
  if (m.count == 0 && m.names == nullptr) {
    return new_text(type_string(t)).release();
  }
  PyObject* wanted = m.args[0];
  if (wanted == Py_None) return new_text(type_string(t)).release();
  ScalarType dtype;
  Device device = t.device();
  if (is_dtype_like(wanted)) {
    dtype = to_dtype(wanted);
  } else {
    Ref text = Ref::borrow(wanted);
    if (!PyUnicode_Check(wanted)) {
      text = Ref(PyObject_GetAttrString(wanted, "_type_string"));
      if (!text) {
        PyErr_Clear();
        raise(
            PyExc_TypeError,
            str_cat("type(): dtype must be a type, str, or dtype object, got ",
                    Py_TYPE(wanted)->tp_name));
      }
    }
    std::tie(dtype, device) = parse_type_string(utf8(text.get()));
  }
  return result_of(
      m, convert(t, dtype, device, false, false, MemoryFormat::Preserve));
}

}  // namespace taeda::python
