// Zero-copy exchange with NumPy and with Python's buffers. NumPy is optional
// and never imported here unless a program has an array or asks for one.
#include <taeda/aten/core/memory.h>
#include <taeda/aten/settings.h>
#include <taeda/c10/core/kept_forms.h>
#include <taeda/csrc/python/casters.h>
#include <taeda/csrc/python/init.h>
#include <taeda/csrc/python/tensor_functions.h>
#include <taeda/gen/ops/lift_fresh.h>
#include <taeda/gen/ops/resolve_conj.h>

#include <pybind11/numpy.h>

namespace taeda::python {

namespace {
// By NumPy's type number, on platforms where long has 64 bits.
constexpr ScalarType kTypes[] = {
    kBool,
    kChar,
    kByte,
    kShort,
    kUInt16,
    kInt,
    kUInt32,
    kLong,
    kUInt64,
    kLong,
    kUInt64,
    kFloat,
    kDouble,
    ScalarType::Undefined,
    kComplexFloat,
    kComplexDouble,
};
constexpr int kNumpyHalf = 23;

ScalarType type_of_array(const py::dtype& dtype) {
  TAEDA_CHECK_AS(Value,
                 dtype.byteorder() != '>',
                 "given numpy array has byte order different from the native "
                 "byte order. Conversion between byte orders is currently not "
                 "supported.");
  int number = dtype.num();
  if (number == kNumpyHalf) return kHalf;
  if (number < static_cast<int>(std::size(kTypes)) &&
      kTypes[number] != ScalarType::Undefined) {
    return kTypes[number];
  }
  raise(PyExc_TypeError,
        "can't convert np.ndarray of type numpy.{}. The only supported types "
        "are: float64, float32, float16, complex64, complex128, int64, int32, "
        "int16, int8, uint64, uint32, uint16, uint8, and bool.",
        dtype.attr("type").attr("__name__").cast<std::string>());
}

// The first number that has this type: where two of NumPy's types are one of
// ours (long, long long) it is the one NumPy prints as int64.
int numpy_type(ScalarType t) {
  if (t == kHalf) return kNumpyHalf;
  const auto* found = std::find(std::begin(kTypes), std::end(kTypes), t);
  if (found != std::end(kTypes)) return static_cast<int>(found - kTypes);
  raise(PyExc_TypeError, "Got unsupported ScalarType {}", type_name(t));
}

// A tensor's memory may be freed by any thread, and after the interpreter has
// ended: then the array leaks, with everything else of Python's.
void release_array(void* array, size_t) {
  if (!Py_IsInitialized()) return;
  GilAcquire gil;
  Py_DECREF(static_cast<PyObject*>(array));
}

void warn_readonly() {
  // Once per process; read and written under the interpreter's lock.
  static bool warned = false;
  if (std::exchange(warned, true) && !settings::warn_always) return;
  check_status(PyErr_WarnEx(
      PyExc_UserWarning,
      "The given NumPy array is not writable, and tensors have no read-only "
      "state: writing to the tensor changes the array in ways that NumPy does "
      "not expect. Copy the array first if you mean to write.",
      1));
}

constexpr Signature kNumpy("(*, bool force = False)");

// Brings any tensor into memory that NumPy can have.
TensorBase forced(TensorBase t) {
  BelowAutograd guard;
  if (t.is_conj()) t = ops::resolve_conj(t);
  return convert(t, t.dtype(), Device(), false, false, MemoryFormat::Preserve);
}

void check_for_numpy(const TensorBase& t) {
  TAEDA_CHECK(!t.keys().has(DispatchKey::Python) || !meets_python(t),
              ".numpy() is not supported for tensor subclasses.");
  TAEDA_CHECK_AS(Type,
                 t.layout() == Layout::Strided,
                 message("can't convert {} layout tensor to numpy. Use "
                         "Tensor.to_dense() first.",
                         layout_name(t.layout())));
  TAEDA_CHECK_AS(
      Type,
      t.is_cpu(),
      message("can't convert {} device type tensor to numpy. Use Tensor.cpu() "
              "to copy the tensor to host memory first.",
              t.device()));
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

// A Py_buffer that lives as long as the storage over it.
void release_buffer(void* buffer, size_t) {
  auto* view = static_cast<Py_buffer*>(buffer);
  if (Py_IsInitialized()) {
    GilAcquire gil;
    PyBuffer_Release(view);
  }
  delete view;
}

// Over the elements of a buffer whose length was checked (taeda/_buffers.py).
TensorBase over_buffer(py::handle buffer,
                       ScalarType dtype,
                       int64_t count,
                       int64_t offset) {
  auto view = std::make_unique<Py_buffer>();
  check_status(PyObject_GetBuffer(buffer.ptr(), view.get(), PyBUF_SIMPLE));
  char* data = static_cast<char*>(view->buf) + offset;
  size_t bytes = static_cast<size_t>(count) * element_size(dtype);
  DataPtr memory{data, view.release(), release_buffer};
  return over_memory(std::move(memory), bytes, dtype, {count}, {1});
}

TensorBase from_numpy(py::handle array) {
  if (!is_numpy_array(array.ptr())) {
    raise(PyExc_TypeError,
          "expected np.ndarray (got {})",
          type_name_of(array.ptr()));
  }
  TensorBase t = tensor_from_numpy(array.ptr(), /*warn_if_readonly=*/true);
  return meets_python(t) ? ops::lift_fresh(t) : t;
}

}  // namespace

// Asked for every object that might be data, so the usual types are sorted out
// before NumPy is looked up.
bool is_numpy_array(PyObject* o) {
  PyTypeObject* type = Py_TYPE(o);
  if (type == &PyList_Type || type == &PyTuple_Type || type == &PyLong_Type ||
      type == &PyFloat_Type) {
    return false;
  }
  // Only if the program has loaded NumPy. Set once, under the GIL.
  static bool loaded = false;
  if (!loaded) {
    loaded = PyDict_GetItem(PyImport_GetModuleDict(), interned<"numpy">());
  }
  return loaded && py::isinstance<py::array>(o);
}

// The tensor owns a reference to the array, and so keeps its memory.
TensorBase tensor_from_numpy(PyObject* object, bool warn_if_readonly) {
  auto a = py::reinterpret_borrow<py::array>(object);
  ScalarType dtype = type_of_array(a.dtype());
  auto itemsize = static_cast<int64_t>(element_size(dtype));
  DimVector sizes(ArrayRef<int64_t>(a.shape(), static_cast<size_t>(a.ndim())));
  DimVector strides;
  for (int64_t i = 0; i < a.ndim(); ++i) {
    int64_t stride = a.strides()[i];
    TAEDA_CHECK_AS(Value,
                   stride >= 0,
                   "At least one stride in the given numpy array is negative, "
                   "and tensors with negative strides are not currently "
                   "supported. (You can probably work around this by making a "
                   "copy of your array  with array.copy().) ");
    TAEDA_CHECK_AS(Value,
                   stride % itemsize == 0,
                   "given numpy array strides not a multiple of the element "
                   "byte size. Copy the numpy array to reallocate the memory.");
    strides.push_back(stride / itemsize);
  }
  if (warn_if_readonly && !a.writeable()) warn_readonly();
  void* data = const_cast<void*>(a.data());
  size_t bytes =
      required_bytes(sizes, strides, 0, static_cast<size_t>(itemsize));
  DataPtr memory{data, a.release().ptr(), release_array};
  return over_memory(std::move(memory), bytes, dtype, sizes, strides);
}

// The array's base is the tensor's object, which keeps the memory. Empty
// tensors may have no memory, which NumPy takes for a request to allocate.
PyObject* numpy_from_tensor(const TensorBase& t, PyObject* owner) {
  static char nothing[16];
  if (t.numel() > 0) {
    show_memory(*t.storage());
    t.storage()->lend();
  }
  void* data = t.numel() == 0 ? nothing : t.mutable_raw_data();
  std::vector<py::ssize_t> strides(t.strides().vec());
  for (py::ssize_t& s : strides) s *= static_cast<py::ssize_t>(t.itemsize());
  try {
    py::dtype dtype(numpy_type(t.dtype()));
    return py::array(dtype,
                     t.sizes().vec(),
                     std::move(strides),
                     data,
                     py::handle(owner))
        .release()
        .ptr();
  } catch (py::error_already_set& e) {
    if (!e.matches(PyExc_ImportError)) throw;
    raise(PyExc_RuntimeError, "Numpy is not available");
  }
}

PyObject* numpy_method(const MethodArgs& m) {
  bool force = false;
  if (m.count != 0 || m.names != nullptr) {
    BoundArgs a("numpy", kNumpy, m);
    force = a.flag(1);
  }
  TensorBase t = m.tensor();
  if (force && t.layout() == Layout::Strided) {
    t = forced(std::move(t));
  } else {
    check_for_numpy(t);
  }
  // Where a copy had to be made, the array keeps that and not self.
  Ref owner = Ref::borrow(m.self);
  if (!t.is_same(m.tensor())) owner = Ref(wrap(t));
  return numpy_from_tensor(t, owner.get());
}

void init_numpy(PyObject* module) {
  py::module_ m = as_module(module);
  m.def("from_numpy",
        from_numpy,
        "from_numpy(ndarray) -> Tensor\n\nA tensor over the array's memory.");
  m.def("_over_buffer", over_buffer);
  m.def("_element_size", [](ScalarType t) { return element_size(t); });
}

}  // namespace taeda::python
