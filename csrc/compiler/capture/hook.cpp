// The frame-evaluation hook (PEP 523): the only file that knows the
// interpreter's own frames, whose layout differs between versions.
#include <taeda/csrc/compiler/capture/driver.h>

#define Py_BUILD_CORE
#include <internal/pycore_frame.h>
#include <internal/pycore_genobject.h>
#include <internal/pycore_traceback.h>

namespace taeda::capture {
namespace {

// Depth of captures in the process; the GIL guards it.
int installed = 0;

// What is read and written of the interpreter's frames.
#if PY_VERSION_HEX >= 0x030D0000
PyCodeObject* code_of(_PyInterpreterFrame* frame) {
  return _PyFrame_GetCode(frame);
}
int next_of(_PyInterpreterFrame* frame) {
  return _PyInterpreterFrame_LASTI(frame);
}
void set_next(_PyInterpreterFrame* frame, int next) {
  frame->instr_ptr = _PyCode_CODE(code_of(frame)) + next;
}
#else
PyCodeObject* code_of(_PyInterpreterFrame* frame) { return frame->f_code; }
int next_of(_PyInterpreterFrame* frame) {
  return _PyInterpreterFrame_LASTI(frame) + 1;
}
void set_next(_PyInterpreterFrame* frame, int next) {
  frame->prev_instr = _PyCode_CODE(code_of(frame)) + next - 1;
}
#endif

#if PY_VERSION_HEX >= 0x030C0000
PyObject* function_of(_PyInterpreterFrame* frame) { return frame->f_funcobj; }

// Gives the frame another code and returns the one it had; both are owned.
PyCodeObject* exchange_code(_PyInterpreterFrame* frame, PyCodeObject* code) {
#if PY_VERSION_HEX >= 0x030D0000
  auto* given = reinterpret_cast<PyObject*>(code);
  return reinterpret_cast<PyCodeObject*>(
      std::exchange(frame->f_executable, given));
#else
  return std::exchange(frame->f_code, code);
#endif
}

// The code of a function that returns what it closes over.
PyCodeObject* returning_code() {
  static PyCodeObject* const made = [] {
    Ref outer = checked(Py_CompileString(
        "lambda held: lambda: held", "<captured>", Py_eval_input));
    for (int level = 0; level < 2; ++level) {
      auto* code = reinterpret_cast<PyCodeObject*>(outer.get());
      Ref constants = Ref::borrow(code->co_consts);
      for (PyObject* each : python::items_of(constants.get())) {
        if (PyCode_Check(each)) outer = Ref::borrow(each);
      }
    }
    return reinterpret_cast<PyCodeObject*>(outer.release());
  }();
  return made;
}

// Note [Ends of frames]
// From 3.12 on, whoever evaluates a frame ends it too: clears it and takes it
// off the thread's stack, by functions that the interpreter keeps to itself. So
// the frame gets the code of a function that does nothing but return, stands
// before its last instruction, and is run by the interpreter. Errors are thrown
// in before its first instruction, which no traceback shows.
PyObject* end_frame(PyThreadState* thread,
                    _PyInterpreterFrame* frame,
                    PyObject* result) {
  bool generator = frame->owner == FRAME_OWNED_BY_GENERATOR;
  PyCodeObject* stub = returning_code();
  Py_INCREF(stub);
  PyCodeObject* own = exchange_code(frame, stub);
  if (result != nullptr) {
    frame->localsplus[frame->stacktop++] = result;
    set_next(frame, static_cast<int>(Py_SIZE(stub)) - 1);
  } else {
    set_next(frame, 0);
  }
  PyObject* out = _PyEval_EvalFrameDefault(thread, frame, result == nullptr);
  // Only a generator's frame is still there.
  if (generator) {
    Py_DECREF(exchange_code(frame, own));
  } else {
    Py_DECREF(own);
  }
  return out;
}

// The frame of a function that only returns a constant may have no slot, where
// its end needs one.
bool can_end(_PyInterpreterFrame* frame) {
  return code_of(frame)->co_nlocalsplus + code_of(frame)->co_stacksize > 0;
}

// The generator's exceptions are no longer those that are being handled.
void leave_generator(PyThreadState* thread, PyGenObject* generator) {
  thread->exc_info = generator->gi_exc_state.previous_item;
  generator->gi_exc_state.previous_item = nullptr;
}
#else
PyObject* function_of(_PyInterpreterFrame* frame) {
  return reinterpret_cast<PyObject*>(frame->f_func);
}
// Whoever has called the hook does it.
PyObject* end_frame(PyThreadState*, _PyInterpreterFrame*, PyObject* result) {
  return result;
}
bool can_end(_PyInterpreterFrame*) { return true; }
void leave_generator(PyThreadState*, PyGenObject*) {}
#endif

// The generator finds its frame as it left it. `argument` is that of the
// `yield`.
void suspend(PyThreadState* thread,
             _PyInterpreterFrame* frame,
             int next,
             int argument) {
  PyGenObject* generator = _PyFrame_GetGenerator(frame);
  set_next(frame, next);
  generator->gi_frame_state = FRAME_SUSPENDED;
#if PY_VERSION_HEX >= 0x030D0000
  if (argument != 0) generator->gi_frame_state = FRAME_SUSPENDED_YIELD_FROM;
#else
  static_cast<void>(argument);
#endif
  leave_generator(thread, generator);
}

// Evaluates the frame in place. True where it was left by `yield`.
bool evaluate_in_place(Capture& c,
                       CodeInfo* info,
                       _PyInterpreterFrame* frame,
                       bool thrown,
                       Ref& result,
                       int& next) {
  Frames frames;
  frames.push_back(std::make_unique<Frame>(info,
                                           Ref::borrow(function_of(frame)),
                                           frame->f_globals,
                                           frame->f_builtins));
  Frame& f = *frames.back();
  f.slots = frame->localsplus;
  f.depth = frame->stacktop - info->object()->co_nlocalsplus;
  f.next = next_of(frame);
  f.current = std::max(f.next - 1, 0);
  f.stack_top = &frame->stacktop;
  // Until then the garbage collector is not to look at the slots.
  frame->stacktop = -1;
  try {
    // Frames of generators are here each time that they go on.
    if (frame->owner != FRAME_OWNED_BY_GENERATOR) c.adopt_defaults(f);
    if (thrown && !handle_exception(f)) return false;
    while (!advance(&c, frames, 0, result)) {
    }
    if (frames.empty()) return false;
    next = f.next;
    return true;
  } catch (const PythonError&) {
    if (!frames.empty()) frames.front()->drop_stack();
    result = Ref();
    return false;
  }
}

PyObject* evaluate_frame(Capture& c,
                         CodeInfo* info,
                         PyThreadState* thread,
                         _PyInterpreterFrame* frame,
                         bool thrown) {
  Ref result;
  int next = 0;
  if (evaluate_in_place(c, info, frame, thrown, result, next)) {
    suspend(thread, frame, next, info->bytes()[2 * next - 1]);
    return result.release();
  }
  c.resumed.erase(frame);
  return end_frame(thread, frame, result.release());
}

// C code between frames takes more of the thread's stack than the interpreter
// counts.
constexpr int kDeepest = 200;

// A generator without an end would fill the memory before any call ran.
constexpr int kMostElements = 100'000;

// Why the graph has to end before the code is run; empty if not.
std::string refusal(Capture& c, CodeInfo& info, const void* frame) {
  if (c.native_depth >= kDeepest) return "calls are nested too deeply";
  if (info.is_generator && ++c.resumed[frame] > kMostElements) {
    return "an infinite generator, or one of more than 100000 elements";
  }
  if (is_supported(info)) return "";
  return std::string("code of ") + PyUnicode_AsUTF8(info.object()->co_qualname);
}

PyObject* hook(PyThreadState* thread, _PyInterpreterFrame* frame, int thrown) {
  Capture* c = active;
  if (c == nullptr || c->suspended > 0 || c->broken) {
    return _PyEval_EvalFrameDefault(thread, frame, thrown);
  }
  CodeInfo* info = code_info(code_of(frame));
  bool fresh = frame->owner != FRAME_OWNED_BY_GENERATOR;
  if (info->imports) {
    ++c->suspended;
    PyObject* out = _PyEval_EvalFrameDefault(thread, frame, thrown);
    --c->suspended;
    return out;
  }
  if (info->runs_natively || (info->is_generator && fresh) || !can_end(frame)) {
    return _PyEval_EvalFrameDefault(thread, frame, thrown);
  }
  std::string reason = refusal(*c, *info, frame);
  if (!reason.empty()) {
    c->broken = true;
    c->reason = reason;
    PyErr_SetString(library().break_error.get(), reason.c_str());
    return end_frame(thread, frame, nullptr);
  }
  if (fresh) c->note_code(function_of(frame));
  ++c->native_depth;
  PyObject* out = evaluate_frame(*c, info, thread, frame, thrown != 0);
  --c->native_depth;
  return out;
}

}  // namespace

void add_traceback(const Frame& f) {
  PyCodeObject* code = f.info->object();
  _PyTraceback_Add(PyUnicode_AsUTF8(code->co_name),
                   PyUnicode_AsUTF8(code->co_filename),
                   f.line());
}

namespace {

// What a call has bound to a variable, a cell or not.
Ref bound_value(PyObject* slot) {
  if (slot != nullptr && PyCell_Check(slot)) slot = PyCell_GET(slot);
  if (slot == nullptr) throw PythonError();
  return Ref::borrow(slot);
}

}  // namespace

Ref call_of_generator(PyObject* generator) {
  auto* g = reinterpret_cast<PyGenObject*>(generator);
  if (g->gi_frame_state != FRAME_CREATED) return {};
  auto* frame = reinterpret_cast<_PyInterpreterFrame*>(g->gi_iframe);
  PyCodeObject* code = code_of(frame);
  PyObject** slots = frame->localsplus;
  int named = code->co_argcount + code->co_kwonlyargcount;
  int next = named;
  Ref args = python::new_list(code->co_argcount, [&](size_t i) {
    return bound_value(slots[i]).release();
  });
  if (code->co_flags & CO_VARARGS) {
    Ref rest = bound_value(slots[next++]);
    args = checked(PySequence_InPlaceConcat(args.get(), rest.get()));
  }
  Ref keywords = checked(PyDict_New());
  for (int i = code->co_argcount; i < named; ++i) {
    PyObject* name = PyTuple_GET_ITEM(code->co_localsplusnames, i);
    Ref value = bound_value(slots[i]);
    python::check_status(PyDict_SetItem(keywords.get(), name, value.get()));
  }
  if (code->co_flags & CO_VARKEYWORDS) {
    Ref rest = bound_value(slots[next]);
    python::check_status(PyDict_Update(keywords.get(), rest.get()));
  }
  args = checked(PyList_AsTuple(args.get()));
  Ref callable = Ref::borrow(function_of(frame));
  if (PyDict_GET_SIZE(keywords.get()) > 0) {
    Ref module = checked(PyImport_ImportModule("functools"));
    Ref partial = python::attribute(module.get(), "partial");
    Ref given = checked(PyTuple_Pack(1, callable.get()));
    callable =
        checked(PyObject_Call(partial.get(), given.get(), keywords.get()));
  }
  return checked(PyTuple_Pack(2, callable.get(), args.get()));
}

void install_hook() {
  if (installed++ == 0) {
    _PyInterpreterState_SetEvalFrameFunc(PyInterpreterState_Get(), hook);
  }
}
void remove_hook() {
  if (--installed == 0) {
    _PyInterpreterState_SetEvalFrameFunc(PyInterpreterState_Get(),
                                         _PyEval_EvalFrameDefault);
  }
}

}  // namespace taeda::capture
