// Jumps, loops, exceptions, `with`, generators.
#include <taeda/csrc/compiler/capture/evaluate.h>
#include <taeda/csrc/compiler/capture/pieces.h>

#include <opcode.h>

namespace taeda::capture {
namespace {

Flow jump_forward(Machine& m, int n) {
  m.f.next += n;
  return Flow::Next;
}
Flow jump_backward(Machine& m, int n) {
  m.f.next -= n;
  return Flow::Next;
}

bool truth(Machine& m) {
  int is = PyObject_IsTrue(m.f.peek(1));
  python::check_status(is);
  return is != 0;
}
// `assert tensor` is a call of the graph, which raises when it runs.
bool asserts_tensor(Machine& m) {
  if (m.capture == nullptr || !is_tensor(m.f.peek(1))) return false;
  const uint8_t* code = m.f.info->bytes();
  return 2 * m.f.next < PyBytes_GET_SIZE(m.f.info->text.get()) &&
         code[2 * m.f.next] == LOAD_ASSERTION_ERROR;
}
template <bool wanted, int direction>
Flow pop_jump_if(Machine& m, int n) {
  if (wanted && direction > 0 && asserts_tensor(m)) {
    Ref args = checked(PyTuple_Pack(1, m.f.peek(1)));
    emit(*m.capture, library().assertion.get(), args.get(), nullptr, Py_None);
    m.f.next += n;
    m.f.pop();
    return Flow::Next;
  }
  if (truth(m) == wanted) m.f.next += direction * n;
  m.f.pop();
  return Flow::Next;
}
template <bool wanted, int direction>
Flow pop_jump_if_none(Machine& m, int n) {
  if ((m.f.peek(1) == Py_None) == wanted) m.f.next += direction * n;
  m.f.pop();
  return Flow::Next;
}

// What an ended loop jumps over, counted in instructions.
constexpr int kEndOfLoop = kPython313 ? 2 : kPython312 ? 1 : 0;

Flow for_iter(Machine& m, int n) {
  PyObject* iterator = m.f.peek(1);
  Ref item(Py_TYPE(iterator)->tp_iternext(iterator));
  if (item) {
    m.f.push(item.release());
    return Flow::Next;
  }
  if (PyErr_Occurred()) {
    if (is_break() || !PyErr_ExceptionMatches(PyExc_StopIteration)) {
      return Flow::Failed;
    }
    PyErr_Clear();
  }
  m.f.pop();
  m.f.next += n + kEndOfLoop;
  return Flow::Next;
}

Flow return_value(Machine& m, int) {
  m.result = m.f.pop();
  return Flow::Return;
}

Flow push_exc_info(Machine& m, int) {
  Ref value = m.f.pop();
  Ref before(PyErr_GetHandledException());
  m.f.push(before ? before.release() : python::none());
  PyErr_SetHandledException(value.get());
  m.f.push(value.release());
  return Flow::Next;
}
Flow pop_except(Machine& m, int) {
  Ref before = m.f.pop();
  PyErr_SetHandledException(before.get());
  return Flow::Next;
}
Flow check_exc_match(Machine& m, int) {
  int match = PyErr_GivenExceptionMatches(m.f.peek(2), m.f.peek(1));
  m.f.pop();
  m.f.push(PyBool_FromLong(match));
  return Flow::Next;
}
void raise_object(PyObject* o) {
  Ref value =
      PyType_Check(o) ? checked(PyObject_CallNoArgs(o)) : Ref::borrow(o);
  if (!PyExceptionInstance_Check(value.get())) {
    PyErr_SetString(PyExc_TypeError,
                    "exceptions must derive from BaseException");
    return;
  }
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(value.get())),
                  value.get());
}
void raise_again(PyObject* value) {
  PyObject* trace = PyException_GetTraceback(value);
  PyErr_Restore(Py_NewRef(reinterpret_cast<PyObject*>(Py_TYPE(value))),
                Py_NewRef(value),
                trace);
}
Flow reraise(Machine& m, int) {
  raise_again(m.f.pop().get());
  return Flow::Failed;
}
Flow raise_varargs(Machine& m, int n) {
  if (n == 0) {
    Ref handled(PyErr_GetHandledException());
    if (handled) {
      raise_again(handled.get());
    } else {
      PyErr_SetString(PyExc_RuntimeError, "No active exception to reraise");
    }
    return Flow::Failed;
  }
  Ref cause = n == 2 ? m.f.pop() : Ref();
  Ref error = m.f.pop();
  if (PyType_Check(error.get())) {
    error = checked(PyObject_CallNoArgs(error.get()));
  }
  if (cause) {
    if (PyType_Check(cause.get())) {
      cause = checked(PyObject_CallNoArgs(cause.get()));
    }
    bool none = cause.get() == Py_None;
    PyException_SetCause(error.get(), none ? nullptr : cause.release());
  }
  raise_object(error.get());
  return Flow::Failed;
}
Flow load_assertion_error(Machine& m, int) {
  m.f.push(Py_NewRef(PyExc_AssertionError));
  return Flow::Next;
}

// A graph ends where it is called: a class body fills a namespace.
Flow load_build_class(Machine& m, int) {
  PyObject* found = PyDict_GetItemString(m.f.builtins, "__build_class__");
  if (found == nullptr) {
    PyErr_SetString(PyExc_NameError, "__build_class__ not found");
    return Flow::Failed;
  }
  m.f.push(Py_NewRef(found));
  return Flow::Next;
}

Ref call_method_of_manager(Machine& m,
                           PyObject* f,
                           PyObject* const* args,
                           size_t n) {
  if (m.capture != nullptr) {
    std::vector<PyObject*> all(args, args + n);
    PyObject* function = f;
    if (PyMethod_Check(f)) {
      all.insert(all.begin(), PyMethod_GET_SELF(f));
      function = PyMethod_GET_FUNCTION(f);
    }
    Ref out = intercept(*m.capture, function, all.data(), all.size(), nullptr);
    if (out) return out;
    check_native(m.capture, f);
  }
  return checked(PyObject_Vectorcall(f, args, n, nullptr));
}
Flow before_with(Machine& m, int) {
  PyObject* manager = m.f.peek(1);
  Ref enter = load_attribute(m, manager, python::interned<"__enter__">());
  Ref exit = load_attribute(m, manager, python::interned<"__exit__">());
  Ref value = call_method_of_manager(m, enter.get(), nullptr, 0);
  m.f.pop();
  m.f.push(exit.release());
  m.f.push(value.release());
  return Flow::Next;
}
Flow with_except_start(Machine& m, int) {
  PyObject* error = m.f.peek(1);
  Ref trace(PyException_GetTraceback(error));
  PyObject* args[] = {reinterpret_cast<PyObject*>(Py_TYPE(error)),
                      error,
                      trace ? trace.get() : Py_None};
  m.f.push(call_method_of_manager(m, m.f.peek(4), args, 3).release());
  return Flow::Next;
}

Flow yield_value(Machine& m, int) {
  m.result = m.f.pop();
  return Flow::Yield;
}
// C code runs the beginning of a generator's function, which makes it.
Flow return_generator(Machine&, int) { break_graph("a generator is made"); }
Flow send(Machine& m, int n) {
  PyObject* out = nullptr;
  PySendResult status = PyIter_Send(m.f.peek(2), m.f.peek(1), &out);
  if (status == PYGEN_ERROR) return Flow::Failed;
  m.f.pop();
  if (status == PYGEN_RETURN) {
    // From 3.12 on an instruction of its own takes the generator away.
    if (!kPython312) m.f.pop();
    m.f.next += n;
  }
  m.f.push(out);
  return Flow::Next;
}
Flow get_yield_from_iter(Machine& m, int) {
  if (PyGen_CheckExact(m.f.peek(1))) return Flow::Next;
  Ref iterator = checked(PyObject_GetIter(m.f.peek(1)));
  m.f.pop();
  m.f.push(iterator.release());
  return Flow::Next;
}

#if PY_VERSION_HEX >= 0x030C0000
Flow return_const(Machine& m, int i) {
  m.result = Ref::borrow(PyTuple_GET_ITEM(m.f.info->object()->co_consts, i));
  return Flow::Return;
}
Flow end_for(Machine& m, int) {
  m.f.pop();
  if (!kPython313) m.f.pop();
  return Flow::Next;
}
Flow end_send(Machine& m, int) {
  Ref value = m.f.pop();
  m.f.pop();
  m.f.push(value.release());
  return Flow::Next;
}
// An error came out of the generator that another one waits for: its end?
Flow cleanup_throw(Machine& m, int) {
  PyObject* error = m.f.peek(1);
  if (PyErr_GivenExceptionMatches(error, PyExc_StopIteration) == 0) {
    raise_again(error);
    return Flow::Failed;
  }
  Ref value = python::attribute(error, "value");
  for (int i = 0; i < 3; ++i) m.f.pop();
  m.f.push(python::none());
  m.f.push(value.release());
  return Flow::Next;
}

void add_jumps(Operation** t) {
  t[POP_JUMP_IF_TRUE] = pop_jump_if<true, 1>;
  t[POP_JUMP_IF_FALSE] = pop_jump_if<false, 1>;
  t[POP_JUMP_IF_NONE] = pop_jump_if_none<true, 1>;
  t[POP_JUMP_IF_NOT_NONE] = pop_jump_if_none<false, 1>;
  t[RETURN_CONST] = return_const;
  t[END_FOR] = end_for;
  t[END_SEND] = end_send;
  t[CLEANUP_THROW] = cleanup_throw;
}
#else
template <bool wanted>
Flow jump_or_pop(Machine& m, int n) {
  if (truth(m) == wanted) {
    m.f.next += n;
  } else {
    m.f.pop();
  }
  return Flow::Next;
}

void add_jumps(Operation** t) {
  t[POP_JUMP_FORWARD_IF_TRUE] = pop_jump_if<true, 1>;
  t[POP_JUMP_FORWARD_IF_FALSE] = pop_jump_if<false, 1>;
  t[POP_JUMP_BACKWARD_IF_TRUE] = pop_jump_if<true, -1>;
  t[POP_JUMP_BACKWARD_IF_FALSE] = pop_jump_if<false, -1>;
  t[POP_JUMP_FORWARD_IF_NONE] = pop_jump_if_none<true, 1>;
  t[POP_JUMP_FORWARD_IF_NOT_NONE] = pop_jump_if_none<false, 1>;
  t[POP_JUMP_BACKWARD_IF_NONE] = pop_jump_if_none<true, -1>;
  t[POP_JUMP_BACKWARD_IF_NOT_NONE] = pop_jump_if_none<false, -1>;
  t[JUMP_IF_TRUE_OR_POP] = jump_or_pop<true>;
  t[JUMP_IF_FALSE_OR_POP] = jump_or_pop<false>;
}
#endif

}  // namespace

void add_control_operations(Operation** t) {
  add_jumps(t);
  t[JUMP_FORWARD] = jump_forward;
  t[JUMP_BACKWARD] = t[JUMP_BACKWARD_NO_INTERRUPT] = jump_backward;
  t[FOR_ITER] = for_iter;
  t[RETURN_VALUE] = return_value;
  t[PUSH_EXC_INFO] = push_exc_info;
  t[POP_EXCEPT] = pop_except;
  t[CHECK_EXC_MATCH] = check_exc_match;
  t[RERAISE] = reraise;
  t[RAISE_VARARGS] = raise_varargs;
  t[LOAD_ASSERTION_ERROR] = load_assertion_error;
  t[LOAD_BUILD_CLASS] = load_build_class;
  t[BEFORE_WITH] = before_with;
  t[WITH_EXCEPT_START] = with_except_start;
  t[YIELD_VALUE] = yield_value;
  t[RETURN_GENERATOR] = return_generator;
  t[SEND] = send;
  t[GET_YIELD_FROM_ITER] = get_yield_from_iter;
}

}  // namespace taeda::capture
