#include <taeda/csrc/compiler/capture/modes.h>

#include <taeda/c10/core/local_state.h>

namespace taeda::capture {

using python::checked;
using python::Ref;

Modes current_modes() {
  return {local_state.grad_enabled,
          local_state.inference,
          local_state.fw_grad_enabled};
}

void set_modes(const Modes& m) {
  local_state.grad_enabled = m.grad;
  local_state.inference = m.inference;
  local_state.fw_grad_enabled = m.forward;
  local_state.refresh();
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
  set_modes({is_on(state, 1), is_on(state, 2), is_on(state, 3)});
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
  set_modes({grad != 0, inference != 0, forward != 0});
  Py_RETURN_NONE;
}

}  // namespace taeda::capture
