// numpy(), __array__, from_numpy and frombuffer.
#include <taeda/csrc/python/exchange.h>

#include <taeda/csrc/autograd/variable.h>
#include <taeda/csrc/python/arg_parser.h>
#include <taeda/csrc/python/dtype.h>
#include <taeda/csrc/python/late_op.h>
#include <taeda/csrc/python/tensor_data.h>
#include <taeda/csrc/python/tensor_to.h>

namespace taeda::python {

namespace {
constexpr Param kNumpyParams[] = {
    {"input", nullptr, ParamType::Tensor, 0, 0},
    {"force",
     nullptr,
     ParamType::Bool,
     Param::kHasDefault | Param::kKeywordOnly,
     0},
};
constexpr Overload kNumpyOverload[] = {
    {kNumpyParams, 2, 0, 0, nullptr, "", "(*, bool force = False)"}};
constexpr Function kNumpy = {"numpy", "", kNumpyOverload, 1};

LateOp<TensorBase(const TensorBase&)> resolve_conj_op("resolve_conj", "");

// Brings any tensor into memory that NumPy can have.
TensorBase forced(TensorBase t) {
  BelowAutograd guard;
  if (t.is_conj()) t = resolve_conj_op(t.keys(), t);
  return convert(t, t.dtype(), Device(), false, false, MemoryFormat::Preserve);
}

void check_for_numpy(const TensorBase& t) {
  TAEDA_CHECK_AS(Type,
                 t.is_cpu(),
                 "can't convert ",
                 t.device(),
                 " device type tensor to numpy. Use Tensor.cpu() to copy the "
                 "tensor to host memory first.");
  TAEDA_CHECK(!(t.requires_grad() && grad_enabled()),
              "Can't call numpy() on Tensor that requires grad. Use "
              "tensor.detach().numpy() instead.");
  TAEDA_CHECK(!t.is_conj(),
              "Can't call numpy() on Tensor that has conjugate bit set. Use "
              "tensor.resolve_conj().numpy() instead.");
  TAEDA_CHECK(!t.is_neg(),
              "Can't call numpy() on Tensor that has negative bit set. Use "
              "tensor.resolve_neg().numpy() instead.");
}

PyObject* from_numpy(PyObject*, PyObject* array) {
  return guarded([&] {
    if (!is_numpy_array(array)) {
      raise(PyExc_TypeError,
            str_cat("expected np.ndarray (got ", Py_TYPE(array)->tp_name, ")"));
    }
    return wrap(tensor_from_numpy(array, /*warn_if_readonly=*/true));
  });
}

// A Py_buffer that lives as long as the storage over it.
void release_buffer(void* buffer, size_t) {
  auto* view = static_cast<Py_buffer*>(buffer);
  if (Py_IsInitialized()) {
    GilAcquire gil;
    PyBuffer_Release(view);
  }
  delete view;
}

struct BufferRequest {
  PyObject* buffer;
  ScalarType dtype;
  int64_t count;
  int64_t offset;
  bool requires_grad;
};

int64_t checked_count(const BufferRequest& r, int64_t length) {
  auto size = static_cast<int64_t>(element_size(r.dtype));
  TAEDA_CHECK_AS(Value,
                 length > 0 && r.count != 0,
                 "both buffer length (",
                 length,
                 ") and count (",
                 r.count,
                 ") must not be 0");
  TAEDA_CHECK_AS(Value,
                 r.offset >= 0 && r.offset < length,
                 "offset (",
                 r.offset,
                 " bytes) must be non-negative and no greater than buffer "
                 "length (",
                 length,
                 " bytes) minus 1");
  TAEDA_CHECK_AS(Value,
                 r.count > 0 || (length - r.offset) % size == 0,
                 "buffer length (",
                 length - r.offset,
                 " bytes) after offset (",
                 r.offset,
                 " bytes) must be a multiple of element size (",
                 size,
                 ")");
  int64_t count = r.count > 0 ? r.count : (length - r.offset) / size;
  TAEDA_CHECK_AS(Value,
                 count <= (length - r.offset) / size,
                 "requested buffer length (",
                 count,
                 " * ",
                 size,
                 " bytes) after offset (",
                 r.offset,
                 " bytes) must not be greater than actual buffer length (",
                 length,
                 " bytes)");
  return count;
}

TensorBase tensor_from_buffer(const BufferRequest& r) {
  auto view = std::make_unique<Py_buffer>();
  if (PyObject_GetBuffer(r.buffer, view.get(), PyBUF_WRITABLE) < 0) {
    PyErr_Clear();
    if (PyObject_GetBuffer(r.buffer, view.get(), PyBUF_SIMPLE) < 0) {
      PyErr_Clear();
      raise(PyExc_ValueError,
            str_cat("could not retrieve buffer from object of type ",
                    Py_TYPE(r.buffer)->tp_name));
    }
    check_status(PyErr_WarnEx(PyExc_UserWarning,
                              "The given buffer is not writable, and tensors "
                              "have no read-only state: do not write to it.",
                              1));
  }
  int64_t count;
  try {
    count = checked_count(r, view->len);
  } catch (...) {
    PyBuffer_Release(view.get());
    throw;
  }
  char* data = static_cast<char*>(view->buf) + r.offset;
  auto bytes = static_cast<size_t>(count) * element_size(r.dtype);
  auto storage = make_intrusive<StorageImpl>(
      DataPtr{data, view.release(), release_buffer}, bytes, Device());
  auto impl =
      make_intrusive<TensorImpl>(std::move(storage), r.dtype, DispatchKey::CPU);
  impl->set_sizes_contiguous({count});
  return TensorBase(std::move(impl));
}

PyObject* frombuffer(PyObject*, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {
      "buffer", "dtype", "count", "offset", "requires_grad", nullptr};
  PyObject *buffer, *dtype = nullptr;
  long long count = -1, offset = 0;
  int on = 0;
  if (!PyArg_ParseTupleAndKeywords(args,
                                   kwargs,
                                   "O|$OLLp:frombuffer",
                                   const_cast<char**>(names),
                                   &buffer,
                                   &dtype,
                                   &count,
                                   &offset,
                                   &on)) {
    return nullptr;
  }
  return guarded([&] {
    if (dtype == nullptr) {
      raise(PyExc_TypeError,
            "frombuffer() missing 1 required keyword argument: 'dtype'");
    }
    TensorBase t =
        tensor_from_buffer({buffer, to_dtype(dtype), count, offset, on != 0});
    if (on) autograd::set_requires_grad(t, true);
    return wrap(std::move(t));
  });
}

PyMethodDef functions[] = {
    {"from_numpy",
     from_numpy,
     METH_O,
     "from_numpy(ndarray) -> Tensor\n\nA tensor over the array's memory."},
    {"frombuffer",
     (PyCFunction)(void (*)(void))frombuffer,
     METH_VARARGS | METH_KEYWORDS,
     "frombuffer(buffer, *, dtype, count=-1, offset=0, requires_grad=False) "
     "-> Tensor\n\nA 1-D tensor over the memory of an object with Python's "
     "buffer protocol."},
    {nullptr, nullptr, 0, nullptr},
};
}  // namespace

PyObject* numpy_method(const MethodArgs& m) {
  bool force = false;
  if (m.count != 0 || m.names != nullptr) {
    BoundArgs a(kNumpy, m);
    force = a.flag(1);
  }
  TensorBase t = m.tensor();
  if (force) {
    t = forced(std::move(t));
  } else {
    check_for_numpy(t);
  }
  Ref owner = Ref::borrow(m.self);
  if (!t.is_same(m.tensor())) owner = Ref(wrap(t));
  return numpy_from_tensor(t, owner.get());
}

void init_numpy(PyObject* module) {
  check_status(PyModule_AddFunctions(module, functions));
}

}  // namespace taeda::python
