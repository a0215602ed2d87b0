#include <taeda/csrc/functorch/functional_level.h>

#include <taeda/aten/iter/output.h>
#include <taeda/aten/iter/resize_warning.h>
#include <taeda/aten/iter/symbolic.h>
#include <taeda/c10/core/symbolic_geometry.h>
#include <taeda/gen/ops/_to_copy.h>
#include <taeda/gen/ops/clone.h>
#include <taeda/gen/ops/copy.h>
#include <taeda/gen/ops/new_empty_strided.h>

#include <algorithm>

namespace taeda::functorch {

namespace {

constexpr DispatchKeySet kIntercept{DispatchKey::Intercept};
constexpr DispatchKeySet kLazy{DispatchKey::Conjugate, DispatchKey::Negative};

// The geometry, dtype and laziness of `like`.
void show(const TensorBase& wrapper, const TensorBase& like) {
  TensorImpl& impl = *wrapper.impl();
  impl.set_dtype(like.dtype());
  impl.set_keys((impl.keys() - kLazy) | (like.keys() & kLazy));
  set_symbolic_geometry(wrapper, ViewGeometry<SymInt>(like));
}

bool is_symbolic(const TensorBase& t) { return t.impl()->is_symbolic(); }

bool same_sizes(const TensorBase& a, const TensorBase& b) {
  ArrayRef<SymInt> x = sym_sizes(*a.impl()), y = sym_sizes(*b.impl());
  return std::equal(x.begin(), x.end(), y.begin(), y.end());
}

// Whether elements lie in the same order and distance.
bool same_layout(const TensorBase& a, const TensorBase& b) {
  if (a.numel() <= 1) return true;
  for (int64_t d = 0; d < a.dim(); ++d) {
    if (a.size(d) > 1 && a.stride(d) != b.stride(d)) return false;
  }
  return true;
}

TensorBase laid_out(const TensorBase& t, IntArrayRef strides) {
  return ops::copy(ops::new_empty_strided(t, t.sizes(), strides), t);
}

// A write leaves strides as they are, which as_strided counts on; the
// functional form may have chosen others. Gaps are kept for a view that counts
// on them, since making them costs a copy.
void put_value(Memory& memory, const TensorBase& fresh) {
  const TensorBase old = std::move(memory.value);
  memory.value = fresh;
  if (is_symbolic(old) || is_symbolic(fresh) || same_layout(old, fresh)) return;
  if (memory.is_strided || old.is_non_overlapping_and_dense()) {
    memory.value = laid_out(fresh, old.strides());
  } else if (memory.gaps.empty()) {
    memory.gaps = old.strides().vec();
  }
}

// For a view that goes by the base's strides.
void restore_gaps(Memory& memory) {
  memory.is_strided = true;
  if (memory.gaps.empty()) return;
  memory.value = laid_out(memory.value, memory.gaps);
  memory.gaps.clear();
}

bool has_views(const OperatorEntry& op) {
  for (size_t i = 0; i < op.info->results; ++i) {
    if (viewed_argument(*op.info, i) >= 0) return true;
  }
  return false;
}

void check_writable(const FunctionalLevel& level,
                    const OperatorEntry& op,
                    std::span<const IValue> given) {
  for (size_t i = 0; i < given.size(); ++i) {
    if (!is_written(op, i)) continue;
    IValue v = given[i];
    each_tensor(v, [&](TensorBase& t) {
      TAEDA_CHECK(
          level.holds(t),
          op.qualified_name(),
          ": mutating a non-functional tensor with a functional tensor is not "
          "allowed. Please ensure that all of your inputs are wrapped inside "
          "of a functionalize() call (the tensor that is written has shape ",
          sym_sizes(*t.impl()),
          ").");
      if (!is_symbolic(t)) check_no_internal_overlap(op.name, t);
    });
  }
}

}  // namespace

// Wrappers
// ----------------------------------------------------------------------

FunctionalValue& functional_value(const TensorBase& wrapper) {
  auto& held = wrapper.impl()->extra().wrapped;
  if (auto* own = dynamic_cast<FunctionalValue*>(held.get())) return *own;
  const auto& other = static_cast<const Wrapped&>(*held);
  auto memory = make_intrusive<Memory>();
  memory->value = other.value;
  memory->offset = sym_offset(*other.value.impl());
  auto own = make_intrusive<FunctionalValue>(
      other.level, other.value, std::move(memory), ViewSteps());
  FunctionalValue& found = *own;
  held = std::move(own);
  return found;
}

TensorBase FunctionalLevel::make(const TensorBase& value,
                                 MemoryPtr memory,
                                 ViewSteps steps,
                                 const TensorBase& like) {
  LevelPtr level = LevelPtr::share(this);
  TensorBase wrapper = make_wrapper(level, value, {}, {});
  if (memory->first == nullptr) memory->first = wrapper.impl();
  wrapper.impl()->extra().wrapped = make_intrusive<FunctionalValue>(
      level, value, std::move(memory), std::move(steps));
  show(wrapper, like);
  // Values outside are never written: versions count what is done in here.
  wrapper.impl()->set_version_counter(make_intrusive<VersionCounter>(0));
  return wrapper;
}

TensorBase FunctionalLevel::wrap(const TensorBase& value) {
  if (holds(value)) return value;
  auto memory = make_intrusive<Memory>();
  memory->value = value;
  memory->offset = sym_offset(*value.impl());
  return make(value, std::move(memory), {}, value);
}

TensorBase FunctionalLevel::value_in(const TensorBase& wrapper) const {
  FunctionalValue& own = functional_value(wrapper);
  if (own.seen != own.memory->writes) {
    BelowLevel below(*this);
    own.value = replay(own.steps, own.memory->value);
    own.seen = own.memory->writes;
  }
  return own.value;
}

TensorBase FunctionalLevel::unwrap(const TensorBase& t) const {
  return holds(t) ? value_in(t) : t;
}

TensorBase FunctionalLevel::wrap_view(const TensorBase& of, View view) {
  FunctionalValue& base = functional_value(of);
  base.memory->has_views = true;
  bool joins = std::string_view(view.steps.back().op->name) != "detach";
  TensorBase value = keep_views_ ? view.value : ops::clone(view.value);
  TensorBase wrapper =
      make(value, base.memory, std::move(view.steps), view.value);
  wrapper.impl()->set_version_counter(of.impl()->share_version());
  if (!joins) return wrapper;
  const auto& root = of.impl()->base();
  ViewCreation how =
      value.is_view() ? value.impl()->view_creation() : ViewCreation::Default;
  wrapper.impl()->set_base(root ? root : of.impl_ptr(),
                           grad_enabled() ? how : ViewCreation::NoGrad);
  return wrapper;
}

TensorBase FunctionalLevel::wrap_result(const TensorBase& value,
                                        std::span<const IValue> given) {
  // A call may give back an argument.
  for (const IValue& v : given) {
    if (!v.is<TensorBase>()) continue;
    const TensorBase& t = v.get<TensorBase>();
    if (t.defined() && unwrap(t).is_same(value)) return t;
  }
  return wrap(value);
}

// Calls
// -------------------------------------------------------------------------

void FunctionalLevel::call(const OperatorEntry& op, Stack& stack) {
  bool recorded = false;
  each_tensor(arguments_on(op, stack), [&](TensorBase& t) {
    recorded = recorded || (holds(t) && t.requires_grad());
  });
  if (!recorded) {
    run(op, stack);
    return;
  }
  // Autograd sees the wrappers; the call comes back below it.
  ExcludeKeysGuard past(kIntercept);
  call_operator(op, stack);
}

bool FunctionalLevel::keeps(const OperatorEntry& op) const {
  // A composite with out= looks at the memory of its arguments.
  return op.info->form == Form::Out && functional_form(op) != nullptr;
}

void FunctionalLevel::call_below_autograd(const OperatorEntry& op,
                                          Stack& stack) {
  run(op, stack);
}

std::vector<IValue> FunctionalLevel::values_of(
    std::span<const IValue> given) const {
  std::vector<IValue> values(given.begin(), given.end());
  each_tensor(std::span<IValue>(values), [&](TensorBase& t) { t = unwrap(t); });
  return values;
}

void FunctionalLevel::run(const OperatorEntry& op, Stack& stack) {
  std::span<IValue> args = arguments_on(op, stack);
  bool held = false;
  each_tensor(args, [&](TensorBase& t) { held = held || holds(t); });
  bool changes = writes(op), views = has_views(op);
  bool composed = held && op.info->record->composite && (changes || views);
  if (composed && !keeps(op)) {
    run_composite(op, stack);
    return;
  }
  LevelPtr keep = LevelPtr::share(this);
  std::vector<IValue> given(args.begin(), args.end());
  stack.resize(stack.size() - given.size());
  Stack results;
  if (composed) {
    // Its parts come here by themselves.
    check_writable(*this, op, given);
    Computed computed = compute_functionally(op, given);
    for (IValue& v : computed.written) {
      each_tensor(v, [&](TensorBase& t) { t = unwrap(t); });
    }
    BelowLevel below(*this);
    write_all(op, given, computed, results);
  } else {
    BelowLevel below(*this);
    bool fresh = std::string_view(op.name) == "lift_fresh";
    if (!held && (changes || views) && !fresh) {
      // A tensor from outside stays one, and so do its views.
      results = call_with(op, given);
    } else if (!run_special(*this, op, given, values_of(given), results)) {
      changes ? run_writing(op, given, results) : run_pure(op, given, results);
    }
  }
  for (IValue& v : results) stack.push_back(std::move(v));
}

FunctionalLevel::View FunctionalLevel::view_of(
    const TensorBase& of,
    const OperatorEntry& op,
    std::span<const IValue> args) const {
  FunctionalValue& base = functional_value(of);
  ViewStep step{&op, std::vector<IValue>(args.begin(), args.end())};
  step.arguments[0] = TensorBase();
  step.recorded = grad_enabled();
  if (std::string_view(op.name) != "as_strided") {
    step.copied = !keep_views_;
    ViewSteps steps = base.steps;
    steps.push_back(std::move(step));
    std::vector<IValue> values(args.begin(), args.end());
    values[0] = unwrap(of);
    Stack results = call_with(op, values);
    return {std::move(steps), results[0].get<TensorBase>()};
  }
  // It looks at the memory, not at the view.
  bool at_root = base.memory->value.dtype() == of.dtype();
  SymInt own = sym_offset(*of.impl());
  SymInt offset = own;
  if (args[3].is<SymInt>()) offset = args[3].get<SymInt>();
  if (args[3].is<int64_t>()) offset = SymInt(args[3].to_int());
  step.arguments[3] =
      boxed_integer(offset - (at_root ? base.memory->offset : own));
  if (at_root) restore_gaps(*base.memory);
  TensorBase value = replay(step, at_root ? base.memory->value : unwrap(of));
  step.copied = !keep_views_;
  ViewSteps steps = at_root ? ViewSteps() : base.steps;
  steps.push_back(std::move(step));
  return {std::move(steps), value};
}

void FunctionalLevel::run_pure(const OperatorEntry& op,
                               std::span<const IValue> given,
                               Stack& results) {
  int viewed = viewed_argument(*op.info, 0);
  bool view = viewed >= 0 && given[0].is<TensorBase>() &&
              holds(given[0].get<TensorBase>());
  if (!view) {
    results = call_with(op, values_of(given));
    each_tensor(std::span<IValue>(results),
                [&](TensorBase& t) { t = wrap_result(t, given); });
    return;
  }
  const TensorBase& of = given[0].get<TensorBase>();
  if (!results_of(*op.info)[0].has(ArgInfo::kList)) {
    results = {wrap_view(of, view_of(of, op, given))};
    return;
  }
  results = call_with(op, values_of(given));
  ViewStep step{&op, std::vector<IValue>(given.begin(), given.end())};
  step.arguments[0] = TensorBase();
  step.recorded = grad_enabled();
  step.copied = !keep_views_;
  size_t i = 0;
  each_tensor(results[0], [&](TensorBase& t) {
    View one{functional_value(of).steps, t};
    one.steps.push_back(step_for_element(step, i++));
    t = wrap_view(of, std::move(one));
  });
}

void FunctionalLevel::run_writing(const OperatorEntry& op,
                                  std::span<const IValue> given,
                                  Stack& results) {
  check_writable(*this, op, given);
  Computed computed = compute_functionally(op, values_of(given));
  write_all(op, given, computed, results);
}

void FunctionalLevel::write_all(const OperatorEntry& op,
                                std::span<const IValue> given,
                                Computed& computed,
                                Stack& results) {
  for (size_t i = 0; i < op.written_count; ++i) {
    results.push_back(given[op.written_first + i]);
  }
  for (IValue& v : computed.results) {
    each_tensor(v, [&](TensorBase& t) { t = wrap_result(t, given); });
    results.push_back(std::move(v));
  }
  size_t next = 0;
  for (size_t i = 0; i < given.size(); ++i) {
    if (!is_written(op, i)) continue;
    std::vector<TensorBase> wrappers;
    IValue target = given[i];
    each_tensor(target, [&](TensorBase& t) { wrappers.push_back(t); });
    size_t k = 0;
    each_tensor(computed.written[next++],
                [&](TensorBase& t) { write(op, wrappers.at(k++), t); });
  }
}

// Writes
// ------------------------------------------------------------------------

namespace {

// Whether autograd records a write for what the memory stands for: not one
// under no_grad, nor one through a detached alias or a view of such.
bool has_history(const TensorBase& written, const Memory& memory) {
  const auto& base = written.impl()->base();
  return grad_enabled() && (base ? base.get() : written.impl()) == memory.first;
}

}  // namespace

void FunctionalLevel::write(const OperatorEntry& op,
                            const TensorBase& wrapper,
                            TensorBase value) {
  FunctionalValue& own = functional_value(wrapper);
  Memory& memory = *own.memory;
  if (value.dtype() != wrapper.dtype()) {
    check_castable(op.name, value.dtype(), wrapper.dtype());
    value = ops::_to_copy(value, wrapper.dtype());
  }
  memory.recorded = memory.recorded || has_history(wrapper, memory);
  if (!same_sizes(wrapper, value)) {
    TAEDA_CHECK(op.info->form == Form::Out,
                op.name,
                ": output with shape ",
                sym_sizes(*wrapper.impl()),
                " doesn't match the broadcast shape ",
                sym_sizes(*value.impl()));
    if (!is_symbolic(wrapper)) warn_of_resize(wrapper, value.sizes());
    replace(wrapper, value);
    return;
  }
  if (!is_symbolic(memory.value)) {
    check_no_internal_overlap(op.name, memory.value);
  }
  put_value(memory, put_back(own.steps, memory.value, value));
  ++memory.writes;
  // Statistics of batch norm are saved for backward and written without a
  // trace in the schema; nothing reads what was saved then.
  if (writes(op)) wrapper.impl()->bump_version();
}

void FunctionalLevel::replace(const TensorBase& wrapper,
                              const TensorBase& value) {
  FunctionalValue& own = functional_value(wrapper);
  Memory& memory = *own.memory;
  TAEDA_CHECK(own.steps.empty() && !memory.has_views,
              "Attempted to resize a view tensor to a larger size. This is not "
              "allowed in the functionalization pass (from ",
              sym_sizes(*wrapper.impl()),
              " to ",
              sym_sizes(*value.impl()),
              ").");
  memory.value = value;
  memory.gaps.clear();
  memory.offset = sym_offset(*value.impl());
  ++memory.writes;
  show(wrapper, value);
  wrapper.impl()->bump_version();
}

void FunctionalLevel::show_view(const TensorBase& wrapper, View view) {
  FunctionalValue& own = functional_value(wrapper);
  show(wrapper, view.value);
  own.value = keep_views_ ? view.value : ops::clone(view.value);
  own.steps = std::move(view.steps);
  own.seen = own.memory->writes;
  own.moved = true;
  wrapper.impl()->bump_version();
}

void FunctionalLevel::change_view(const TensorBase& wrapper,
                                  const OperatorEntry& op,
                                  std::span<const IValue> args) {
  show_view(wrapper, view_of(wrapper, op, args));
}

void FunctionalLevel::become(const TensorBase& wrapper,
                             const TensorBase& source) {
  TensorBase value = unwrap(source);
  FunctionalValue& own = functional_value(wrapper);
  FunctionalValue& other = functional_value(source);
  other.memory->has_views = true;
  own.memory = other.memory;
  own.steps = other.steps;
  own.seen = other.seen;
  own.value = value;
  show(wrapper, source);
  wrapper.impl()->bump_version();
}

}  // namespace taeda::functorch
