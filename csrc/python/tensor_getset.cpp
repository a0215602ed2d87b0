// Attributes of tensors.
#include <taeda/csrc/autograd/variable.h>
#include <taeda/csrc/python/device.h>
#include <taeda/csrc/python/dtype.h>
#include <taeda/csrc/python/late_op.h>
#include <taeda/csrc/python/size.h>
#include <taeda/csrc/python/tensor_entry.h>

namespace taeda::python {

namespace {
PyObject* shape(const TensorBase& t) { return new_size(t.sizes()); }
PyObject* dtype(const TensorBase& t) { return wrap(t.dtype()); }
PyObject* device(const TensorBase& t) {
  // One object serves all CPU tensors.
  static PyObject* cpu = new_device(Device());
  return t.is_cpu() ? Py_NewRef(cpu) : new_device(t.device());
}
PyObject* layout(const TensorBase& t) {
  return Py_NewRef(layout_object(t.layout()));
}
PyObject* ndim(const TensorBase& t) { return PyLong_FromLongLong(t.dim()); }
PyObject* itemsize(const TensorBase& t) {
  return PyLong_FromSize_t(t.itemsize());
}
PyObject* nbytes(const TensorBase& t) { return PyLong_FromSize_t(t.nbytes()); }
PyObject* version(const TensorBase& t) {
  TAEDA_CHECK(!t.impl()->is_inference,
              "Inference tensors do not track version counter.");
  return PyLong_FromUnsignedLong(t.version());
}
PyObject* base(const TensorBase& t) {
  return wrap(TensorBase(t.impl()->base()));
}
PyObject* cdata(const TensorBase& t) { return PyLong_FromVoidPtr(t.impl()); }
PyObject* names(const TensorBase& t) {
  Ref out = checked(PyTuple_New(t.dim()));
  for (int64_t i = 0; i < t.dim(); ++i) PyTuple_SET_ITEM(out.get(), i, none());
  return out.release();
}

template <DeviceType Type>
PyObject* on_device(const TensorBase& t) {
  return boolean(t.device().type == Type);
}
template <Layout L>
PyObject* has_layout(const TensorBase& t) {
  return boolean(t.layout() == L);
}
PyObject* never(const TensorBase&) { return boolean(false); }

// Views --------------------------------------------------------------------

LateOp<TensorBase(const TensorBase&, int64_t, int64_t)> transpose_op(
    "transpose", "int");
LateOp<TensorBase(const TensorBase&, IntArrayRef)> permute_op("permute", "");
LateOp<TensorBase(const TensorBase&)> real_op("real", "");
LateOp<TensorBase(const TensorBase&)> imag_op("imag", "");
LateOp<TensorBase(const TensorBase&)> conj_op("conj", "");

TensorBase swap_last(const TensorBase& t) {
  if (t.dim() == 0) return t;  // as PyTorch's, for programs of before 1.11
  return transpose_op(t.keys(), t, -2, -1);
}
PyObject* reversed_dims(const TensorBase& t) {
  if (t.dim() == 2) return wrap(swap_last(t));
  if (t.dim() != 2) {
    check_status(PyErr_WarnEx(
        PyExc_UserWarning,
        "The use of `x.T` on tensors of dimension other than 2 to reverse "
        "their shape is deprecated and it will throw an error in a future "
        "release. Consider `x.mT` to transpose batches of matrices or "
        "`x.permute(*torch.arange(x.ndim - 1, -1, -1))` to reverse the "
        "dimensions of a tensor.",
        1));
  }
  DimVector dims;
  for (int64_t d = t.dim() - 1; d >= 0; --d) dims.push_back(d);
  return wrap(permute_op(t.keys(), t, dims));
}
PyObject* matrix_transpose(const TensorBase& t) {
  TAEDA_CHECK(t.dim() >= 2 || t.dim() == 0,
              "tensor.mT is only supported on matrices or batches of "
              "matrices. Got ",
              t.dim(),
              "-D tensor.");
  return wrap(swap_last(t));
}
TensorBase conjugate(const TensorBase& t) {
  return t.is_complex() ? conj_op(t.keys(), t) : t;
}
PyObject* adjoint(const TensorBase& t) {
  TAEDA_CHECK(t.dim() >= 2 || t.dim() == 0,
              "tensor.mH is only supported on matrices or batches of "
              "matrices. Got ",
              t.dim(),
              "-D tensor.");
  return wrap(conjugate(swap_last(t)));
}
PyObject* hermitian(const TensorBase& t) {
  TAEDA_CHECK(t.dim() == 2,
              "tensor.H is only supported on matrices (2-D tensors). Got ",
              t.dim(),
              "-D tensor.");
  return wrap(conjugate(swap_last(t)));
}
PyObject* real(const TensorBase& t) {
  return wrap(t.is_complex() ? real_op(t.keys(), t) : t);
}
PyObject* imag(const TensorBase& t) {
  TAEDA_CHECK(t.is_complex(),
              "imag is not implemented for tensors with non-complex dtypes.");
  return wrap(imag_op(t.keys(), t));
}
void copy_part(const TensorBase& part, PyObject* value) {
  Ref target(wrap(part));
  checked(PyObject_CallMethod(target.get(), "copy_", "O", value));
}
void set_real(const TensorBase& t, PyObject* value) {
  copy_part(t.is_complex() ? real_op(t.keys(), t) : t, value);
}
void set_imag(const TensorBase& t, PyObject* value) {
  copy_part(imag_op(t.keys(), t), value);
}

// Autograd -----------------------------------------------------------------

PyObject* requires_grad(const TensorBase& t) {
  return boolean(t.requires_grad());
}
void set_requires_grad(const TensorBase& t, PyObject* value) {
  if (value == nullptr || !PyBool_Check(value)) {
    raise(PyExc_RuntimeError, "requires_grad must be a bool");
  }
  autograd::set_requires_grad(t, value == Py_True);
}
PyObject* data(const TensorBase& t) { return wrap(autograd::variable_data(t)); }
void set_data(const TensorBase& t, PyObject* value) {
  if (value == nullptr) {
    raise(PyExc_RuntimeError,
          "Deleting tensor data is not allowed. Delete tensor instead!");
  }
  if (!is_tensor(value)) {
    raise(PyExc_TypeError,
          str_cat("Variable data has to be a tensor, but got ",
                  Py_TYPE(value)->tp_name));
  }
  autograd::set_data(t, unwrap(value));
}
PyObject* grad(const TensorBase& t) { return wrap(autograd::grad_of(t)); }
void set_grad(const TensorBase& t, PyObject* value) {
  if (value == nullptr || value == Py_None) {
    if (autograd::meta_or_null(t) != nullptr) autograd::set_grad(t, {});
    return;
  }
  if (!is_tensor(value)) {
    raise(PyExc_TypeError,
          str_cat("assigned grad expected to be a Tensor or None but got grad "
                  "of type ",
                  Py_TYPE(value)->tp_name));
  }
  autograd::set_grad(t, unwrap(value));
}
PyObject* is_leaf(const TensorBase& t) { return boolean(autograd::is_leaf(t)); }
PyObject* output_nr(const TensorBase& t) {
  return PyLong_FromUnsignedLong(autograd::output_nr(t));
}
PyObject* retains_grad(const TensorBase& t) {
  return boolean(autograd::retains_grad(t));
}
}  // namespace

PyGetSetDef tensor_getset[] = {
    {"__dict__",
     PyObject_GenericGetDict,
     PyObject_GenericSetDict,
     nullptr,
     nullptr},
    TAEDA_GETTER("shape", shape),
    TAEDA_GETTER("dtype", dtype),
    TAEDA_GETTER("device", device),
    TAEDA_GETTER("layout", layout),
    TAEDA_GETTER("ndim", ndim),
    TAEDA_GETTER("itemsize", itemsize),
    TAEDA_GETTER("nbytes", nbytes),
    TAEDA_GETTER("_version", version),
    TAEDA_GETTER("_base", base),
    TAEDA_GETTER("_cdata", cdata),
    TAEDA_GETTER("names", names),
    TAEDA_GETTER("T", reversed_dims),
    TAEDA_GETTER("mT", matrix_transpose),
    TAEDA_GETTER("H", hermitian),
    TAEDA_GETTER("mH", adjoint),
    TAEDA_PROPERTY("real", real, set_real),
    TAEDA_PROPERTY("imag", imag, set_imag),
    TAEDA_PROPERTY("requires_grad", requires_grad, set_requires_grad),
    TAEDA_PROPERTY("data", data, set_data),
    TAEDA_PROPERTY("grad", grad, set_grad),
    TAEDA_PROPERTY("_grad", grad, set_grad),
    TAEDA_GETTER("is_leaf", is_leaf),
    TAEDA_GETTER("output_nr", output_nr),
    TAEDA_GETTER("retains_grad", retains_grad),
    TAEDA_GETTER("is_cpu", on_device<DeviceType::CPU>),
    TAEDA_GETTER("is_cuda", on_device<DeviceType::CUDA>),
    TAEDA_GETTER("is_meta", on_device<DeviceType::Meta>),
    TAEDA_GETTER("is_xpu", on_device<DeviceType::XPU>),
    TAEDA_GETTER("is_mps", on_device<DeviceType::MPS>),
    TAEDA_GETTER("is_xla", on_device<DeviceType::XLA>),
    TAEDA_GETTER("is_hpu", on_device<DeviceType::HPU>),
    TAEDA_GETTER("is_ipu", on_device<DeviceType::IPU>),
    TAEDA_GETTER("is_mtia", on_device<DeviceType::MTIA>),
    TAEDA_GETTER("is_vulkan", on_device<DeviceType::Vulkan>),
    TAEDA_GETTER("is_maia", on_device<DeviceType::MAIA>),
    TAEDA_GETTER("is_sparse", has_layout<Layout::Sparse>),
    TAEDA_GETTER("is_sparse_csr", has_layout<Layout::SparseCsr>),
    TAEDA_GETTER("is_mkldnn", has_layout<Layout::Mkldnn>),
    TAEDA_GETTER("is_quantized", never),
    TAEDA_GETTER("is_nested", never),
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

}  // namespace taeda::python
