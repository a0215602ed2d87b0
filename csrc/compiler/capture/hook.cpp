// The frame-evaluation hook (PEP 523): the only file that knows the
// interpreter's own frames, whose layout differs between versions.
#include <taeda/csrc/compiler/capture/driver.h>

#define Py_BUILD_CORE
#include <internal/pycore_frame.h>
#include <internal/pycore_genobject.h>

namespace taeda::capture {
namespace {

// Depth of captures in the process; the GIL guards it.
int installed = 0;

int next_of(_PyInterpreterFrame* frame) {
  return static_cast<int>(frame->prev_instr + 1 - _PyCode_CODE(frame->f_code));
}

PyObject* evaluate_frame(Capture& c,
                         CodeInfo* info,
                         _PyInterpreterFrame* frame,
                         bool thrown) {
  Frames frames;
  frames.push_back(std::make_unique<Frame>(
      info,
      Ref::borrow(reinterpret_cast<PyObject*>(frame->f_func)),
      frame->f_globals,
      frame->f_builtins));
  Frame& f = *frames.back();
  f.slots = frame->localsplus;
  f.depth = frame->stacktop - frame->f_code->co_nlocalsplus;
  f.next = next_of(frame);
  f.current = std::max(f.next - 1, 0);
  f.stack_top = &frame->stacktop;
  Ref result;
  try {
    if (thrown && !handle_exception(f)) return nullptr;
    while (true) {
      if (!advance(&c, frames, 0, result)) continue;
      if (!frames.empty()) {
        // Suspended: the generator finds its frame as it left it.
        frame->prev_instr = _PyCode_CODE(frame->f_code) + f.next - 1;
        _PyFrame_GetGenerator(frame)->gi_frame_state = FRAME_SUSPENDED;
      }
      return result.release();
    }
  } catch (const PythonError&) {
    return nullptr;
  }
}

PyObject* hook(PyThreadState* thread, _PyInterpreterFrame* frame, int thrown) {
  Capture* c = active;
  if (c == nullptr || c->suspended > 0 || c->broken) {
    return _PyEval_EvalFrameDefault(thread, frame, thrown);
  }
  CodeInfo* info = code_info(frame->f_code);
  bool fresh = frame->owner != FRAME_OWNED_BY_GENERATOR;
  if (info->imports) {
    ++c->suspended;
    PyObject* out = _PyEval_EvalFrameDefault(thread, frame, thrown);
    --c->suspended;
    return out;
  }
  if (info->runs_natively || (info->is_generator && fresh)) {
    return _PyEval_EvalFrameDefault(thread, frame, thrown);
  }
  if (!is_supported(*info)) {
    c->broken = true;
    c->reason =
        std::string("code of ") + PyUnicode_AsUTF8(frame->f_code->co_qualname);
    PyErr_SetString(library().break_error.get(), c->reason.c_str());
    return nullptr;
  }
  ++c->native_depth;
  PyObject* out = evaluate_frame(*c, info, frame, thrown != 0);
  --c->native_depth;
  return out;
}

}  // namespace

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
