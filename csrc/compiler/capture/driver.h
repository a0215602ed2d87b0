// A compiled function and what it calls to be one.
#pragma once

#include <taeda/csrc/compiler/capture/evaluate.h>

#include <functional>
#include <span>

namespace taeda::capture {

struct Cache : std::vector<std::unique_ptr<Entry>> {
  History history;  // of sizes and numbers, over all captures
};

using Caches = std::map<std::vector<std::pair<CodeInfo*, int>>, Cache>;

// The GIL guards all of it; parts are captured under the CompileLock.
struct Compiled {
  struct Break {
    std::string reason;
    Ref stack;  // list of (file, line, function)
  };
  Ref function;  // the one that was called last, while it runs
  Ref backend, marker;
  bool fullgraph = false;
  bool takes_passes = false;  // Note [Passes in graphs]
  Ref dynamic;  // None, or whether sizes are symbols from the beginning
  Ref filter;   // of guards: takes entries, returns bools; or null
  int64_t recompile_limit = -1;  // below 0 the policy's
  int64_t graphs = 0;
  std::vector<Break> reasons;
  // By where the frames stand: the beginning, and each break.
  Caches caches;
  Cache* beginning = nullptr;  // that of `caches` for calls

  // Of a function with this code: several share what was captured.
  Ref call(PyObject* own, PyObject* const* args, size_t count, PyObject* names);
  Entry* find(Cache& cache, const Frames& state);
  enum class End { Returned, Stopped, Raised };
  // Changes `state` only where the part stopped.
  End run(Entry& entry, Frames& state, Ref& result);

 private:
  // The entry for a state, captured if need be; null where the function has to
  // run as it is written from here on.
  Entry* entry_for(Cache& cache, const Frames& state);
  // As find(); null too where another rank has found nothing.
  Entry* find_with_others(Cache& cache, const Frames& state);
  void drop(Cache& cache, const Entry* entry);
  // False where it is to be captured again.
  bool complete(Cache& cache, Entry* made, bool fresh);
  // What was captured from where the frames stand.
  Cache& cache_of(const Frames& state, bool begun);
  Entry* capture(Cache& cache, const Frames& state);
  bool may_capture(Cache& cache);
  void compile_graph(Entry& entry);
  // By the program's filter; right after the guards held.
  void filter_guards(Entry& entry) const;
  void note_unfit(Cache& cache, Entry* made);
  Ref run_after_error(const std::function<Ref()>& program);
  void note_break(const char* event,
                  const std::string& reason,
                  PyObject* stack,
                  bool is_error,
                  PyObject* error = nullptr);
  void forget();
  void refuse(const CodeInfo& info);

  // Calls that are running, of any thread; what reset() dropped meanwhile is
  // kept until none is.
  int running_ = 0;
  int64_t generation_ = 0;
  std::vector<Caches> dropped_;
  bool told_limit_ = false;
};

// A frame as a call of the function begins with; false where the arguments do
// not fit.
bool begin_call(PyObject* function,
                Frame& frame,
                PyObject* const* args,
                size_t count,
                PyObject* names);

// The pending exception, which is pending no more.
struct Raised {
  Ref type, value, trace;

  Raised() {
    PyObject *kind, *object, *lines;
    PyErr_Fetch(&kind, &object, &lines);
    PyErr_NormalizeException(&kind, &object, &lines);
    if (lines != nullptr) PyException_SetTraceback(object, lines);
    type = Ref(kind);
    value = Ref(object);
    trace = Ref(lines);
  }
  std::string text() const {
    Ref found(value ? PyObject_Repr(value.get()) : nullptr);
    const char* s = found ? PyUnicode_AsUTF8(found.get()) : nullptr;
    PyErr_Clear();
    return s == nullptr ? "an exception" : s;
  }
  // Not the end of the process or the like, which goes its way.
  bool is_error() const {
    return PyErr_GivenExceptionMatches(type.get(), PyExc_Exception) != 0;
  }
};

// One instruction, and what follows from it: true when the frames above `base`
// have returned. Throws what they raise.
bool advance(Capture* c, Frames& frames, size_t base, Ref& result);

// While a graph is captured, frames that C code calls are evaluated here too.
void install_hook();
void remove_hook();

// The graph for Python, and the numbers of its outputs: inputs as (name,
// tensor), calls as (function, arguments, names of the last ones), with
// marker(i) where an argument is node i. Right after the guards held.
Ref describe(Entry& entry, PyObject* marker);
// `entry` knows the numbers among the arguments; a piece has none.
Ref describe(const Call& call, PyObject* marker, const Entry* entry);
// For each node the name of the variable that keeps it, or None.
Ref variables_of(const std::vector<Call>& calls);
std::vector<Ref> run_by_backend(Entry& entry,
                                std::span<const Ref> places,
                                SizeValues& sizes);

}  // namespace taeda::capture
