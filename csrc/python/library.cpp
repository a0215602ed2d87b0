// taeda.library and taeda.ops: operators as Python sees them, boxed.
#include <taeda/csrc/python/library.h>

#include <taeda/aten/core/library.h>
#include <taeda/csrc/python/arg_parser.h>
#include <taeda/csrc/python/device.h>
#include <taeda/csrc/python/dtype.h>
#include <taeda/csrc/python/generator.h>

#include <string>
#include <vector>

namespace taeda::python {

namespace {

// Note [Kinds]
// The Python side parses schemas and hands over each type as a short text: a
// letter (T Tensor, i int, f float, b bool, s str, S Scalar, t dtype, l layout,
// m memory format, D device, G generator), then '?' for optional elements, then
// '[' for a list of them. None always converts to an empty value.
using Kind = std::string;

bool is_list(const Kind& kind) { return kind.back() == '['; }

Ref item(PyObject* list, Py_ssize_t i) {
  return checked(PySequence_GetItem(list, i));
}

template <class T, class F>
std::vector<T> list_of(PyObject* o, F&& convert) {
  Py_ssize_t n = PySequence_Size(o);
  if (n < 0) throw PythonError();
  std::vector<T> out;
  out.reserve(static_cast<size_t>(n));
  for (Py_ssize_t i = 0; i < n; ++i) out.push_back(convert(item(o, i).get()));
  return out;
}

TensorBase tensor_of(PyObject* o) { return unwrap_checked(o, "operator call"); }

IValue list_to_ivalue(PyObject* o, const Kind& kind) {
  switch (kind[0]) {
    case 'T':
      if (kind[1] == '?') {
        return list_of<OptionalTensor>(o, [](PyObject* e) {
          return e == Py_None ? OptionalTensor() : tensor_of(e);
        });
      }
      return list_of<TensorBase>(o, tensor_of);
    case 'f':
      return list_of<double>(o, to_double);
    case 'b':
      return list_of<bool>(o, [](PyObject* e) { return e == Py_True; });
    case 'S':
      return list_of<Scalar>(o, to_scalar);
    default:
      return list_of<int64_t>(o, to_int);
  }
}

IValue to_ivalue(PyObject* o, const Kind& kind) {
  if (o == Py_None) return {};
  if (is_list(kind)) {
    // One number stands for a list of it where the schema gives a length.
    if (kind[0] == 'i' && is_int_like(o)) {
      return std::vector<int64_t>(1, to_int(o));
    }
    return list_to_ivalue(o, kind);
  }
  switch (kind[0]) {
    case 'T':
      return tensor_of(o);
    case 'i':
      return to_int(o);
    case 'f':
      return to_double(o);
    case 'b':
      return PyObject_IsTrue(o) == 1;
    case 's':
      return std::string(utf8(o));
    case 'S':
      return IValue(to_scalar(o));
    case 't':
      return static_cast<int64_t>(to_dtype(o));
    case 'l':
      return static_cast<int64_t>(to_layout(o));
    case 'm':
      return static_cast<int64_t>(to_memory_format(o));
    case 'D':
      return to_device(o);
    case 'G':
      return to_generator(o);
    default:
      throw_error(ErrorKind::Type, str_cat("unknown schema type ", kind));
  }
}

template <class L, class F>
PyObject* list_object(const L& values, F&& convert) {
  Ref out = checked(PyList_New(static_cast<Py_ssize_t>(values.size())));
  for (size_t i = 0; i < values.size(); ++i) {
    PyObject* o = convert(values[i]);
    if (o == nullptr) throw PythonError();
    PyList_SET_ITEM(out.get(), static_cast<Py_ssize_t>(i), o);
  }
  return out.release();
}

PyObject* int_to_python(int64_t v, char kind) {
  switch (kind) {
    case 't':
      return Py_NewRef(dtype_object(static_cast<ScalarType>(v)));
    case 'l':
      return Py_NewRef(layout_object(static_cast<Layout>(v)));
    case 'm':
      return Py_NewRef(memory_format_object(static_cast<MemoryFormat>(v)));
    case 'b':
      return boolean(v != 0);
    case 'f':
      return PyFloat_FromDouble(static_cast<double>(v));
    default:
      return PyLong_FromLongLong(v);
  }
}

PyObject* to_python(const IValue& v, char kind) {
  return std::visit(
      [&](const auto& x) -> PyObject* {
        using V = std::decay_t<decltype(x)>;
        if constexpr (std::is_same_v<V, std::monostate>) {
          return none();
        } else if constexpr (std::is_same_v<V, TensorBase>) {
          return wrap(x);
        } else if constexpr (std::is_same_v<V, bool>) {
          return boolean(x);
        } else if constexpr (std::is_same_v<V, int64_t>) {
          return int_to_python(x, kind);
        } else if constexpr (std::is_same_v<V, double>) {
          return PyFloat_FromDouble(x);
        } else if constexpr (std::is_same_v<V, complex<double>>) {
          return PyComplex_FromDoubles(x.real(), x.imag());
        } else if constexpr (std::is_same_v<V, std::string>) {
          return new_text(x).release();
        } else if constexpr (std::is_same_v<V, std::vector<int64_t>>) {
          return list_object(x, PyLong_FromLongLong);
        } else if constexpr (std::is_same_v<V, std::vector<double>>) {
          return list_object(x, PyFloat_FromDouble);
        } else if constexpr (std::is_same_v<V, std::vector<bool>>) {
          return list_object(x, [](bool b) { return boolean(b); });
        } else if constexpr (std::is_same_v<V, std::vector<TensorBase>>) {
          return list_object(x, [](const TensorBase& t) { return wrap(t); });
        } else if constexpr (std::is_same_v<V, std::vector<OptionalTensor>>) {
          return list_object(
              x, [](const OptionalTensor& t) { return t ? wrap(*t) : none(); });
        } else if constexpr (std::is_same_v<V, std::vector<Scalar>>) {
          return list_object(x, [](const Scalar& s) { return wrap(s); });
        } else if constexpr (std::is_same_v<V, Device>) {
          return new_device(x);
        } else if constexpr (std::is_same_v<V, Generator>) {
          return wrap(x);
        } else {
          return none();
        }
      },
      v.value());
}

std::vector<Kind> kinds_of(PyObject* tuple) {
  return list_of<Kind>(tuple, [](PyObject* o) { return Kind(utf8(o)); });
}

// A Python callable as a kernel of one key. It lives as long as the process.
class PythonKernel final : public BoxedKernel {
 public:
  PythonKernel(PyObject* callable,
               std::vector<Kind> arguments,
               std::vector<Kind> results)
      : callable_(Py_NewRef(callable)),
        arguments_(std::move(arguments)),
        results_(std::move(results)) {}

  void call(const OperatorEntry& op, DispatchKeySet, Stack& stack) override {
    GilAcquire gil;
    size_t count = arguments_.size(), base = stack.size() - count;
    Ref tuple = checked(PyTuple_New(static_cast<Py_ssize_t>(count)));
    for (size_t i = 0; i < count; ++i) {
      PyObject* o = to_python(stack[base + i], arguments_[i][0]);
      if (o == nullptr) throw PythonError();
      PyTuple_SET_ITEM(tuple.get(), static_cast<Py_ssize_t>(i), o);
    }
    Ref result = checked(PyObject_CallObject(callable_, tuple.get()));
    stack.resize(base);
    push_results(op, result.get(), stack);
  }

 private:
  void push_results(const OperatorEntry& op, PyObject* result, Stack& stack) {
    if (results_.empty()) return;
    if (results_.size() == 1) {
      stack.push_back(to_ivalue(result, results_[0]));
      return;
    }
    Py_ssize_t n = PySequence_Size(result);
    TAEDA_CHECK(n == static_cast<Py_ssize_t>(results_.size()),
                op.qualified_name(),
                ": the kernel returned ",
                n,
                " values, its schema says ",
                results_.size());
    for (size_t i = 0; i < results_.size(); ++i) {
      Ref one = item(result, static_cast<Py_ssize_t>(i));
      stack.push_back(to_ivalue(one.get(), results_[i]));
    }
  }
  PyObject* callable_;
  std::vector<Kind> arguments_, results_;
};

OperatorEntry& entry_of(PyObject* name, PyObject* overload) {
  OperatorEntry* op = Dispatcher::get().find(utf8(name), utf8(overload));
  if (op == nullptr) {
    throw_error(ErrorKind::Runtime,
                str_cat("no operator ", utf8(name), ".", utf8(overload)));
  }
  return *op;
}

// (namespace, schema)
PyObject* library_def(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    const char *ns = nullptr, *schema = nullptr;
    if (!PyArg_ParseTuple(args, "ss", &ns, &schema)) return nullptr;
    Library(ns).def(schema);
    return none();
  });
}

// (namespace, name, key, callable, argument kinds, result kinds)
PyObject* library_impl(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    const char *ns = nullptr, *name = nullptr, *key = nullptr;
    PyObject *callable = nullptr, *arguments = nullptr, *results = nullptr;
    if (!PyArg_ParseTuple(args,
                          "sssOOO",
                          &ns,
                          &name,
                          &key,
                          &callable,
                          &arguments,
                          &results)) {
      return nullptr;
    }
    Library(ns).impl(name,
                     key,
                     std::make_unique<PythonKernel>(
                         callable, kinds_of(arguments), kinds_of(results)));
    return none();
  });
}

// [(name, overload, schema), ...] of all operators
PyObject* op_schemas(PyObject*, PyObject*) {
  return guarded([&]() -> PyObject* {
    return list_object(Dispatcher::get().all(), [](const OperatorEntry* op) {
      return Py_BuildValue("(sss)", op->name, op->overload, op->schema);
    });
  });
}

// (name, overload, arguments, argument kinds, result kinds) -> results
PyObject* op_call(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject *name = nullptr, *overload = nullptr, *values = nullptr,
             *arguments = nullptr, *results = nullptr;
    if (!PyArg_ParseTuple(args,
                          "UUO!O!O!",
                          &name,
                          &overload,
                          &PyTuple_Type,
                          &values,
                          &PyTuple_Type,
                          &arguments,
                          &PyTuple_Type,
                          &results)) {
      return nullptr;
    }
    OperatorEntry& op = entry_of(name, overload);
    Stack stack;
    Py_ssize_t count = PyTuple_GET_SIZE(values);
    for (Py_ssize_t i = 0; i < count; ++i) {
      Kind kind(utf8(PyTuple_GET_ITEM(arguments, i)));
      stack.push_back(to_ivalue(PyTuple_GET_ITEM(values, i), kind));
    }
    {
      GilRelease release(true);
      call_boxed(op, stack, static_cast<size_t>(count));
    }
    Py_ssize_t n = PyTuple_GET_SIZE(results);
    auto kind_at = [&](Py_ssize_t i) {
      return utf8(PyTuple_GET_ITEM(results, i))[0];
    };
    if (n == 0 || stack.empty()) return none();
    if (n == 1) return to_python(stack[0], kind_at(0));
    Ref out = checked(PyTuple_New(n));
    for (Py_ssize_t i = 0; i < n; ++i) {
      PyObject* o = to_python(stack[static_cast<size_t>(i)], kind_at(i));
      if (o == nullptr) throw PythonError();
      PyTuple_SET_ITEM(out.get(), i, o);
    }
    return out.release();
  });
}

// (name, overload, key) -> whether a kernel stands there
PyObject* op_has_kernel(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject *name = nullptr, *overload = nullptr;
    const char* key = nullptr;
    if (!PyArg_ParseTuple(args, "UUs", &name, &overload, &key)) return nullptr;
    OperatorEntry& op = entry_of(name, overload);
    DispatchKey k = DispatchKey::CPU;
    TAEDA_CHECK(parse_dispatch_key(key, &k),
                "could not parse dispatch key: ",
                std::string_view(key));
    int slot = static_cast<int>(k);
    return boolean(op.slots[slot] != nullptr || op.boxed[slot] != nullptr);
  });
}

PyMethodDef kMethods[] = {
    {"_library_def", library_def, METH_VARARGS, nullptr},
    {"_library_impl", library_impl, METH_VARARGS, nullptr},
    {"_op_schemas", op_schemas, METH_NOARGS, nullptr},
    {"_op_call", op_call, METH_VARARGS, nullptr},
    {"_op_has_kernel", op_has_kernel, METH_VARARGS, nullptr},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

void init_library(PyObject* module) {
  check_status(PyModule_AddFunctions(module, kMethods));
}

}  // namespace taeda::python
