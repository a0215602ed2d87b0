// Code objects and frames.
#include <taeda/csrc/compiler/capture/capture.h>

namespace taeda::capture {
namespace {

// Note [Exception table]
// Entries of four numbers, each in groups of six bits, most significant first:
// bit 6 says that another group follows, bit 7 begins an entry. Start, length
// and target are in code units; the last is depth * 2 + push_lasti.
std::vector<CodeInfo::Handler> read_handlers(PyObject* table) {
  std::vector<CodeInfo::Handler> out;
  const auto* at = reinterpret_cast<const uint8_t*>(PyBytes_AS_STRING(table));
  const uint8_t* end = at + PyBytes_GET_SIZE(table);
  auto number = [&] {
    int value = *at & 63;
    while (*at++ & 64) value = value << 6 | (*at & 63);
    return value;
  };
  while (at < end) {
    int begin = number();
    int length = number();
    int target = number();
    int depth = number();
    out.push_back(
        {begin, begin + length, target, depth >> 1, (depth & 1) != 0});
  }
  return out;
}

// Files of the library whose functions are calls to record, not code to see
// through: whoever calls them is told to the function mode by themselves.
bool runs_natively(PyObject* file) {
  const char* path = PyUnicode_AsUTF8(file);
  const char* inside = path == nullptr ? nullptr : strstr(path, "/taeda/");
  if (inside == nullptr) return false;
  for (const char* next; (next = strstr(inside + 1, "/taeda/")) != nullptr;) {
    inside = next;
  }
  inside += strlen("/taeda/");
  for (const char* prefix : {"nn/functional",
                             "nn/_native",
                             "_tensor",
                             "functional.py",
                             "_functions",
                             "linalg",
                             "special",
                             "fft",
                             "overrides",
                             "_ops",
                             "_lazy",
                             "_compat",
                             "_native_names",
                             "nn/parameter",
                             "_symbol",
                             "compiler/_sizes",
                             "nn/init",
                             "compiler/__init__",
                             "compiler/_arrays"}) {
    if (strncmp(inside, prefix, strlen(prefix)) == 0) return true;
  }
  return false;
}

}  // namespace

CodeInfo* code_info(PyCodeObject* code) {
  static auto* const table =
      new std::unordered_map<PyCodeObject*, std::unique_ptr<CodeInfo>>();
  std::unique_ptr<CodeInfo>& info = (*table)[code];
  if (info) return info.get();
  info = std::make_unique<CodeInfo>();
  info->code = Ref::borrow(reinterpret_cast<PyObject*>(code));
  info->text = checked(PyCode_GetCode(code));
  info->handlers = read_handlers(code->co_exceptiontable);
  constexpr int suspends =
      CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR | CO_ITERABLE_COROUTINE;
  info->is_generator = (code->co_flags & suspends) != 0;
  const char* file = PyUnicode_AsUTF8(code->co_filename);
  info->imports = file != nullptr && strstr(file, "importlib") != nullptr;
  info->runs_natively = runs_natively(code->co_filename);
  info->of_functional = info->runs_natively && file != nullptr &&
                        strstr(file, "/taeda/nn/functional/") != nullptr;
  return info.get();
}

Frame::Frame(CodeInfo* i, Ref f, PyObject* g, PyObject* b)
    : info(i), function(std::move(f)), globals(g), builtins(b) {}

void Frame::own_slots() {
  PyCodeObject* code = info->object();
  storage.resize(code->co_nlocalsplus + code->co_stacksize + 1);
  slots = storage.data();
}

Frame::~Frame() {
  int alive = info->object()->co_nlocalsplus + depth;
  if (stack_top != nullptr) *stack_top = alive;
  if (storage.empty()) return;
  for (int i = 0; i < alive; ++i) Py_XDECREF(slots[i]);
}

void Frame::drop_stack() {
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  while (depth > 0) pop();
  PyErr_Restore(type, value, trace);
}

PyObject* Frame::name_of_slot(int i) const {
  PyCodeObject* code = info->object();
  if (i >= code->co_nlocalsplus) return nullptr;
  return PyTuple_GET_ITEM(code->co_localsplusnames, i);
}

int Frame::line() const {
  PyCodeObject* code = info->object();
  int found = PyCode_Addr2Line(code, 2 * current);
  // Instructions that prepare a frame have no line.
  return found < 0 ? code->co_firstlineno : found;
}

namespace {

// The value that an argument has where a call leaves it out, or null.
PyObject* default_of(PyFunctionObject* f, int i) {
  auto* code = reinterpret_cast<PyCodeObject*>(f->func_code);
  if (i < code->co_argcount) {
    PyObject* all = f->func_defaults;
    Py_ssize_t from = all ? code->co_argcount - PyTuple_GET_SIZE(all) : i + 1;
    return i < from ? nullptr : PyTuple_GET_ITEM(all, i - from);
  }
  PyObject* name = PyTuple_GET_ITEM(code->co_localsplusnames, i);
  PyObject* all = f->func_kwdefaults;
  return all == nullptr ? nullptr : PyDict_GetItem(all, name);
}

}  // namespace

bool bind(Capture* capture,
          Frame& f,
          PyObject* const* args,
          size_t count,
          PyObject* names) {
  PyCodeObject* code = f.info->object();
  auto* function = reinterpret_cast<PyFunctionObject*>(f.function.get());
  auto positional = static_cast<size_t>(code->co_argcount);
  int named = code->co_argcount + code->co_kwonlyargcount;
  size_t taken = std::min(count, positional);
  for (size_t i = 0; i < taken; ++i) f.slots[i] = Py_NewRef(args[i]);
  int after = named;
  if (code->co_flags & CO_VARARGS) {
    f.slots[after++] = python::new_tuple(count - taken, [&](size_t i) {
                         return Py_NewRef(args[taken + i]);
                       }).release();
  } else if (count > taken) {
    return false;
  }
  PyObject* others = nullptr;
  if (code->co_flags & CO_VARKEYWORDS) {
    others = f.slots[after] = checked(PyDict_New()).release();
  }
  Py_ssize_t keywords = names == nullptr ? 0 : PyTuple_GET_SIZE(names);
  for (Py_ssize_t k = 0; k < keywords; ++k) {
    PyObject* name = PyTuple_GET_ITEM(names, k);
    int slot = code->co_posonlyargcount;
    while (slot < named &&
           PyUnicode_Compare(
               name, PyTuple_GET_ITEM(code->co_localsplusnames, slot)) != 0) {
      ++slot;
    }
    if (slot < named) {
      if (f.slots[slot] != nullptr) return false;
      f.slots[slot] = Py_NewRef(args[count + k]);
    } else if (others != nullptr) {
      python::check_status(PyDict_SetItem(others, name, args[count + k]));
    } else {
      return false;
    }
  }
  for (int i = 0; i < named; ++i) {
    if (f.slots[i] != nullptr) continue;
    PyObject* value = default_of(function, i);
    if (value == nullptr) return false;
    f.slots[i] = Py_NewRef(value);
    if (capture != nullptr) capture->adopt_default(f, i);
  }
  return true;
}

void Capture::adopt_defaults(Frame& f) {
  auto* function = reinterpret_cast<PyFunctionObject*>(f.function.get());
  PyCodeObject* code = f.info->object();
  for (int i = 0; i < code->co_argcount + code->co_kwonlyargcount; ++i) {
    PyObject* value = f.slots[i];
    if (value != nullptr && value == default_of(function, i))
      adopt_default(f, i);
  }
}

}  // namespace taeda::capture
