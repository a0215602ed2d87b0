// What is decided for all compiled functions at once, and who hears of them.
#pragma once

#include <taeda/csrc/compiler/capture/evaluate.h>

namespace taeda::capture {

// Written by Python's settings; the GIL guards it.
struct Policy {
  enum Stance : int64_t {
    Default,
    ForceEager,
    EagerOnRecompile,
    FailOnRecompile,
  };
  int64_t stance = Default;
  int64_t recompile_limit = 8;
  int64_t generation = 0;    // how often everything was forgotten
  int64_t spell_graphs = 0;  // the observer gets graphs and guards in words
  // Takes whether a graph fits, returns whether one does on each rank; owned,
  // null where ranks do not ask each other.
  PyObject* guard_hook = nullptr;
};
Policy& policy();

// Of the thread: whether the end of a graph before its function's is an error.
extern thread_local bool strict;
// As code under capture sees it: the innermost error_on_graph_break that a
// frame stands in, of whose entry only the frame's stack tells after a resume.
bool is_strict(const Capture& c);

// Tells the package's observer, which may raise what the caller shall throw.
// `data` is a dict; its reference is taken.
void tell(const char* event, PyObject* function, PyObject* data);

// Held while a graph is captured and compiled: what other threads have captured
// meanwhile is looked for afterwards. The same thread may hold it twice.
class CompileLock {
 public:
  CompileLock();
  CompileLock(const CompileLock&) = delete;
  CompileLock& operator=(const CompileLock&) = delete;
  ~CompileLock();
};

// Marks that programs put on functions: what a call of one comes to under
// capture. `substitute_of` is borrowed, null for most.
PyObject* substitute_of(PyObject* callable);
// Null where the function has no mark.
Ref call_marked(Capture& c,
                PyObject* callable,
                PyObject* const* args,
                size_t count,
                PyObject* names);

// Bindings.
PyObject* configure(PyObject*, PyObject* args);
PyObject* set_guard_hook(PyObject*, PyObject* hook);
PyObject* set_strict(PyObject*, PyObject* value);
PyObject* is_capturing(PyObject*, PyObject*);

}  // namespace taeda::capture
