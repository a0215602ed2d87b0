// Compiled functions: the cache of captured parts, and how they are run.
#include <taeda/csrc/compiler/capture/driver.h>

namespace taeda::capture {
namespace {

constexpr size_t kLimit = 8;

// What a capture changes of the thread, and changes back.
class Scope {
 public:
  explicit Scope(Capture* c) : before_(active) {
    active = c;
    c->handled = handled_;
    checked(PyObject_CallOneArg(library().push_mode.get(),
                                library().recorder.get()));
    install_hook();
  }
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;
  ~Scope() {
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    remove_hook();
    Ref done(PyObject_CallNoArgs(library().pop_mode.get()));
    if (!done) PyErr_Clear();
    active = before_;
    set_modes(modes_);
    PyErr_SetHandledException(handled_.get());
    PyErr_Restore(type, value, trace);
  }

 private:
  Capture* before_;
  Modes modes_ = current_modes();
  Ref handled_{PyErr_GetHandledException()};
};

void copy_frames(Capture& c, const Frames& state) {
  for (const auto& from : state) {
    auto f = std::make_unique<Frame>(
        from->info, from->function, from->globals, from->builtins);
    f->own_slots();
    f->number = static_cast<int>(c.frames.size());
    f->depth = from->depth;
    f->next = f->current = from->next;
    f->keyword_names = from->keyword_names;
    int count = from->info->object()->co_nlocalsplus + from->depth;
    f->untouched.assign(count, true);
    for (int i = 0; i < count; ++i) f->slots[i] = Py_XNewRef(from->slots[i]);
    c.frames.push_back(std::move(f));
  }
}

void touch_stacks(Capture& c) {
  Ref unused;
  for (auto& f : c.frames) {
    int locals = f->info->object()->co_nlocalsplus;
    Machine m{&c, c.frames, *f, unused};
    for (int i = 0; i < f->depth; ++i) m.slot(locals + i);
  }
}

std::string where(const Capture& c) {
  if (c.frames.empty()) return "";
  const Frame& f = *c.frames.back();
  const char* file = PyUnicode_AsUTF8(f.info->object()->co_filename);
  const char* name = PyUnicode_AsUTF8(f.info->object()->co_qualname);
  return std::string("\n  in ") + name + ", " + file + ":" +
         std::to_string(f.line());
}

// The pending exception in words.
std::string take_error() {
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  PyErr_NormalizeException(&type, &value, &trace);
  Ref kept[] = {Ref(type), Ref(value), Ref(trace)};
  Ref text(value == nullptr ? nullptr : PyObject_Repr(value));
  const char* s = text ? PyUnicode_AsUTF8(text.get()) : nullptr;
  PyErr_Clear();
  return s == nullptr ? "an exception" : s;
}

// One try. True when the entry is whole; else `stop_at` is where the next one
// has to end, or negative when the function raised.
bool try_capture(Entry& entry,
                 const Frames& state,
                 int64_t& stop_at,
                 std::string& reason) {
  entry.modes = current_modes();
  Capture c(entry);
  c.stop_at = stop_at;
  copy_frames(c, state);
  Scope scope(&c);
  try {
    if (stop_at != 0) touch_stacks(c);
    Ref result = evaluate(&c, c.frames, 0);
    if (entry.frames.empty()) finish(c, result);
    return true;
  } catch (const PythonError&) {
    std::string raised = take_error();
    stop_at = c.broken ? std::max<int64_t>(c.count - 1, 0) : -1;
    reason = c.broken ? c.reason + where(c) : "raised " + raised + where(c);
    return false;
  }
}

}  // namespace

Entry* Compiled::capture(Cache& cache, const Frames& state) {
  auto entry = std::make_unique<Entry>();
  int64_t stop_at = -1;
  std::string reason;
  bool whole = try_capture(*entry, state, stop_at, reason);
  if (!whole && stop_at >= 0) {
    if (fullgraph) {
      PyErr_SetString(unsupported.get(), reason.c_str());
      throw PythonError();
    }
    reasons.push_back(reason);
    entry = std::make_unique<Entry>();
    std::string again;
    int64_t at = stop_at;
    whole = try_capture(*entry, state, at, again);
    if (!whole) {
      // What is alive there cannot be made again: the function runs as it is.
      reasons.push_back("not resumable: " + again);
      entry = std::make_unique<Entry>();
    }
  }
  entry->reason = reason;
  entry->plain = !whole;
  // A part without calls is no graph: no backend hears of it.
  if (whole && entry->graph.call_count() > 0) {
    ++graphs;
    entry->fresh = backend.get() != nullptr;
  }
  cache.push_back(std::move(entry));
  return cache.back().get();
}

Entry* Compiled::find(Cache& cache, const Frames& state) {
  std::vector<FrameState> slots;
  for (const auto& f : state) slots.push_back({f->slots});
  Modes modes = current_modes();
  for (size_t i = 0; i < cache.size(); ++i) {
    Entry& e = *cache[i];
    if (e.modes != modes || !e.guards.hold(slots)) continue;
    std::rotate(cache.begin(), cache.begin() + i, cache.begin() + i + 1);
    return cache.front().get();
  }
  return nullptr;
}

namespace {

void build_frames(Entry& entry, Builder& builder, Frames& state) {
  Frames made;
  for (const FrameShape& shape : entry.frames) {
    auto* function = reinterpret_cast<PyFunctionObject*>(shape.function.get());
    auto f = std::make_unique<Frame>(shape.info,
                                     shape.function,
                                     function->func_globals,
                                     function->func_builtins);
    f->own_slots();
    f->next = shape.next;
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
  std::vector<Ref> places;
  places.reserve(entry.guards.places());
  for (size_t i = 0; i < entry.guards.places(); ++i) {
    places.push_back(Ref::borrow(entry.guards.value(static_cast<int>(i))));
  }
  std::vector<Ref> values;
  try {
    values = entry.run_graph ? run_by_backend(entry, places)
                             : entry.graph.run(places);
  } catch (const PythonError&) {
    set_modes(entry.modes);
    return End::Raised;
  }
  Builder builder(entry.rebuild, places, values);
  // Before what is made: an iterator that is made again looks at its list.
  for (const Effect& e : entry.rebuild.effects) builder.apply(e);
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
// part's beginning: what was entered before that is left once.
bool may_run_again(const Entry& entry) {
  return !entry.mutates && PyErr_ExceptionMatches(PyExc_Exception);
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

Ref Compiled::call(PyObject* const* args, size_t count, PyObject* names) {
  auto* f = reinterpret_cast<PyFunctionObject*>(function.get());
  CodeInfo* info = code_info(reinterpret_cast<PyCodeObject*>(f->func_code));
  Frames state;
  state.push_back(std::make_unique<Frame>(
      info, function, f->func_globals, f->func_builtins));
  state[0]->own_slots();
  auto natively = [&] {
    return checked(PyObject_Vectorcall(function.get(), args, count, names));
  };
  if (active != nullptr || info->is_generator || !is_supported(*info) ||
      !bind(nullptr, *state[0], args, count, names)) {
    return natively();
  }
  bool begun = false;
  Ref result;
  while (true) {
    std::vector<std::pair<CodeInfo*, int>> key;
    for (const auto& frame : state) key.emplace_back(frame->info, frame->next);
    Cache& cache = caches[key];
    Entry* entry = find(cache, state);
    if (entry == nullptr && cache.size() < kLimit) {
      // Capture ends with guards that hold, so that running it needs the same
      // walk as any later call.
      Guards& guards = capture(cache, state)->guards;
      entry = find(cache, state);
      if (entry == nullptr) {
        reasons.push_back("guards fail at once: " + guards.failure());
      }
    }
    if (entry == nullptr || entry->plain) {
      return begun ? run_as_it_is(state) : natively();
    }
    if (entry->fresh) {
      entry->fresh = false;
      Ref graph = describe(*entry, marker.get());
      entry->run_graph =
          checked(PyObject_CallOneArg(backend.get(), graph.get()));
      // The backend may have run anything: the places are read anew.
      if (find(cache, state) != entry) continue;
    }
    End end = run(*entry, state, result);
    if (end == End::Returned) return result;
    if (end == End::Raised) {
      if (!may_run_again(*entry)) return raise_at_beginning(state);
      PyErr_Clear();
      return begun ? run_as_it_is(state) : natively();
    }
    begun = true;
    if (advance(nullptr, state, 0, result)) return result;
  }
}

}  // namespace taeda::capture
