// Objects of bound arguments as C++ values.
#include <taeda/csrc/python/arg_parser.h>
#include <taeda/csrc/python/device.h>
#include <taeda/csrc/python/dtype.h>
#include <taeda/csrc/python/generator.h>
#include <taeda/csrc/python/tensor_data.h>

namespace taeda::python {

int64_t to_int(PyObject* o) {
  if (is_tensor(o)) return item_of(unwrap(o)).to_int();
  int64_t v;
  if (PyLong_Check(o)) {
    v = PyLong_AsLongLong(o);
  } else {
    v = PyLong_AsLongLong(checked(PyNumber_Index(o)).get());
  }
  if (v == -1 && PyErr_Occurred()) {
    if (PyErr_ExceptionMatches(PyExc_OverflowError)) {
      PyErr_Clear();
      raise(PyExc_ValueError, "Overflow when unpacking long long");
    }
    throw PythonError();
  }
  return v;
}

double to_double(PyObject* o) {
  if (PyFloat_Check(o)) return PyFloat_AS_DOUBLE(o);
  if (is_tensor(o)) return item_of(unwrap(o)).to_double();
  double v = PyFloat_AsDouble(o);
  if (v == -1.0 && PyErr_Occurred()) throw PythonError();
  return v;
}

namespace {
Scalar long_scalar(PyObject* o) {
  int overflow = 0;
  int64_t v = PyLong_AsLongLongAndOverflow(o, &overflow);
  if (overflow == 0) {
    if (v == -1 && PyErr_Occurred()) throw PythonError();
    return Scalar(v);
  }
  uint64_t u = overflow > 0 ? PyLong_AsUnsignedLongLong(o) : 0;
  if (overflow < 0 || PyErr_Occurred()) {
    PyErr_Clear();
    raise(PyExc_OverflowError, "int too big to convert");
  }
  return Scalar(u);
}
}  // namespace

Scalar to_scalar(PyObject* o) {
  if (PyFloat_Check(o)) return Scalar(PyFloat_AS_DOUBLE(o));
  if (PyBool_Check(o)) return Scalar(o == Py_True);
  if (PyLong_Check(o)) return long_scalar(o);
  if (PyComplex_Check(o)) {
    return Scalar(
        complex<double>(PyComplex_RealAsDouble(o), PyComplex_ImagAsDouble(o)));
  }
  if (is_tensor(o)) return item_of(unwrap(o));
  std::string_view type = Py_TYPE(o)->tp_name;
  if (type == "numpy.bool" || type == "numpy.bool_") {
    int truth = PyObject_IsTrue(o);
    check_status(truth);
    return Scalar(truth == 1);
  }
  if (PyIndex_Check(o)) return long_scalar(checked(PyNumber_Index(o)).get());
  if (type.starts_with("numpy.complex")) {
    Py_complex z = PyComplex_AsCComplex(o);
    if (PyErr_Occurred()) throw PythonError();
    return Scalar(complex<double>(z.real, z.imag));
  }
  return Scalar(to_double(o));
}

int64_t Args::checked_int(PyObject* o, int i, Py_ssize_t at) const {
  if (PyLong_CheckExact(o)) return to_int(o);
  bool fits = !PyFloat_Check(o) && (PyIndex_Check(o) || is_int_like(o));
  if (!fits) {
    raise(PyExc_TypeError,
          str_cat(function_->name,
                  "(): argument '",
                  overload_->params[i].name,
                  "' failed to unpack the object at pos ",
                  static_cast<int64_t>(at + 1),
                  " with error \"type must be tuple of ints,but got ",
                  Py_TYPE(o)->tp_name,
                  "\""));
  }
  return to_int(o);
}

DimVector Args::ints(int i, std::initializer_list<int64_t> otherwise) const {
  PyObject* o = slots_[i];
  if (o == nullptr) return DimVector(otherwise);
  DimVector out;
  int64_t product = 1;
  auto add = [&](PyObject* item, Py_ssize_t at) {
    out.push_back(checked_int(item, i, at));
    // Wraps around on absurd sizes, which the kernel refuses anyway.
    product = static_cast<int64_t>(static_cast<uint64_t>(product) *
                                   static_cast<uint64_t>(out.back()));
  };
  if (variadic_count_ >= 0 && overload_->params[i].has(Param::kVariadic)) {
    for (Py_ssize_t k = 0; k < variadic_count_; ++k) add(variadic_[k], k);
  } else if (PyTuple_Check(o) || PyList_Check(o)) {
    for (Py_ssize_t k = 0; k < Py_SIZE(o); ++k) {
      add(PySequence_Fast_ITEMS(o)[k], k);
    }
  } else {
    out.resize(static_cast<size_t>(overload_->params[i].size),
               checked_int(o, i, 0));
  }
  if (work_ == 0) work_ = product;
  return out;
}

OptionalInts Args::optional_ints(int i) const {
  OptionalInts out;
  out.given = given(i);
  if (out.given) out.values = ints(i);
  return out;
}

DimVector to_ints(PyObject* o, const char* where) {
  DimVector out;
  if (is_int_like(o)) {
    out.push_back(to_int(o));
    return out;
  }
  Ref items(PySequence_Fast(o, where));
  if (!items) throw PythonError();
  for (Py_ssize_t k = 0; k < PySequence_Fast_GET_SIZE(items.get()); ++k) {
    PyObject* item = PySequence_Fast_GET_ITEM(items.get(), k);
    if (!is_int_like(item) && !PyIndex_Check(item)) {
      raise(PyExc_TypeError,
            str_cat(where,
                    ": expected tuple of ints, but found element of type ",
                    Py_TYPE(item)->tp_name,
                    " at pos ",
                    static_cast<int64_t>(k)));
    }
    out.push_back(to_int(item));
  }
  return out;
}

TensorBase Args::tensor_or_number(int i) const {
  if (is_tensor(slots_[i])) return unwrap(slots_[i]);
  return wrap_number(to_scalar(slots_[i]));
}

OptionalTensor Args::optional_tensor(int i) const {
  if (!given(i)) return std::nullopt;
  return unwrap(slots_[i]);
}

TensorVector Args::tensors(int i) const {
  TensorVector out;
  if (!given(i)) return out;
  PyObject* o = slots_[i];
  for (Py_ssize_t k = 0; k < Py_SIZE(o); ++k) {
    PyObject* item = PySequence_Fast_ITEMS(o)[k];
    if (!is_tensor(item)) {
      raise(PyExc_TypeError,
            str_cat("expected Tensor as element ",
                    static_cast<int64_t>(k),
                    " in argument ",
                    i,
                    ", but got ",
                    Py_TYPE(item)->tp_name));
    }
    out.push_back(unwrap(item));
  }
  return out;
}

OptionalTensorVector Args::optional_tensors(int i) const {
  OptionalTensorVector out;
  if (!given(i)) return out;
  PyObject* o = slots_[i];
  for (Py_ssize_t k = 0; k < Py_SIZE(o); ++k) {
    PyObject* item = PySequence_Fast_ITEMS(o)[k];
    if (item == Py_None) {
      out.push_back(std::nullopt);
    } else {
      out.push_back(unwrap_checked(item, "element of a list of tensors"));
    }
  }
  return out;
}

const TensorBase& Args::out(int i, int k) const {
  PyObject* o = slots_[i];
  if (Py_SIZE(o) != overload_->params[i].size) {
    raise(PyExc_TypeError,
          str_cat("expected tuple of ",
                  static_cast<int>(overload_->params[i].size),
                  " elements but got ",
                  static_cast<int64_t>(Py_SIZE(o))));
  }
  return unwrap_checked(PySequence_Fast_ITEMS(o)[k], "out");
}

Scalar Args::scalar(int i) const { return to_scalar(slots_[i]); }
Scalar Args::scalar(int i, const Scalar& otherwise) const {
  return slots_[i] == nullptr ? otherwise : to_scalar(slots_[i]);
}
std::optional<Scalar> Args::optional_scalar(int i) const {
  if (!given(i)) return std::nullopt;
  return to_scalar(slots_[i]);
}
std::vector<Scalar> Args::scalars(int i) const {
  std::vector<Scalar> out;
  if (!given(i)) return out;
  for (Py_ssize_t k = 0; k < Py_SIZE(slots_[i]); ++k) {
    out.push_back(to_scalar(PySequence_Fast_ITEMS(slots_[i])[k]));
  }
  return out;
}

int64_t Args::integer(int i) const { return to_int(slots_[i]); }
int64_t Args::integer(int i, int64_t otherwise) const {
  return slots_[i] == nullptr ? otherwise : to_int(slots_[i]);
}
std::optional<int64_t> Args::optional_integer(int i) const {
  if (!given(i)) return std::nullopt;
  return to_int(slots_[i]);
}
double Args::number(int i) const { return to_double(slots_[i]); }
double Args::number(int i, double otherwise) const {
  return slots_[i] == nullptr ? otherwise : to_double(slots_[i]);
}
std::optional<double> Args::optional_number(int i) const {
  if (!given(i)) return std::nullopt;
  return to_double(slots_[i]);
}
bool Args::flag(int i, bool otherwise) const {
  PyObject* o = slots_[i];
  if (o == nullptr) return otherwise;
  return o == Py_True || (o != Py_False && PyObject_IsTrue(o) == 1);
}
std::optional<bool> Args::optional_flag(int i) const {
  if (!given(i)) return std::nullopt;
  return flag(i);
}
std::string_view Args::text(int i, std::string_view otherwise) const {
  return slots_[i] == nullptr ? otherwise : utf8(slots_[i]);
}
std::optional<std::string_view> Args::optional_text(int i) const {
  if (!given(i)) return std::nullopt;
  return utf8(slots_[i]);
}

ScalarType Args::dtype(int i, ScalarType otherwise) const {
  return slots_[i] == nullptr ? otherwise : to_dtype(slots_[i]);
}
std::optional<ScalarType> Args::optional_dtype(int i) const {
  if (!given(i)) return std::nullopt;
  return to_dtype(slots_[i]);
}
Layout Args::layout(int i, Layout otherwise) const {
  return slots_[i] == nullptr ? otherwise : to_layout(slots_[i]);
}
std::optional<Layout> Args::optional_layout(int i) const {
  if (!given(i)) return std::nullopt;
  return to_layout(slots_[i]);
}
Device Args::device(int i) const {
  return given(i) ? to_device(slots_[i]) : default_device();
}
std::optional<Device> Args::optional_device(int i) const {
  if (!given(i)) return std::nullopt;
  return to_device(slots_[i]);
}
MemoryFormat Args::memory_format(int i, MemoryFormat otherwise) const {
  return slots_[i] == nullptr ? otherwise : to_memory_format(slots_[i]);
}
std::optional<MemoryFormat> Args::optional_memory_format(int i) const {
  if (!given(i)) return std::nullopt;
  return to_memory_format(slots_[i]);
}
Generator Args::generator(int i) const {
  return given(i) ? to_generator(slots_[i]) : Generator();
}
std::optional<Generator> Args::optional_generator(int i) const {
  if (!given(i)) return std::nullopt;
  return to_generator(slots_[i]);
}

std::vector<double> Args::floats(int i) const {
  PyObject* o = slots_[i];
  std::vector<double> out;
  if (o == nullptr) return out;
  if (PyTuple_Check(o) || PyList_Check(o)) {
    for (Py_ssize_t k = 0; k < Py_SIZE(o); ++k) {
      out.push_back(to_double(PySequence_Fast_ITEMS(o)[k]));
    }
    return out;
  }
  auto count = static_cast<size_t>(overload_->params[i].size);
  out.assign(count, to_double(o));
  return out;
}
OptionalFloats Args::optional_floats(int i) const {
  OptionalFloats out;
  out.given = given(i);
  if (out.given) out.values = floats(i);
  return out;
}
SmallVector<bool, 4> Args::flags(int i) const {
  SmallVector<bool, 4> out;
  if (!given(i)) return out;
  for (Py_ssize_t k = 0; k < Py_SIZE(slots_[i]); ++k) {
    out.push_back(PySequence_Fast_ITEMS(slots_[i])[k] == Py_True);
  }
  return out;
}

}  // namespace taeda::python
