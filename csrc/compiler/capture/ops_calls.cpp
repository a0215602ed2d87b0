// Calls: of Python functions, which are evaluated here, and of C code.
#include <taeda/csrc/compiler/capture/pieces.h>
#include <taeda/csrc/compiler/capture/policy.h>

#include <taeda/c10/core/tensor_impl.h>

#include <opcode.h>

#include <algorithm>
#include <string_view>

namespace taeda::capture {
namespace {

bool in_set(PyObject* set, PyObject* item) {
  int found = item == nullptr ? 0 : PySet_Contains(set, item);
  if (found < 0) PyErr_Clear();
  return found == 1;
}

std::string repr_of(PyObject* o) {
  Ref text(PyObject_Repr(o));
  if (!text) PyErr_Clear();
  return text ? PyUnicode_AsUTF8(text.get()) : "?";
}

// `super()` looks for its arguments in the caller's frame, which C code would
// not find: here it is.
Ref make_super(Machine& m) {
  PyCodeObject* code = m.f.info->object();
  for (int i = 0; i < code->co_nlocalsplus; ++i) {
    PyObject* name = PyTuple_GET_ITEM(code->co_localsplusnames, i);
    if (PyUnicode_CompareWithASCIIString(name, "__class__") != 0) continue;
    auto content = [&](PyObject* cell) {
      if (cell == nullptr || !PyCell_Check(cell)) return cell;
      return m.capture ? m.capture->cell_content(cell) : PyCell_GET(cell);
    };
    PyObject* type = content(m.slot(i));
    PyObject* self = content(m.slot(0));
    if (type == nullptr || self == nullptr) break;
    auto* super = reinterpret_cast<PyObject*>(&PySuper_Type);
    return checked(PyObject_CallFunctionObjArgs(super, type, self, nullptr));
  }
  PyErr_SetString(PyExc_RuntimeError, "super(): no arguments");
  throw PythonError();
}

bool is_builtin(PyObject* callable, const char* name) {
  return PyCFunction_Check(callable) && PyCFunction_GET_SELF(callable) &&
         PyModule_Check(PyCFunction_GET_SELF(callable)) &&
         strcmp(reinterpret_cast<PyCFunctionObject*>(callable)->m_ml->ml_name,
                name) == 0;
}

bool has_variables(const Machine& m) {
  return (m.f.info->object()->co_flags & CO_OPTIMIZED) != 0;
}

// What the running function's variables are, which C code would look for in the
// interpreter's own frame.
Ref local_variables(Machine& m) {
  PyCodeObject* code = m.f.info->object();
  Ref out = checked(PyDict_New());
  for (int i = 0; i < code->co_nlocalsplus; ++i) {
    PyObject* value = m.slot(i);
    if (value != nullptr && PyCell_Check(value)) {
      value = m.capture != nullptr ? m.capture->cell_content(value)
                                   : PyCell_GET(value);
    }
    if (value == nullptr) continue;
    PyObject* name = PyTuple_GET_ITEM(code->co_localsplusnames, i);
    python::check_status(PyDict_SetItem(out.get(), name, value));
  }
  return out;
}

// Calls that look for names in the interpreter's own frame, which is not that
// of the running function; null for all others.
Ref call_by_names(Machine& m,
                  PyObject* callable,
                  PyObject* const* args,
                  size_t count) {
  if (!PyCFunction_Check(callable) ||
      PyCFunction_GET_SELF(callable) != library().builtins.get()) {
    return {};
  }
  bool runs = is_builtin(callable, "eval") || is_builtin(callable, "exec");
  bool is_globals = count == 0 && is_builtin(callable, "globals");
  if (!is_globals && !(runs && (count == 1 || count == 2))) return {};
  if (m.capture != nullptr) break_graph("call of " + repr_of(callable));
  if (is_globals) return Ref::borrow(m.f.globals);
  // As in C: a namespace that is given is that of the variables too.
  if (count == 2 && args[1] != Py_None) return {};
  Ref own = local_variables(m);
  PyObject* all[] = {args[0], m.f.globals, own.get()};
  return checked(PyObject_Vectorcall(callable, all, 3, nullptr));
}

// The library tells objects apart by id() and keeps no number; a program may.
Ref identity_of(Machine& m, PyObject* o) {
  const char* file = PyUnicode_AsUTF8(m.f.info->object()->co_filename);
  if (file != nullptr && strstr(file, "/taeda/") != nullptr) {
    return checked(PyLong_FromVoidPtr(o));
  }
  return checked(PyLong_FromVoidPtr(m.capture->identity(o)));
}

// Functions and modules among the arguments of a function of the library, which
// no node can hold: such a function is seen through.
bool takes_objects(Capture* c, PyObject* const* args, size_t count) {
  if (c == nullptr) return false;
  return std::any_of(args, args + count, [&](PyObject* each) {
    if (PyFunction_Check(each) || PyMethod_Check(each)) return true;
    return c->shadow_of(each) != nullptr && is_plain_instance(each);
  });
}

// Begins a frame for a Python function; false where it has to run by C.
bool begin_frame(Machine& m,
                 PyObject* function,
                 PyObject* const* args,
                 size_t count,
                 PyObject* names) {
  auto* f = reinterpret_cast<PyFunctionObject*>(function);
  CodeInfo* info = code_info(reinterpret_cast<PyCodeObject*>(f->func_code));
  size_t named = names == nullptr ? 0 : PyTuple_GET_SIZE(names);
  bool natively =
      info->runs_natively &&
      !(info->of_functional && takes_objects(m.capture, args, count + named));
  if (info->is_generator || info->imports || natively || !is_supported(*info)) {
    return false;
  }
  auto frame = std::make_unique<Frame>(
      info, Ref::borrow(function), f->func_globals, f->func_builtins);
  frame->own_slots();
  if (!bind(m.capture, *frame, args, count, names)) return false;
  if (m.frames.size() > 200) break_graph("calls are nested too deeply");
  if (m.capture != nullptr) {
    frame->began = m.capture->count - 1;
    m.capture->note_code(function);
  }
  m.pending = std::move(frame);
  return true;
}

// Fills the stand-ins of objects that C code is about to look through: `vars`,
// `dir`, and what tells of an object how it is copied.
void fill_for(Machine& m, PyObject* callable, PyObject* const* args, size_t n) {
  const char* name = "";
  PyObject* self = nullptr;
  if (PyCFunction_Check(callable)) {
    auto* f = reinterpret_cast<PyCFunctionObject*>(callable);
    name = f->m_ml->ml_name;
    self = f->m_self;
  } else if (Py_TYPE(callable) == &PyMethodDescr_Type) {
    name = reinterpret_cast<PyMethodDescrObject*>(callable)->d_method->ml_name;
  }
  static constexpr std::string_view looking[] = {
      "vars", "dir", "__reduce_ex__", "__reduce__", "__getstate__"};
  if (std::ranges::find(looking, name) == std::end(looking)) return;
  for (PyObject* o : {n > 0 ? args[0] : nullptr, self}) {
    Shadow* s = o == nullptr ? nullptr : m.capture->shadow_of(o);
    if (s != nullptr) m.capture->fill(*s);
  }
}

bool is_generic_getattr(PyObject* descriptor) {
  return Py_TYPE(descriptor) == &PyWrapperDescr_Type &&
         reinterpret_cast<PyWrapperDescrObject*>(descriptor)->d_wrapped ==
             reinterpret_cast<void*>(&PyObject_GenericGetAttr);
}

// CPython 3.13 has no public name for it.
bool is_method_wrapper(PyObject* o) {
  static PyTypeObject* const type =
      Py_TYPE(python::attribute(Py_None, "__repr__").get());
  return Py_TYPE(o) == type;
}

// `object.__getattribute__`, of a stand-in: by itself, or as `super()` binds
// it.
Ref generic_getattr(Machine& m,
                    PyObject* callable,
                    PyObject* const* args,
                    size_t count) {
  if (is_generic_getattr(callable) && count == 2 && PyUnicode_Check(args[1])) {
    return m.capture->plain_attribute(args[0], interned(args[1]).get());
  }
  bool bound =
      is_method_wrapper(callable) && count == 1 && PyUnicode_Check(args[0]);
  if (!bound) return {};
  Ref name = python::attribute(callable, "__name__");
  if (PyUnicode_CompareWithASCIIString(name.get(), "__getattribute__") != 0) {
    return {};
  }
  Ref owner = python::attribute(callable, "__objclass__");
  Ref descriptor = python::attribute(owner.get(), "__getattribute__");
  if (!is_generic_getattr(descriptor.get())) return {};
  Ref self = python::attribute(callable, "__self__");
  return m.capture->plain_attribute(self.get(), interned(args[0]).get());
}

// The built-in functions that look at attributes, over stand-ins.
Ref attribute_function(Machine& m,
                       PyObject* callable,
                       PyObject* const* args,
                       size_t count) {
  const char* name =
      PyCFunction_Check(callable)
          ? reinterpret_cast<PyCFunctionObject*>(callable)->m_ml->ml_name
          : "";
  fill_for(m, callable, args, count);
  if (count < 2 || !PyUnicode_Check(args[1])) return {};
  Ref key = interned(args[1]);
  if (strcmp(name, "setattr") == 0 || strcmp(name, "delattr") == 0) {
    PyObject* value = count > 2 ? args[2] : nullptr;
    bool written = m.capture->write_attribute(args[0], key.get(), value);
    return written ? Ref::borrow(Py_None) : Ref();
  }
  bool has = strcmp(name, "hasattr") == 0;
  if (!has && strcmp(name, "getattr") != 0) return {};
  try {
    Ref value = m.capture->attribute(args[0], key.get());
    return has ? Ref::borrow(Py_True) : value;
  } catch (const PythonError&) {
    if (is_break() || !PyErr_ExceptionMatches(PyExc_AttributeError)) throw;
    if (!has && count < 3) throw;
    PyErr_Clear();
    return Ref::borrow(has ? Py_False : args[2]);
  }
}

}  // namespace

namespace {

bool has_symbols(PyObject* o) {
  if (is_symbol(o) || is_sym_float(o)) return true;
  return is_tensor(o) && python::unwrap(o).impl()->is_symbolic();
}

}  // namespace

// Those that would make a number of a symbol (`int`, `len`, `math.sqrt`) or
// take it for none (`isinstance`).
Ref symbolic_call(PyObject* callable, PyObject* const* args, size_t count) {
  // `int` and `float` read the number in any tensor.
  bool reads = callable == reinterpret_cast<PyObject*>(&PyLong_Type) ||
               callable == reinterpret_cast<PyObject*>(&PyFloat_Type);
  bool any = reads && is_tensor(args[0]);
  for (size_t i = 0; i < count; ++i) any |= has_symbols(args[i]);
  if (!any) return {};
  PyObject* other =
      PyDict_GetItemWithError(library().symbolic_functions.get(), callable);
  if (other == nullptr) {
    PyErr_Clear();
    return {};
  }
  return checked(PyObject_Vectorcall(other, args, count, nullptr));
}

namespace {

// The library's own warnings are given where a graph is captured, and end none.
bool warns_of_library(const Capture* c, PyObject* callable) {
  if (!is_builtin(callable, "warn") || c == nullptr || c->frames.empty()) {
    return false;
  }
  PyObject* name = c->frames.back()->info->object()->co_filename;
  const char* file = PyUnicode_AsUTF8(name);
  return file != nullptr && strstr(file, "/taeda/") != nullptr;
}

// Who makes classes and types looks for the caller's module, to name it.
bool names_module(const Capture* c, PyObject* callable) {
  if (!is_builtin(callable, "_getframe") || c == nullptr || c->frames.empty()) {
    return false;
  }
  PyObject* name = PyDict_GetItemString(c->frames.back()->globals, "__name__");
  if (name == nullptr || !PyUnicode_Check(name)) return false;
  std::string_view module = PyUnicode_AsUTF8(name);
  return module == "typing" || module == "collections" || module == "enum";
}

}  // namespace

void check_native(Capture* c, PyObject* callable) {
  const Library& lib = library();
  if (in_set(lib.unsafe, callable) && !warns_of_library(c, callable) &&
      !names_module(c, callable)) {
    break_graph("call of " + repr_of(callable));
  }
  if (!PyCFunction_Check(callable)) return;
  auto* f = reinterpret_cast<PyCFunctionObject*>(callable);
  // The one of the system's functions that only looks at its argument.
  if (strcmp(f->m_ml->ml_name, "fspath") == 0) return;
  if (f->m_module != nullptr && in_set(lib.unsafe_modules, f->m_module)) {
    break_graph("call of " + repr_of(callable));
  }
}

namespace {

// Whether C code only calls its arguments, or asks what they are.
bool tells_nothing_apart(PyObject* callable) {
  return callable == reinterpret_cast<PyObject*>(&PyMap_Type) ||
         callable == reinterpret_cast<PyObject*>(&PyFilter_Type) ||
         callable == reinterpret_cast<PyObject*>(&PyMethod_Type) ||
         is_builtin(callable, "isinstance") ||
         is_builtin(callable, "callable") || is_builtin(callable, "getattr") ||
         is_builtin(callable, "setattr") ||
         (PyType_Check(callable) &&
          strcmp(reinterpret_cast<PyTypeObject*>(callable)->tp_name,
                 "functools.partial") == 0);
}

}  // namespace

Ref call(Machine& m,
         PyObject* callable,
         PyObject* const* args,
         size_t count,
         PyObject* names) {
  Capture* c = m.capture;
  if (callable == reinterpret_cast<PyObject*>(&PySuper_Type) && count == 0) {
    return make_super(m);
  }
  if (names == nullptr && has_variables(m)) {
    if (Ref out = call_by_names(m, callable, args, count)) return out;
  }
  if (c == nullptr) {
    return call_in_frames(m.frames, callable, args, count, names);
  }
  if (Py_TYPE(callable) == &PyMethod_Type) {
    std::vector<PyObject*> all{PyMethod_GET_SELF(callable)};
    size_t named = names == nullptr ? 0 : PyTuple_GET_SIZE(names);
    all.insert(all.end(), args, args + count + named);
    Ref function = Ref::borrow(PyMethod_GET_FUNCTION(callable));
    return call(m, function.get(), all.data(), count + 1, names);
  }
  if (PyObject* inner = compiled_function(callable)) {
    return call(m, inner, args, count, names);
  }
  if (PyObject* other = substitute_of(callable)) {
    return call(m, other, args, count, names);
  }
  if (count == 1 && is_builtin(callable, "id")) return identity_of(m, args[0]);
  if (has_variables(m) && count == 0) {
    if (is_builtin(callable, "locals") || is_builtin(callable, "vars"))
      return local_variables(m);
    if (is_builtin(callable, "dir")) {
      Ref names = checked(PyDict_Keys(local_variables(m).get()));
      python::check_status(PyList_Sort(names.get()));
      return names;
    }
  }
  if (Ref out = intercept(*c, callable, args, count, names)) return out;
  check_native(c, callable);
  if (Ref out = call_marked(*c, callable, args, count, names)) return out;
  if (is_cached(callable)) return c->call_cached(callable, args, count, names);
  if (PyFunction_Check(callable)) {
    if (begin_frame(m, callable, args, count, names)) return {};
  } else if (c->shadow_of(callable) != nullptr) {
    PyObject* found =
        _PyType_Lookup(Py_TYPE(callable), python::interned<"__call__">());
    if (found != nullptr && PyFunction_Check(found)) {
      Ref bound = checked(PyMethod_New(found, callable));
      return call(m, bound.get(), args, count, names);
    }
  }
  if (names == nullptr && count > 0) {
    if (Ref out = symbolic_call(callable, args, count)) return out;
  }
  if (names == nullptr) {
    if (Ref out = generic_getattr(m, callable, args, count)) return out;
    if (Ref out = attribute_function(m, callable, args, count)) return out;
    if (Ref out = c->call_operator(callable, args, count)) return out;
  }
  if (PyFunction_Check(callable)) c->written = {callable, args, count, names};
  if (!tells_nothing_apart(callable)) {
    size_t named = names == nullptr ? 0 : PyTuple_GET_SIZE(names);
    for (size_t i = 0; i < count + named; ++i) c->pin(args[i]);
  }
  Ref out(PyObject_Vectorcall(callable, args, count, names));
  c->written = {};
  if (!out) throw PythonError();
  return out;
}

void push_callable(Frame& f, Ref callable) {
  if (!kPython313) f.push(nullptr);
  f.push(callable.release());
  if (kPython313) f.push(nullptr);
}

void push_method(Frame& f, Ref attribute) {
  if (Py_TYPE(attribute.get()) != &PyMethod_Type) {
    return push_callable(f, std::move(attribute));
  }
  f.push(Py_NewRef(PyMethod_GET_FUNCTION(attribute.get())));
  f.push(Py_NewRef(PyMethod_GET_SELF(attribute.get())));
}

namespace {

// Takes what a call stood on off the stack and pushes its result, or makes the
// frame that will push it the running one. Nothing may use `m.f` afterwards.
Flow complete(Machine& m, int used, Ref out) {
  for (int i = 0; i < used; ++i) m.f.pop();
  if (m.pending) {
    m.frames.push_back(std::move(m.pending));
  } else {
    m.f.push(out.release());
  }
  return Flow::Next;
}

// Of the n values below the `above` topmost ones.
Ref call_stacked(Machine& m, int n, int above, PyObject* names) {
  PyObject** at = m.f.stack() + m.f.depth - above - n;
  size_t named = names == nullptr ? 0 : PyTuple_GET_SIZE(names);
  bool method = at[kPython313 ? -1 : -2] != nullptr;
  PyObject* callable = at[kPython313 || method ? -2 : -1];
  return call(m, callable, at - method, n + method - named, names);
}

Flow call_operation(Machine& m, int n) {
  Ref out = call_stacked(m, n, 0, m.f.keyword_names);
  m.f.keyword_names = nullptr;
  return complete(m, n + 2, std::move(out));
}

#if PY_VERSION_HEX >= 0x030D0000
Flow call_named(Machine& m, int n) {
  Ref out = call_stacked(m, n, 1, m.f.peek(1));
  return complete(m, n + 3, std::move(out));
}
#else
Flow kw_names(Machine& m, int i) {
  m.f.keyword_names = PyTuple_GET_ITEM(m.f.info->object()->co_consts, i);
  return Flow::Next;
}
#endif

Flow call_function_ex(Machine& m, int flags) {
  int used = 2 + (flags & 1) + 1;
  PyObject* keywords = (flags & 1) ? m.f.peek(1) : nullptr;
  PyObject* callable = m.f.peek(used - (kPython313 ? 0 : 1));
  Ref args = checked(PySequence_Tuple(m.f.peek(1 + (flags & 1))));
  std::vector<PyObject*> all(python::items_of(args.get()).begin(),
                             python::items_of(args.get()).end());
  size_t count = all.size();
  Ref names;
  Ref copied;
  if (keywords != nullptr) {
    copied = checked(PyDict_New());
    python::check_status(PyDict_Update(copied.get(), keywords));
    Ref list = checked(PyDict_Keys(copied.get()));
    names = checked(PyList_AsTuple(list.get()));
    for (PyObject* name : python::items_of(names.get())) {
      all.push_back(PyDict_GetItem(copied.get(), name));
    }
    if (PyTuple_GET_SIZE(names.get()) == 0) names = Ref();
  }
  Ref out = call(m, callable, all.data(), count, names.get());
  return complete(m, used, std::move(out));
}

}  // namespace

void add_call_operations(Operation** t) {
  t[CALL] = call_operation;
  t[CALL_FUNCTION_EX] = call_function_ex;
#if PY_VERSION_HEX >= 0x030D0000
  t[CALL_KW] = call_named;
#else
  t[KW_NAMES] = kw_names;
#endif
}

}  // namespace taeda::capture
