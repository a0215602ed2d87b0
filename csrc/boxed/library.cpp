// taeda.library and taeda.ops: operators as Python sees them, boxed.
#include <taeda/aten/core/level.h>
#include <taeda/aten/core/library.h>
#include <taeda/aten/core/observe.h>
#include <taeda/aten/record_json.h>
#include <taeda/csrc/boxed/module.h>
#include <taeda/csrc/boxed/python_call.h>

namespace taeda::python {

namespace {

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
      args[i] = owned(to_object(stack[base + i], arguments_[i]));
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

// A Python callable for what has no kernel at a key: called with the operator
// and its arguments. It lives as long as the process.
class PythonFallback final : public BoxedKernel {
 public:
  explicit PythonFallback(py::handle callable)
      : callable_(callable.inc_ref()) {}

  void call(const OperatorEntry& op, DispatchKeySet, Stack& stack) override {
    GilAcquire gil;
    try {
      std::span<IValue> values = arguments_on(op, stack);
      std::vector<IValue> given(values.begin(), values.end());
      PythonCall call(op, values);
      py::tuple first = py::make_tuple(py::handle(call.function.get()));
      Ref args = checked(PySequence_Concat(first.ptr(), call.args.get()));
      Ref result = checked(
          PyObject_Call(callable_.ptr(), args.get(), call.kwargs.get()));
      stack.resize(stack.size() - given.size());
      python::push_results(op, result.get(), std::move(given), stack);
    } catch (const PythonError&) {
      throw py::error_already_set();
    }
  }

 private:
  py::handle callable_;
};

// None takes the fallback of the key back. False where the build's own stands.
bool library_fallback(std::string_view key, py::handle callable) {
  DispatchKey k = DispatchKey::CPU;
  TAEDA_CHECK(
      parse_dispatch_key(key, &k), "could not parse dispatch key: ", key);
  Dispatcher& dispatcher = Dispatcher::get();
  BoxedKernel* before = dispatcher.fallback(k);
  if (before != nullptr && dynamic_cast<PythonFallback*>(before) == nullptr) {
    return false;
  }
  dispatcher.set_fallback(
      k, callable.is_none() ? nullptr : new PythonFallback(callable));
  return true;
}

OperatorEntry& entry_of(std::string_view name, std::string_view overload) {
  OperatorEntry* op = Dispatcher::get().find(name, overload);
  TAEDA_CHECK(op != nullptr, message("no operator {}.{}", name, overload));
  return *op;
}

Registration library_impl(const char* ns,
                          const char* name,
                          const char* key,
                          py::handle callable,
                          Kinds arguments,
                          Kinds results) {
  auto kernel = std::make_unique<PythonKernel>(
      callable, std::move(arguments), std::move(results));
  return Library(ns).impl(name, key, std::move(kernel));
}

// (name, overload, schema) of all operators
py::list op_schemas() {
  py::list out;
  for (const OperatorEntry* op : Dispatcher::get().all()) {
    if (std::string_view(op->name).ends_with(kWithdrawn)) continue;
    out.append(py::make_tuple(op->name, op->overload, op->schema));
  }
  return out;
}

// Runs an overload on the values of all its arguments in one of its ways;
// NotImplemented where it does not have that way.
template <class Way>
py::object run_op(const py::capsule& handle,
                  const py::tuple& values,
                  Way&& way) {
  const OperatorEntry& op = *handle.get_pointer<OperatorEntry>();
  ArrayRef<PyObject*> items = items_of(values.ptr());
  TAEDA_CHECK(items.size() == op.info->arguments,
              op.qualified_name(),
              ": the call has ",
              items.size(),
              " values, the schema ",
              size_t{op.info->arguments});
  Stack stack;
  for (size_t i = 0; i < items.size(); ++i) {
    stack.push_back(to_ivalue(items[i], kind_of(op.info->values[i])));
  }
  bool done = false;
  {
    GilRelease release(true);
    done = way(op, stack);
  }
  if (!done) return py::reinterpret_borrow<py::object>(Py_NotImplemented);
  Kinds kinds;
  for (const ArgInfo& r : results_of(*op.info)) kinds.push_back(kind_of(r));
  return owned(results_to_object(stack, kinds));
}

py::object op_call(const py::capsule& handle, const py::tuple& values) {
  return run_op(handle, values, [](const OperatorEntry& op, Stack& stack) {
    call_operator(op, stack);
    return true;
  });
}

py::object op_decompose(const py::capsule& handle, const py::tuple& values) {
  return run_op(handle, values, [](const OperatorEntry& op, Stack& stack) {
    bool composite = op.info->record->composite;
    if (!composite && !is_transparent(op)) return run_means(op, stack);
    run_composite(op, stack);
    return true;
  });
}

// Whether _op_decompose gives a result.
bool op_decomposes(std::string_view name, std::string_view overload) {
  const OperatorEntry& op = entry_of(name, overload);
  if (op.info->record->composite || is_transparent(op)) return true;
  return op.info->record->means != nullptr && op.info->form == Form::Functional;
}

// Whether a kernel stands at a key.
bool op_has_kernel(std::string_view name,
                   std::string_view overload,
                   std::string_view key) {
  OperatorEntry& op = entry_of(name, overload);
  DispatchKey k = DispatchKey::CPU;
  TAEDA_CHECK(
      parse_dispatch_key(key, &k), "could not parse dispatch key: ", key);
  return op.boxed[static_cast<int>(k)] != nullptr ||
         observe::kernel_at(op, k) != nullptr;
}

}  // namespace

void bind_library(py::module_ m) {
  m.def("_library_def",
        [](const char* ns, const char* schema) { Library(ns).def(schema); });
  m.def("_library_impl", library_impl);
  m.def("_library_take_back", &Library::take_back);
  m.def("_library_fallback", library_fallback);
  m.def("_library_withdraw",
        [](std::string_view name, std::string_view overload) {
          Library::withdraw(entry_of(name, overload));
        });
  m.def("_op_schemas", op_schemas);
  m.def("_op_entry", [](std::string_view name, std::string_view overload) {
    return py::capsule(&entry_of(name, overload), "taeda.operator");
  });
  m.def("_op_call", op_call);
  m.def("_op_decompose", op_decompose);
  m.def("_op_decomposes", op_decomposes);
  m.def("_op_has_kernel", op_has_kernel);
  m.def("_op_record", [](std::string_view name, std::string_view overload) {
    return record_json(entry_of(name, overload));
  });
}

}  // namespace taeda::python
