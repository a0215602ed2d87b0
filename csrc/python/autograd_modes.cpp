// Grad and inference mode, by CPython's own means because programs switch them
// often.
#include <taeda/csrc/python/autograd_common.h>
#include <taeda/csrc/python/init.h>

namespace taeda::python {

namespace {
// They switch when they are entered.
struct PyMode {
  PyObject_HEAD bool mode;
  LocalState before;
};

PyMode* as_mode(PyObject* o) { return reinterpret_cast<PyMode*>(o); }

// (mode), by position; without it the default.
template <bool Default>
PyObject* mode_new(PyTypeObject* type, PyObject* args, PyObject*) {
  int on = Default;
  if (PyTuple_GET_SIZE(args) > 0) on = PyObject_IsTrue(items_of(args)[0]);
  PyObject* o = on < 0 ? nullptr : type->tp_alloc(type, 0);
  if (o != nullptr) as_mode(o)->mode = on != 0;
  return o;
}

// Inference mode, or grad mode alone.
template <bool Inference>
PyObject* enter(PyObject* o, PyObject*) {
  PyMode* self = as_mode(o);
  if constexpr (!Inference) {
    self->before.grad_enabled = grad_enabled();
    set_grad_enabled(self->mode);
    Py_RETURN_NONE;
  }
  self->before = local_state;
  local_state.inference = self->mode;
  local_state.grad_enabled = !self->mode;
  local_state.fw_grad_enabled = !self->mode;
  local_state.refresh();
  Py_RETURN_NONE;
}
template <bool Inference>
PyObject* leave(PyObject* o, PyObject* const*, Py_ssize_t) {
  const LocalState& before = as_mode(o)->before;
  if constexpr (!Inference) {
    set_grad_enabled(before.grad_enabled);
    Py_RETURN_NONE;
  }
  local_state.inference = before.inference;
  local_state.grad_enabled = before.grad_enabled;
  local_state.fw_grad_enabled = before.fw_grad_enabled;
  local_state.refresh();
  Py_RETURN_NONE;
}
template <bool Inference>
PyMethodDef context_methods[] = {
    {"__enter__", enter<Inference>, METH_NOARGS, nullptr},
    {"__exit__",
     (PyCFunction)(void (*)(void))leave<Inference>,
     METH_FASTCALL,
     nullptr},
    {nullptr, nullptr, 0, nullptr},
};

PyMemberDef mode_members[] = {
    {"mode", T_BOOL, offsetof(PyMode, mode), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};
template <bool (*IsOn)()>
PyObject* ask(PyObject*, PyObject*) {
  return boolean(IsOn());
}
PyObject* set_grad_mode(PyObject*, PyObject* on) {
  if (!PyBool_Check(on)) {
    PyErr_Format(PyExc_TypeError,
                 "set_grad_enabled(): argument 'enabled' (position 1) must be "
                 "bool, not %s",
                 type_name_of(on));
    return nullptr;
  }
  set_grad_enabled(on == Py_True);
  Py_RETURN_NONE;
}
PyMethodDef functions[] = {
    {"is_grad_enabled",
     ask<grad_enabled>,
     METH_NOARGS,
     "Whether calls are recorded for backward."},
    {"_set_grad_enabled", set_grad_mode, METH_O, nullptr},
    {"is_inference_mode_enabled",
     ask<inference_mode>,
     METH_NOARGS,
     "Whether inference mode is on."},
    {nullptr, nullptr, 0, nullptr},
};

template <bool Inference, bool Default>
void add_mode_type(PyObject* module, const char* name) {
  add_type(module,
           name,
           sizeof(PyMode),
           {slot(Py_tp_new, mode_new<Default>),
            {Py_tp_members, mode_members},
            {Py_tp_methods, context_methods<Inference>}},
           Py_TPFLAGS_BASETYPE);
}
}  // namespace

void init_autograd_modes(PyObject* module) {
  add_mode_type<false, false>(module, "taeda._C._NoGrad");
  add_mode_type<false, true>(module, "taeda._C._EnableGrad");
  add_mode_type<true, true>(module, "taeda._C._InferenceMode");
  check_status(PyModule_AddFunctions(module, functions));
}

}  // namespace taeda::python
