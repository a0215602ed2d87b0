#include <taeda/csrc/compiler/capture/liveness.h>

#include <taeda/csrc/compiler/capture/interpreter.h>

#include <opcode.h>

namespace taeda::capture {
namespace {

struct Instruction {
  int begin = 0, code = 0, argument = 0;
  int next = 0;  // behind its caches
};

std::vector<Instruction> instructions_of(const CodeInfo& info) {
  std::vector<Instruction> out;
  auto size = static_cast<int>(PyBytes_GET_SIZE(info.text.get()) / 2);
  const uint8_t* bytes = info.bytes();
  for (int at = 0; at < size;) {
    Instruction i{at, bytes[2 * at], bytes[2 * at + 1], at + 1};
    for (; i.code == EXTENDED_ARG; ++i.next) {
      i.code = bytes[2 * i.next];
      i.argument = i.argument << 8 | bytes[2 * i.next + 1];
    }
    while (i.next < size && bytes[2 * i.next] == CACHE) ++i.next;
    at = i.next;
    out.push_back(i);
  }
  return out;
}

// Where it may jump to, or -1.
int target_of(const Instruction& i) {
  switch (i.code) {
    case JUMP_BACKWARD:
    case JUMP_BACKWARD_NO_INTERRUPT:
#if PY_VERSION_HEX < 0x030C0000
    case POP_JUMP_BACKWARD_IF_TRUE:
    case POP_JUMP_BACKWARD_IF_FALSE:
    case POP_JUMP_BACKWARD_IF_NONE:
    case POP_JUMP_BACKWARD_IF_NOT_NONE:
#endif
      return i.next - i.argument;
    case JUMP_FORWARD:
    case FOR_ITER:
    case SEND:
#if PY_VERSION_HEX < 0x030C0000
    case POP_JUMP_FORWARD_IF_TRUE:
    case POP_JUMP_FORWARD_IF_FALSE:
    case POP_JUMP_FORWARD_IF_NONE:
    case POP_JUMP_FORWARD_IF_NOT_NONE:
    case JUMP_IF_TRUE_OR_POP:
    case JUMP_IF_FALSE_OR_POP:
#else
    case POP_JUMP_IF_TRUE:
    case POP_JUMP_IF_FALSE:
    case POP_JUMP_IF_NONE:
    case POP_JUMP_IF_NOT_NONE:
#endif
      return i.next + i.argument;
    default:
      return -1;
  }
}

bool goes_on(const Instruction& i) {
  switch (i.code) {
    case JUMP_FORWARD:
    case JUMP_BACKWARD:
    case JUMP_BACKWARD_NO_INTERRUPT:
    case RETURN_VALUE:
    case RAISE_VARARGS:
    case RERAISE:
#if PY_VERSION_HEX >= 0x030C0000
    case RETURN_CONST:
#endif
      return false;
    default:
      return true;
  }
}

// Live before it, of what is live behind it.
void pass(const Instruction& i, std::vector<bool>& live) {
  auto set = [&](int slot, bool is) { live[static_cast<size_t>(slot)] = is; };
  switch (i.code) {
    case STORE_FAST:
      return set(i.argument, false);
    case LOAD_FAST:
    case DELETE_FAST:  // raises for a variable without a value
    case MAKE_CELL:
#if PY_VERSION_HEX >= 0x030C0000
    case LOAD_FAST_CHECK:
    case LOAD_FAST_AND_CLEAR:
#endif
#if PY_VERSION_HEX < 0x030D0000
    case LOAD_CLOSURE:
#endif
      return set(i.argument, true);
#if PY_VERSION_HEX >= 0x030D0000
    case LOAD_FAST_LOAD_FAST:
      set(i.argument >> 4, true);
      return set(i.argument & 15, true);
    case STORE_FAST_LOAD_FAST:
      set(i.argument & 15, true);
      return set(i.argument >> 4, false);
    case STORE_FAST_STORE_FAST:
      set(i.argument >> 4, false);
      return set(i.argument & 15, false);
#endif
    default:
      return;
  }
}

void add(std::vector<bool>& to, const std::vector<bool>& from) {
  for (size_t i = 0; i < from.size(); ++i) to[i] = to[i] || from[i];
}

// Live before each place of the code.
class Liveness {
 public:
  explicit Liveness(const CodeInfo& info)
      : info_(info),
        all_(instructions_of(info)),
        slots_(static_cast<size_t>(info.object()->co_nlocalsplus)),
        at_(static_cast<size_t>(PyBytes_GET_SIZE(info.text.get()) / 2 + 1),
            std::vector<bool>(slots_)) {
    bool changed = true;
    while (changed) {
      changed = false;
      for (size_t i = all_.size(); i-- > 0;) changed |= update(all_[i]);
    }
  }
  const std::vector<bool>& at(int place) const {
    return at_[static_cast<size_t>(place)];
  }
  // What the handlers of an instruction's errors read.
  void add_handlers(int place, std::vector<bool>& live) const {
    for (const CodeInfo::Handler& h : info_.handlers) {
      if (h.begin <= place && place < h.end) add(live, at(h.target));
    }
  }

 private:
  bool update(const Instruction& i) {
    std::vector<bool> live(slots_);
    if (goes_on(i)) live = at(i.next);
    if (int target = target_of(i); target >= 0) add(live, at(target));
    pass(i, live);
    add_handlers(i.begin, live);
    std::vector<bool>& known = at_[static_cast<size_t>(i.begin)];
    if (known == live) return false;
    known = std::move(live);
    return true;
  }

  const CodeInfo& info_;
  std::vector<Instruction> all_;
  size_t slots_;
  std::vector<std::vector<bool>> at_;
};

bool may_ask_otherwise(PyCodeObject* code) {
  for (PyObject* name : python::items_of(code->co_names)) {
    for (const char* asks : {"locals",
                             "vars",
                             "dir",
                             "eval",
                             "exec",
                             "super",
                             "_getframe",
                             "currentframe"}) {
      if (PyUnicode_CompareWithASCIIString(name, asks) == 0) return true;
    }
  }
  return false;
}

}  // namespace

std::vector<bool> live_slots(const Frame& f) {
  PyCodeObject* code = f.info->object();
  if (may_ask_otherwise(code)) {
    return std::vector<bool>(static_cast<size_t>(code->co_nlocalsplus), true);
  }
  Liveness known(*f.info);
  std::vector<bool> live = known.at(f.next);
  // Of a frame that waits for a call, which may raise.
  known.add_handlers(f.current, live);
  return live;
}

namespace {

bool moves_values(int code) {
  switch (code) {
    case NOP:
    case CACHE:
    case EXTENDED_ARG:
    case POP_TOP:
    case COPY:
    case SWAP:
    case LOAD_CONST:
    case LOAD_FAST:
    case STORE_FAST:
    case LOAD_DEREF:
    case LOAD_GLOBAL:
    case LOAD_ATTR:
    case BUILD_TUPLE:
    case BUILD_LIST:
    case BUILD_MAP:
    case BUILD_CONST_KEY_MAP:
#if PY_VERSION_HEX >= 0x030C0000
    case LOAD_FAST_CHECK:
#endif
#if PY_VERSION_HEX >= 0x030D0000
    case LOAD_FAST_LOAD_FAST:
#endif
      return true;
    default:
      return false;
  }
}

bool ends(int code) {
#if PY_VERSION_HEX >= 0x030C0000
  if (code == RETURN_CONST) return true;
#endif
  return code == RETURN_VALUE;
}

}  // namespace

bool only_returns(const Frames& frames) {
  for (const auto& f : frames) {
    auto size = static_cast<int>(PyBytes_GET_SIZE(f->info->text.get()) / 2);
    const uint8_t* bytes = f->info->bytes();
    int at = f->next;
    while (at < size && moves_values(bytes[2 * at])) ++at;
    if (at >= size || !ends(bytes[2 * at])) return false;
  }
  return true;
}

}  // namespace taeda::capture
