#include <taeda/aten/core/level.h>
#include <taeda/aten/core/library.h>
#include <taeda/aten/core/observe.h>

#include <algorithm>

namespace taeda {

bool run_symbolic_composite(const OperatorEntry& op,
                            Stack& stack);  // symbolic.h

// autocast.h: whether it has something to do before a level sees the call.
namespace autocast {
bool comes_first(const OperatorEntry& op, Stack& stack);
}

namespace {

constexpr DispatchKeySet kIntercept{DispatchKey::Intercept};

std::vector<LevelPtr>& stack_of_levels() {
  thread_local std::vector<LevelPtr> levels;
  return levels;
}

void refresh_included() {
  if (stack_of_levels().empty()) {
    local_state.included &= ~kIntercept.bits();
  } else {
    local_state.included |= kIntercept.bits();
  }
}

// What the elements mean is a fact of a wrapper too, since composites ask for
// it. A call meets Wrapped before these keys.
constexpr DispatchKeySet kMeaning{DispatchKey::Conjugate,
                                  DispatchKey::Negative};

// Wrappers whose level has ended are replaced by the value inside.
void unwrap_ended(const OperatorEntry& op, Stack& stack) {
  each_tensor(arguments_on(op, stack), [&](TensorBase& t) {
    while (const Wrapped* w = wrapped_or_null(t)) {
      if (w->level->is_alive()) return;
      check_alive(*w, op.qualified_name());
      t = w->level->value_in(t);
    }
  });
}

struct InterceptKernel final : BoxedKernel {
  void call(const OperatorEntry& op,
            DispatchKeySet keys,
            Stack& stack) override {
    unwrap_ended(op, stack);
    if (TAEDA_UNLIKELY(autocast::comes_first(op, stack))) {
      constexpr DispatchKey kKey = DispatchKey::Autocast;
      BoxedKernel* own = op.boxed[static_cast<int>(kKey)];
      BoxedKernel* all = Dispatcher::get().fallback(kKey);
      (own != nullptr ? own : all)->call(op, keys, stack);
      return;
    }
    if (stack_of_levels().empty()) {
      ExcludeKeysGuard past(kIntercept);
      call_operator(op, stack);
      return;
    }
    LevelPtr innermost = stack_of_levels().back();
    if (is_transparent(op) && !innermost->keeps(op)) {
      run_composite(op, stack);
    } else {
      innermost->call(op, stack);
    }
  }
};

struct WrappedKernel final : BoxedKernel {
  void call(const OperatorEntry& op, DispatchKeySet, Stack& stack) override {
    // A level has let autograd record a kernel's definition; what that calls is
    // recorded too, and not a composite as a whole.
    if (is_transparent(op)) {
      run_composite(op, stack);
      return;
    }
    LevelPtr level;
    for (const LevelPtr& candidate : stack_of_levels()) {
      each_tensor(arguments_on(op, stack), [&](TensorBase& t) {
        if (level_of(t) == candidate.get()) level = candidate;
      });
    }
    TAEDA_CHECK(level,
                op.qualified_name(),
                ": a wrapper of another thread's or an ended level");
    level->call_below_autograd(op, stack);
  }
};

}  // namespace

void Level::call_below_autograd(const OperatorEntry& op, Stack& stack) {
  call(op, stack);
}

TensorBase Level::value_in(const TensorBase& wrapper) const {
  return wrapped_or_null(wrapper)->value;
}

ArrayRef<LevelPtr> levels() { return stack_of_levels(); }

bool in_transform() {
  return std::ranges::any_of(
      stack_of_levels(), [](const LevelPtr& l) { return l->is_transform(); });
}

void check_alive(const Wrapped& wrapped, std::string_view user) {
  const Level& level = *wrapped.level;
  TAEDA_CHECK(level.is_alive() || level.may_outlive(),
              user,
              ": Either your tensor may have escaped from inside a function "
              "being vmapped and this is a user error, or a level ended too "
              "early: the tensor (",
              wrapped.value,
              " inside) belongs to a ",
              level.kind(),
              " level that has ended");
}

void push_level(LevelPtr level) {
  level->alive_ = true;
  stack_of_levels().push_back(std::move(level));
  refresh_included();
}

void pop_levels(size_t depth) {
  std::vector<LevelPtr>& all = stack_of_levels();
  while (all.size() > depth) {
    all.back()->alive_ = false;
    all.pop_back();
  }
  refresh_included();
}

BelowLevel::BelowLevel(const Level& level) {
  std::vector<LevelPtr>& all = stack_of_levels();
  auto from = all.begin();
  while (from != all.end() && from->get() != &level) ++from;
  hidden_.assign(std::make_move_iterator(from),
                 std::make_move_iterator(all.end()));
  all.erase(from, all.end());
  DispatchKeySet off{
      DispatchKey::Intercept, DispatchKey::Wrapped, DispatchKey::Autograd};
  local_state.excluded &= ~off.bits();
  refresh_included();
  local_state.refresh();
}

BelowLevel::~BelowLevel() {
  std::vector<LevelPtr>& all = stack_of_levels();
  for (LevelPtr& level : hidden_) all.push_back(std::move(level));
}

TensorBase make_wrapper(LevelPtr level,
                        TensorBase value,
                        IntArrayRef sizes,
                        IntArrayRef strides,
                        int64_t batch_dim) {
  const TensorImpl& inner = *value.impl();
  // A storage whose bytes were taken away: it has the device, and an access to
  // its memory is an error.
  TensorBase empty = make_tensor("wrapper", {1}, kByte, value.device());
  empty.storage()->resize(0);
  auto impl = make_intrusive<TensorImpl>(
      empty.storage(),
      inner.dtype(),
      DispatchKeySet{DispatchKey::Wrapped, DispatchKey::Intercept} |
          (value.keys() & kMeaning));
  impl->is_wrapped_number = inner.is_wrapped_number;
  impl->set_version_counter(value.impl()->share_version());
  impl->set_sizes_and_strides(sizes, strides);
  // As if the wrapper lay in the memory inside: a view of it begins there.
  impl->set_storage_offset(value.storage_offset());
  impl->extra().wrapped =
      make_intrusive<Wrapped>(std::move(level), std::move(value), batch_dim);
  return TensorBase(std::move(impl));
}

void set_wrapped(const TensorBase& wrapper,
                 TensorBase value,
                 IntArrayRef sizes,
                 IntArrayRef strides,
                 int64_t batch_dim) {
  TensorImpl& impl = *wrapper.impl();
  LevelPtr level = wrapped_or_null(wrapper)->level;
  impl.set_dtype(value.dtype());
  impl.set_keys((impl.keys() - kMeaning) | (value.keys() & kMeaning));
  impl.set_sizes_and_strides(sizes, strides);
  impl.set_storage_offset(value.storage_offset());
  impl.extra().wrapped =
      make_intrusive<Wrapped>(std::move(level), std::move(value), batch_dim);
}

bool has_symbols(std::span<const IValue> values) {
  return std::ranges::any_of(values, [](const IValue& v) {
    return v.is<SymInt>() || v.is<std::vector<SymInt>>();
  });
}

void fix_symbols(std::span<IValue> values) {
  for (IValue& v : values) {
    if (v.is<SymInt>()) v = v.to_int();
    if (!v.is<std::vector<SymInt>>()) continue;
    std::vector<int64_t> fixed;
    for (const SymInt& s : v.get<std::vector<SymInt>>()) {
      fixed.push_back(s.guard());
    }
    v = std::move(fixed);
  }
}

int viewed_argument(const OpInfo& info, size_t index) {
  const ArgInfo& result = results_of(info)[index];
  if (result.alias == 0 || result.has(ArgInfo::kWritten)) return -1;
  for (size_t i = 0; i < info.arguments; ++i) {
    const ArgInfo& a = info.values[i];
    bool shares = (a.alias & result.alias) != 0;
    if (shares && a.is_tensor() && !a.has(ArgInfo::kList)) {
      return static_cast<int>(i);
    }
  }
  return -1;
}

bool is_transparent(const OperatorEntry& op) {
  constexpr int kCpu = static_cast<int>(DispatchKey::CPU);
  constexpr int kMeta = static_cast<int>(DispatchKey::Meta);
  constexpr int kAutograd = static_cast<int>(DispatchKey::Autograd);
  if (op.boxed[kAutograd] != nullptr ||
      observe::kernel_at(op, DispatchKey::Autograd) != nullptr) {
    return false;
  }
  const RecordInfo& record = *op.info->record;
  // A library's composite has one kernel for all backends.
  bool composite_of_library = record.family == Family::User &&
                              op.boxed[kCpu] != nullptr &&
                              op.boxed[kCpu] == op.boxed[kMeta];
  return record.composite || composite_of_library;
}

void run_composite(const OperatorEntry& op, Stack& stack) {
  constexpr int kSlot = static_cast<int>(DispatchKey::CPU);
  if (run_symbolic_composite(op, stack)) return;
  if (op.from_stack != nullptr) {
    fix_symbols(arguments_on(op, stack));
    op.from_stack(op, observe::kernel_at(op, DispatchKey::CPU), stack);
  } else {
    op.boxed[kSlot]->call(op, DispatchKey::CPU, stack);  // a library's
  }
}

bool run_means(const OperatorEntry& op, Stack& stack) {
  void* means = op.info->record->means;
  if (means == nullptr || op.info->form != Form::Functional) return false;
  fix_symbols(arguments_on(op, stack));
  op.from_stack(op, means, stack);
  return true;
}

void call_operator(const OperatorEntry& op, Stack& stack) {
  call_boxed(op, stack, op.info->arguments);
}

Stack call_with(const OperatorEntry& op, std::span<const IValue> arguments) {
  Stack stack(arguments.begin(), arguments.end());
  call_operator(op, stack);
  return stack;
}

void register_level_kernels(Dispatcher& dispatcher) {
  static InterceptKernel intercept;
  static WrappedKernel wrapped;
  dispatcher.set_fallback(DispatchKey::Intercept, &intercept);
  dispatcher.set_fallback(DispatchKey::Wrapped, &wrapped);
}

}  // namespace taeda
