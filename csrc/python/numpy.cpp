// Zero-copy exchange with NumPy, which is optional and never imported here
// unless a program has an array or asks for one. See Note [NumPy's ABI].
#include <taeda/aten/settings.h>
#include <taeda/csrc/python/dtype.h>
#include <taeda/csrc/python/late_op.h>
#include <taeda/csrc/python/tensor_data.h>

namespace taeda::python {

// Note [NumPy's ABI]
// Arrays are read through the layout that NumPy's C API promises (the fields of
// PyArrayObject and the first ones of PyArray_Descr are the same in 1.x and
// 2.x) and made through its table of functions, whose numbers are fixed. So
// nothing of NumPy is needed to build, and one build serves all versions.
namespace {
struct ArrayObject {
  PyObject_HEAD char* data;
  int nd;
  Py_intptr_t* dimensions;
  Py_intptr_t* strides;
  PyObject* base;
  struct Descriptor* descriptor;
  int flags;
};
struct Descriptor {
  PyObject_HEAD PyTypeObject* type_object;
  char kind;
  char type;
  char byte_order;
  char former_flags;
  int type_number;
};
constexpr int kWriteable = 0x0400;

// Numbers of functions in the table.
constexpr int kArrayType = 2;
constexpr int kDescrFromType = 45;
constexpr int kNewFromDescr = 94;
constexpr int kSetBaseObject = 282;

struct Api {
  void** table = nullptr;
  PyTypeObject* array_type = nullptr;
};

Ref array_capsule() {
  for (const char* name :
       {"numpy._core._multiarray_umath", "numpy.core._multiarray_umath"}) {
    Ref module(PyImport_ImportModule(name));
    if (module)
      return checked(PyObject_GetAttrString(module.get(), "_ARRAY_API"));
    PyErr_Clear();
  }
  raise(PyExc_RuntimeError, "Numpy is not available");
}

// With `import` false, only if the program has loaded NumPy already.
const Api* api(bool import) {
  static Api found;
  if (found.table != nullptr) return &found;
  if (!import) {
    static PyObject* name = PyUnicode_InternFromString("numpy");
    PyObject* modules = PyImport_GetModuleDict();
    if (PyDict_GetItem(modules, name) == nullptr) return nullptr;
  }
  Ref capsule = array_capsule();
  found.table =
      static_cast<void**>(PyCapsule_GetPointer(capsule.get(), nullptr));
  if (found.table == nullptr) throw PythonError();
  found.array_type = static_cast<PyTypeObject*>(found.table[kArrayType]);
  return &found;
}

struct TypePair {
  int numpy;
  ScalarType type;
};
// NumPy's type numbers on platforms where long has 64 bits.
constexpr TypePair kTypes[] = {
    {0, kBool},
    {1, kChar},
    {2, kByte},
    {3, kShort},
    {4, kUInt16},
    {5, kInt},
    {6, kUInt32},
    {7, kLong},
    {8, kUInt64},
    {9, kLong},
    {10, kUInt64},
    {11, kFloat},
    {12, kDouble},
    {23, kHalf},
    {14, kComplexFloat},
    {15, kComplexDouble},
};

ScalarType type_of_array(const ArrayObject& a, PyObject* object) {
  char order = a.descriptor->byte_order;
  TAEDA_CHECK_AS(Value,
                 order != '>',
                 "given numpy array has byte order different from the native "
                 "byte order. Conversion between byte orders is currently not "
                 "supported.");
  for (const TypePair& pair : kTypes) {
    if (pair.numpy == a.descriptor->type_number) return pair.type;
  }
  Ref dtype = checked(PyObject_GetAttrString(object, "dtype"));
  Ref name = checked(PyObject_GetAttrString(dtype.get(), "type"));
  Ref text = checked(PyObject_GetAttrString(name.get(), "__name__"));
  raise(PyExc_TypeError,
        str_cat("can't convert np.ndarray of type numpy.",
                utf8(text.get()),
                ". The only supported types are: float64, float32, float16, "
                "complex64, complex128, int64, int32, int16, int8, uint64, "
                "uint32, uint16, uint8, and bool."));
}

int numpy_type(ScalarType t) {
  for (const TypePair& pair : kTypes) {
    if (pair.type == t) return pair.numpy;
  }
  raise(PyExc_TypeError, str_cat("Got unsupported ScalarType ", type_name(t)));
}

void release_array(void* array, size_t) {
  if (!Py_IsInitialized()) return;
  GilAcquire gil;
  Py_DECREF(static_cast<PyObject*>(array));
}

void warn_readonly() {
  static bool warned = false;
  if (std::exchange(warned, true) && !settings::warn_always) return;
  check_status(PyErr_WarnEx(
      PyExc_UserWarning,
      "The given NumPy array is not writable, and tensors have no read-only "
      "state: writing to the tensor changes the array in ways that NumPy does "
      "not expect. Copy the array first if you mean to write.",
      1));
}
}  // namespace

bool is_numpy_array(PyObject* o) {
  PyTypeObject* type = Py_TYPE(o);
  if (type == &PyList_Type || type == &PyTuple_Type || type == &PyLong_Type ||
      type == &PyFloat_Type) {
    return false;
  }
  const Api* numpy = api(/*import=*/false);
  return numpy != nullptr && PyObject_TypeCheck(o, numpy->array_type);
}

TensorBase tensor_from_numpy(PyObject* object, bool warn_if_readonly) {
  const auto& a = *reinterpret_cast<ArrayObject*>(object);
  ScalarType dtype = type_of_array(a, object);
  auto itemsize = static_cast<int64_t>(element_size(dtype));
  DimVector sizes, strides;
  size_t bytes = static_cast<size_t>(itemsize);
  for (int i = 0; i < a.nd; ++i) {
    TAEDA_CHECK_AS(Value,
                   a.strides[i] >= 0,
                   "At least one stride in the given numpy array is negative, "
                   "and tensors with negative strides are not currently "
                   "supported. (You can probably work around this by making a "
                   "copy of your array  with array.copy().) ");
    TAEDA_CHECK_AS(Value,
                   a.strides[i] % itemsize == 0,
                   "given numpy array strides not a multiple of the element "
                   "byte size. Copy the numpy array to reallocate the memory.");
    sizes.push_back(a.dimensions[i]);
    strides.push_back(a.strides[i] / itemsize);
    if (a.dimensions[i] == 0) bytes = 0;
    if (bytes > 0) {
      bytes += static_cast<size_t>((a.dimensions[i] - 1) * a.strides[i]);
    }
  }
  if (warn_if_readonly && (a.flags & kWriteable) == 0) warn_readonly();
  Py_INCREF(object);
  auto storage = make_intrusive<StorageImpl>(
      DataPtr{a.data, object, release_array}, bytes, Device());
  auto impl =
      make_intrusive<TensorImpl>(std::move(storage), dtype, DispatchKey::CPU);
  impl->set_sizes_and_strides(sizes, strides);
  return TensorBase(std::move(impl));
}

PyObject* numpy_from_tensor(const TensorBase& t, PyObject* owner) {
  const Api* numpy = api(/*import=*/true);
  int number = numpy_type(t.dtype());
  auto itemsize = static_cast<Py_intptr_t>(t.itemsize());
  SmallVector<Py_intptr_t, 8> sizes, strides;
  for (int64_t d = 0; d < t.dim(); ++d) {
    sizes.push_back(t.sizes()[d]);
    strides.push_back(t.strides()[d] * itemsize);
  }
  using DescrFromType = PyObject* (*)(int);
  using NewFromDescr = PyObject* (*)(PyTypeObject*,
                                     PyObject*,
                                     int,
                                     const Py_intptr_t*,
                                     const Py_intptr_t*,
                                     void*,
                                     int,
                                     PyObject*);
  using SetBaseObject = int (*)(PyObject*, PyObject*);
  PyObject* descriptor =
      reinterpret_cast<DescrFromType>(numpy->table[kDescrFromType])(number);
  static char nothing[16];
  void* data = t.numel() == 0 ? nothing : t.mutable_raw_data();
  Ref array = checked(reinterpret_cast<NewFromDescr>(
      numpy->table[kNewFromDescr])(numpy->array_type,
                                   descriptor,
                                   static_cast<int>(t.dim()),
                                   sizes.data(),
                                   strides.data(),
                                   data,
                                   kWriteable,
                                   nullptr));
  check_status(reinterpret_cast<SetBaseObject>(numpy->table[kSetBaseObject])(
      array.get(), Py_NewRef(owner)));
  return array.release();
}

}  // namespace taeda::python
