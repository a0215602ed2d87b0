#include <taeda/csrc/functorch/dual_level.h>

#include <taeda/csrc/autograd/engine.h>
#include <taeda/csrc/autograd/variable.h>
#include <taeda/csrc/functorch/grad_level.h>

#include <taeda/gen/linear.h>
#include <taeda/gen/ops/_to_copy.h>
#include <taeda/gen/ops/alias.h>
#include <taeda/gen/ops/as_strided.h>
#include <taeda/gen/ops/clone.h>
#include <taeda/gen/ops/copy_.h>
#include <taeda/gen/ops/new_empty_strided.h>
#include <taeda/gen/ops/new_zeros.h>
#include <taeda/gen/ops/zeros.h>
#include <taeda/gen/ops/zeros_like.h>

#include <algorithm>
#include <atomic>
#include <unordered_map>

namespace taeda::functorch {

namespace {

using Tensors = std::vector<TensorBase>;

// By the number of their level: an undefined one is a zero.
struct Tangents final : IntrusiveTarget {
  std::vector<std::pair<uint64_t, TensorBase>> by_level;

  TensorBase* find(uint64_t level) {
    for (auto& [each, tangent] : by_level) {
      if (each == level) return &tangent;
    }
    return nullptr;
  }
};

Tangents* tangents_of(const TensorBase& t) {
  const TensorExtra* extra = t.impl()->extra_or_null();
  return extra == nullptr ? nullptr
                          : static_cast<Tangents*>(extra->tangents.get());
}

bool is_differentiable(const TensorBase& t) {
  return t.defined() && autograd::is_differentiable(t.dtype());
}

// The results of a call with, for each tensor among them (lists one after the
// other), its tangent, undefined for zero.
struct Pushed {
  Stack results;
  Tensors tangents;
};

Tensors tensors_in(Stack& values) {
  Tensors found;
  for (IValue& v : values) {
    each_tensor(v, [&](TensorBase& t) { found.push_back(t); });
  }
  return found;
}

std::vector<autograd::Edge> edges_of(const Tensors& tensors) {
  std::vector<autograd::Edge> edges;
  for (const TensorBase& t : tensors) {
    edges.push_back(autograd::gradient_edge(t));
  }
  return edges;
}

TensorBase leaf(GradLevel& level, const TensorBase& value) {
  TensorBase t = level.wrap(level.unwrap(value));
  autograd::set_requires_grad(t, true);
  return t;
}

// Note [Tangents by two products]
// The product u -> u^T J is linear in u, and its own derivative by u along a
// tangent t is J t. So each operator that can be differentiated twice in
// reverse has a tangent. The derivatives are taken in a level of their own.
// An operator that writes does so on a copy.
Pushed push_by_products(const OperatorEntry& op,
                        std::span<const IValue> args,
                        const DualLevel& dual) {
  auto level = make_intrusive<GradLevel>();
  LevelScope scope(level);
  GradModeGuard on(true);
  Tensors leaves, moved;
  Stack stack(args.begin(), args.end());
  each_tensor(std::span<IValue>(stack), [&](TensorBase& t) {
    TensorBase tangent = dual.tangent(t);
    if (!tangent.defined()) return;
    t = leaf(*level, t);
    leaves.push_back(t);
    moved.push_back(tangent);
  });
  for (size_t i = 0; i < op.written_count; ++i) {
    TensorBase written = stack[op.written_first + i].get<TensorBase>();
    if (level_of(written) != level.get()) written = level->wrap(written);
    stack[op.written_first + i] = ops::clone(written);
  }
  call_operator(op, stack);
  Tensors outputs, factors, all = tensors_in(stack);
  for (const TensorBase& t : all) {
    if (!is_differentiable(t) || !t.requires_grad()) continue;
    outputs.push_back(t);
    factors.push_back(leaf(*level, ops::zeros_like(level->unwrap(t))));
  }
  Tensors found(outputs.size());
  if (!outputs.empty()) {
    autograd::BackwardOptions graph{true, true, false};
    Tensors products = autograd::run_backward(
        edges_of(outputs), factors, edges_of(leaves), graph);
    Tensors roots, grads;
    for (size_t i = 0; i < products.size(); ++i) {
      if (!products[i].defined() || !products[i].requires_grad()) continue;
      roots.push_back(products[i]);
      grads.push_back(moved[i]);
    }
    if (!roots.empty()) {
      autograd::BackwardOptions last{false, false, false};
      GradModeGuard off(false);
      found = autograd::run_backward(
          edges_of(roots), grads, edges_of(factors), last);
    }
  }
  Pushed pushed;
  size_t next = 0;
  for (const TensorBase& t : all) {
    bool has = is_differentiable(t) && t.requires_grad();
    TensorBase moved = has ? found[next++] : TensorBase();
    if (moved.defined()) {
      moved = level->unwrap(moved);
    } else if (has) {
      // A derivative that is 0 everywhere is a tangent all the same.
      moved = level->unwrap(ops::zeros_like(t));
    }
    pushed.tangents.push_back(std::move(moved));
  }
  each_tensor(std::span<IValue>(stack),
              [&](TensorBase& t) { t = level->unwrap(t); });
  pushed.results = std::move(stack);
  return pushed;
}

uint32_t linear_arguments(const OperatorEntry& op) {
  static const auto* known = [] {
    auto* map = new std::unordered_map<const OperatorEntry*, uint32_t>;
    for (const LinearOperator& row : kLinearOperators) {
      size_t dot = row.name.find('.');
      auto overload = dot == std::string_view::npos ? std::string_view()
                                                    : row.name.substr(dot + 1);
      (*map)[Dispatcher::get().find(row.name.substr(0, dot), overload)] =
          row.arguments;
    }
    return map;
  }();
  auto found = known->find(&op);
  return found == known->end() ? 0 : found->second;
}

// The only argument that has a tangent, where the operator is linear in it.
std::optional<size_t> linear_argument(const OperatorEntry& op,
                                      std::span<const IValue> args,
                                      const DualLevel& dual) {
  uint32_t linear = linear_arguments(op);
  std::optional<size_t> found;
  for (size_t i = 0; linear != 0 && i < args.size(); ++i) {
    bool moves = false;
    IValue arg = args[i];
    each_tensor(arg, [&](TensorBase& t) {
      moves = moves || dual.tangent(t).defined();
    });
    if (!moves) continue;
    if (found || (linear >> i & 1) == 0) return std::nullopt;
    found = i;
  }
  return found;
}

// The tangent in a storage like the primal's, zero elsewhere: as_strided looks
// beyond the tensor that it is given.
TensorBase with_storage(const TensorBase& primal, const TensorBase& tangent) {
  if (wrapped_or_null(primal) != nullptr ||
      wrapped_or_null(tangent) != nullptr) {
    return tangent;
  }
  auto bytes = [](const TensorBase& t) { return t.storage()->nbytes(); };
  bool same = bytes(primal) == bytes(tangent) &&
              primal.strides() == tangent.strides() &&
              primal.storage_offset() == tangent.storage_offset();
  if (same || primal.is_meta()) return tangent;
  auto count = static_cast<int64_t>(bytes(primal) / primal.itemsize());
  TensorBase flat = ops::zeros(
      {count}, tangent.dtype(), std::nullopt, tangent.device(), std::nullopt);
  TensorBase view = ops::as_strided(
      flat, primal.sizes(), primal.strides(), primal.storage_offset());
  ops::copy_(view, tangent);
  return view;
}

bool is_expanded(const TensorBase& t) {
  for (size_t d = 0; d < t.sizes().size(); ++d) {
    if (t.strides()[d] == 0 && t.sizes()[d] > 1) return true;
  }
  return false;
}

Pushed push_linear(const OperatorEntry& op,
                   std::span<const IValue> args,
                   const DualLevel& dual,
                   size_t argument) {
  Pushed pushed{call_with(op, args), {}};
  std::vector<IValue> moved(args.begin(), args.end());
  const TensorBase& primal = args[argument].get<TensorBase>();
  TensorBase tangent = dual.tangent(primal);
  bool beyond = std::string_view(op.name) == "as_strided";
  if (beyond && !is_expanded(primal)) tangent = with_storage(primal, tangent);
  moved[argument] = tangent;
  Stack tangents = call_with(op, moved);
  pushed.tangents = tensors_in(tangents);
  return pushed;
}

// Results that are no views have tangents of their own: an operator that adds a
// constant gives its argument's on, which a change in place would reach.
void own_tangents(Pushed& pushed,
                  std::span<const IValue> args,
                  const DualLevel& dual) {
  std::vector<const void*> given;
  std::vector<IValue> values(args.begin(), args.end());
  each_tensor(std::span<IValue>(values), [&](TensorBase& t) {
    TensorBase tangent = dual.tangent(t);
    if (!tangent.defined()) return;
    given.push_back(innermost_value(tangent).storage().get());
  });
  for (TensorBase& t : pushed.tangents) {
    if (!t.defined()) continue;
    const void* storage = innermost_value(t).storage().get();
    if (std::ranges::find(given, storage) != given.end()) t = ops::clone(t);
  }
}

Pushed push(const OperatorEntry& op,
            std::span<const IValue> args,
            const DualLevel& dual) {
  bool view = op.info->record->family == Family::View;
  if (view && std::string_view(op.overload) != "dtype") {
    return push_linear(op, args, dual, 0);
  }
  if (auto argument = linear_argument(op, args, dual)) {
    return push_linear(op, args, dual, *argument);
  }
  Pushed pushed = push_by_products(op, args, dual);
  own_tangents(pushed, args, dual);
  return pushed;
}

// `add` of `add_`, `add_` itself where there is none.
const OperatorEntry& functional_of(const OperatorEntry& op) {
  std::string_view name = op.name;
  if (name.ends_with('_')) name.remove_suffix(1);
  const OperatorEntry* found = Dispatcher::get().find(name, op.overload);
  bool fits = found != nullptr &&
              found->info->arguments == op.info->arguments &&
              found->info->form == Form::Functional;
  return fits ? *found : op;
}

}  // namespace

DualLevel::DualLevel(bool is_transform) : is_transform_(is_transform) {
  // Tensors may outlive a level; numbers are never used again.
  static std::atomic<uint64_t> last{0};
  id_ = ++last;
}

TensorBase DualLevel::tangent(const TensorBase& t) const {
  if (!t.defined()) return {};
  Tangents* all = tangents_of(t);
  if (TensorBase* own = all == nullptr ? nullptr : all->find(id_)) return *own;
  if (!t.is_view()) return {};
  // The base may have been given a tangent after the view was made.
  TensorBase base(t.impl()->base());
  Tangents* of_base = tangents_of(base);
  TensorBase* whole = of_base == nullptr ? nullptr : of_base->find(id_);
  bool has = whole != nullptr && whole->defined() && t.dtype() == base.dtype();
  return has ? part_of_tangent(base, t) : TensorBase();
}

// The same view of the base's tangent, which gets the base's strides for it.
TensorBase DualLevel::part_of_tangent(const TensorBase& base,
                                      const TensorBase& view) const {
  BelowLevel below(*this);
  TensorBase whole = *tangents_of(base)->find(id_);
  if (whole.strides() != base.strides()) {
    TensorBase laid =
        ops::new_empty_strided(whole, base.sizes(), base.strides());
    ops::copy_(laid, whole);
    whole = laid;
    set_tangent(base, whole);
  }
  int64_t offset = view.storage_offset() - base.storage_offset();
  return ops::as_strided(
      whole, view.sizes(), view.strides(), whole.storage_offset() + offset);
}

void DualLevel::set_tangent(const TensorBase& t, TensorBase tangent) const {
  Tangents* all = tangents_of(t);
  if (all == nullptr) {
    auto fresh = make_intrusive<Tangents>();
    all = fresh.get();
    t.impl()->extra().tangents = std::move(fresh);
  }
  if (TensorBase* old = all->find(id_)) {
    *old = std::move(tangent);
  } else {
    all->by_level.emplace_back(id_, std::move(tangent));
  }
}

void DualLevel::update_tangent(const TensorBase& t, TensorBase tangent) {
  TensorBase old = this->tangent(t);
  if (!old.defined() && tangent.defined() && t.is_view()) {
    TensorBase base(t.impl()->base());
    if (!this->tangent(base).defined()) {
      // Of the tangent's kind: it may have a batch that the base has not.
      set_tangent(base, ops::new_zeros(tangent, base.sizes(), base.dtype()));
    }
    old = part_of_tangent(base, t);
    set_tangent(t, old);
  }
  if (!old.defined()) {
    if (tangent.defined()) set_tangent(t, std::move(tangent));
  } else if (tangent.defined()) {
    ops::copy_(old, tangent);
  } else {
    ops::copy_(old, ops::zeros_like(old));
  }
}

void DualLevel::check_tangent(const TensorBase& t, const TensorBase& tangent) {
  TAEDA_CHECK(
      tangent.sizes() == t.sizes(),
      "Trying to set a forward gradient that has a different size than "
      "that of the original Tensor, this is not supported. Tensor is of "
      "size ",
      t.sizes(),
      " while the given forward gradient is of size ",
      tangent.sizes(),
      ".");
}

TensorBase DualLevel::make_dual(const TensorBase& primal,
                                const TensorBase& tangent) {
  for (const TensorBase* t : {&primal, &tangent}) {
    TAEDA_CHECK_AS(Value,
                   is_differentiable(*t),
                   "Expected ",
                   t == &primal ? "primal" : "tangent",
                   " to be floating point or complex, but got: ",
                   t->dtype());
  }
  TAEDA_CHECK(
      !this->tangent(primal).defined(),
      "Making a dual Tensor based on a Tensor that already has a forward "
      "gradient at the same level is not supported (shape ",
      primal.sizes(),
      ").");
  check_tangent(primal, tangent);
  BelowLevel below(*this);
  TensorBase dual = ops::alias(primal);
  set_tangent(dual, tangent);
  return dual;
}

TensorBase DualLevel::primal(const TensorBase& t) const {
  if (!tangent(t).defined()) return t;
  BelowLevel below(*this);
  TensorBase alias = ops::alias(t);
  set_tangent(alias, {});
  return alias;
}

void DualLevel::call(const OperatorEntry& op, Stack& stack) {
  std::span<IValue> args = arguments_on(op, stack);
  bool any = false;
  each_tensor(args, [&](TensorBase& t) { any = any || tangent(t).defined(); });
  bool writes = op.written_count > 0;
  if (any && writes && local_state.fw_grad_enabled) {
    call_in_place(op, stack);
    return;
  }
  BelowLevel below(*this);
  if (!any || !local_state.fw_grad_enabled) {
    call_operator(op, stack);
    return;
  }
  Pushed pushed = push(op, args, *this);
  size_t next = 0;
  for (IValue& v : pushed.results) {
    each_tensor(v, [&](TensorBase& t) {
      const TensorBase& moved = pushed.tangents[next++];
      if (!moved.defined()) return;
      for (IValue& arg : args) {
        // A call may give back an argument, whose tangent is to stay.
        if (arg.is<TensorBase>() && arg.get<TensorBase>().is_same(t)) {
          t = ops::alias(t);
        }
      }
      set_tangent(t, moved);
    });
  }
  stack.resize(stack.size() - args.size());
  for (IValue& v : pushed.results) stack.push_back(std::move(v));
}

// The tangent follows from the values before the change.
void DualLevel::call_in_place(const OperatorEntry& op, Stack& stack) {
  TAEDA_CHECK_AS(NotImplemented,
                 op.info->form != Form::Out,
                 "Trying to use forward AD with ",
                 op.qualified_name(),
                 " that does not support it because it is an out= function");
  std::span<IValue> args = arguments_on(op, stack);
  std::vector<IValue> given(args.begin(), args.end());
  BelowLevel below(*this);
  TensorBase self = given[0].get<TensorBase>();
  if (op.info->has(OpTag::InPlaceView)) {
    TensorBase moved = tangent(self);
    call_operator(op, stack);
    given[0] = moved;
    call_operator(op, given);
    return;
  }
  Tensors moved = push(functional_of(op), given, *this).tangents;
  call_operator(op, stack);
  TensorBase fresh = moved.empty() ? TensorBase() : moved[0];
  if (fresh.defined() && fresh.dtype() != self.dtype()) {
    fresh = ops::_to_copy(fresh, self.dtype());
  }
  update_tangent(self, fresh);
}

}  // namespace taeda::functorch
