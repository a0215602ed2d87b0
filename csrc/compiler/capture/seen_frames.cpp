// Calls as written, for who looks at the interpreter's frames.
//
// Note [Frames of calls]
// Where an instruction runs as it is, the interpreter has no frame of the
// function: `sys._getframe`, and the line that a warning or a log names, would
// be those of whoever called the compiled function. So what may look there is
// called through a function for each frame, with the globals, file, name and
// line of the frame, which only calls the next. Its variables are not the
// frame's. Tracebacks name the frames in any case (`add_traceback`), so these
// functions are taken out of them.
#include <taeda/csrc/compiler/capture/evaluate.h>

#include <frameobject.h>

#include <cstring>

namespace taeda::capture {
namespace {

// Of the functions in C those of two modules.
bool may_look_at_frames(PyObject* callable) {
  if (PyCFunction_Check(callable)) {
    PyObject* name = reinterpret_cast<PyCFunctionObject*>(callable)->m_module;
    if (name == nullptr || !PyUnicode_Check(name)) return false;
    const char* module = PyUnicode_AsUTF8(name);
    return strcmp(module, "sys") == 0 || strcmp(module, "_warnings") == 0;
  }
  if (PyType_Check(callable)) {
    auto* type = reinterpret_cast<PyTypeObject*>(callable);
    return PyType_HasFeature(type, Py_TPFLAGS_HEAPTYPE) != 0;
  }
  return PyFunction_Check(callable) || PyMethod_Check(callable) ||
         is_plain_instance(callable);
}

// That of a function that calls what it is given, at the frame's line.
PyObject* passing_code(const Frame& f) {
  int line = f.line();
  Ref& made = f.info->passing[line];
  if (made) return made.get();
  PyCodeObject* code = f.info->object();
  Ref changes = checked(Py_BuildValue("{s:O,s:O,s:O,s:i}",
                                      "co_filename",
                                      code->co_filename,
                                      "co_name",
                                      code->co_name,
                                      "co_qualname",
                                      code->co_qualname,
                                      "co_firstlineno",
                                      line));
  Ref replace = python::attribute(library().passing_code.get(), "replace");
  Ref nothing = checked(PyTuple_New(0));
  made = checked(PyObject_Call(replace.get(), nothing.get(), changes.get()));
  return made.get();
}

bool is_of(PyObject* trace, PyObject* code) {
  if (trace == nullptr || !PyTraceBack_Check(trace)) return false;
  auto* t = reinterpret_cast<PyTracebackObject*>(trace);
  Ref own(reinterpret_cast<PyObject*>(PyFrame_GetCode(t->tb_frame)));
  return own.get() == code;
}

void drop_from_traceback(const Frames& frames) {
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  PyErr_NormalizeException(&type, &value, &trace);
  for (const auto& f : frames) {
    if (!is_of(trace, passing_code(*f))) break;
    auto* t = reinterpret_cast<PyTracebackObject*>(trace);
    PyObject* next = Py_XNewRef(reinterpret_cast<PyObject*>(t->tb_next));
    Py_SETREF(trace, next);
  }
  PyException_SetTraceback(value, trace == nullptr ? Py_None : trace);
  PyErr_Restore(type, value, trace);
}

}  // namespace

Ref call_in_frames(const Frames& frames,
                   PyObject* callable,
                   PyObject* const* args,
                   size_t count,
                   PyObject* names) {
  if (!may_look_at_frames(callable)) {
    return checked(PyObject_Vectorcall(callable, args, count, names));
  }
  Ref given =
      python::new_tuple(count, [&](size_t i) { return Py_NewRef(args[i]); });
  Ref named = checked(PyDict_New());
  Py_ssize_t keywords = names == nullptr ? 0 : PyTuple_GET_SIZE(names);
  for (Py_ssize_t i = 0; i < keywords; ++i) {
    python::check_status(PyDict_SetItem(
        named.get(), PyTuple_GET_ITEM(names, i), args[count + i]));
  }
  Ref callee = Ref::borrow(callable);
  for (size_t i = frames.size(); i-- > 0;) {
    given = checked(PyTuple_Pack(3, callee.get(), given.get(), named.get()));
    named = checked(PyDict_New());
    callee =
        checked(PyFunction_New(passing_code(*frames[i]), frames[i]->globals));
  }
  Ref out(PyObject_Call(callee.get(), given.get(), named.get()));
  if (out) return out;
  drop_from_traceback(frames);
  throw PythonError();
}

}  // namespace taeda::capture
