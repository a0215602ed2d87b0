// Attributes of tensors.
#include <taeda/csrc/autograd/variable.h>
#include <taeda/csrc/python/tensor_entry.h>
#include <taeda/gen/ops/conj.h>
#include <taeda/gen/ops/imag.h>
#include <taeda/gen/ops/permute.h>
#include <taeda/gen/ops/real.h>
#include <taeda/gen/ops/transpose.h>

namespace taeda::python {

namespace {
PyObject* size_of(const TensorBase& t) {
  if (TAEDA_UNLIKELY(t.impl()->is_symbolic())) {
    return new_symbolic_size(sym_sizes(*t.impl()));
  }
  return new_size(t.sizes());
}
PyObject* device(const TensorBase& t) {
  // One object serves all CPU tensors.
  static PyObject* cpu = new_device(Device());
  return t.is_cpu() ? Py_NewRef(cpu) : new_device(t.device());
}
uint32_t version(const TensorBase& t) {
  TAEDA_CHECK(!t.impl()->is_inference,
              "Inference tensors do not track version counter.");
  return t.version();
}
// Views --------------------------------------------------------------------

TensorBase swap_last(const TensorBase& t) {
  if (t.dim() == 0) return t;  // as PyTorch's, for programs of before 1.11
  return ops::transpose(t, -2, -1);
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
  return wrap(ops::permute(t, dims));
}
TensorBase matrix_transpose(const TensorBase& t, const char* name) {
  TAEDA_CHECK(t.dim() >= 2 || t.dim() == 0,
              message("tensor.{} is only supported on matrices or batches of "
                      "matrices. Got {}-D tensor.",
                      name,
                      t.dim()));
  return swap_last(t);
}
TensorBase conjugate(const TensorBase& t) {
  return t.is_complex() ? ops::conj(t) : t;
}
TensorBase hermitian(const TensorBase& t) {
  TAEDA_CHECK(t.dim() == 2,
              message("tensor.H is only supported on matrices (2-D tensors). "
                      "Got {}-D tensor.",
                      t.dim()));
  return conjugate(swap_last(t));
}
TensorBase real(const TensorBase& t) {
  return t.is_complex() ? ops::real(t) : t;
}
TensorBase imag(const TensorBase& t) {
  TAEDA_CHECK(t.is_complex(),
              "imag is not implemented for tensors with non-complex dtypes.");
  return ops::imag(t);
}
void copy_part(const TensorBase& part, PyObject* value) {
  Ref target(wrap(part));
  const char* method = is_tensor(value) ? "copy_" : "fill_";
  checked(PyObject_CallMethod(target.get(), method, "O", value));
}
void set_real(const TensorBase& t, PyObject* value) {
  copy_part(real(t), value);
}
void set_imag(const TensorBase& t, PyObject* value) {
  copy_part(ops::imag(t), value);
}

// Autograd -----------------------------------------------------------------

void set_requires_grad(const TensorBase& t, PyObject* value) {
  if (value == nullptr || !PyBool_Check(value)) {
    raise(PyExc_RuntimeError, "requires_grad must be a bool");
  }
  autograd::set_requires_grad(t, value == Py_True);
}
void set_data(const TensorBase& t, PyObject* value) {
  if (value == nullptr) {
    raise(PyExc_RuntimeError,
          "Deleting tensor data is not allowed. Delete tensor instead!");
  }
  if (!is_tensor(value)) {
    raise(PyExc_TypeError,
          "Variable data has to be a tensor, but got {}",
          type_name_of(value));
  }
  autograd::set_data(t, unwrap(value));
}
const TensorBase& shown_grad(const TensorBase& t) {
  const TensorBase& grad = autograd::grad_of(t);
  if (!grad.defined() && !autograd::is_leaf(t) && !autograd::retains_grad(t)) {
    check_status(PyErr_WarnEx(
        PyExc_UserWarning,
        "The .grad attribute of a Tensor that is not a leaf Tensor is being "
        "accessed. Its .grad attribute won't be populated during "
        "autograd.backward(), unless .retain_grad() was called on it before.",
        1));
  }
  return grad;
}
void set_grad(const TensorBase& t, PyObject* value) {
  if (value == nullptr || value == Py_None) {
    if (autograd::meta_or_null(t) != nullptr) autograd::set_grad(t, {});
    return;
  }
  if (!is_tensor(value)) {
    raise(
        PyExc_TypeError,
        "assigned grad expected to be a Tensor or None but got grad of type {}",
        type_name_of(value));
  }
  autograd::set_grad(t, unwrap(value));
}
}  // namespace

PyGetSetDef tensor_getset[] = {
    {"__dict__",
     PyObject_GenericGetDict,
     PyObject_GenericSetDict,
     nullptr,
     nullptr},
    TAEDA_GETTER("shape", size_of(t)),
    TAEDA_GETTER("dtype", t.dtype()),
    TAEDA_GETTER("device", device(t)),
    TAEDA_GETTER("layout", Py_NewRef(layout_object(t.layout()))),
    TAEDA_GETTER("ndim", t.dim()),
    TAEDA_GETTER("itemsize", t.itemsize()),
    TAEDA_GETTER("nbytes", t.nbytes()),
    TAEDA_GETTER("_version", version(t)),
    TAEDA_GETTER("_base", TensorBase(t.impl()->base())),
    TAEDA_GETTER("_cdata", PyLong_FromVoidPtr(t.impl())),
    TAEDA_GETTER(
        "names",
        new_tuple(static_cast<size_t>(t.dim()), [](size_t) { return none(); })
            .release()),
    TAEDA_GETTER("T", reversed_dims(t)),
    TAEDA_GETTER("mT", matrix_transpose(t, "mT")),
    TAEDA_GETTER("H", hermitian(t)),
    TAEDA_GETTER("mH", conjugate(matrix_transpose(t, "mH"))),
    TAEDA_PROPERTY("real", set_real, real(t)),
    TAEDA_PROPERTY("imag", set_imag, imag(t)),
    TAEDA_PROPERTY("requires_grad", set_requires_grad, t.requires_grad()),
    TAEDA_PROPERTY("data", set_data, autograd::variable_data(t)),
    TAEDA_PROPERTY("grad", set_grad, shown_grad(t)),
    TAEDA_PROPERTY("_grad", set_grad, autograd::grad_of(t)),
    TAEDA_GETTER("is_leaf", autograd::is_leaf(t)),
    TAEDA_GETTER("output_nr", autograd::output_nr(t)),
    TAEDA_GETTER("retains_grad", autograd::retains_grad(t)),
    TAEDA_GETTER("is_cpu", t.device().type == DeviceType::CPU),
    TAEDA_GETTER("is_cuda", t.device().type == DeviceType::CUDA),
    TAEDA_GETTER("is_meta", t.device().type == DeviceType::Meta),
    TAEDA_GETTER("is_xpu", t.device().type == DeviceType::XPU),
    TAEDA_GETTER("is_mps", t.device().type == DeviceType::MPS),
    TAEDA_GETTER("is_xla", t.device().type == DeviceType::XLA),
    TAEDA_GETTER("is_hpu", t.device().type == DeviceType::HPU),
    TAEDA_GETTER("is_ipu", t.device().type == DeviceType::IPU),
    TAEDA_GETTER("is_mtia", t.device().type == DeviceType::MTIA),
    TAEDA_GETTER("is_vulkan", t.device().type == DeviceType::Vulkan),
    TAEDA_GETTER("is_maia", t.device().type == DeviceType::MAIA),
    TAEDA_GETTER("is_sparse", t.layout() == Layout::Sparse),
    TAEDA_GETTER("is_sparse_csr", t.layout() == Layout::SparseCsr),
    TAEDA_GETTER("is_mkldnn", t.layout() == Layout::Mkldnn),
    TAEDA_GETTER("is_quantized", false),
    TAEDA_GETTER("is_nested", false),
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

}  // namespace taeda::python
