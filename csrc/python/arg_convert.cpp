// Objects of bound arguments as C++ values.
#include <taeda/csrc/python/tensor_functions.h>

namespace taeda::python {

// A symbol is fixed to its hint with a guard; callers that can do better with
// symbols look for them before.
int64_t to_int(PyObject* o) {
  if (is_symbol(o)) return to_symbol(o).guard();
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
// Between 2^63 and 2^64 numbers are unsigned, which uint64 tensors need.
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

// The items of a list as values of a C++ list; none if there is no list.
template <class List, class F>
List list_of(PyObject* o, F&& convert) {
  List out;
  if (o == nullptr || o == Py_None) return out;
  for (PyObject* item : items_of(o)) out.push_back(convert(item));
  return out;
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

int64_t Args::checked_int(PyObject* o, int i, size_t at) const {
  if (PyLong_CheckExact(o)) return to_int(o);
  if (is_symbol(o)) throw SymbolicArgument();
  if (takes_over(o)) throw OverriddenArgument();
  bool fits = !PyFloat_Check(o) && (PyIndex_Check(o) || is_int_like(o));
  if (!fits) {
    raise(PyExc_TypeError,
          "{}(): argument '{}' failed to unpack the object at pos {} with "
          "error \"type must be tuple of ints,but got {}\"",
          function_->name,
          overload_->params[i].name,
          at + 1,
          type_name_of(o));
  }
  return to_int(o);
}

DimVector Args::ints(int i, std::initializer_list<int64_t> otherwise) const {
  PyObject* o = slots_[i];
  if (!given(i)) return DimVector(otherwise);
  DimVector out;
  int64_t product = 1;
  auto add = [&](PyObject* item) {
    out.push_back(checked_int(item, i, out.size()));
    // Wraps around on absurd sizes, which the kernel refuses anyway.
    product = static_cast<int64_t>(static_cast<uint64_t>(product) *
                                   static_cast<uint64_t>(out.back()));
  };
  if (variadic_count_ >= 0 && overload_->params[i].has(Param::kVariadic)) {
    for (Py_ssize_t k = 0; k < variadic_count_; ++k) add(variadic_[k]);
  } else if (is_sequence(o)) {
    for (PyObject* item : items_of(o)) add(item);
  } else {
    out.resize(static_cast<size_t>(overload_->params[i].size),
               checked_int(o, i, 0));
  }
  if (work_ == 0) work_ = product;
  return out;
}

OptionalInts Args::optional_ints(int i) const {
  return given(i) ? OptionalInts{ints(i), true} : OptionalInts();
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
      raise(
          PyExc_TypeError,
          "{}: expected tuple of ints, but found element of type {} at pos {}",
          where,
          type_name_of(item),
          k);
    }
    out.push_back(to_int(item));
  }
  return out;
}

TensorBase Args::tensor_or_number(int i) const {
  if (is_tensor(slots_[i])) return unwrap(slots_[i]);
  if (is_symbol(slots_[i])) throw SymbolicArgument();
  return wrap_number(to_scalar(slots_[i]));
}

OptionalTensor Args::optional_tensor(int i) const {
  if (!given(i)) return std::nullopt;
  return unwrap(slots_[i]);
}

TensorVector Args::tensors(int i) const {
  int64_t place = 0;
  return list_of<TensorVector>(slots_[i], [&](PyObject* item) {
    if (!is_tensor(item)) {
      raise(PyExc_TypeError,
            "expected Tensor as element {} in argument {}, but got {}",
            place,
            i,
            type_name_of(item));
    }
    ++place;
    return unwrap(item);
  });
}

OptionalTensorVector Args::optional_tensors(int i) const {
  return list_of<OptionalTensorVector>(slots_[i], [](PyObject* item) {
    if (item == Py_None) return OptionalTensor();
    return OptionalTensor(unwrap_checked(item, "element of a list of tensors"));
  });
}

const TensorBase& Args::out(int i, int k) const {
  PyObject* o = slots_[i];
  if (Py_SIZE(o) != overload_->params[i].size) {
    raise(PyExc_TypeError,
          "expected tuple of {} elements but got {}",
          overload_->params[i].size,
          Py_SIZE(o));
  }
  return unwrap_checked(PySequence_Fast_ITEMS(o)[k], "out");
}

std::vector<Scalar> Args::scalars(int i) const {
  return list_of<std::vector<Scalar>>(slots_[i], to_scalar);
}

std::vector<double> Args::floats(int i) const {
  PyObject* o = slots_[i];
  if (o == nullptr || is_sequence(o)) {
    return list_of<std::vector<double>>(o, to_double);
  }
  return std::vector<double>(static_cast<size_t>(overload_->params[i].size),
                             to_double(o));
}
OptionalFloats Args::optional_floats(int i) const {
  return given(i) ? OptionalFloats{floats(i), true} : OptionalFloats();
}
SmallVector<bool, 4> Args::flags(int i) const {
  return list_of<SmallVector<bool, 4>>(
      slots_[i], [](PyObject* item) { return item == Py_True; });
}

}  // namespace taeda::python
