// Compiled functions: the cache of captured parts, and how they are run.
#include <taeda/csrc/compiler/capture/driver.h>
#include <taeda/csrc/compiler/capture/function_modes.h>
#include <taeda/csrc/compiler/capture/liveness.h>
#include <taeda/csrc/compiler/capture/policy.h>

namespace taeda::capture {

Entry* Compiled::find(Cache& cache, const Frames& state) {
  SmallVector<FrameState, 4> slots;
  for (const auto& f : state) slots.push_back({f->slots});
  Modes modes = current_modes();
  size_t of_functions = function_modes().size();
  for (size_t i = 0; i < cache.size(); ++i) {
    Entry& e = *cache[i];
    // A thread compiles it now: whoever needs it waits for the lock.
    if (e.fresh || e.modes != modes || e.function_modes != of_functions ||
        !e.guards.hold({slots.data(), slots.size()}))
      continue;
    // Guards may run Python code, and so may another thread that moved it.
    auto at = std::find_if(cache.begin(), cache.end(), [&](const auto& each) {
      return each.get() == &e;
    });
    if (at != cache.end()) std::rotate(cache.begin(), at, at + 1);
    return &e;
  }
  return nullptr;
}

namespace {

void build_frames(Entry& entry, Builder& builder, Frames& state) {
  Frames made;
  made.reserve(entry.frames.size());
  for (const FrameShape& shape : entry.frames) {
    auto* function = reinterpret_cast<PyFunctionObject*>(shape.function.get());
    auto f = std::make_unique<Frame>(shape.info,
                                     shape.function,
                                     function->func_globals,
                                     function->func_builtins);
    f->own_slots();
    f->next = shape.next;
    f->current = shape.current;
    f->keyword_names = shape.keyword_names;
    for (size_t i = 0; i < shape.slots.size(); ++i) {
      int recipe = shape.slots[i];
      f->slots[i] = recipe < 0 ? nullptr : builder.make(recipe).release();
    }
    f->depth = shape.depth;
    made.push_back(std::move(f));
  }
  state = std::move(made);
}

}  // namespace

Compiled::End Compiled::run(Entry& entry, Frames& state, Ref& result) {
  SmallVector<Ref, 32> places;
  places.reserve(entry.guards.places());
  for (size_t i = 0; i < entry.guards.places(); ++i) {
    places.push_back(Ref::borrow(entry.guards.value(static_cast<int>(i))));
  }
  entry.guards.release();
  FunctionModesAside aside;
  std::vector<Ref> values;
  SizeValues sizes = entry.sizes();
  try {
    values = entry.run_graph ? run_by_backend(entry, places, sizes)
                             : entry.graph.run(places, sizes);
  } catch (const PythonError&) {
    set_modes(entry.modes);
    return End::Raised;
  }
  Builder builder(entry.rebuild, places, values, sizes);
  // Before what is made: an iterator that is made again looks at its list.
  for (const Effect& e : entry.rebuild.effects) builder.apply(e);
  if (entry.modes_at_end) {
    std::vector<Ref> modes;
    for (int recipe : *entry.modes_at_end)
      modes.push_back(builder.make(recipe));
    aside.replace(std::move(modes));
  }
  if (entry.result >= 0) {
    result = builder.make(entry.result);
    return End::Returned;
  }
  Frames next;
  build_frames(entry, builder, next);
  state = std::move(next);
  return End::Stopped;
}

namespace {

Ref run_as_it_is(Frames& state) {
  Ref result;
  while (!advance(nullptr, state, 0, result)) {
  }
  return result;
}

// Note [Errors of graphs]
// A graph that raises has left no side effect but on tensors: those of objects
// come after it, and the modes are set back. If it wrote to no tensor of
// others, the part is run again as it is, so that the error comes where the
// program raises it, and is handled there. Otherwise it counts as raised at the
// part's beginning: what was entered before that is left once. So does what a
// backend's function raises, of which the program may know nothing, unless it
// says that it is repeatable. What the compiler raises itself, since fullgraph
// lets nothing run as it is, is the caller's.
bool may_run_again(const Entry& entry) {
  return !entry.mutates && (!entry.run_graph || entry.repeatable) &&
         PyErr_ExceptionMatches(PyExc_Exception) &&
         !PyErr_ExceptionMatches(library().compiler_error.get());
}

Ref raise_at_beginning(Frames& state) {
  state.back()->current = state.back()->next;
  while (!handle_exception(*state.back())) {
    state.pop_back();
    if (state.empty()) throw PythonError();
  }
  return run_as_it_is(state);
}

}  // namespace

// As written, after the graph raised. Where that raises too, the error is the
// program's; where it does not, one of one graph is told.
Ref Compiled::run_after_error(const std::function<Ref()>& program) {
  Raised raised;
  Ref result = program();
  if (fullgraph) {
    tell("ran_again",
         function.get(),
         Py_BuildValue("{s:s}", "reason", raised.text().c_str()));
  }
  return result;
}

void Compiled::forget() {
  if (generation_ == policy().generation) return;
  generation_ = policy().generation;
  dropped_.push_back(std::move(caches));
  caches.clear();
  beginning = nullptr;
  reasons.clear();
  graphs = 0;
  told_limit_ = false;
}

// Where nothing that was captured fits.
bool Compiled::may_capture(Cache& cache) {
  const Policy& p = policy();
  const int64_t most =
      recompile_limit < 0 ? p.recompile_limit : recompile_limit;
  if (p.stance == Policy::EagerOnRecompile) return false;
  Modes now = current_modes();
  Ref failures = python::new_list(cache.size(), [&](size_t i) {
    bool same_modes = cache[i]->modes == now &&
                      cache[i]->function_modes == function_modes().size();
    std::string text = same_modes ? cache[i]->guards.failure()
                                  : "modes of gradients, autocast or functions";
    return python::new_text(text).release();
  });
  auto say = [&](const char* event) {
    Ref data = checked(Py_BuildValue("{s:O,s:L,s:O}",
                                     "failures",
                                     failures.get(),
                                     "limit",
                                     static_cast<long long>(most),
                                     "fullgraph",
                                     fullgraph ? Py_True : Py_False));
    tell(event, function.get(), data.release());
  };
  if (p.stance == Policy::FailOnRecompile) say("refused");
  if (static_cast<int64_t>(cache.size()) >= most) {
    if (!told_limit_ || fullgraph) say("limit");
    told_limit_ = true;
    return false;
  }
  if (!cache.empty()) say("recompile");
  return true;
}

// The arguments that a part was captured for do not fit its guards.
void Compiled::note_unfit(Cache& cache, Entry* made) {
  auto* f = reinterpret_cast<PyFunctionObject*>(function.get());
  auto* code = reinterpret_cast<PyCodeObject*>(f->func_code);
  Ref stack = checked(Py_BuildValue(
      "[(OiO)]", code->co_filename, code->co_firstlineno, code->co_qualname));
  std::string reason = "guards fail at once: " + made->guards.failure();
  // The next call is refused by its own reason, not by recompile_limit.
  if (fullgraph) std::erase_if(cache, [&](auto& e) { return e.get() == made; });
  note_break("not_resumable", reason, stack.get(), fullgraph);
}

// Places that a run of the part reads.
static std::vector<bool> places_read(const Entry& entry) {
  std::vector<bool> read(entry.guards.places());
  for (const Call& call : entry.graph.calls()) {
    if (call.input >= 0) read[call.input] = true;
  }
  for (const Recipe& r : entry.rebuild.recipes) {
    if (r.kind == Recipe::Place) read[r.index] = true;
  }
  return read;
}

void Compiled::filter_guards(Entry& entry) const {
  if (!filter) return;
  Ref entries = entry.guards.entries(library().module.get());
  Ref flags = checked(PyObject_CallOneArg(filter.get(), entries.get()));
  std::vector<bool> kept;
  for (PyObject* each : python::items_of(flags.get())) {
    kept.push_back(each == Py_True);
  }
  entry.guards.keep(kept, places_read(entry));
}

// Whether every rank has found what fits, where they ask each other.
static bool all_found(bool found) {
  if (policy().guard_hook == nullptr) return found;
  Ref hook = Ref::borrow(policy().guard_hook);
  Ref all =
      checked(PyObject_CallOneArg(hook.get(), found ? Py_True : Py_False));
  return all.get() == Py_True;
}

// Takes an entry out of the cache; some thread may be running it.
void Compiled::drop(Cache& cache, const Entry* entry) {
  auto at = std::find_if(cache.begin(), cache.end(), [&](const auto& each) {
    return each.get() == entry;
  });
  if (at == cache.end()) return;
  dropped_.emplace_back()[{}].push_back(std::move(*at));
  cache.erase(at);
}

Entry* Compiled::find_with_others(Cache& cache, const Frames& state) {
  bool asks = policy().guard_hook != nullptr && !cache.empty();
  Entry* known = find(cache, state);
  if (!asks) return known;
  if (all_found(known != nullptr)) return find(cache, state);
  // Another rank captures now: so does this one.
  if (known != nullptr) drop(cache, known);
  return nullptr;
}

// Its guards by the program's filter, and its graph by the backend.
bool Compiled::complete(Cache& cache, Entry* made, bool fresh) {
  made->fresh = true;  // nobody finds it meanwhile
  try {
    filter_guards(*made);
    if (fresh) compile_graph(*made);
  } catch (const PythonError&) {
    // The next call tries again.
    std::erase_if(cache, [&](auto& e) { return e.get() == made; });
    throw;
  }
  made->fresh = false;
  // Call by call a pass would take along what is compiled without it.
  bool again = fresh && made->has_pass && !made->run_graph && !fullgraph;
  if (!again) return true;
  takes_passes = false;
  std::erase_if(cache, [&](auto& e) { return e.get() == made; });
  return false;
}

Entry* Compiled::entry_for(Cache& cache, const Frames& state) {
  if (Entry* entry = find_with_others(cache, state)) return entry;
  CompileLock lock;
  if (Entry* entry = find(cache, state)) return entry;
  if (!may_capture(cache)) return nullptr;
  Entry* made = capture(cache, state);
  // Capture ends with guards that hold, so that running it needs the same walk
  // as any later call.
  bool fresh = made->fresh;
  made->fresh = false;
  auto find_made = [&] {
    Entry* found = find(cache, state);
    // Another thread's walk over these guards may have come between.
    if (found == nullptr) found = find(cache, state);
    if (found == nullptr) note_unfit(cache, made);
    return found;
  };
  Entry* entry = find_made();
  if (entry != made || (!fresh && !filter)) return entry;
  if (!complete(cache, made, fresh)) return entry_for(cache, state);
  // The backend may have run anything: the places are read anew.
  return find_made();
}

// A function that no graph holds as a whole.
void Compiled::refuse(const CodeInfo& info) {
  PyCodeObject* code = info.object();
  Ref stack = checked(Py_BuildValue(
      "[(OiO)]", code->co_filename, code->co_firstlineno, code->co_qualname));
  note_break("break",
             info.is_generator
                 ? "a generator or coroutine is no graph: call it "
                   "inside of a function that is compiled"
                 : "an instruction that capture does not know",
             stack.get(),
             /*is_error=*/true);
}

Cache& Compiled::cache_of(const Frames& state, bool begun) {
  if (!begun && beginning != nullptr) return *beginning;
  std::vector<std::pair<CodeInfo*, int>> key;
  key.reserve(state.size());
  for (const auto& frame : state) key.emplace_back(frame->info, frame->next);
  Cache& found = caches[key];
  if (!begun) beginning = &found;
  return found;
}

namespace {

// As COPY_FREE_VARS does, so that guards find them in the call's frame.
void copy_closure(PyFunctionObject* f, Frame& frame) {
  if (f->func_closure == nullptr) return;
  auto count = static_cast<int>(PyTuple_GET_SIZE(f->func_closure));
  int from = frame.info->object()->co_nlocalsplus - count;
  for (int i = 0; i < count; ++i) {
    frame.slots[from + i] = Py_NewRef(PyTuple_GET_ITEM(f->func_closure, i));
  }
}

}  // namespace

bool begin_call(PyObject* function,
                Frame& frame,
                PyObject* const* args,
                size_t count,
                PyObject* names) {
  frame.own_slots();
  if (!bind(nullptr, frame, args, count, names)) return false;
  copy_closure(reinterpret_cast<PyFunctionObject*>(function), frame);
  return true;
}

Ref Compiled::call(PyObject* own,
                   PyObject* const* args,
                   size_t count,
                   PyObject* names) {
  Ref held = Ref::borrow(own);
  auto natively = [&] {
    return checked(PyObject_Vectorcall(own, args, count, names));
  };
  bool eagerly = policy().stance == Policy::ForceEager;
  if (eagerly && active == nullptr) return natively();
  auto* f = reinterpret_cast<PyFunctionObject*>(own);
  CodeInfo* info = code_info(reinterpret_cast<PyCodeObject*>(f->func_code));
  Frames state;
  state.push_back(
      std::make_unique<Frame>(info, held, f->func_globals, f->func_builtins));
  if (active != nullptr) return natively();
  function = held;
  if (info->is_generator || !is_supported(*info)) {
    if (fullgraph) refuse(*info);
    return natively();
  }
  if (!begin_call(own, *state[0], args, count, names)) return natively();
  forget();
  struct Running {
    Compiled& c;
    Ref handled{PyErr_GetHandledException()};
    explicit Running(Compiled& of) : c(of) { ++c.running_; }
    Running(const Running&) = delete;
    Running& operator=(const Running&) = delete;
    ~Running() {
      // A part that begins inside of an `except` block may end outside of it.
      PyErr_SetHandledException(handled.get());
      if (--c.running_ == 0) {
        c.dropped_.clear();
        c.function = Ref();
      }
    }
  } running(*this);
  bool begun = false;
  Ref result;
  while (true) {
    Entry* entry = entry_for(cache_of(state, begun), state);
    if (entry == nullptr || entry->plain) {
      return begun ? run_as_it_is(state) : natively();
    }
    End end = run(*entry, state, result);
    if (end == End::Returned) return result;
    if (end == End::Raised) {
      if (!may_run_again(*entry)) return raise_at_beginning(state);
      return run_after_error(
          [&] { return begun ? run_as_it_is(state) : natively(); });
    }
    begun = true;
    if (advance(nullptr, state, 0, result)) return result;
    if (only_returns(state)) return run_as_it_is(state);
  }
}

}  // namespace taeda::capture
