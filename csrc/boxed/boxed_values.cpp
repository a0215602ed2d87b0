#include <taeda/csrc/boxed/boxed_values.h>

#include <taeda/csrc/python/casters.h>
#include <taeda/csrc/python/lent.h>

namespace taeda::python {

namespace {

template <class T, class F>
std::vector<T> list_of(PyObject* o, F&& convert) {
  std::vector<T> out;
  for (py::handle item : py::reinterpret_borrow<py::sequence>(o)) {
    out.push_back(convert(item.ptr()));
  }
  return out;
}

TensorBase tensor_of(PyObject* o) {
  if (!is_tensor(o) && is_scalar_like(o)) {
    return wrap_number(to_scalar(o), Device());
  }
  return unwrap_checked(o, "operator call");
}
OptionalTensor optional_tensor_of(PyObject* o) {
  return o == Py_None ? OptionalTensor() : tensor_of(o);
}

// Integers, symbols where one of them is.
IValue ints_of(PyObject* o) {
  std::vector<SymInt> all = list_of<SymInt>(o, to_symbol);
  if (!all_plain(all)) return all;
  return as_plain(all).vec();
}

int64_t dtype_number(PyObject* o) {
  if (!PyLong_CheckExact(o)) return static_cast<int64_t>(to_dtype(o));
  int64_t n = to_int(o);  // as schemas write their defaults
  TAEDA_CHECK(n >= 0 && n < kNumScalarTypes &&
                  element_size(static_cast<ScalarType>(n)) > 0,
              "no dtype has the number ",
              n);
  return n;
}

int64_t layout_number(PyObject* o) {
  return static_cast<int64_t>(to_layout(o));
}
int64_t format_number(PyObject* o) {
  return static_cast<int64_t>(to_memory_format(o));
}

IValue list_to_ivalue(PyObject* o, const Kind& kind) {
  switch (kind[0]) {
    case 'T':
      if (kind[1] == '?') return list_of<OptionalTensor>(o, optional_tensor_of);
      return list_of<TensorBase>(o, tensor_of);
    case 'f':
      return list_of<double>(o, to_double);
    case 'b':
      return list_of<bool>(o, [](PyObject* e) { return e == Py_True; });
    case 'S':
      return list_of<Scalar>(o, to_scalar);
    case 't':
      return list_of<int64_t>(o, dtype_number);
    case 'l':
      return list_of<int64_t>(o, layout_number);
    case 'm':
      return list_of<int64_t>(o, format_number);
    default:
      // One number stands for a list of it where the schema gives a length.
      if (kind[0] == 'i' && holds_symbol(o)) {
        return std::vector<SymInt>(1, to_symbol(o));
      }
      if (kind[0] == 'i' && is_int_like(o)) {
        return std::vector<int64_t>(1, to_int(o));
      }
      return ints_of(o);
  }
}

py::object int_to_python(int64_t v, char kind) {
  switch (kind) {
    case 't':
      return py::cast(static_cast<ScalarType>(v));
    case 'l':
      return owned(Ref::borrow(layout_object(static_cast<Layout>(v))));
    case 'm':
      return owned(
          Ref::borrow(memory_format_object(static_cast<MemoryFormat>(v))));
    case 'b':
      return py::bool_(v != 0);
    case 'f':
      return py::float_(static_cast<double>(v));
    default:
      return py::int_(v);
  }
}

}  // namespace

Kind kind_of(const ArgInfo& value) {
  // In the order of ValueType; a type that no kernel can take has a space.
  Kind kind(1, "TSiifbstlDmG "[static_cast<size_t>(value.type)]);
  if (value.has(ArgInfo::kOptionalElement)) kind += '?';
  if (value.has(ArgInfo::kList)) kind += '[';
  return kind;
}

IValue to_ivalue(PyObject* o, const Kind& kind) {
  if (o == Py_None) return {};
  if (kind.back() == '[') return list_to_ivalue(o, kind);
  switch (kind[0]) {
    case 'T':
      // SymbolicGrad makes a tensor of it (spell_out_numbers).
      if (holds_symbol(o)) return to_symbol(o);
      return tensor_of(o);
    case 'i':
      if (holds_symbol(o)) return to_symbol(o);
      return to_int(o);
    case 'f':
      return to_double(o);
    case 'b':
      return PyObject_IsTrue(o) == 1;
    case 's':
      return std::string(utf8(o));
    case 'S':
      if (holds_symbol(o)) return to_symbol(o);
      return IValue(to_scalar(o));
    case 't':
      return dtype_number(o);
    case 'l':
      return layout_number(o);
    case 'm':
      return format_number(o);
    case 'D':
      return to_device(o);
    case 'G':
      return to_generator(o);
    default:
      throw_error(ErrorKind::Type, str_cat("unknown schema type ", kind));
  }
}

Ref to_object(const IValue& v, const Kind& kind) {
  py::object made = std::visit(
      [&](const auto& x) -> py::object {
        using V = std::decay_t<decltype(x)>;
        if constexpr (std::is_same_v<V, int64_t>) {
          return int_to_python(x, kind[0]);
        } else if constexpr (std::is_same_v<V, std::vector<int64_t>>) {
          py::list out;
          for (int64_t n : x) out.append(int_to_python(n, kind[0]));
          return out;
        } else if constexpr (std::is_same_v<V, complex<double>>) {
          return owned(PyComplex_FromDoubles(x.real(), x.imag()));
        } else if constexpr (std::is_same_v<V, Generator>) {
          return owned(wrap(x));
        } else if constexpr (std::is_same_v<V, SymInt>) {
          return owned(wrap(x));
        } else if constexpr (std::is_same_v<V, std::vector<SymInt>>) {
          return owned(
              new_list(x.size(), [&](size_t i) { return wrap(x[i]); }));
        } else if constexpr (std::is_same_v<V, std::monostate> ||
                             std::is_same_v<V, IntrusivePtr<IntrusiveTarget>>) {
          return py::none();
        } else {
          return py::cast(x);
        }
      },
      v.value());
  return Ref(made.release().ptr());
}

Ref results_to_object(const Stack& stack, const Kinds& kinds) {
  if (kinds.empty() || stack.empty()) return Ref(none());
  if (kinds.size() == 1) return to_object(stack[0], kinds[0]);
  return new_tuple(kinds.size(), [&](size_t i) {
    return to_object(stack[i], kinds[i]).release();
  });
}

}  // namespace taeda::python
