#include <taeda/csrc/boxed/known_calls.h>
#include <taeda/csrc/boxed/module.h>
#include <taeda/csrc/boxed/python_call.h>

#include <taeda/aten/iter/symbolic.h>

#include <memory>

namespace taeda::python {

// Note [Python dispatch]
// The key Python lies below autograd. It is in the keys of tensors whose class
// has __torch_dispatch__, and in the thread's included keys while the thread
// has modes. Its kernel answers for every operator: composites are run, so that
// Python sees what they are made of; any other call goes to the innermost mode,
// with that mode set aside, and where there is none or it declines, to the
// classes of the arguments, subclasses before their bases. Inside, the keys
// above Python are excluded: a handler computes, it does not record.
namespace {
constexpr DispatchKeySet kPython{DispatchKey::Python};

// The modes of this thread, innermost last; owned references.
thread_local std::vector<PyObject*> modes;

void refresh_included() {
  uint64_t bits = kPython.bits();
  local_state.included &= ~bits;
  if (!modes.empty()) local_state.included |= bits;
}
void push_mode(PyObject* owned_mode) {
  modes.push_back(owned_mode);
  refresh_included();
}
PyObject* take_mode() {
  TAEDA_CHECK(!modes.empty(), "trying to pop from empty mode stack");
  PyObject* mode = modes.back();
  modes.pop_back();
  refresh_included();
  return mode;
}

class ModeAside {
 public:
  ModeAside() : mode_(take_mode()) {}
  ModeAside(const ModeAside&) = delete;
  ModeAside& operator=(const ModeAside&) = delete;
  ~ModeAside() { push_mode(mode_); }
  PyObject* mode() const { return mode_; }

 private:
  PyObject* mode_;
};

// The tensors of a call whose classes answer, one of each class.
std::vector<Ref> answering(const OperatorEntry& op, Stack& stack) {
  std::vector<Ref> out;
  each_tensor(arguments_on(op, stack), [&](TensorBase& t) {
    if (!t.keys().has(DispatchKey::Python)) return;
    Ref object(wrap(t));
    auto* type = reinterpret_cast<PyObject*>(Py_TYPE(object.get()));
    size_t at = out.size();
    for (size_t i = 0; i < out.size(); ++i) {
      auto* other = reinterpret_cast<PyObject*>(Py_TYPE(out[i].get()));
      if (type == other) return;
      if (at == out.size() && PyObject_IsSubclass(type, other) == 1) at = i;
    }
    out.insert(out.begin() + static_cast<std::ptrdiff_t>(at),
               std::move(object));
  });
  return out;
}

[[noreturn]] void raise_refused(const OperatorEntry& op,
                                PyObject* mode,
                                const std::vector<Ref>& tensors) {
  std::string who;
  if (mode != nullptr) who += str_cat("\n  - mode object ", repr_of(mode));
  for (const Ref& t : tensors) {
    auto* type = reinterpret_cast<PyObject*>(Py_TYPE(t.get()));
    who += str_cat("\n  - tensor subclass ", repr_of(type));
  }
  raise(PyExc_TypeError,
        "Multiple dispatch failed for '{}'; all __torch_dispatch__ handlers "
        "returned NotImplemented:\n{}",
        op.qualified_name(),
        who);
}

Ref ask(PyObject* owner, const PythonCall& call, PyObject* types) {
  Ref method = attribute<"__torch_dispatch__">(owner);
  return checked(PyObject_CallFunctionObjArgs(method.get(),
                                              call.function.get(),
                                              types,
                                              call.args.get(),
                                              call.kwargs.get(),
                                              nullptr));
}

// What Python makes of the call.
Ref answer(const OperatorEntry& op,
           Stack& stack,
           const std::vector<Ref>& tensors) {
  PythonCall call(op, arguments_on(op, stack));
  Ref types = new_tuple(tensors.size(), [&](size_t i) {
    return Py_NewRef(reinterpret_cast<PyObject*>(Py_TYPE(tensors[i].get())));
  });
  Ref refusing;
  if (!modes.empty()) {
    ModeAside aside;
    Ref out = ask(aside.mode(), call, types.get());
    if (out.get() != Py_NotImplemented) return out;
    refusing = Ref::borrow(aside.mode());
  }
  for (const Ref& t : tensors) {
    Ref out = ask(t.get(), call, types.get());
    if (out.get() != Py_NotImplemented) return out;
  }
  raise_refused(op, refusing.get(), tensors);
}

[[noreturn]] void raise_wrong(const OperatorEntry& op,
                              PyObject* value,
                              std::string_view expected) {
  raise(PyExc_RuntimeError,
        "{}: Unable to cast {} to {}: __torch_dispatch__ returned an object of "
        "type {}",
        op.qualified_name(),
        repr_of(value),
        expected,
        type_name_of(value));
}

bool fits(PyObject* o, const Kind& kind) {
  if (o == Py_None || kind[0] != 'T') return true;
  if (kind.back() != '[') return is_tensor(o);
  if (!is_sequence(o)) return false;
  for (PyObject* item : items_of(o)) {
    if (!is_tensor(item) && !(item == Py_None && kind[1] == '?')) return false;
  }
  return true;
}

IValue result_value(const OperatorEntry& op, PyObject* o, const Kind& kind) {
  if (!fits(o, kind)) {
    raise_wrong(op, o, kind.back() == '[' ? "List[Tensor]" : "Tensor");
  }
  IValue v = to_ivalue(o, kind);
  // An empty list is a value, None stands for an undefined tensor.
  if (v.is_none() && kind == "T") return TensorBase();
  if (v.is_none()) raise_wrong(op, o, kind);
  return v;
}

}  // namespace

void join_view(const OperatorEntry& op, size_t index, IValue& v, IValue* args) {
  int viewed = viewed_argument(*op.info, index);
  if (viewed < 0 || !args[viewed].is<TensorBase>()) return;
  const TensorBase& of = args[viewed].get<TensorBase>();
  bool is_copy = std::string_view(op.name) == "detach" ||
                 std::string_view(op.name) == "lift_fresh";
  each_tensor(v, [&](TensorBase& t) {
    if (t.is_same(of) || t.is_view() || t.requires_grad()) return;
    t.impl()->set_version_counter(of.impl()->share_version());
    if (is_copy) return;
    const auto& root = of.impl()->base();
    t.impl()->set_base(
        root ? root : of.impl_ptr(),
        grad_enabled() ? ViewCreation::Default : ViewCreation::NoGrad);
  });
}

void push_results(const OperatorEntry& op,
                  PyObject* out,
                  std::vector<IValue> given,
                  Stack& stack) {
  ArrayRef<ArgInfo> results = results_of(*op.info);
  Ref packed = results.size() == 1
                   ? checked(PyTuple_Pack(1, out))
                   : Ref(is_sequence(out) ? Py_NewRef(out) : nullptr);
  if (results.size() > op.written_count && !packed) {
    raise_wrong(op, out, "tuple");
  }
  if (results.size() > op.written_count) {
    TAEDA_CHECK(items_of(packed.get()).size() == results.size(),
                op.qualified_name(),
                ": __torch_dispatch__ returned ",
                items_of(packed.get()).size(),
                " values, the operator has ",
                results.size(),
                " results");
  }
  for (size_t i = 0; i < results.size(); ++i) {
    if (i < op.written_count) {
      stack.push_back(given[op.written_first + i]);
      continue;
    }
    PyObject* item = items_of(packed.get())[i];
    stack.push_back(result_value(op, item, kind_of(results[i])));
    join_view(op, i, stack.back(), given.data());
  }
}

namespace {
// Writes to wrappers are counted here: no kernel saw them.
class WrittenVersions {
 public:
  WrittenVersions(const OperatorEntry& op, std::vector<IValue>& given) {
    for (size_t i = 0; i < given.size(); ++i) {
      if (!op.info->values[i].has(ArgInfo::kWritten)) continue;
      each_tensor(given[i], [&](TensorBase& t) {
        if (!t.keys().has(DispatchKey::Python)) return;
        before_.emplace_back(t, t.version());
      });
    }
  }
  void bump() const {
    for (const auto& [t, version] : before_) {
      if (t.version() == version) t.impl()->bump_version();
    }
  }

 private:
  std::vector<std::pair<TensorBase, uint32_t>> before_;
};

void hand_over(const OperatorEntry& op, Stack& stack) {
  KnownCall known(op, stack, /*may_be_known=*/modes.empty());
  if (known.run(stack)) return;
  std::vector<Ref> tensors = answering(op, stack);
  if (modes.empty() && tensors.empty()) {
    // The thread took over another's state, whose modes it does not have.
    ExcludeKeysGuard past(kPython);
    call_operator(op, stack);
    return;
  }
  ExcludeKeysGuard below(kAbovePython);
  std::span<IValue> args = arguments_on(op, stack);
  std::vector<IValue> given(args.begin(), args.end());
  WrittenVersions written(op, given);
  Ref out = answer(op, stack, tensors);
  written.bump();
  stack.resize(stack.size() - given.size());
  push_results(op, out.get(), std::move(given), stack);
}

struct TorchDispatchKernel final : BoxedKernel {
  void call(const OperatorEntry& op, DispatchKeySet, Stack& stack) override {
    if (is_transparent(op)) {
      run_composite(op, stack);
      return;
    }
    if (run_parts(op, stack)) return;
    GilAcquire gil;
    try {
      hand_over(op, stack);
    } catch (const PythonError&) {
      // Takes the error along: the GIL may be another thread's when it is seen.
      throw py::error_already_set();
    }
  }
};

// Guards as objects: in force from their creation to __exit__ or their end.
template <class Guard, auto... Arguments>
void bind_guard(py::module_ m, const char* name, const char* doc) {
  struct Held {
    std::unique_ptr<Guard> guard = std::make_unique<Guard>(Arguments...);
  };
  auto* type = reinterpret_cast<PyObject*>(&PyType_Type);
  py::class_<Held>(m, name, doc, py::module_local(), py::metaclass(type))
      .def(py::init<>())
      .def("__enter__", [](py::object self) { return self; })
      .def("__exit__", [](Held& h, const py::args&) { h.guard.reset(); });
}

// Inside a handler, calls are recorded and cast again as they are outside.
struct Reentrance {
  Reentrance() {
    local_state.excluded &= ~kAbovePython.bits();
    local_state.refresh();
  }
  LocalStateGuard restore;
};
struct PythonOff : ExcludeKeysGuard {
  PythonOff() : ExcludeKeysGuard(kPython) {}
};

py::object mode_at(size_t i) {
  TAEDA_CHECK_AS(Index, i < modes.size(), "no mode at that place of the stack");
  return py::reinterpret_borrow<py::object>(modes[i]);
}

// Keys of backends that this build does not have are left out.
DispatchKeySet keys_on(DeviceType type) {
  switch (type) {
    case DeviceType::CPU:
    case DeviceType::CUDA:
    case DeviceType::Meta:
    case DeviceType::PrivateUse1:
      return backend_key(type);
    default:
      return {};
  }
}

// A storage whose bytes were taken away: it has the device, and an access to
// its memory is an error.
Storage no_memory(Device device) {
  auto storage = make_intrusive<StorageImpl>(1, cpu_allocator(), device);
  storage->resize(0);
  return storage;
}

// The same for what is not strided: it shares the parts of `like`, which lie on
// meta where it pretends to lie elsewhere.
py::object make_sparse_wrapper(py::handle cls,
                               const TensorBase& like,
                               Device device) {
  auto* type = reinterpret_cast<PyTypeObject*>(cls.ptr());
  IntrusivePtr<TensorImpl> impl = like.impl()->shallow_copy(false);
  impl->set_storage(no_memory(device));
  impl->add_key(DispatchKey::Python);
  return owned(wrap_as(TensorBase(std::move(impl)), type));
}

// A tensor without memory of a class that computes what is asked of it.
py::object make_wrapper_subclass(py::handle cls,
                                 py::handle size,
                                 py::handle strides,
                                 py::handle offset,
                                 ScalarType dtype,
                                 Device device) {
  auto* type = reinterpret_cast<PyTypeObject*>(cls.ptr());
  Dims<SymInt> sizes = to_symbols(size.ptr(), "_make_wrapper_subclass");
  if (all_plain(sizes)) {
    checked_numel("_make_wrapper_subclass", as_plain(sizes));
  }
  Dims<SymInt> steps =
      strides.is_none() ? strides::contiguous<SymInt>(sizes)
                        : to_symbols(strides.ptr(), "_make_wrapper_subclass");
  TAEDA_CHECK(steps.size() == sizes.size(),
              "_make_wrapper_subclass: size ",
              ArrayRef<SymInt>(sizes),
              " and strides ",
              ArrayRef<SymInt>(steps),
              " differ in length");
  auto impl = make_intrusive<TensorImpl>(
      no_memory(device), dtype, kPython | keys_on(device.type));
  TensorBase made(std::move(impl));
  ViewGeometry<SymInt> geometry(made);
  geometry.sizes = sizes;
  geometry.strides = steps;
  geometry.offset = to_symbol(offset.ptr());
  set_symbolic_geometry(made, geometry);
  return owned(wrap_as(std::move(made), type));
}

}  // namespace

void bind_torch_dispatch(py::module_ m) {
  static TorchDispatchKernel kernel;
  Dispatcher::get().set_fallback(DispatchKey::Python, &kernel);
  m.def("_push_on_torch_dispatch_stack",
        [](py::handle mode) { push_mode(Py_NewRef(mode.ptr())); });
  m.def("_pop_torch_dispatch_stack", [] { return owned(Ref(take_mode())); });
  m.def("_get_dispatch_stack_at", mode_at);
  m.def("_len_torch_dispatch_stack", [] { return modes.size(); });
  m.def("_make_wrapper_subclass", make_wrapper_subclass);
  m.def("_make_sparse_wrapper", make_sparse_wrapper);
  m.def("_share_storage", [](const TensorBase& to, const TensorBase& from) {
    to.impl()->set_storage(from.impl()->storage());
  });
  m.def("_set_geometry",
        [](const TensorBase& t,
           py::handle sizes,
           py::handle strides,
           py::handle offset) {
          ViewGeometry<SymInt> g(t);
          g.sizes = to_symbols(sizes.ptr(), "sizes");
          g.strides = to_symbols(strides.ptr(), "strides");
          g.offset = to_symbol(offset.ptr());
          set_symbolic_geometry(t, g);
        });
  bind_guard<PythonOff>(m,
                        "_DisableTorchDispatch",
                        "Inside, modes and classes of Python are passed by.");
  bind_guard<BelowAutograd>(
      m, "_AutoDispatchBelowAutograd", "Inside, nothing is recorded.");
  bind_guard<Reentrance>(
      m, "_ReenterDispatch", "Inside, a handler's calls are recorded again.");
}

}  // namespace taeda::python
