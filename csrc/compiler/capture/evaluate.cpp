// The loop over instructions, and what happens to exceptions.
#include <taeda/csrc/compiler/capture/driver.h>

#include <opcode.h>

#include <chrono>

namespace taeda::capture {
namespace {

struct Table {
  Operation* operations[256] = {};
  Table() {
    add_stack_operations(operations);
    add_pattern_operations(operations);
    add_name_operations(operations);
    add_call_operations(operations);
    add_control_operations(operations);
  }
};

const Table& table() {
  static const Table made;
  return made;
}

}  // namespace

namespace {

// Whether the frame raises an error once more that has been there before.
bool raises_again(const Frame& f) {
  const uint8_t* at = f.info->bytes() + 2 * f.current;
  return at[0] == RERAISE || (at[0] == RAISE_VARARGS && at[1] == 0);
}

}  // namespace

bool handle_exception(Frame& f) {
  if (!raises_again(f)) add_traceback(f);
  const CodeInfo::Handler* found = nullptr;
  for (const CodeInfo::Handler& h : f.info->handlers) {
    if (h.begin <= f.current && f.current < h.end) found = &h;
  }
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  if (found == nullptr) {
    PyErr_Restore(type, value, trace);
    f.drop_stack();
    return false;
  }
  PyErr_NormalizeException(&type, &value, &trace);
  if (trace != nullptr) PyException_SetTraceback(value, trace);
  Py_XDECREF(type);
  Py_XDECREF(trace);
  while (f.depth > found->depth) f.pop();
  if (found->push_lasti) f.push(PyLong_FromLong(f.current));
  f.push(value);
  f.next = found->target;
  f.keyword_names = nullptr;
  return true;
}

bool is_supported(CodeInfo& info) {
  if (info.supported >= 0) return info.supported != 0;
  info.supported = 1;
  Py_ssize_t size = PyBytes_GET_SIZE(info.text.get());
  for (Py_ssize_t i = 0; i < size; i += 2) {
    uint8_t code = info.bytes()[i];
    if (code != EXTENDED_ARG && table().operations[code] == nullptr) {
      info.supported = 0;
    }
#if PY_VERSION_HEX >= 0x030C0000
    if (code == CALL_INTRINSIC_1 && !has_intrinsic(info.bytes()[i + 1])) {
      info.supported = 0;
    }
#endif
  }
  return info.supported != 0;
}

namespace {

using Clock = std::chrono::steady_clock;

constexpr int kBetweenPauses = 4096;
// Longer than a thread waits for the lock until it asks for it: to who has not
// asked the lock is not handed over, and each release begins the wait anew.
constexpr auto kBetweenReleases = std::chrono::milliseconds(12);
thread_local int until_pause = kBetweenPauses;
thread_local Clock::time_point released;

// The interpreter lets signals and other threads in between instructions, and
// so does this loop. A signal that raises ends a capture: what it raised is not
// the program's own.
bool pause(Capture* capture) {
  until_pause = kBetweenPauses;
  if (Clock::now() - released > kBetweenReleases) {
    PyEval_RestoreThread(PyEval_SaveThread());
    released = Clock::now();
  }
  if (PyErr_CheckSignals() == 0) return true;
  if (capture != nullptr) capture->broken = capture->interrupted = true;
  return false;
}

}  // namespace

Flow step(Capture* capture, Frames& frames, Ref& result) {
  Frame& f = *frames.back();
  if (--until_pause <= 0 && !pause(capture)) {
    f.current = f.next;
    return Flow::Failed;
  }
  const uint8_t* at = f.info->bytes() + 2 * f.next;
  int argument = at[1];
  f.current = f.next++;
  while (*at == EXTENDED_ARG) {
    at += 2;
    argument = argument << 8 | at[1];
    ++f.next;
  }
  uint8_t code = *at;
  while (f.info->bytes()[2 * f.next] == CACHE &&
         2 * f.next < PyBytes_GET_SIZE(f.info->text.get())) {
    ++f.next;
  }
  Operation* operation = table().operations[code];
  try {
    if (operation == nullptr) {
      if (capture != nullptr) {
        break_graph("instruction " + std::to_string(code));
      }
      PyErr_Format(PyExc_SystemError, "capture: instruction %d", code);
      return Flow::Failed;
    }
    Machine m{capture, frames, f, result};
    return operation(m, argument);
  } catch (const PythonError&) {
    return Flow::Failed;
  }
}

namespace {

// A decision that depends on data ends the graph: what is asked then is a
// number.
[[noreturn]] void break_with_error(Capture& c) {
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  Ref kept[] = {Ref(type), Ref(value), Ref(trace)};
  Ref text(value == nullptr ? nullptr : PyObject_Str(value));
  const char* words = text ? PyUnicode_AsUTF8(text.get()) : nullptr;
  PyErr_Clear();
  c.broken = true;
  break_graph(words == nullptr ? "a decision about data" : words);
}

}  // namespace

bool advance(Capture* capture, Frames& frames, size_t base, Ref& result) {
  switch (step(capture, frames, result)) {
    case Flow::Next:
      return false;
    case Flow::Yield:
      return true;
    case Flow::Return:
      frames.pop_back();
      if (frames.size() == base) return true;
      frames.back()->push(result.release());
      return false;
    case Flow::Failed:
      break;
  }
  if (is_break()) throw PythonError();
  if (capture != nullptr &&
      PyErr_ExceptionMatches(library().data_error.get())) {
    break_with_error(*capture);
  }
  while (!handle_exception(*frames.back())) {
    frames.pop_back();
    if (frames.size() == base) throw PythonError();
  }
  return false;
}

Ref evaluate(Capture* capture, Frames& frames, size_t base) {
  Ref result;
  while (true) {
    if (capture->count == capture->stop_at) {
      finish(*capture, Ref());
      return {};
    }
    ++capture->count;
    if (advance(capture, frames, base, result)) return result;
  }
}

}  // namespace taeda::capture
