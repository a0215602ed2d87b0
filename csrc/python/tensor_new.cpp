// tensor_from_data and the functions that make tensors of Python values.
#include <taeda/csrc/python/init.h>
#include <taeda/csrc/python/tensor_functions.h>

#include <taeda/aten/core/level.h>
#include <taeda/aten/iter/copy.h>
#include <taeda/aten/iter/derived.h>
#include <taeda/aten/native/creation.h>
#include <taeda/csrc/autograd/variable.h>
#include <taeda/gen/ops/lift_fresh.h>

#include <algorithm>
#include <string_view>

namespace taeda::python {

namespace {
constexpr size_t kMaxDepth = 128;

// What is read item by item. Text is a sequence, too, but never data.
bool is_nested(PyObject* o) {
  return PyList_Check(o) || PyTuple_Check(o) ||
         (PySequence_Check(o) && !PyUnicode_Check(o) && !PyBytes_Check(o) &&
          !is_tensor(o));
}

Ref sequence_of(PyObject* o) {
  PyObject* items = PySequence_Fast(o, "not a sequence");
  if (items == nullptr && PyErr_ExceptionMatches(PyExc_TypeError)) {
    PyErr_Clear();
    raise(PyExc_ValueError,
          "could not determine the shape of object type '{}'",
          type_name_of(o));
  }
  return checked(items);
}

// The shape by the first elements, of which a tensor counts as a number; fill()
// checks that the others agree.
DimVector shape_of(PyObject* data) {
  DimVector sizes;
  Ref current = Ref::borrow(data);
  while (is_nested(current.get())) {
    Py_ssize_t n = PySequence_Size(current.get());
    if (n < 0) throw PythonError();
    sizes.push_back(n);
    TAEDA_CHECK_AS(
        Value,
        sizes.size() <= kMaxDepth,
        message("too many dimensions '{}'", type_name_of(current.get())));
    if (n == 0) return sizes;
    current = checked(PySequence_GetItem(current.get(), 0));
    if (PyUnicode_Check(current.get())) {
      raise(PyExc_ValueError, "new(): too many dimensions 'str'");
    }
  }
  return sizes;
}

// Beyond the range of the dtype a number becomes infinite.
void store_float(double v, ScalarType dtype, void* out) {
  if (dtype == kDouble) {
    *static_cast<double*>(out) = v;
    return;
  }
  auto single = static_cast<float>(v);
  // Floats of 8 bits have no conversion of many elements.
  ConvertFn convert = convert_function(kFloat, dtype);
  if (convert == nullptr) return Scalar(single).store(dtype, out);
  convert(&single, 0, out, 0, 1);
}

// Writes nested sequences in row-major order into a tensor whose shape the
// first elements have decided.
class Filler {
 public:
  explicit Filler(const TensorBase& out)
      : sizes_(out.sizes()),
        dtype_(out.dtype()),
        itemsize_(out.itemsize()),
        next_(static_cast<char*>(out.mutable_raw_data())) {}

  void fill(PyObject* data, size_t dim) {
    if (is_tensor(data)) return fill_tensor(unwrap(data), dim);
    if (dim == sizes_.size()) {
      store_number(data, dtype_, next_);
      next_ += itemsize_;
      return;
    }
    if (!is_nested(data)) {
      raise(PyExc_TypeError, "not a sequence at dim {}", dim);
    }
    Ref items = sequence_of(data);
    Py_ssize_t n = PySequence_Fast_GET_SIZE(items.get());
    TAEDA_CHECK_AS(Value,
                   n == sizes_[dim],
                   message("expected sequence of length {} at dim {} (got {})",
                           sizes_[dim],
                           dim,
                           n));
    for (Py_ssize_t i = 0; i < n; ++i) {
      fill(PySequence_Fast_GET_ITEM(items.get(), i), dim + 1);
    }
  }

 private:
  // A tensor beside sequences has to have their shape; beside numbers it is
  // one.
  void fill_tensor(const TensorBase& t, size_t dim) {
    IntArrayRef rest = IntArrayRef(sizes_).slice(dim);
    bool one = rest.empty() && t.numel() == 1;
    bool whole = is_integral(t.dtype(), true) && (one || !rest.empty());
    if (is_integral(dtype_, false) && !whole) {
      raise(PyExc_TypeError,
            "only integer tensors of a single element can be converted to an "
            "index");
    }
    TAEDA_CHECK_AS(Value,
                   t.sizes() == rest || one,
                   message("only one element tensors can be converted to "
                           "Python scalars (expected shape {}, got {})",
                           rest,
                           t.sizes()));
    BelowAutograd guard;
    TensorBase same = contiguous_as(t, dtype_);
    std::memcpy(next_, same.const_raw_data(), same.nbytes());
    next_ += same.nbytes();
  }

  DimVector sizes_;
  ScalarType dtype_;
  size_t itemsize_;
  char* next_;
};

TensorBase plain_copy(const TensorBase& t, const DataOptions& options) {
  BelowAutograd guard;
  ScalarType dtype = options.dtype.value_or(t.dtype());
  Device device = options.device.value_or(t.device());
  return convert(t, dtype, device, false, options.copy, MemoryFormat::Preserve);
}

TensorBase filled(PyObject* data, const DataOptions& options) {
  ScalarType dtype = options.dtype ? *options.dtype : inferred_dtype(data);
  TensorBase out = make_tensor("tensor", shape_of(data), dtype);
  Filler(out).fill(data, 0);
  Device device = options.device.value_or(default_device());
  return device.is_cpu()
             ? out
             : convert(
                   out, dtype, device, false, false, MemoryFormat::Preserve);
}

// The arguments that the functions of this file share, and the object that the
// data are in.
struct Options : DataOptions {
  PyObject* object;
  bool pins = false;
};
constexpr Signature kCopying(
    "(object data, *, taeda.dtype dtype = None, taeda.device device = None, "
    "bool requires_grad = False, bool pin_memory = False)");
constexpr Signature kNew(
    "(object data, *, taeda.dtype dtype = None, taeda.device device = None, "
    "bool requires_grad = False)");
constexpr Signature kSharing(
    "(object data, taeda.dtype dtype = None, taeda.device device = None)");

template <size_t N>
Options options_of(const char* name,
                   const Signature<N>& s,
                   const MethodArgs& m) {
  BoundArgs a(name, s, {nullptr, m.args, m.count, m.names});
  Options out;
  out.object = a[0];
  out.dtype = a.maybe<ScalarType>(1);
  out.device = a.maybe<Device>(2);
  int count = a.overload().count;
  out.requires_grad = count > 3 && a.flag(3);
  out.pins = count > 4 && a.flag(4) &&
             derived::pins(name, out.device.value_or(default_device()));
  return out;
}

void warn_about_copy(PyObject* o, std::string_view where) {
  if (!is_tensor(o)) return;
  std::string text = message(
      "To copy construct from a tensor, it is recommended to use "
      "sourceTensor.detach().clone() or "
      "sourceTensor.detach().clone().requires_grad_(True), rather than {}"
      "(sourceTensor).",
      where);
  check_status(PyErr_WarnEx(PyExc_UserWarning, text.c_str(), 1));
}

// Data that comes from outside is handed to the thread's modes and levels.
TensorBase lifted(TensorBase t) {
  bool seen = meets_python(t) || !levels().empty();
  return seen ? ops::lift_fresh(t) : t;
}

PyObject* made(const Options& o) {
  TensorBase t = tensor_from_data(o.object, o);
  return finish_factory(lifted(o.pins ? derived::pinned(t) : std::move(t)),
                        o.requires_grad);
}

PyObject* tensor(const Options& o) {
  warn_about_copy(o.object, str_cat(library_name(), ".tensor"));
  return made(o);
}

PyObject* as_tensor(Options o) {
  o.copy = false;
  if (!is_tensor(o.object)) return wrap(lifted(tensor_from_data(o.object, o)));
  const TensorBase& t = unwrap(o.object);
  ScalarType dtype = o.dtype.value_or(t.dtype());
  Device device = o.device.value_or(t.device());
  return wrap(convert(t, dtype, device, false, false, MemoryFormat::Preserve));
}

template <FixedName Name, const auto& S, auto Body>
PyObject* factory(PyObject*,
                  PyObject* const* args,
                  Py_ssize_t count,
                  PyObject* names) {
  auto handed_over = [&] {
    return override_function(Name.text, {nullptr, nullptr, args, count, names});
  };
  if (modes_active()) return guarded(handed_over);
  return unless_overridden(
      [&] {
        return Body(options_of(Name.text, S, {nullptr, args, count, names}));
      },
      handed_over);
}

PyMethodDef functions[] = {
    TAEDA_PY_ROW(
        "tensor",
        "tensor(data, *, dtype=None, device=None, requires_grad=False, "
        "pin_memory=False) -> Tensor\n\nA new tensor that copies data: a "
        "number, nested sequences, or an array.",
        factory<"tensor", kCopying, tensor>),
    TAEDA_PY_ROW(
        "as_tensor",
        "as_tensor(data, dtype=None, device=None) -> Tensor\n\nData as a "
        "tensor, sharing memory where that is possible.",
        factory<"as_tensor", kSharing, as_tensor>),
    {nullptr, nullptr, 0, nullptr},
};

// taeda.Tensor(...): numbers are sizes, a tensor or storage is shared as it is,
// everything else is data. Sizes and data give the default dtype, whatever the
// data are.
TensorBase legacy_value(PyObject* args, ScalarType dtype) {
  Py_ssize_t n = PyTuple_GET_SIZE(args);
  if (n == 0) return make_tensor("Tensor", {0}, dtype);
  PyObject* first = PyTuple_GET_ITEM(args, 0);
  if (n == 1 && is_tensor(first)) {
    const TensorBase& t = unwrap(first);
    return TensorBase(t.impl()->shallow_copy(/*share_version=*/true));
  }
  bool is_size = n == 1 && PyTuple_Check(first) && !PyTuple_CheckExact(first);
  if (PyLong_Check(first) || is_size) {
    PyObject* sizes = is_size ? first : args;
    TensorBase t = make_tensor("Tensor", to_ints(sizes, "Tensor"), dtype);
    native::unset(t);
    return t;
  }
  if (n > 1) {
    raise(PyExc_TypeError,
          "new() received an invalid combination of arguments - got {} "
          "arguments, but expected a shape or one sequence of data",
          n);
  }
  DataOptions options;
  options.dtype = dtype;
  options.copy = PyObject_HasAttrString(first, "untyped") != 1;
  return tensor_from_data(first, options);
}
}  // namespace

// The dtype that holds all numbers of the data; Python's numbers have the
// default dtype of their kind, arrays and tensors their own.
ScalarType inferred_dtype(PyObject* o) {
  if (PyFloat_CheckExact(o)) return default_dtype();
  if (PyBool_Check(o)) return kBool;
  if (PyLong_Check(o)) return kLong;
  if (PyComplex_CheckExact(o)) return default_complex_dtype();
  if (is_tensor(o)) return unwrap(o).dtype();
  if (is_numpy_array(o)) return tensor_from_numpy(o, false).dtype();
  if (PyUnicode_Check(o)) {
    raise(PyExc_TypeError, "new(): invalid data type '{}'", type_name_of(o));
  }
  if (is_nested(o)) {
    Ref items = sequence_of(o);
    ScalarType found = ScalarType::Undefined;
    Py_ssize_t n = PySequence_Fast_GET_SIZE(items.get());
    for (Py_ssize_t i = 0; i < n; ++i) {
      PyObject* item = PySequence_Fast_GET_ITEM(items.get(), i);
      if (item == o) {
        raise(PyExc_TypeError,
              "new(): self-referential lists are incompatible");
      }
      if (i == 0 && PyUnicode_Check(item)) {
        raise(PyExc_ValueError, "new(): too many dimensions 'str'");
      }
      if (i == 0 && is_numpy_array(item)) {
        check_status(PyErr_WarnEx(
            PyExc_UserWarning,
            "Creating a tensor from a list of numpy.ndarrays is extremely "
            "slow: make one array of the list by numpy.array() first.",
            1));
      }
      found = promote_types(inferred_dtype(item), found);
      if (found == kComplexDouble) break;
    }
    return n == 0 ? default_dtype() : found;
  }
  // Numbers of NumPy, some of which are Python's, know their dtype: through a
  // 0-d array it is told as for arrays.
  if (is_scalar_like(o)) {
    if (PyObject_HasAttrString(o, "dtype") == 1) {
      Ref array = checked(PyObject_CallMethod(o, "__array__", nullptr));
      if (is_numpy_array(array.get())) return inferred_dtype(array.get());
    }
    if (PyComplex_Check(o)) return default_complex_dtype();
    Scalar s = to_scalar(o);
    return s.is_floating() ? default_dtype() : s.type();
  }
  raise(PyExc_RuntimeError, "Could not infer dtype of {}", type_name_of(o));
}

// Writes a whole number of more than 64 bits.
void store_long(PyObject* o, ScalarType dtype, void* out) {
  if (dtype == kBool) {
    *static_cast<bool*>(out) = true;
    return;
  }
  if (!is_floating(dtype) && !is_complex(dtype)) {
    raise(PyExc_ValueError, "Overflow when unpacking long long");
  }
  double v = PyLong_AsDouble(o);
  check_status(v == -1.0 && PyErr_Occurred() != nullptr ? -1 : 0);
  if (is_floating(dtype)) return store_float(v, dtype, out);
  Scalar(v).store(dtype, out);
}

// Writes one Python number. Out of range is an error for integers, as in
// PyTorch, and infinity for floats.
void store_number(PyObject* o, ScalarType dtype, void* out) {
  if (dtype == kFloat && PyFloat_CheckExact(o)) {
    *static_cast<float*>(out) = static_cast<float>(PyFloat_AS_DOUBLE(o));
    return;
  }
  if (is_numpy_array(o)) {
    Ref number = checked(PyObject_CallMethod(o, "item", nullptr));
    return store_number(number.get(), dtype, out);
  }
  if (!is_scalar_like(o)) {
    raise(PyExc_TypeError,
          "{}{}",
          is_integral(dtype, false) ? "an integer is required"
                                    : "must be real number, not ",
          is_integral(dtype, false) ? "" : Py_TYPE(o)->tp_name);
  }
  if (PyLong_CheckExact(o) && dtype != kUInt64) {
    int overflow = 0;
    PyLong_AsLongLongAndOverflow(o, &overflow);
    if (overflow != 0) return store_long(o, dtype, out);
  }
  Scalar s = to_scalar(o);
  if (dtype == kBool) {
    *static_cast<bool*>(out) = s.to_bool();
    return;
  }
  if (s.is_complex() && !is_complex(dtype)) {
    raise(PyExc_TypeError, "must be real number, not complex");
  }
  if (is_floating(dtype)) return store_float(s.to_double(), dtype, out);
  try {
    if (s.is_floating() && !is_complex(dtype)) s = Scalar(s.to_int());
    s.store(dtype, out);
  } catch (const Error&) {
    throw_error(ErrorKind::Runtime,
                message("value cannot be converted to type {} without overflow",
                        dtype_name(dtype)));
  }
}

TensorBase tensor_from_data(PyObject* data, const DataOptions& options) {
  if (is_tensor(data)) return plain_copy(unwrap(data), options);
  DataOptions placed = options;
  if (!placed.device) placed.device = default_device();
  if (is_numpy_array(data)) {
    return plain_copy(tensor_from_numpy(data, !options.copy), placed);
  }
  // The memory of a storage, seen as that dtype.
  if (options.dtype && PyObject_HasAttrString(data, "untyped") == 1) {
    Ref empty(wrap(make_tensor("tensor", {0}, *options.dtype)));
    Ref t = checked(PyObject_CallMethod(empty.get(), "set_", "O", data));
    return plain_copy(unwrap(t.get()), placed);
  }
  bool numbers = PyFloat_Check(data) || PyLong_Check(data);
  if (numbers || PyList_Check(data) || PyTuple_Check(data)) {
    return filled(data, options);
  }
  // Foreign arrays that lend or describe their memory.
  if (PyObject_HasAttrString(data, "__dlpack__") == 1) {
    Ref from = imported("taeda", "from_dlpack");
    Ref t = checked(PyObject_CallOneArg(from.get(), data));
    return plain_copy(unwrap(t.get()), placed);
  }
  if (is_nested(data) && PyObject_HasAttrString(data, "__array__") == 1) {
    Ref array = checked(PyObject_CallMethod(data, "__array__", nullptr));
    if (is_numpy_array(array.get())) {
      return plain_copy(tensor_from_numpy(array.get(), false), placed);
    }
  }
  return filled(data, options);
}

PyObject* finish_factory(TensorBase t, bool requires_grad) {
  if (requires_grad) autograd::set_requires_grad(t, true);
  return wrap(std::move(t));
}

PyObject* new_tensor_method(const MethodArgs& m) {
  Options o = options_of("new_tensor", kNew, m);
  warn_about_copy(o.object, "tensor.new_tensor");
  if (!o.dtype) o.dtype = m.tensor().dtype();
  if (!o.device) o.device = m.tensor().device();
  return made(o);
}

PyObject* legacy_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  return guarded([&] {
    if (type == tensor_base_type) {
      raise(PyExc_TypeError, "Cannot create TensorBase directly");
    }
    PyObject* data =
        kwargs != nullptr ? PyDict_GetItemString(kwargs, "data") : nullptr;
    Ref packed =
        data != nullptr ? checked(PyTuple_Pack(1, data)) : Ref::borrow(args);
    return wrap_as(legacy_value(packed.get(), default_dtype()), type);
  });
}

void init_tensor_new(PyObject* module) {
  check_status(PyModule_AddFunctions(module, functions));
}

}  // namespace taeda::python
