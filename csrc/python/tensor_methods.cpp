// Methods that answer questions about a tensor, and its elements as numbers.
#include <taeda/aten/core/level.h>
#include <taeda/c10/core/kept_forms.h>
#include <taeda/csrc/autograd/variable.h>
#include <taeda/csrc/python/tensor_functions.h>
#include <taeda/csrc/python/torch_dispatch.h>

namespace taeda::python {

namespace {
constexpr Signature kDim("(int dim = None)");
constexpr Signature kContiguous(
    "(*, taeda.memory_format memory_format = contiguous_format)");
constexpr Signature kOn("(bool requires_grad = True)");

// A dim is a number, also where a program has a symbol for it.
int64_t dim_of(const BoundArgs& a) {
  if (TAEDA_LIKELY(!is_symbol(a[1]))) return a.get<int64_t>(1);
  Ref number = checked(PyNumber_Index(a[1]));
  return to_int(number.get());
}

PyObject* symbolic_size(const TensorBase& t, const BoundArgs& a) {
  ArrayRef<SymInt> sizes = sym_sizes(*t.impl());
  if (!a.given(1)) return new_symbolic_size(sizes);
  return wrap(sizes[static_cast<size_t>(wrap_dim(dim_of(a), t.dim()))]);
}
PyObject* size(const MethodArgs& m) {
  const TensorBase& t = m.tensor();
  if (TAEDA_UNLIKELY(t.impl()->is_symbolic())) {
    return symbolic_size(t, BoundArgs("size", kDim, m));
  }
  if (m.count == 1 && m.names == nullptr && PyLong_CheckExact(m.args[0])) {
    return PyLong_FromLongLong(t.size(to_int(m.args[0])));
  }
  BoundArgs a("size", kDim, m);
  if (!a.given(1)) return new_size(t.sizes());
  return PyLong_FromLongLong(t.size(dim_of(a)));
}
PyObject* stride(const MethodArgs& m) {
  const TensorBase& t = m.tensor();
  BoundArgs a("stride", kDim, m);
  TAEDA_CHECK(t.layout() == Layout::Strided || t.layout() == Layout::Sparse,
              "Sparse CSR tensors do not have strides (layout ",
              t.layout(),
              ")");
  if (TAEDA_UNLIKELY(t.impl()->is_symbolic())) {
    ArrayRef<SymInt> strides = sym_strides(*t.impl());
    if (!a.given(1)) return new_symbolic_tuple(strides);
    return wrap(strides[static_cast<size_t>(wrap_dim(dim_of(a), t.dim()))]);
  }
  if (!a.given(1)) return new_int_tuple(t.strides());
  return PyLong_FromLongLong(t.stride(dim_of(a)));
}
PyObject* is_contiguous(const MethodArgs& m) {
  BoundArgs a("is_contiguous", kContiguous, m);
  return boolean(m.tensor().is_contiguous(
      a.get<MemoryFormat>(1, MemoryFormat::Contiguous)));
}

PyObject* data_pointer(const TensorBase& t) {
  TAEDA_CHECK(!t.keys().has(DispatchKey::Wrapped),
              "Cannot access data pointer of Tensor that doesn't have storage: "
              "it is a value of a function transform (shape ",
              t.sizes(),
              ")");
  TAEDA_CHECK(t.layout() == Layout::Strided,
              "Cannot access data pointer of Tensor that doesn't have storage: "
              "its layout is ",
              t.layout());
  if (t.storage()) show_memory(*t.storage());
  // What has no elements has no address, whatever memory it is a view of.
  if (!t.impl()->is_symbolic() && t.numel() == 0) return PyLong_FromLong(0);
  return PyLong_FromVoidPtr(t.impl()->address());
}

PyObject* requires_grad_(const MethodArgs& m) {
  BoundArgs a("requires_grad_", kOn, m);
  TAEDA_CHECK(!in_transform(),
              "You are attempting to call Tensor.requires_grad_() (or perhaps "
              "using torch.autograd.functional.* APIs) inside of a function "
              "being transformed by a functorch transform (shape ",
              m.tensor().sizes(),
              "). This is unsupported, please use the transforms (grad, vjp, "
              "jacrev, jacfwd, hessian) or call requires_grad_() outside of "
              "the function.");
  autograd::set_requires_grad(m.tensor(), a.flag(1, true));
  return Py_NewRef(m.self);
}

PyTypeObject* subclass_of(PyObject* cls) {
  auto* type = reinterpret_cast<PyTypeObject*>(cls);
  TAEDA_CHECK_AS(
      Type,
      PyType_Check(cls) && PyType_IsSubtype(type, tensor_base_type),
      "Creating a Tensor subclass from a class that does not inherit "
      "from Tensor: cls must be a subclass of Tensor");
  return type;
}

constexpr Signature kMakeSubclass(
    "(object cls, object data, bool require_grad = False, bool "
    "dispatch_sizes_strides_policy = False, bool device_for_backend_keys = "
    "False)");
// The class's own object over data's memory.
PyObject* make_subclass(PyObject*,
                        PyObject* const* args,
                        Py_ssize_t count,
                        PyObject* names) {
  return guarded([&] {
    BoundArgs a("_make_subclass", kMakeSubclass, {nullptr, args, count, names});
    PyTypeObject* type = subclass_of(a[0]);
    const TensorBase& from = unwrap_checked(a[1], "_make_subclass");
    TensorBase t(from.impl()->shallow_copy(/*share_version=*/true));
    if (a.flag(2)) autograd::set_requires_grad(t, true);
    return wrap_for(std::move(t), type);
  });
}

PyObject* as_subclass(PyObject* self, PyObject* cls) {
  return guarded([&] {
    return wrap_for(alias_with_history(unwrap(self)), subclass_of(cls));
  });
}
}  // namespace

#define TAEDA_CAST(name, dtype) \
  TAEDA_PY_ROW(                 \
      name, tensor_doc(name), fast_entry<name, cast_entry<name, dtype>>)

PyMethodDef tensor_methods[] = {
    TAEDA_FAST("size", size),
    TAEDA_FAST("stride", stride),
    TAEDA_FAST("is_contiguous", is_contiguous),
    TAEDA_QUERY("dim", t.dim()),
    TAEDA_QUERY("ndimension", t.dim()),
    TAEDA_QUERY("numel", wrap(sym_numel(*t.impl()))),
    TAEDA_QUERY("nelement", wrap(sym_numel(*t.impl()))),
    TAEDA_QUERY("element_size", t.itemsize()),
    TAEDA_QUERY("storage_offset", wrap(sym_offset(*t.impl()))),
    TAEDA_QUERY("data_ptr", data_pointer(t)),
    TAEDA_QUERY("get_device", t.device().index),
    TAEDA_QUERY("is_floating_point", t.is_floating_point()),
    TAEDA_QUERY("is_complex", t.is_complex()),
    TAEDA_QUERY("is_signed", is_signed(t.dtype())),
    TAEDA_QUERY("is_conj", t.is_conj()),
    TAEDA_QUERY("is_neg", t.is_neg()),
    TAEDA_QUERY("is_inference", t.impl()->is_inference),
    TAEDA_QUERY("_is_view", t.is_view()),
    TAEDA_QUERY("has_names", false),
    TAEDA_QUERY("is_non_overlapping_and_dense",
                t.is_non_overlapping_and_dense()),
    TAEDA_QUERY("item", item_object(t)),
    TAEDA_QUERY("tolist", list_of(t)),
    TAEDA_FAST("requires_grad_", requires_grad_),
    TAEDA_FAST("to", to_method),
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
    TAEDA_QUERY("untyped_storage", untyped_storage_method(t)),
    {"as_subclass", as_subclass, METH_O, tensor_doc("as_subclass")},
    {"_make_subclass",
     (PyCFunction)(void (*)(void))make_subclass,
     METH_FASTCALL | METH_KEYWORDS | METH_STATIC,
     nullptr},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace taeda::python
