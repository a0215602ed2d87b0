// Calls of the engine from Python, anomaly mode, Ctrl-C.
#include <taeda/csrc/python/autograd_common.h>

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
        str_cat(what,
                ": expected a Tensor or a GradientEdge, got ",
                Py_TYPE(o)->tp_name));
}

autograd::Root root_from(PyObject* o, PyObject* grad, size_t index) {
  Place place = place_of(o, "backward");
  TensorBase given = optional_tensor(grad, "backward");
  if (place.tensor.defined()) {
    return autograd::root_of(place.tensor, given, index);
  }
  TAEDA_CHECK(given.defined(),
              "element ",
              index,
              " of tensors is a GradientEdge: its gradient must be given");
  return {std::move(place.edge), std::move(given)};
}

Edge input_edge(PyObject* o, bool accumulate) {
  Place place = place_of(o, "inputs");
  if (!place.tensor.defined()) return place.edge;
  Edge edge = autograd::input_edge(place.tensor);
  if (accumulate) autograd::retain_grad(place.tensor);
  return edge;
}

// (tensors, grads, keep_graph, create_graph, inputs, allow_unused, accumulate):
// tuples; returns the gradients of the inputs unless they accumulate.
PyObject* run_backward(PyObject*, PyObject* args) {
  PyObject *tensors, *grads, *inputs;
  int keep, create, unused, accumulate;
  if (!PyArg_ParseTuple(args,
                        "O!O!ppO!pp",
                        &PyTuple_Type,
                        &tensors,
                        &PyTuple_Type,
                        &grads,
                        &keep,
                        &create,
                        &PyTuple_Type,
                        &inputs,
                        &unused,
                        &accumulate)) {
    return nullptr;
  }
  return guarded([&]() -> PyObject* {
    std::vector<Edge> roots, edges;
    std::vector<TensorBase> seeds;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tensors); ++i) {
      autograd::Root root = root_from(PyTuple_GET_ITEM(tensors, i),
                                      PyTuple_GET_ITEM(grads, i),
                                      static_cast<size_t>(i));
      roots.push_back(std::move(root.edge));
      seeds.push_back(std::move(root.grad));
    }
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(inputs); ++i) {
      edges.push_back(input_edge(PyTuple_GET_ITEM(inputs, i), accumulate != 0));
    }
    autograd::BackwardOptions options{keep != 0, create != 0, accumulate != 0};
    std::vector<TensorBase> found;
    {
      GilRelease no_gil(true);
      found = autograd::run_backward(roots, std::move(seeds), edges, options);
      roots.clear();  // may free the graph
    }
    if (accumulate) return none();
    for (size_t i = 0; i < found.size() && !unused; ++i) {
      if (!found[i].defined()) autograd::unused_input(i);
    }
    return wrap(std::move(found));
  });
}

PyObject* queue_callback(PyObject*, PyObject* callback) {
  return guarded([&] {
    auto held = std::make_shared<Held>(callback);
    autograd::queue_callback([held] {
      GilAcquire gil;
      checked(PyObject_CallNoArgs(held->get()));
    });
    return none();
  });
}

PyObject* gradient_edge(PyObject*, PyObject* t) {
  return guarded([&] {
    const TensorBase& tensor = unwrap_checked(t, "get_gradient_edge");
    TAEDA_CHECK(tensor.requires_grad(),
                "It is not possible to get the gradient edge for a Tensor that "
                "does not require gradients");
    Edge edge = autograd::gradient_edge(tensor);
    Ref node(wrap_node(edge.node));
    return Py_BuildValue("(OI)", node.get(), edge.input_nr);
  });
}

PyObject* will_run(PyObject*, PyObject* node) {
  return boolean(autograd::task_will_run(node_of(node).get()));
}
PyObject* task_id(PyObject*, PyObject*) {
  uint64_t id = autograd::current_task_id();
  return PyLong_FromLongLong(id == 0 ? -1 : static_cast<int64_t>(id));
}
PyObject* keeps_graph(PyObject*, PyObject*) {
  return boolean(autograd::task_keeps_graph());
}
PyObject* is_full(PyObject*, PyObject*) {
  return boolean(autograd::task_is_full());
}
PyObject* current_node(PyObject*, PyObject*) {
  return guarded([] {
    Node* node = autograd::current_node();
    return wrap_node(IntrusivePtr<Node>::share(node));
  });
}

// Anomaly mode ---------------------------------------------------------------

struct PyTrace final : autograd::ForwardTrace {
  explicit PyTrace(PyObject* lines) : stack(lines) {}
  void report(const std::string& node) const override {
    GilAcquire gil;
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    Ref module(PyImport_ImportModule("taeda.autograd.anomaly_mode"));
    if (module) {
      Ref done(PyObject_CallMethod(
          module.get(), "_report", "sO", node.c_str(), stack.get()));
    }
    PyErr_Clear();
    PyErr_Restore(type, value, trace);
  }
  Held stack;
};

std::shared_ptr<autograd::ForwardTrace> make_trace() {
  GilAcquire gil;
  Ref module = checked(PyImport_ImportModule("taeda.autograd.anomaly_mode"));
  Ref lines = checked(PyObject_CallMethod(module.get(), "_stack", nullptr));
  return std::make_shared<PyTrace>(lines.get());
}

PyObject* set_anomaly(PyObject*, PyObject* args) {
  int on, nan = 1;
  if (!PyArg_ParseTuple(args, "p|p", &on, &nan)) return nullptr;
  autograd::set_anomaly_mode({on != 0, nan != 0});
  Py_RETURN_NONE;
}
PyObject* anomaly_enabled(PyObject*, PyObject*) {
  return boolean(autograd::anomaly_mode().enabled);
}
PyObject* anomaly_checks_nan(PyObject*, PyObject*) {
  return boolean(autograd::anomaly_mode().check_nan);
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

// Runs f on a new thread that Python knows for as long as f runs, so that an
// error that Python keeps with the thread can be carried over.
void run_on_thread(const std::function<void()>& f) {
  PyObject *type = nullptr, *value = nullptr, *trace = nullptr;
  std::exception_ptr error;
  std::thread thread([&] {
    PyGILState_STATE state = PyGILState_Ensure();
    PyThreadState* saved = PyEval_SaveThread();
    try {
      f();
    } catch (...) {
      error = std::current_exception();
    }
    PyEval_RestoreThread(saved);
    PyErr_Fetch(&type, &value, &trace);
    PyGILState_Release(state);
  });
  thread.join();
  if (type != nullptr) {
    GilAcquire gil;
    PyErr_Restore(type, value, trace);
  }
  if (error) std::rethrow_exception(error);
}

PyMethodDef functions[] = {
    {"_run_backward", run_backward, METH_VARARGS, nullptr},
    {"_queue_callback", queue_callback, METH_O, nullptr},
    {"_gradient_edge", gradient_edge, METH_O, nullptr},
    {"_will_engine_execute_node", will_run, METH_O, nullptr},
    {"_current_graph_task_id", task_id, METH_NOARGS, nullptr},
    {"_current_graph_task_keep_graph", keeps_graph, METH_NOARGS, nullptr},
    {"_is_checkpoint_valid", is_full, METH_NOARGS, nullptr},
    {"_current_autograd_node", current_node, METH_NOARGS, nullptr},
    {"set_anomaly_enabled", set_anomaly, METH_VARARGS, nullptr},
    {"is_anomaly_enabled",
     anomaly_enabled,
     METH_NOARGS,
     "Whether anomaly mode is on."},
    {"is_anomaly_check_nan_enabled",
     anomaly_checks_nan,
     METH_NOARGS,
     "Whether anomaly mode looks for NaN."},
    {nullptr, nullptr, 0, nullptr},
};
}  // namespace

void init_autograd_engine(PyObject* module) {
  check_status(PyModule_AddFunctions(module, functions));
  autograd::make_forward_trace = make_trace;
  autograd::check_interrupt = check_signals;
  autograd::run_on_new_thread = run_on_thread;
}

}  // namespace taeda::python
