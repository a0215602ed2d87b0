// Which overload a call fits: checks by type, nothing is converted.
#include <taeda/csrc/python/tensor_functions.h>
#include <taeda/csrc/python/torch_function.h>

#include <cstring>

namespace taeda::python {

namespace {
// Tensors of one element stand for numbers, as in PyTorch; those that require
// grad do not, for a number has no gradient.
bool is_zero_dim(PyObject* o, bool integral) {
  if (!is_tensor(o)) return false;
  const TensorBase& t = unwrap(o);
  return t.dim() == 0 && !t.requires_grad() &&
         (!integral || is_integral(t.dtype(), /*include_bool=*/false));
}

// Elements, for what a kernel has to do.
// Calls with little work keep the interpreter's lock (`Args::large`); a
// symbolic tensor has nothing to compute.
int64_t work_of(PyObject* o) {
  const TensorBase& t = unwrap(o);
  return t.impl()->is_symbolic() ? 0 : t.numel();
}

PyObject* first_item(PyObject* o) {
  return Py_SIZE(o) == 0 ? nullptr : PySequence_Fast_ITEMS(o)[0];
}

// Numbers of NumPy and others: convertible, and no container or text.
bool converts_to_float(PyObject* o) {
  PyTypeObject* type = Py_TYPE(o);
  return type->tp_as_number != nullptr &&
         type->tp_as_number->nb_float != nullptr && !is_tensor(o) &&
         (type->tp_as_mapping == nullptr ||
          !PyObject_HasAttrString(reinterpret_cast<PyObject*>(type),
                                  "__array_finalize__"));
}

bool is_numpy_bool(PyObject* o) {
  const char* name = Py_TYPE(o)->tp_name;
  return std::strcmp(name, "numpy.bool") == 0 ||
         std::strcmp(name, "numpy.bool_") == 0;
}

bool named(PyObject* keyword, const char* name) {
  return PyUnicode_IS_ASCII(keyword) &&
         std::strcmp(
             reinterpret_cast<const char*>(PyUnicode_1BYTE_DATA(keyword)),
             name) == 0;
}

bool is_ints(PyObject* o, int16_t size) {
  if (PyLong_CheckExact(o)) return size > 0;
  if (!is_sequence(o)) return size > 0 && is_int_like(o);
  PyObject* first = first_item(o);
  return first == nullptr || is_int_like(first) ||
         (PyIndex_Check(first) && !PyBool_Check(first) && !is_tensor(first));
}

// Overloads are tried in the order of their record; the first that all objects
// fit is called. Nothing has been converted before, so a miss costs little and
// has no effect.
PyObject* try_overloads(const Call& call, bool* matched) {
  const Function& f = *call.function;
  Args args;
  *matched = true;
  for (int i = 0; i < f.count; ++i) {
    const Overload& overload = f.overloads[i];
    if (!args.bind(overload, call)) continue;
    if (TAEDA_UNLIKELY(args.overridden() || modes_active())) {
      return call_overridden(call);
    }
    if (TAEDA_UNLIKELY(overload.flags & Overload::kDeprecated)) {
      warn_deprecated(call, overload);
    }
    try {
      return overload.call(args);
    } catch (const OverriddenArgument&) {
      return call_overridden(call);
      // A conversion met a taeda.SymInt, which C++ types have no place for: the
      // call is made again, boxed.
    } catch (const SymbolicArgument&) {
      return call_symbolic(args);
    }
  }
  *matched = false;
  return nullptr;
}
}  // namespace

bool names_param(PyObject* keyword, const Param& param) {
  if (named(keyword, param.name)) return true;
  const char* alias = param.aliases;
  if (alias == nullptr) return false;
  for (; *alias != '\0'; alias += std::strlen(alias) + 1) {
    if (named(keyword, alias)) return true;
  }
  return false;
}

PyObject* find_keyword(const Call& call, const Param& param) {
  for (Py_ssize_t i = 0; i < call.keywords(); ++i) {
    if (names_param(PyTuple_GET_ITEM(call.names, i), param)) {
      return call.args[call.count + i];
    }
  }
  return nullptr;
}

// An array of NumPy without axes, of integers.
static bool is_numpy_integer(PyObject* o) {
  if (!is_numpy_array(o)) return false;
  Ref number(PyNumber_Index(o));
  if (number.get() == nullptr) PyErr_Clear();
  return number.get() != nullptr;
}

// Objects with __index__ count if they are numbers (NumPy's are); bool, text
// and sequences do not.
bool is_int_like(PyObject* o) {
  if (PyLong_CheckExact(o)) return true;
  if (PyFloat_Check(o) || PyBool_Check(o) || PyUnicode_Check(o)) return false;
  if (PyLong_Check(o)) return true;
  if (is_tensor(o)) return is_zero_dim(o, /*integral=*/true);
  if (!PyIndex_Check(o) || is_sequence(o)) return false;
  return converts_to_float(o) || is_numpy_integer(o);
}

bool is_float_like(PyObject* o) {
  if (PyFloat_Check(o) || PyLong_Check(o)) return true;
  if (is_tensor(o)) return is_zero_dim(o, /*integral=*/false);
  return converts_to_float(o);
}

bool is_scalar_like(PyObject* o) {
  if (PyFloat_Check(o) || PyLong_Check(o) || PyComplex_Check(o)) return true;
  if (is_tensor(o)) return is_zero_dim(o, /*integral=*/false);
  return converts_to_float(o) || is_numpy_bool(o);
}

bool Args::check_tensor(const Param& param, PyObject* o) {
  if (is_plain_tensor(o)) {
    work_ += work_of(o);
    return true;
  }
  if (o == Py_None) return param.has(Param::kNullable);
  if (has_override(o)) {
    overridden_ = true;
    return true;
  }
  return is_tensor(o) || (param.has(Param::kNumber) && is_scalar_like(o));
}

// Only the first element decides whether the overload fits: PyTorch's errors
// for the others name their place, which the conversion knows.
bool Args::check_tensor_list(const Param& param, PyObject* o) {
  if (!is_sequence(o)) return false;
  Param item = param;
  item.flags = param.type == ParamType::OptionalTensorList ? Param::kNullable
                                                           : uint8_t{0};
  PyObject** items = PySequence_Fast_ITEMS(o);
  for (Py_ssize_t i = 0; i < Py_SIZE(o); ++i) {
    // A wrong element is reported by the conversion, which names its place.
    if (!check_tensor(item, items[i]) && i == 0) return false;
  }
  return true;
}

// What takes calls over may stand for anything, also within lists.
bool Args::check(const Param& param, PyObject* o) {
  if (fits(param, o)) return true;
  return overridden_ =
             takes_over(o) ||
             (is_sequence(o) && std::ranges::any_of(items_of(o), takes_over));
}

bool Args::fits(const Param& param, PyObject* o) {
  if (param.type == ParamType::Tensor) return check_tensor(param, o);
  if (o == Py_None) return param.has(Param::kNullable);
  auto begins_with = [&](auto&& fits_first) {
    return is_sequence(o) && (Py_SIZE(o) == 0 || fits_first(first_item(o)));
  };
  switch (param.type) {
    case ParamType::Object:
      return true;
    case ParamType::Scalar:
      return is_scalar_like(o);
    case ParamType::Int:
      return is_int_like(o);
    case ParamType::Float:
      return is_float_like(o);
    case ParamType::Bool:
      return PyBool_Check(o) || is_numpy_bool(o);
    case ParamType::Text:
      return PyUnicode_Check(o);
    case ParamType::Dtype:
      return is_dtype_like(o);
    case ParamType::Layout:
      return is_layout(o);
    case ParamType::Device:
      return is_device_like(o);
    case ParamType::MemoryFormat:
      return is_memory_format(o);
    case ParamType::Generator:
      return is_generator(o);
    case ParamType::IntList:
      return is_ints(o, param.size);
    case ParamType::FloatList:
      return (param.size > 0 && is_float_like(o)) || begins_with(is_float_like);
    case ParamType::BoolList:
      return begins_with([](PyObject* each) { return PyBool_Check(each); });
    case ParamType::ScalarList:
      return begins_with(is_scalar_like);
    default:
      return check_tensor_list(param, o);
  }
}

bool Args::put(const Param& param, int i, PyObject* object) {
  if (TAEDA_LIKELY(param.type == ParamType::Tensor &&
                   is_plain_tensor(object))) {
    work_ += work_of(object);
  } else if (!check(param, object)) {
    return false;
  }
  slots_[i] = object;
  return true;
}

// Binds objects to parameters without converting them. Returns false at the
// first that does not fit, and where an argument is left over or missing.
bool Args::bind(const Overload& overload, const Call& call) {
  overload_ = &overload;
  function_ = call.function;
  variadic_count_ = -1;
  work_ = 0;
  overridden_ = false;
  Py_ssize_t used = 0, keywords = 0;
  int self = call.self != nullptr ? overload.self : -1;
  if (call.self != nullptr && self < 0) return false;
  for (int i = 0; i < overload.count; ++i) {
    const Param& param = overload.params[i];
    if (i == self) {
      slots_[i] = call.self;
      work_ += work_of(call.self);
      overridden_ |= takes_over(call.self);
      continue;
    }
    if (used < call.count && !param.has(Param::kKeywordOnly)) {
      PyObject* object = call.args[used];
      // `x.view(2, 3)`: all that follows is one list. Functions have it only
      // where there is no self that could be meant by the first number.
      if (param.has(Param::kVariadic) && (overload.self < 0 || self >= 0) &&
          (is_int_like(object) || takes_over(object))) {
        overridden_ |= takes_over(object);
        variadic_ = call.args + used;
        variadic_count_ = call.count - used;
        slots_[i] = object;
        used = call.count;
        continue;
      }
      if (!put(param, i, object)) return false;
      ++used;
      continue;
    }
    slots_[i] = nullptr;
    if (self >= 0 && param.has(Param::kFunctionOnly)) continue;
    if (call.names != nullptr) {
      PyObject* object = find_keyword(call, param);
      if (object != nullptr) {
        if (!put(param, i, object)) return false;
        ++keywords;
        continue;
      }
    }
    if (!param.has(Param::kHasDefault)) return false;
  }
  return used == call.count && keywords == call.keywords();
}

PyObject* call_function(const Call& call) {
  return guarded([&] {
    bool matched = false;
    PyObject* out = try_overloads(call, &matched);
    if (TAEDA_UNLIKELY(!matched)) raise_no_match(call);
    return out;
  });
}

// Of `a + b`: where nothing fits, Python is to try the other operand's method,
// so this is no error yet.
PyObject* call_operator(const Call& call) {
  return guarded([&] {
    bool matched = false;
    PyObject* out = try_overloads(call, &matched);
    return TAEDA_LIKELY(matched) ? out : Py_NewRef(Py_NotImplemented);
  });
}

}  // namespace taeda::python
