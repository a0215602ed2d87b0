// Captures of parts: tries, and what is done where one ends too early.
#include <taeda/aten/core/level.h>
#include <taeda/csrc/autograd/saved_variable.h>
#include <taeda/csrc/compiler/capture/driver.h>
#include <taeda/csrc/compiler/capture/function_modes.h>
#include <taeda/csrc/compiler/capture/policy.h>

namespace taeda::capture {
namespace {

// What a capture changes of the thread, and changes back.
class Scope {
 public:
  explicit Scope(Capture* c) : before_(active) {
    active = c;
    c->handled = handled_;
    c->levels_before = levels_;
    while (!autograd::saved_hooks().stack.empty()) {
      autograd::pop_saved_hooks();
    }
    PyObject* set = library().function_setter.get();
    overrides_ = checked(PyObject_CallFunction(set, "OO", Py_True, Py_True));
    checked(PyObject_Call(set, overrides_.get(), nullptr));
    stack_ = exchange_function_modes({library().recorder});
    install_hook();
  }
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;
  ~Scope() {
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    remove_hook();
    try {
      exchange_function_modes(stack_);
    } catch (const PythonError&) {
      PyErr_Clear();
    }
    // A break leaves blocks that switch overrides without their end.
    PyObject* set = library().function_setter.get();
    Ref done(PyObject_Call(set, overrides_.get(), nullptr));
    if (!done) PyErr_Clear();
    active = before_;
    strict = strict_;
    pop_levels(levels_);
    std::string disabled =
        std::exchange(autograd::saved_hooks().disabled, std::string());
    for (auto& hooks : saved_hooks_) autograd::push_saved_hooks(hooks);
    autograd::saved_hooks().disabled = std::move(disabled);
    set_modes(modes_);
    PyErr_SetHandledException(handled_.get());
    PyErr_Restore(type, value, trace);
  }

 private:
  Capture* before_;
  Modes modes_ = current_modes();
  bool strict_ = strict;
  size_t levels_ = levels().size();
  Ref overrides_;
  std::vector<Ref> stack_;  // of modes of functions
  // What stand-ins save is no business of a program's hooks.
  std::vector<std::shared_ptr<autograd::SavedTensorHooks>> saved_hooks_ =
      autograd::saved_hooks().stack;
  Ref handled_{PyErr_GetHandledException()};
};

void copy_frames(Capture& c, const Frames& state) {
  for (const auto& from : state) {
    auto f = std::make_unique<Frame>(
        from->info, from->function, from->globals, from->builtins);
    f->own_slots();
    f->number = static_cast<int>(c.frames.size());
    f->depth = from->depth;
    f->next = from->next;
    f->current = from->current;
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

// Where the program stood: (file, line, function) for each frame.
Ref stack_of(const Capture& c) {
  return python::new_list(c.frames.size(), [&](size_t i) {
    const Frame& f = *c.frames[i];
    PyCodeObject* code = f.info->object();
    return Py_BuildValue(
        "(OiO)", code->co_filename, f.line(), code->co_qualname);
  });
}

// Where an error comes from, like stack_of: its frames are gone by then.
Ref stack_of(const Ref& trace) {
  Ref out = checked(PyList_New(0));
  Ref at = trace;
  while (at && at.get() != Py_None) {
    Ref frame = python::attribute(at.get(), "tb_frame");
    Ref code = python::attribute(frame.get(), "f_code");
    Ref one = checked(
        PyTuple_Pack(3,
                     python::attribute(code.get(), "co_filename").get(),
                     python::attribute(at.get(), "tb_lineno").get(),
                     python::attribute(code.get(), "co_qualname").get()));
    python::check_status(PyList_Append(out.get(), one.get()));
    at = python::attribute(at.get(), "tb_next");
  }
  return out;
}

struct Outcome {
  bool whole = false;
  bool again = false;
  // Where the next try has to end; negative when the function raised.
  int64_t stop_at = -1;
  std::string reason;
  Ref stack;
  bool is_error = false;  // by error_on_graph_break
  Ref error;              // what the function raised
};

Outcome try_capture(Entry& entry,
                    const Frames& state,
                    int64_t stop_at,
                    History& history,
                    const Compiled& compiled) {
  entry.modes = current_modes();
  Capture c(entry);
  c.stop_at = stop_at;
  c.takes_passes = compiled.takes_passes;
  c.dynamic.begin(history, compiled.dynamic.get());
  // As in PyTorch: what must be one graph goes on with numbers from data.
  c.dynamic.settings.scalar_outputs |= compiled.fullgraph;
  c.dynamic.settings.counted_outputs |= compiled.fullgraph;
  copy_frames(c, state);
  std::vector<Ref> modes = function_modes();
  Scope scope(&c);
  try {
    c.enter_function_modes(modes);
    if (stop_at != 0) touch_stacks(c);
    Ref result = evaluate(&c, c.frames, 0);
    if (entry.frames.empty()) finish(c, result);
    Outcome out;
    out.whole = true;
    return out;
  } catch (const PythonError&) {
    // Ctrl-C is no more the program's where C code or a handler raised it.
    if (c.interrupted || PyErr_ExceptionMatches(PyExc_KeyboardInterrupt)) throw;
    if (c.refused && !c.broken) throw;
    Outcome out;
    out.again = c.again;
    Raised raised;
    out.stop_at = c.broken ? std::max<int64_t>(c.count - 1, 0) : -1;
    if (c.broken && c.level_began >= 0) out.stop_at = c.level_began;
    out.reason = c.broken ? c.reason : "raised " + raised.text();
    out.stack = c.broken ? stack_of(c) : stack_of(raised.trace);
    if (!c.broken && raised.is_error()) out.error = raised.value;
    out.is_error = is_strict(c);
    return out;
  }
}

}  // namespace

void Compiled::note_break(const char* event,
                          const std::string& reason,
                          PyObject* stack,
                          bool is_error,
                          PyObject* error) {
  reasons.push_back({reason, Ref::borrow(stack)});
  tell(event,
       function.get(),
       Py_BuildValue("{s:s,s:O,s:O,s:O}",
                     "reason",
                     reason.c_str(),
                     "stack",
                     stack,
                     "is_error",
                     is_error ? Py_True : Py_False,
                     "error",
                     error == nullptr ? Py_None : error));
}

Entry* Compiled::capture(Cache& cache, const Frames& state) {
  auto entry = std::make_unique<Entry>();
  auto attempt = [&](int64_t stop_at) {
    return try_capture(*entry, state, stop_at, cache.history, *this);
  };
  Outcome out = attempt(-1);
  while (out.again) {
    entry = std::make_unique<Entry>();
    out = attempt(-1);
  }
  bool whole = out.whole;
  if (!whole && out.stop_at >= 0) {
    bool is_error = fullgraph || out.is_error;
    note_break("break", out.reason, out.stack.get(), is_error);
    entry = std::make_unique<Entry>();
    Outcome again = attempt(out.stop_at);
    whole = again.whole;
    if (!whole) {
      // What is alive there cannot be made again: the function runs as it is.
      note_break(
          "not_resumable", again.reason, out.stack.get(), /*is_error=*/false);
      entry = std::make_unique<Entry>();
    }
  }
  if (!whole && out.stop_at < 0) {
    bool is_error = fullgraph && out.error;
    note_break(
        "raised", out.reason, out.stack.get(), is_error, out.error.get());
  }
  entry->reason = out.reason;
  entry->plain = !whole;
  // A part without calls is no graph: no backend hears of it.
  if (whole && entry->graph.call_count() > 0) {
    ++graphs;
    entry->fresh = true;
  }
  cache.push_back(std::move(entry));
  return cache.back().get();
}

// Right after the guards held. A backend that returns None leaves the graph to
// be run as it was captured.
void Compiled::compile_graph(Entry& entry) {
  entry.fresh = false;
  Ref spelled = Ref::borrow(Py_None);
  Ref guards = Ref::borrow(Py_None);
  if (policy().spell_graphs != 0) {
    spelled = describe(entry, marker.get());
    std::vector<std::string> texts = entry.guards.texts();
    guards = python::new_list(texts.size(), [&](size_t i) {
      return python::new_text(texts[i]).release();
    });
  }
  tell("captured",
       function.get(),
       Py_BuildValue("{s:n,s:O,s:O}",
                     "calls",
                     static_cast<Py_ssize_t>(entry.graph.call_count()),
                     "graph",
                     spelled.get(),
                     "guards",
                     guards.get()));
  if (!backend) return;
  Ref graph = describe(entry, marker.get());
  FunctionModesAside aside;
  Ref made = checked(PyObject_CallOneArg(backend.get(), graph.get()));
  if (made.get() == Py_None) return;
  entry.run_graph = made;
  entry.repeatable = PyObject_HasAttrString(made.get(), "repeatable") != 0;
}

}  // namespace taeda::capture
