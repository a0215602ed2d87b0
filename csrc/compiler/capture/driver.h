// A compiled function and what it calls to be one.
#pragma once

#include <taeda/csrc/compiler/capture/evaluate.h>

namespace taeda::capture {

using Cache = std::vector<std::unique_ptr<Entry>>;

// The GIL guards all of it.
struct Compiled {
  Ref function, backend, marker, unsupported;
  bool fullgraph = false;
  int64_t graphs = 0;
  std::vector<std::string> reasons;
  // By where the frames stand: the beginning, and each break.
  std::map<std::vector<std::pair<CodeInfo*, int>>, Cache> caches;

  Ref call(PyObject* const* args, size_t count, PyObject* names);
  Entry* capture(Cache& cache, const Frames& state);
  Entry* find(Cache& cache, const Frames& state);
  enum class End { Returned, Stopped, Raised };
  // Changes `state` only where the part stopped.
  End run(Entry& entry, Frames& state, Ref& result);
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
Ref describe(const Entry& entry, PyObject* marker);
std::vector<Ref> run_by_backend(Entry& entry, const std::vector<Ref>& places);

}  // namespace taeda::capture
