// Methods that answer questions about a tensor, and its elements as numbers.
#include <taeda/csrc/autograd/variable.h>
#include <taeda/csrc/python/dtype.h>
#include <taeda/csrc/python/exchange.h>
#include <taeda/csrc/python/indexing.h>
#include <taeda/csrc/python/size.h>
#include <taeda/csrc/python/tensor_data.h>
#include <taeda/csrc/python/tensor_entry.h>
#include <taeda/csrc/python/tensor_to.h>

namespace taeda::python {

namespace {
// Tables of hand-written signatures ------------------------------------------

constexpr Param kDim[] = {
    {"input", nullptr, ParamType::Tensor, 0, 0},
    {"dim", "axis\0", ParamType::Int, Param::kHasDefault | Param::kNullable, 0},
};
constexpr Overload kSizeOverload[] = {
    {kDim, 2, 0, 0, nullptr, "(int dim)", "(int dim = None)"}};
constexpr Function kSize = {"size", "", kSizeOverload, 1};
constexpr Function kStride = {"stride", "", kSizeOverload, 1};

constexpr Param kFormat[] = {
    {"input", nullptr, ParamType::Tensor, 0, 0},
    {"memory_format",
     nullptr,
     ParamType::MemoryFormat,
     Param::kHasDefault | Param::kKeywordOnly,
     0},
};
constexpr Overload kContiguousOverload[] = {
    {kFormat, 2, 0, 0, nullptr, "", "(*, taeda.memory_format memory_format)"}};
constexpr Function kIsContiguous = {
    "is_contiguous", "", kContiguousOverload, 1};

constexpr Param kOn[] = {
    {"input", nullptr, ParamType::Tensor, 0, 0},
    {"requires_grad", nullptr, ParamType::Bool, Param::kHasDefault, 0},
};
constexpr Overload kOnOverload[] = {
    {kOn, 2, 0, 0, nullptr, "", "(bool requires_grad = True)"}};
constexpr Function kRequiresGrad = {"requires_grad_", "", kOnOverload, 1};

// Geometry
// ---------------------------------------------------------------------

PyObject* size(const MethodArgs& m) {
  const TensorBase& t = m.tensor();
  if (m.count == 1 && m.names == nullptr && PyLong_CheckExact(m.args[0])) {
    return PyLong_FromLongLong(t.size(to_int(m.args[0])));
  }
  BoundArgs a(kSize, m);
  if (!a.given(1)) return new_size(t.sizes());
  return PyLong_FromLongLong(t.size(a.integer(1)));
}
PyObject* stride(const MethodArgs& m) {
  const TensorBase& t = m.tensor();
  BoundArgs a(kStride, m);
  if (!a.given(1)) return new_int_tuple(t.strides());
  return PyLong_FromLongLong(t.stride(a.integer(1)));
}
PyObject* is_contiguous(const MethodArgs& m) {
  BoundArgs a(kIsContiguous, m);
  return boolean(m.tensor().is_contiguous(a.memory_format(1)));
}
PyObject* dim(const TensorBase& t) { return PyLong_FromLongLong(t.dim()); }
PyObject* numel(const TensorBase& t) { return PyLong_FromLongLong(t.numel()); }
PyObject* element_size(const TensorBase& t) {
  return PyLong_FromSize_t(t.itemsize());
}
PyObject* storage_offset(const TensorBase& t) {
  return PyLong_FromLongLong(t.storage_offset());
}
PyObject* data_ptr(const TensorBase& t) {
  return PyLong_FromVoidPtr(t.impl()->address());
}
PyObject* get_device(const TensorBase& t) {
  return PyLong_FromLong(t.device().index);
}
PyObject* is_floating_point(const TensorBase& t) {
  return boolean(t.is_floating_point());
}
PyObject* is_complex_(const TensorBase& t) { return boolean(t.is_complex()); }
PyObject* is_signed_(const TensorBase& t) {
  return boolean(is_signed(t.dtype()));
}
PyObject* is_conj(const TensorBase& t) { return boolean(t.is_conj()); }
PyObject* is_neg(const TensorBase& t) { return boolean(t.is_neg()); }
PyObject* is_inference(const TensorBase& t) {
  return boolean(t.impl()->is_inference);
}
PyObject* is_view(const TensorBase& t) { return boolean(t.is_view()); }
PyObject* no_names(const TensorBase&) { return boolean(false); }
PyObject* is_dense(const TensorBase& t) {
  return boolean(t.is_non_overlapping_and_dense());
}

PyObject* requires_grad_(const MethodArgs& m) {
  BoundArgs a(kRequiresGrad, m);
  autograd::set_requires_grad(m.tensor(), a.flag(1, true));
  return Py_NewRef(m.self);
}

// (cls, data, require_grad=False): the class's own object over data's memory.
PyObject* make_subclass(PyObject*, PyObject* args, PyObject* kwargs) {
  PyObject *cls, *data;
  int on = 0, sizes_policy = 0, device_for_backend = 0;
  static const char* names[] = {"cls",
                                "data",
                                "require_grad",
                                "dispatch_sizes_strides_policy",
                                "device_for_backend_keys",
                                nullptr};
  if (!PyArg_ParseTupleAndKeywords(args,
                                   kwargs,
                                   "O!O|ppp:_make_subclass",
                                   const_cast<char**>(names),
                                   &PyType_Type,
                                   &cls,
                                   &data,
                                   &on,
                                   &sizes_policy,
                                   &device_for_backend)) {
    return nullptr;
  }
  return guarded([&] {
    auto* type = reinterpret_cast<PyTypeObject*>(cls);
    if (!PyType_IsSubtype(type, tensor_base_type)) {
      raise(PyExc_TypeError, "cls must be a subclass of Tensor");
    }
    const TensorBase& from = unwrap_checked(data, "_make_subclass");
    TensorBase t(from.impl()->shallow_copy(/*share_version=*/true));
    if (on) autograd::set_requires_grad(t, true);
    return wrap_as(std::move(t), type);
  });
}

PyObject* as_subclass(PyObject* self, PyObject* cls) {
  return guarded([&] {
    if (!PyType_Check(cls) ||
        !PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(cls),
                          tensor_base_type)) {
      raise(PyExc_TypeError, "cls must be a subclass of Tensor");
    }
    return wrap_as(alias_with_history(unwrap(self)),
                   reinterpret_cast<PyTypeObject*>(cls));
  });
}
}  // namespace

#define TAEDA_CAST(name, dtype)                                               \
  {name,                                                                      \
   (PyCFunction)(void (*)(void)) & fast_entry<name, cast_entry<name, dtype>>, \
   METH_FASTCALL | METH_KEYWORDS,                                             \
   nullptr}

PyMethodDef tensor_methods[] = {
    TAEDA_FAST("size", size),
    TAEDA_FAST("stride", stride),
    TAEDA_FAST("is_contiguous", is_contiguous),
    TAEDA_QUERY("dim", dim),
    TAEDA_QUERY("ndimension", dim),
    TAEDA_QUERY("numel", numel),
    TAEDA_QUERY("nelement", numel),
    TAEDA_QUERY("element_size", element_size),
    TAEDA_QUERY("storage_offset", storage_offset),
    TAEDA_QUERY("data_ptr", data_ptr),
    TAEDA_QUERY("get_device", get_device),
    TAEDA_QUERY("is_floating_point", is_floating_point),
    TAEDA_QUERY("is_complex", is_complex_),
    TAEDA_QUERY("is_signed", is_signed_),
    TAEDA_QUERY("is_conj", is_conj),
    TAEDA_QUERY("is_neg", is_neg),
    TAEDA_QUERY("is_inference", is_inference),
    TAEDA_QUERY("_is_view", is_view),
    TAEDA_QUERY("has_names", no_names),
    TAEDA_QUERY("is_non_overlapping_and_dense", is_dense),
    TAEDA_QUERY("item", item_object),
    TAEDA_QUERY("tolist", list_of),
    TAEDA_FAST("requires_grad_", requires_grad_),
    TAEDA_FAST("to", to_method),
    TAEDA_FAST("type", type_method),
    TAEDA_FAST("cpu", cpu_method),
    TAEDA_FAST("cuda", cuda_method),
    TAEDA_CAST("double", kDouble),
    TAEDA_CAST("float", kFloat),
    TAEDA_CAST("half", kHalf),
    TAEDA_CAST("bfloat16", kBFloat16),
    TAEDA_CAST("long", kLong),
    TAEDA_CAST("int", kInt),
    TAEDA_CAST("short", kShort),
    TAEDA_CAST("char", kChar),
    TAEDA_CAST("byte", kByte),
    TAEDA_CAST("bool", kBool),
    TAEDA_CAST("cdouble", kComplexDouble),
    TAEDA_CAST("cfloat", kComplexFloat),
    TAEDA_CAST("chalf", kComplexHalf),
    TAEDA_FAST("new_tensor", new_tensor_method),
    TAEDA_FAST("numpy", numpy_method),
    TAEDA_QUERY("untyped_storage", untyped_storage_method),
    TAEDA_FAST("set_", set_method),
    TAEDA_QUERY("__dlpack_device__", dlpack_device_method),
    {"as_subclass", as_subclass, METH_O, nullptr},
    {"_make_subclass",
     (PyCFunction)(void (*)(void))make_subclass,
     METH_VARARGS | METH_KEYWORDS | METH_STATIC,
     nullptr},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace taeda::python
