#include <taeda/csrc/compiler/capture/modes.h>

#include <taeda/aten/parallel/parallel.h>
#include <taeda/c10/core/local_state.h>
#include <taeda/csrc/autograd/node.h>

namespace taeda::capture {

using python::checked;
using python::Ref;

bool Modes::has_same_gradients(const Modes& other) const {
  return grad == other.grad && inference == other.inference &&
         forward == other.forward;
}

bool Modes::has_same_autocast(const Modes& other) const {
  const autocast::Settings& b = other.autocast;
  return nesting == other.nesting && autocast.enabled == b.enabled &&
         autocast.cache_enabled == b.cache_enabled &&
         std::equal(
             std::begin(autocast.dtypes), std::end(autocast.dtypes), b.dtypes);
}

namespace {

int open_scopes() {
  autocast::increment_nesting();
  return autocast::decrement_nesting();
}

void set_autocast(const Modes& m) {
  autocast::restore(m.autocast);
  while (open_scopes() < m.nesting) autocast::increment_nesting();
  while (open_scopes() > m.nesting) autocast::decrement_nesting();
  // As the end of the outermost scope does.
  if (m.nesting == 0) autocast::clear_cache();
}

}  // namespace

Modes current_modes() {
  return {local_state.grad_enabled,
          local_state.inference,
          local_state.fw_grad_enabled,
          default_dtype(),
          default_device(),
          get_num_threads(),
          open_scopes(),
          autocast::settings(),
          autograd::anomaly_mode().enabled,
          autograd::anomaly_mode().check_nan};
}

void set_modes(const Modes& m) {
  local_state.grad_enabled = m.grad;
  local_state.inference = m.inference;
  local_state.fw_grad_enabled = m.forward;
  local_state.refresh();
  if (m.default_dtype != default_dtype()) set_default_dtype(m.default_dtype);
  if (!m.has_same_autocast(current_modes())) set_autocast(m);
}

namespace {

class ModesGuard {
 public:
  ModesGuard() = default;
  ModesGuard(const ModesGuard&) = delete;
  ModesGuard& operator=(const ModesGuard&) = delete;
  ~ModesGuard() { set_modes(before_); }

 private:
  Modes before_ = current_modes();
};

bool is_on(PyObject* state, int i) {
  return PyTuple_GET_ITEM(state, i) == Py_True;
}

}  // namespace

Ref state_of_mode(PyObject* mode) {
  ModesGuard restored;
  Ref on = python::attribute(mode, "mode");
  // The C method takes the three arguments of `with` or none of them.
  checked(PyObject_CallMethodNoArgs(mode, python::interned<"__exit__">()));
  Modes after = current_modes();
  auto boolean = [](bool is) { return is ? Py_True : Py_False; };
  return checked(PyTuple_Pack(4,
                              on.get(),
                              boolean(after.grad),
                              boolean(after.inference),
                              boolean(after.forward)));
}

void remember(PyObject* mode, PyObject* state) {
  ModesGuard restored;
  Modes m = current_modes();
  m.grad = is_on(state, 1);
  m.inference = is_on(state, 2);
  m.forward = is_on(state, 3);
  set_modes(m);
  checked(PyObject_CallMethodNoArgs(mode, python::interned<"__enter__">()));
}

Ref make_mode(PyObject* type, PyObject* state) {
  // Not by calling it, which runs the Python code of the class.
  auto* t = reinterpret_cast<PyTypeObject*>(type);
  Ref args = checked(PyTuple_Pack(1, PyTuple_GET_ITEM(state, 0)));
  Ref made = checked(t->tp_base->tp_new(t, args.get(), nullptr));
  remember(made.get(), state);
  return made;
}

PyObject* set_modes_for_python(PyObject*, PyObject* args) {
  int grad, inference, forward;
  if (!PyArg_ParseTuple(args, "ppp", &grad, &inference, &forward)) {
    return nullptr;
  }
  Modes m = current_modes();
  m.grad = grad != 0;
  m.inference = inference != 0;
  m.forward = forward != 0;
  set_modes(m);
  Py_RETURN_NONE;
}

Ref arguments_of_autocast(const Modes& m) {
  return checked(Py_BuildValue("(IOiy#)",
                               m.autocast.enabled,
                               m.autocast.cache_enabled ? Py_True : Py_False,
                               m.nesting,
                               reinterpret_cast<const char*>(m.autocast.dtypes),
                               Py_ssize_t{sizeof(m.autocast.dtypes)}));
}

PyObject* set_autocast_for_python(PyObject*, PyObject* args) {
  unsigned enabled;
  int cache, nesting;
  const char* dtypes;
  Py_ssize_t count;
  if (!PyArg_ParseTuple(
          args, "Ipiy#", &enabled, &cache, &nesting, &dtypes, &count)) {
    return nullptr;
  }
  Modes m = current_modes();
  m.nesting = nesting;
  m.autocast.enabled = enabled;
  m.autocast.cache_enabled = cache != 0;
  if (count != Py_ssize_t{sizeof(m.autocast.dtypes)}) {
    PyErr_SetString(PyExc_ValueError, "set_autocast: dtypes of other devices");
    return nullptr;
  }
  memcpy(m.autocast.dtypes, dtypes, sizeof(m.autocast.dtypes));
  set_modes(m);
  Py_RETURN_NONE;
}

}  // namespace taeda::capture
