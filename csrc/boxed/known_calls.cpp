#include <taeda/csrc/boxed/known_calls.h>

#include <taeda/aten/core/level.h>
#include <taeda/csrc/boxed/python_call.h>
#include <taeda/csrc/python/arg_parser.h>

#include <memory>
#include <string_view>
#include <unordered_map>

namespace taeda::python {

namespace {

// The class of wrappers; set once, when the package that has it is imported.
PyTypeObject* wrapper_class = nullptr;
thread_local KnownCall* in_flight = nullptr;

// Borrowed; null where there is none. Looking up text cannot fail.
template <FixedName Name>
PyObject* entry_of(PyObject* dict) {
  return PyDict_GetItemWithError(dict, interned<Name>());
}

// The number that equal descriptions share; made when it is first asked for.
int64_t token_of(PyObject* description) {
  Ref token = attribute<"_token">(description);
  if (token.get() == Py_None) token = attribute<"token">(description);
  return PyLong_AsLongLong(token.get());
}

TensorBase wrapper_of(const KnownCall::Output& output, TensorBase inside) {
  const TensorImpl& like = *output.like.impl();
  TensorBase made(make_intrusive<TensorImpl>(
      make_intrusive<StorageImpl>(0, cpu_allocator(), like.device()),
      like.dtype(),
      like.keys()));
  made.impl()->set_sizes_and_strides(like.sizes(), like.strides());
  Ref object(wrap_as(made, wrapper_class));
  Ref dict = checked(PyDict_New()), value(wrap(std::move(inside)));
  check_status(
      PyDict_SetItem(dict.get(), interned<"_local_tensor">(), value.get()));
  check_status(PyDict_SetItem(
      dict.get(), interned<"_spec">(), output.description.get()));
  as_tensor(object.get())->dict = dict.release();
  return made;
}

// Wraps the tensors of a result; false where there are not as many.
bool wrap_result(IValue& v,
                 const KnownCall::Output*& next,
                 const KnownCall::Output* end) {
  const auto wrapped = [&](TensorBase& t) {
    if (next == end) return false;
    const KnownCall::Output& output = *next++;
    if (t.defined() && output.like.defined()) {
      t = wrapper_of(output, std::move(t));
    }
    return true;
  };
  if (v.is<TensorBase>()) return wrapped(v.get<TensorBase>());
  if (!v.is<std::vector<TensorBase>>()) return next++ != end;
  return std::ranges::all_of(v.get<std::vector<TensorBase>>(), wrapped);
}

}  // namespace

// By hash; a call with the hash of another takes its place.
struct KnownCall::Table {
  static constexpr size_t kMost = 20'000;
  struct Entry {
    SmallVector<int64_t, 24> words;
    std::shared_ptr<const Plan> plan;
  };
  std::unordered_map<uint64_t, Entry> entries;

  static Table& get() {
    static auto& instance = *new Table;
    return instance;
  }
  static uint64_t hash(ArrayRef<int64_t> words) {
    uint64_t h = words.size();
    for (int64_t w : words) {
      h = (h ^ static_cast<uint64_t>(w)) * 0x9E3779B97F4A7C15ULL;
      h ^= h >> 32;
    }
    return h;
  }
  std::shared_ptr<const Plan> find(const SmallVector<int64_t, 24>& words) {
    auto found = entries.find(hash(words));
    if (found == entries.end() || !(found->second.words == words)) return {};
    return found->second.plan;
  }
  void enter(const SmallVector<int64_t, 24>& words, Plan plan) {
    if (entries.size() >= kMost) std::exchange(entries, {});
    entries.insert_or_assign(
        hash(words),
        Entry{words, std::make_shared<const Plan>(std::move(plan))});
  }
};

KnownCall::KnownCall(const OperatorEntry& op, Stack& stack, bool may_be_known)
    : op_(op), outer_(in_flight), usable_(may_be_known) {
  put(reinterpret_cast<intptr_t>(&op));
  usable_ = usable_ && wrapper_class != nullptr &&
            std::ranges::all_of(arguments_on(op, stack),
                                [&](const IValue& v) { return add(v); });
  in_flight = usable_ ? this : nullptr;
}

KnownCall::~KnownCall() { in_flight = outer_; }

bool KnownCall::add(const IValue& v) {
  put(v.value().index());
  return std::visit([&](const auto& x) { return add_part(x); }, v.value());
}

template <class T>
bool KnownCall::add_part(const T& x) {
  if constexpr (std::is_same_v<T, TensorBase>) {
    if (!x.defined()) return put(-1), true;
    return x.keys().has(DispatchKey::Python) ? add_wrapper(x) : add_number(x);
  } else if constexpr (std::is_same_v<T, OptionalTensor>) {
    return add_part(x ? *x : TensorBase());
  } else if constexpr (std::is_same_v<T, bool> || std::is_same_v<T, int64_t>) {
    put(x);
  } else if constexpr (std::is_same_v<T, Scalar>) {
    return add(IValue(x));
  } else if constexpr (std::is_same_v<T, Device>) {
    put(x.type, x.index);
  } else if constexpr (std::is_same_v<T, std::string>) {
    put(x.size());
    for (char c : x) put(c);
  } else if constexpr (std::is_same_v<T, std::vector<bool>>) {
    put(x.size());
    for (bool b : x) put(b);
  } else if constexpr (requires { x.size(), x.data(); }) {
    put(x.size());
    return std::ranges::all_of(x, [&](const auto& e) { return add_part(e); });
  } else {
    // Real numbers decide nothing.
    return std::is_same_v<T, std::monostate> || std::is_same_v<T, double> ||
           std::is_same_v<T, complex<double>>;
  }
  return true;
}

// Numbers that stand for tensors.
bool KnownCall::add_number(const TensorBase& t) {
  if (!t.impl()->is_wrapped_number || !t.is_cpu() ||
      t.keys() != DispatchKeySet(DispatchKey::CPU)) {
    return false;
  }
  put(-2, t.dtype());
  return add(IValue(Scalar::load(t.dtype(), t.const_raw_data())));
}

bool KnownCall::add_wrapper(const TensorBase& t) {
  auto* object = static_cast<PyObject*>(t.impl()->python_object());
  if (object == nullptr || Py_TYPE(object) != wrapper_class) return false;
  PyObject* dict = as_tensor(object)->dict;
  if (dict == nullptr) return false;
  PyObject* description = entry_of<"_spec">(dict);
  PyObject* inside = entry_of<"_local_tensor">(dict);
  if (description == nullptr || inside == nullptr || !is_tensor(inside) ||
      (PyDict_GET_SIZE(dict) > 2 && entry_of<"_origin">(dict) != nullptr)) {
    return false;
  }
  put(-3, token_of(description));
  inside_.push_back(unwrap(inside));
  return true;
}

bool KnownCall::run(Stack& stack) {
  if (!usable_) return false;
  std::shared_ptr<const Plan> plan = Table::get().find(words_);
  if (plan == nullptr) return false;
  ExcludeKeysGuard below(kAbovePython);
  std::span<IValue> args = arguments_on(op_, stack);
  Stack made = on_the_inside(*plan, args);
  if (!run_inside(*plan, made) || !wrap_results(*plan, args, made))
    return false;
  stack.resize(stack.size() - args.size());
  std::ranges::move(made, std::back_inserter(stack));
  return true;
}

Stack KnownCall::on_the_inside(const Plan& plan, std::span<IValue> args) {
  for (const auto& [at, move] : plan.moves) {
    Ref given(wrap(inside_[at]));
    Ref moved = checked(PyObject_CallOneArg(move.get(), given.get()));
    inside_[at] = unwrap_checked(moved.get(), "_remember_call");
  }
  Stack inside(args.begin(), args.end());
  const TensorBase* next = inside_.begin();
  each_tensor(inside, [&](TensorBase& t) {
    if (t.keys().has(DispatchKey::Python)) t = *next++;
  });
  for (const auto& [at, value] : plan.replaced) inside[at] = value;
  return inside;
}

bool KnownCall::run_inside(const Plan& plan, Stack& stack) {
  int64_t work = 0;
  for (const TensorBase& t : inside_) work += t.numel();
  try {
    GilRelease release(work > kReleaseGilAbove);
    taeda::call_operator(op_, stack);
  } catch (const Error&) {
    if (!plan.moves.empty()) throw;
    return false;
  }
  return true;
}

bool KnownCall::wrap_results(const Plan& plan,
                             std::span<IValue> args,
                             Stack& made) {
  if (plan.writes) {
    for (size_t i = 0; i < args.size(); ++i) {
      if (!op_.info->values[i].has(ArgInfo::kWritten)) continue;
      each_tensor(args[i], [](TensorBase& t) { t.impl()->bump_version(); });
    }
    // Its results are what it writes, or it has none.
    auto first = args.begin() + op_.written_first;
    made.assign(first, first + op_.info->results);
    return true;
  }
  const Output* output = plan.outputs.data();
  const Output* end = output + plan.outputs.size();
  for (size_t i = 0; i < made.size(); ++i) {
    if (!wrap_result(made[i], output, end)) return false;
    join_view(op_, i, made[i], args.data());
  }
  return true;
}

void KnownCall::remember(const py::dict& moves,
                         const py::dict& replaced,
                         const py::list& outputs) {
  const OpInfo& info = *op_.info;
  Plan plan;
  for (auto [place, move] : moves) {
    auto at = place.cast<size_t>();
    TAEDA_CHECK_AS(Index, at < inside_.size(), "_remember_call: tensor ", at);
    plan.moves.emplace_back(at, Ref::borrow(move.ptr()));
  }
  for (auto [place, value] : replaced) {
    auto at = place.cast<size_t>();
    TAEDA_CHECK_AS(Index, at < info.arguments, "_remember_call: argument ", at);
    plan.replaced.emplace_back(
        at, to_ivalue(value.ptr(), kind_of(info.values[at])));
  }
  for (py::handle item : outputs) {
    Output& made = plan.outputs.emplace_back();
    if (item.is_none()) continue;
    auto pair = py::reinterpret_borrow<py::tuple>(item);
    made.like = unwrap_checked(pair[0].ptr(), "_remember_call");
    made.description = Ref::borrow(pair[1].ptr());
  }
  plan.writes = std::ranges::any_of(arguments_of(info), [](const ArgInfo& a) {
    return a.has(ArgInfo::kWritten);
  });
  Table::get().enter(words_, std::move(plan));
}

void bind_known_calls(py::module_ m) {
  m.def("_know_calls_of", [](py::handle type) {
    wrapper_class = reinterpret_cast<PyTypeObject*>(type.inc_ref().ptr());
  });
  // How many there were.
  m.def("_forget_calls", [] {
    return std::exchange(KnownCall::Table::get().entries, {}).size();
  });
  // moves: place among the wrappers -> a function of the tensor inside;
  // replaced: place -> value; outputs: a wrapper and its description, or None.
  m.def("_remember_call",
        [](const py::capsule& handle,
           const py::dict& moves,
           const py::dict& replaced,
           const py::list& outputs) {
          auto* op = handle.get_pointer<OperatorEntry>();
          KnownCall* call = in_flight;
          if (call == nullptr || op != &seen_as(call->op_)) return;
          call->remember(moves, replaced, outputs);
        });
}

}  // namespace taeda::python
