// taeda.library and taeda.ops: operators as Python sees them, boxed.
#include <taeda/aten/core/library.h>
#include <taeda/aten/record_json.h>
#include <taeda/csrc/python/casters.h>
#include <taeda/csrc/python/init.h>
#include <taeda/csrc/python/return_types.h>

namespace taeda::python {

namespace {

// Note [Kinds]
// The Python side parses schemas and hands over each type as a short text: a
// letter (T Tensor, i int, f float, b bool, s str, S Scalar, t dtype, l layout,
// m memory format, D device, G generator), then '?' for optional elements, then
// '[' for a list of them. None always converts to an empty value.
using Kind = std::string;
using Kinds = std::vector<Kind>;

template <class T, class F>
std::vector<T> list_of(PyObject* o, F&& convert) {
  std::vector<T> out;
  for (py::handle item : py::reinterpret_borrow<py::sequence>(o)) {
    out.push_back(convert(item.ptr()));
  }
  return out;
}

TensorBase tensor_of(PyObject* o) { return unwrap_checked(o, "operator call"); }
OptionalTensor optional_tensor_of(PyObject* o) {
  return o == Py_None ? OptionalTensor() : tensor_of(o);
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
    default:
      // One number stands for a list of it where the schema gives a length.
      if (kind[0] == 'i' && is_int_like(o)) {
        return std::vector<int64_t>(1, to_int(o));
      }
      return list_of<int64_t>(o, to_int);
  }
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

IValue to_ivalue(PyObject* o, const Kind& kind) {
  if (o == Py_None) return {};
  if (kind.back() == '[') return list_to_ivalue(o, kind);
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
      return dtype_number(o);
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

py::object int_to_python(int64_t v, char kind) {
  auto enumerator = [](PyObject* borrowed) {
    return py::reinterpret_borrow<py::object>(borrowed);
  };
  switch (kind) {
    case 't':
      return enumerator(dtype_object(static_cast<ScalarType>(v)));
    case 'l':
      return enumerator(layout_object(static_cast<Layout>(v)));
    case 'm':
      return enumerator(memory_format_object(static_cast<MemoryFormat>(v)));
    case 'b':
      return py::bool_(v != 0);
    case 'f':
      return py::float_(static_cast<double>(v));
    default:
      return py::int_(v);
  }
}

py::object to_python(const IValue& v, char kind) {
  return std::visit(
      [&](const auto& x) -> py::object {
        using V = std::decay_t<decltype(x)>;
        if constexpr (std::is_same_v<V, int64_t>) {
          return int_to_python(x, kind);
        } else if constexpr (std::is_same_v<V, complex<double>>) {
          return owned(PyComplex_FromDoubles(x.real(), x.imag()));
        } else if constexpr (std::is_same_v<V, Generator>) {
          return owned(wrap(x));
        } else if constexpr (std::is_same_v<V, std::monostate> ||
                             std::is_same_v<V, IntrusivePtr<IntrusiveTarget>>) {
          return py::none();
        } else {
          return py::cast(x);
        }
      },
      v.value());
}

// One result as it is, several as a tuple.
py::object results_to_python(const Stack& stack, const Kinds& kinds) {
  if (kinds.empty() || stack.empty()) return py::none();
  if (kinds.size() == 1) return to_python(stack[0], kinds[0][0]);
  py::tuple out(kinds.size());
  for (size_t i = 0; i < kinds.size(); ++i) {
    out[i] = to_python(stack[i], kinds[i][0]);
  }
  return out;
}

// A Python callable as a kernel of one key. It lives as long as the process.
class PythonKernel final : public BoxedKernel {
 public:
  PythonKernel(py::handle callable, Kinds arguments, Kinds results)
      : callable_(callable.inc_ref()),
        arguments_(std::move(arguments)),
        results_(std::move(results)) {}

  void call(const OperatorEntry& op, DispatchKeySet, Stack& stack) override {
    GilAcquire gil;
    size_t count = arguments_.size(), base = stack.size() - count;
    py::tuple args(count);
    for (size_t i = 0; i < count; ++i) {
      args[i] = to_python(stack[base + i], arguments_[i][0]);
    }
    py::object result = callable_(*args);
    stack.resize(base);
    if (results_.size() == 1) {
      stack.push_back(to_ivalue(result.ptr(), results_[0]));
    } else if (!results_.empty()) {
      push_results(op, py::reinterpret_borrow<py::sequence>(result), stack);
    }
  }

 private:
  void push_results(const OperatorEntry& op, py::sequence all, Stack& stack) {
    TAEDA_CHECK(all.size() == results_.size(),
                message("{}: the kernel returned {} values, its schema says {}",
                        op.qualified_name(),
                        all.size(),
                        results_.size()));
    for (size_t i = 0; i < results_.size(); ++i) {
      stack.push_back(to_ivalue(py::object(all[i]).ptr(), results_[i]));
    }
  }
  py::handle callable_;
  Kinds arguments_, results_;
};

OperatorEntry& entry_of(std::string_view name, std::string_view overload) {
  OperatorEntry* op = Dispatcher::get().find(name, overload);
  TAEDA_CHECK(op != nullptr, message("no operator {}.{}", name, overload));
  return *op;
}

void library_impl(const char* ns,
                  const char* name,
                  const char* key,
                  py::handle callable,
                  Kinds arguments,
                  Kinds results) {
  auto kernel = std::make_unique<PythonKernel>(
      callable, std::move(arguments), std::move(results));
  Library(ns).impl(name, key, std::move(kernel));
}

// (name, overload, schema) of all operators
py::list op_schemas() {
  py::list out;
  for (const OperatorEntry* op : Dispatcher::get().all()) {
    out.append(py::make_tuple(op->name, op->overload, op->schema));
  }
  return out;
}

py::object op_call(std::string_view name,
                   std::string_view overload,
                   const py::tuple& values,
                   const Kinds& arguments,
                   const Kinds& results) {
  OperatorEntry& op = entry_of(name, overload);
  Stack stack;
  ArrayRef<PyObject*> items = items_of(values.ptr());
  for (size_t i = 0; i < items.size(); ++i) {
    stack.push_back(to_ivalue(items[i], arguments.at(i)));
  }
  {
    GilRelease release(true);
    call_boxed(op, stack, items.size());
  }
  return results_to_python(stack, results);
}

// Whether a kernel stands at a key.
bool op_has_kernel(std::string_view name,
                   std::string_view overload,
                   std::string_view key) {
  OperatorEntry& op = entry_of(name, overload);
  DispatchKey k = DispatchKey::CPU;
  TAEDA_CHECK(
      parse_dispatch_key(key, &k), "could not parse dispatch key: ", key);
  int slot = static_cast<int>(k);
  return op.slots[slot] != nullptr || op.boxed[slot] != nullptr;
}

// The type of an operator's results; KeyError if it has none.
py::object return_type(std::string_view name) {
  for (StructType* s : struct_types()) {
    if (name != s->name) continue;
    return py::reinterpret_borrow<py::object>(
        reinterpret_cast<PyObject*>(struct_type(*s)));
  }
  raise(PyExc_KeyError, "{}", name);
}
std::vector<const char*> return_type_names() {
  std::vector<const char*> out;
  for (StructType* s : struct_types()) out.push_back(s->name);
  return out;
}
}  // namespace

void bind_library(PyObject* module) {
  py::module_ m = as_module(module);
  m.def("_library_def",
        [](const char* ns, const char* schema) { Library(ns).def(schema); });
  m.def("_library_impl", library_impl);
  m.def("_op_schemas", op_schemas);
  m.def("_op_call", op_call);
  m.def("_op_has_kernel", op_has_kernel);
  m.def("_op_record", [](std::string_view name, std::string_view overload) {
    return record_json(entry_of(name, overload));
  });
  m.def("_return_type", return_type);
  m.def("_return_type_names", return_type_names);
}

}  // namespace taeda::python
