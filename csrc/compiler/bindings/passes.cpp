#include <taeda/csrc/compiler/bindings/passes.h>

#include <taeda/csrc/compiler/bindings/arguments.h>
#include <taeda/csrc/compiler/bindings/compiled.h>
#include <taeda/csrc/compiler/walk/runner.h>

#include <pybind11/stl.h>

namespace taeda::compiler {

namespace {

namespace py = pybind11;

using python::checked;
using python::Ref;

py::object owned(PyObject* o) {
  return py::reinterpret_steal<py::object>(checked(o).release());
}
py::object wrapped(const TensorBase& t) { return owned(bridge().wrap(t)); }

// A function of Python's, called as fn(inputs, symbols).
class PythonCode final : public SegmentCode {
 public:
  PythonCode(py::object function, const Graph& graph)
      : function_(std::move(function)), table_(graph.symbols) {
    for (ValueId id : graph.outputs) {
      strides_.emplace_back(graph[id].strides, table_);
    }
  }
  PythonCode(const PythonCode&) = delete;
  PythonCode& operator=(const PythonCode&) = delete;
  ~PythonCode() override {
    py::gil_scoped_acquire gil;
    function_ = py::object();
  }
  std::vector<TensorBase> run(std::vector<TensorBase> inputs,
                              std::span<const int64_t> symbols) override {
    std::vector<TensorBase> out;
    {
      py::gil_scoped_acquire gil;
      py::list given, numbers;
      for (TensorBase& t : inputs) given.append(wrapped(t));
      for (int64_t v : symbols) numbers.append(v);
      inputs.clear();
      PyObject* called = PyObject_CallFunctionObjArgs(
          function_.ptr(), given.ptr(), numbers.ptr(), nullptr);
      Ref found = checked(called);
      Ref list = checked(PySequence_List(found.get()));
      for (PyObject* o : python::items_of(list.get())) {
        TAEDA_CHECK(is_tensor(o),
                    "compiled_autograd: what the compiler made returned no "
                    "tensor");
        out.push_back(python::unwrap(o));
      }
    }
    TAEDA_CHECK(out.size() == strides_.size(),
                "compiled_autograd: what the compiler made returned ",
                out.size(),
                " tensors, expected ",
                strides_.size());
    SizeNumbers numbers;
    table_.run(symbols, numbers);
    DimVector room;
    for (size_t i = 0; i < out.size(); ++i) {
      out[i] = laid_out(out[i], strides_[i].in(numbers.data(), room));
    }
    return out;
  }

 private:
  py::object function_;
  SizeTable table_;
  std::vector<SizeList> strides_;
};

PyObject* to_object(const IValue& v, const ArgInfo& info) {
  using Function = PyObject* (*)(const IValue&, const ArgInfo&);
  static Function function = nullptr;
  if (function == nullptr) {
    // Of the capsule's name Python imports the first part alone.
    py::module_::import("taeda._boxed");
    void* found = PyCapsule_Import("taeda._boxed._to_object", /*no_block=*/0);
    if (found == nullptr) throw py::error_already_set();
    function = reinterpret_cast<Function>(found);
  }
  return function(v, info);
}

// A call as (operator, arguments, numbers of its results). Tensors among the
// arguments are `mark(number)`.
py::tuple row_of(const Node& node, const py::object& mark) {
  py::list arguments, results;
  const OpInfo& info = *node.op->info;
  std::vector<IValue> given = node.arguments;
  for (size_t i = 0; i < given.size(); ++i) {
    bool one = given[i].is<TensorBase>();
    bool many = given[i].is<std::vector<TensorBase>>() ||
                given[i].is<std::vector<OptionalTensor>>();
    if (!one && !many) {
      arguments.append(owned(to_object(given[i], info.values[i])));
      continue;
    }
    size_t count = 1;
    if (given[i].is<std::vector<TensorBase>>()) {
      count = given[i].get<std::vector<TensorBase>>().size();
    } else if (many) {
      count = given[i].get<std::vector<OptionalTensor>>().size();
    }
    py::list elements;
    for (size_t k = 0; k < count; ++k) elements.append(py::none());
    for (const Use& u : node.uses) {
      if (u.argument != i) continue;
      size_t place = u.element < 0 ? 0 : static_cast<size_t>(u.element);
      elements[place] = mark(u.value);
    }
    arguments.append(one ? py::object(elements[0]) : py::object(elements));
  }
  for (ValueId id : node.results) results.append(id);
  return py::make_tuple(node.op->qualified_name(), arguments, results);
}

py::dict description_of(const Graph& graph, const py::object& mark) {
  py::list rows, symbols;
  py::dict constants;
  for (const Node& node : graph.nodes) rows.append(row_of(node, mark));
  for (size_t i = 0; i < graph.values.size(); ++i) {
    const TensorBase& t = graph.values[i].constant;
    if (t.defined()) constants[py::int_(i)] = wrapped(t);
  }
  for (const SymInt& v : graph.symbols) {
    symbols.append(owned(wrap_size(v).release()));
  }
  py::dict out;
  out["rows"] = rows;
  out["inputs"] = graph.inputs;
  out["outputs"] = graph.outputs;
  out["symbols"] = symbols;
  out["constants"] = constants;
  return out;
}

// Plans as Python holds them.
struct Plans {
  PassPlans plans;
};

// What Python is told and asked: methods of one object.
class PythonCompiler final : public SegmentCompiler {
 public:
  PythonCompiler(py::object events,
                 std::function<void(Graph& graph)> fuse,
                 bool custom)
      : events_(std::move(events)), fuse_(std::move(fuse)), custom_(custom) {}
  std::unique_ptr<SegmentCode> compile(Graph graph) override {
    if (custom_) {
      py::gil_scoped_acquire gil;
      py::object mark = events_.attr("mark");
      py::object made =
          call("compile", {description_of(graph, mark), text(graph)});
      return std::make_unique<PythonCode>(std::move(made), graph);
    }
    if (fuse_) fuse_(graph);
    {
      py::gil_scoped_acquire gil;
      call("made", {text(graph)});
    }
    return make_code(std::move(graph), nullptr);
  }
  void captured() override {
    py::gil_scoped_acquire gil;
    call("captured", {});
  }
  void ended(const std::string& node, const std::string& reason) override {
    py::gil_scoped_acquire gil;
    call("ended", {py::str(node), py::str(reason)});
  }
  void left(const std::string& reason) override {
    py::gil_scoped_acquire gil;
    call("left", {py::str(reason)});
  }

 private:
  static py::object text(const Graph& graph) { return py::str(text_of(graph)); }
  // An error of Python's travels as elsewhere in this module.
  py::object call(const char* name, std::initializer_list<py::object> given) {
    py::tuple arguments(given.size());
    size_t i = 0;
    for (const py::object& o : given) arguments[i++] = o;
    Ref method = checked(PyObject_GetAttrString(events_.ptr(), name));
    return owned(PyObject_CallObject(method.get(), arguments.ptr()));
  }

  py::object events_;
  std::function<void(Graph& graph)> fuse_;
  bool custom_;
};

// A thread's way of running passes.
struct Passes {
  Passes(std::shared_ptr<Plans> p,
         py::object events,
         bool custom,
         bool fuse,
         bool blocking,
         bool check,
         bool emulate_precision_casts,
         bool dynamic)
      : plans(std::move(p)),
        compiler(
            std::move(events),
            fuse ? fuser({.blocking = blocking,
                          .emulate_precision_casts = emulate_precision_casts},
                         check)
                 : nullptr,
            custom),
        runner(plans->plans, compiler, dynamic) {}
  std::shared_ptr<Plans> plans;
  PythonCompiler compiler;
  CompiledPasses runner;
};

// This thread's runner; None for the engine. Gives the one before, which
// whoever sets it keeps alive.
py::capsule exchange(const py::object& next) {
  autograd::PassRunner* runner = nullptr;
  if (py::isinstance<py::capsule>(next)) {
    runner =
        static_cast<autograd::PassRunner*>(PyCapsule_GetContext(next.ptr()));
  } else if (!next.is_none()) {
    runner = &next.cast<Passes&>().runner;
  }
  autograd::PassRunner* before = autograd::exchange_pass_runner(runner);
  static char nothing = 0;
  py::capsule out(&nothing, "taeda.PassRunner");
  PyCapsule_SetContext(out.ptr(), before);
  return out;
}

}  // namespace

void add_passes(py::module_& module) {
  py::class_<Plans, std::shared_ptr<Plans>>(
      module, "PassPlans", "Compiled backward passes.")
      .def(py::init<>())
      .def(
          "clear",
          [](Plans& p) { p.plans.clear(); },
          py::call_guard<py::gil_scoped_release>(),
          "Forgets them.");
  py::class_<Passes>(module, "Passes", "How a thread's passes are compiled.")
      .def(py::init<std::shared_ptr<Plans>,
                    py::object,
                    bool,
                    bool,
                    bool,
                    bool,
                    bool,
                    bool>(),
           py::arg("plans"),
           py::arg("events"),
           py::kw_only(),
           py::arg("custom"),
           py::arg("fuse") = true,
           py::arg("blocking") = false,
           py::arg("check") = false,
           py::arg("emulate_precision_casts") = false,
           py::arg("dynamic") = false);
  module.def("exchange_passes",
             &exchange,
             py::arg("passes"),
             "Sets who runs this thread's backward passes, by a Passes, what "
             "this function gave, or None for the engine; gives who did.");
}

}  // namespace taeda::compiler
