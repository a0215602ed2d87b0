// What the Python side of autograd calls: the engine, hooks, anomaly mode.
#include <taeda/aten/core/level.h>
#include <taeda/aten/settings.h>
#include <taeda/csrc/autograd/accumulate_grad.h>
#include <taeda/csrc/python/autograd_function.h>
#include <taeda/csrc/python/casters.h>
#include <taeda/csrc/python/init.h>

#include <chrono>
#include <thread>

namespace taeda::python {

namespace {
// A tensor, or a GradientEdge (node, output_nr).
struct Place {
  TensorBase tensor;
  Edge edge;
};

Place place_of(PyObject* o, const char* what) {
  if (is_tensor(o)) return {unwrap(o), {}};
  if (PyTuple_Check(o) && PyTuple_GET_SIZE(o) >= 2) {
    IntrusivePtr<Node> node = node_of(PyTuple_GET_ITEM(o, 0));
    long nr = PyLong_AsLong(PyTuple_GET_ITEM(o, 1));
    if (nr < 0 && PyErr_Occurred()) throw PythonError();
    if (node) return {{}, {std::move(node), static_cast<uint32_t>(nr)}};
  }
  raise(PyExc_TypeError,
        "{}: expected a Tensor or a GradientEdge, got {}",
        what,
        type_name_of(o));
}

autograd::Root root_from(PyObject* o, PyObject* grad, size_t index) {
  Place place = place_of(o, "backward");
  TensorBase given = optional_tensor(grad, "backward");
  if (place.tensor.defined()) {
    return autograd::root_of(place.tensor, given, index);
  }
  return autograd::root_of(std::move(place.edge), given, index);
}

Edge input_edge(PyObject* o, bool accumulate) {
  Place place = place_of(o, "inputs");
  if (!place.tensor.defined()) return place.edge;
  Edge edge = autograd::input_edge(place.tensor);
  if (accumulate) autograd::retain_grad(place.tensor);
  return edge;
}

void warn_of_cycle() {
  // Once per process; read and written under the interpreter's lock.
  static bool warned = false;
  if (std::exchange(warned, true) && !settings::warn_always) return;
  check_status(PyErr_WarnEx(
      PyExc_UserWarning,
      "Using backward() with create_graph=True makes each leaf's grad hold a "
      "graph that holds the leaf, which only the collector of cycles frees. "
      "autograd.grad makes no such cycle; else set .grad to None after use.",
      1));
}

// Returns the gradients of the inputs unless they accumulate.
py::object run_backward(const py::tuple& tensors,
                        const py::tuple& grads,
                        bool keep_graph,
                        bool create_graph,
                        const py::tuple& inputs,
                        bool allow_unused,
                        bool accumulate) {
  TAEDA_CHECK(!accumulate || !in_transform(),
              "backward() called inside a functorch transform (",
              tensors.size(),
              " tensors). This is not supported, please use func.grad or "
              "func.vjp instead or call backward() outside of the transform.");
  if (accumulate && create_graph) warn_of_cycle();
  std::vector<Edge> roots, edges;
  std::vector<TensorBase> seeds;
  for (size_t i = 0; i < tensors.size(); ++i) {
    PyObject* grad = PyTuple_GET_ITEM(grads.ptr(), static_cast<Py_ssize_t>(i));
    autograd::Root root = root_from(items_of(tensors.ptr())[i], grad, i);
    roots.push_back(std::move(root.edge));
    seeds.push_back(std::move(root.grad));
  }
  for (PyObject* input : items_of(inputs.ptr())) {
    edges.push_back(input_edge(input, accumulate));
  }
  std::vector<TensorBase> found;
  {
    GilRelease no_gil(true);
    found = autograd::run_backward(
        roots, std::move(seeds), edges, {keep_graph, create_graph, accumulate});
    roots.clear();  // may free the graph
  }
  if (accumulate) return py::none();
  for (size_t i = 0; i < found.size() && !allow_unused; ++i) {
    if (!found[i].defined()) autograd::unused_input(i);
  }
  return owned(wrap(std::move(found)));
}

void queue_callback(PyObject* callback) {
  auto held = std::make_shared<Held>(callback);
  autograd::queue_callback([held] {
    GilAcquire gil;
    checked(PyObject_CallNoArgs(held->get()));
  });
}

py::object node_object(const IntrusivePtr<Node>& node) {
  return owned(wrap_node(node));
}

// What keeps the node alive whose ctx does not.
py::object token_for(const IntrusivePtr<Node>& node) {
  if (context_of_node(node.get()) == nullptr) return py::none();
  return py::capsule(new IntrusivePtr<Node>(node), [](void* held) {
    auto* owner = static_cast<IntrusivePtr<Node>*>(held);
    autograd::release_node(std::move(*owner));
    delete owner;
  });
}

// Node, number and token of a GradientEdge.
py::tuple gradient_edge(const TensorBase& tensor) {
  TAEDA_CHECK(tensor.requires_grad(),
              "It is not possible to get the gradient edge for a Tensor that "
              "does not require gradients");
  Edge edge = autograd::gradient_edge(tensor);
  return py::make_tuple(
      node_object(edge.node), edge.input_nr, token_for(edge.node));
}

// None for any dtype.
py::object grad_dtype(const TensorBase& leaf) {
  ScalarType dtype = autograd::grad_dtype(leaf);
  return owned(dtype == ScalarType::Undefined ? none() : wrap(dtype));
}
void set_grad_dtype(const TensorBase& leaf, const py::object& dtype) {
  autograd::set_grad_dtype(
      leaf, dtype.is_none() ? ScalarType::Undefined : to_dtype(dtype.ptr()));
}

// For programs that know of a change that no gradient depends on.
void set_version(const TensorBase& t, int64_t version) {
  TAEDA_CHECK(version >= 0 && version <= UINT32_MAX,
              "Cannot set a version counter to ",
              version,
              ": it counts changes from 0 on");
  t.impl()->share_version()->value.store(static_cast<uint32_t>(version),
                                         std::memory_order_relaxed);
}

int64_t task_id() {
  uint64_t id = autograd::current_task_id();
  return id == 0 ? -1 : static_cast<int64_t>(id);
}

// The message in force before; none lets hooks be pushed.
std::optional<std::string> disable_saved_hooks(
    std::optional<std::string> message) {
  std::string before = std::exchange(autograd::saved_hooks().disabled,
                                     message.value_or(std::string()));
  if (before.empty()) return std::nullopt;
  return before;
}

// Aliases of tensors that raise when a gradient reaches them.
py::tuple delayed_error(const std::string& message, const py::tuple& given) {
  auto node = make_intrusive<autograd::ErrorNode>(message);
  py::tuple out(given.size());
  for (size_t i = 0; i < given.size(); ++i) {
    py::object o = given[i];
    if (is_tensor(o.ptr())) {
      TensorBase t = autograd::detach(unwrap(o.ptr()));
      autograd::set_history(t, node);
      o = py::cast(t);
    }
    out[i] = o;
  }
  return out;
}

// Anomaly mode ---------------------------------------------------------------

py::object anomaly_function(const char* name) {
  return owned(imported("taeda.autograd.anomaly_mode", name));
}

// The lines that made a node and, for one that a backward pass made, those that
// made the node which ran then.
struct PyTrace final : autograd::ForwardTrace {
  PyTrace(PyObject* lines, const Node* running) : stack(lines) {
    if (running == nullptr) return;
    inducer = running->name();
    if (autograd::NodeExtra* extra = running->extra_or_null()) {
      before = extra->trace;
    }
  }
  Held stack;
  std::string inducer;  // empty for nodes of a forward pass
  std::shared_ptr<autograd::ForwardTrace> before;
};

// (name, lines or None) of the failing node and of those that induced it.
py::list chain_of(const Node& node) {
  py::list out;
  autograd::NodeExtra* extra = node.extra_or_null();
  std::string name = node.name();
  auto trace = extra == nullptr ? nullptr : extra->trace;
  while (true) {
    auto* known = static_cast<PyTrace*>(trace.get());
    py::handle lines = known == nullptr ? Py_None : known->stack.get();
    out.append(py::make_tuple(name, lines));
    if (known == nullptr || known->inducer.empty()) return out;
    name = known->inducer;
    trace = known->before;
  }
}

// An error is on its way already, which one in here must not replace.
void report_failed(const Node& node) {
  GilAcquire gil;
  py::error_scope on_its_way;
  try {
    anomaly_function("_report")(chain_of(node));
  } catch (py::error_already_set& warned) {  // a warning that is an error
    warned.restore();
    PyErr_Print();
  } catch (const PythonError&) {
    PyErr_Print();
  }
}

std::shared_ptr<autograd::ForwardTrace> make_trace() {
  GilAcquire gil;
  return std::make_shared<PyTrace>(anomaly_function("_stack")().ptr(),
                                   autograd::current_node());
}

// Signals and threads --------------------------------------------------------

// Python runs signal handlers in its main thread when that is in Python code;
// a long backward pass must ask.
void check_signals() {
  using Clock = std::chrono::steady_clock;
  static thread_local Clock::time_point last = Clock::now();
  Clock::time_point now = Clock::now();
  if (now - last < std::chrono::milliseconds(20)) return;
  last = now;
  GilAcquire gil;
  if (PyErr_CheckSignals() < 0) throw PythonError();
}

// A thread that Python knows for as long as f runs.
void call_on_thread(const std::function<void()>& f) {
  GilAcquire known_to_python;
  GilRelease no_gil(true);
  f();
}

// An error that Python keeps with this thread is carried in an exception.
std::exception_ptr current_error() {
  try {
    throw;
  } catch (const PythonError&) {
    GilAcquire gil;
    return std::make_exception_ptr(py::error_already_set());
  } catch (...) {
    return std::current_exception();
  }
}
}  // namespace

void init_autograd_engine(PyObject*) {
  autograd::make_forward_trace = make_trace;
  autograd::report_failure = report_failed;
  autograd::check_interrupt = check_signals;
  autograd::call_on_thread = call_on_thread;
  autograd::current_error = current_error;
  autograd::holds_interpreter = [] { return PyGILState_Check() == 1; };
}

void bind_autograd_engine(PyObject* module) {
  py::module_ m = as_module(module);
  m.def("_run_backward", run_backward);
  m.def("_queue_callback", queue_callback);
  m.def("_gradient_edge", gradient_edge);
  m.def("_grad_dtype", grad_dtype);
  m.def("_set_grad_dtype", set_grad_dtype);
  m.def("_will_engine_execute_node", [](PyObject* node) {
    return autograd::task_will_run(node_of(node).get());
  });
  m.def("_current_graph_task_id", task_id);
  m.def("_current_graph_task_keep_graph", autograd::task_keeps_graph);
  m.def("_is_checkpoint_valid", autograd::task_is_full);
  m.def("_current_autograd_node", [] {
    Node* node = autograd::current_node();
    return node_object(IntrusivePtr<Node>::share(node));
  });
  m.def("_delayed_error", delayed_error);
  m.def("_apply_function",
        [](PyObject* cls, PyObject* args, PyObject* forward) {
          return owned(apply_function(cls, args, forward));
        });
  m.def("_bump_version", [](const TensorBase& t) { t.impl()->bump_version(); });
  m.def("_set_version", set_version);
  m.def("_node_hooks",
        [](PyObject* o, bool before) { return owned(node_hooks(o, before)); });
  m.def("_push_saved_tensors_hooks", push_saved_hooks);
  m.def("_pop_saved_tensors_hooks", autograd::pop_saved_hooks);
  m.def("_disable_saved_tensors_hooks", disable_saved_hooks);
  m.def(
      "set_anomaly_enabled",
      [](bool on, bool check_nan) {
        autograd::set_anomaly_mode({on, check_nan});
      },
      py::arg("mode"),
      py::arg("check_nan") = true);
  m.def(
      "is_anomaly_enabled",
      [] { return autograd::anomaly_mode().enabled; },
      "Whether anomaly mode is on.");
  m.def(
      "is_anomaly_check_nan_enabled",
      [] { return autograd::anomaly_mode().check_nan; },
      "Whether anomaly mode looks for NaN.");
}

}  // namespace taeda::python
