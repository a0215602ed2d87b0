// What goes in and out of a function that is made functional.
#include <taeda/csrc/functorch/functional_level.h>

#include <taeda/c10/core/symbolic_geometry.h>
#include <taeda/gen/ops/as_strided.h>
#include <taeda/gen/ops/copy_.h>
#include <taeda/gen/ops/resize_.h>
#include <taeda/gen/ops/set_.h>

#include <algorithm>

namespace taeda::functorch {

namespace {

// Tensors whose place in memory says whether they are aliases. Those with
// gradients are kept apart: each has a history of its own.
bool has_place(const TensorBase& t) {
  DispatchKeySet keys = t.keys();
  return !keys.has(DispatchKey::Wrapped) && !keys.has(DispatchKey::Python) &&
         !t.requires_grad() && !t.impl()->is_symbolic() && t.storage() &&
         t.storage()->nbytes() > 0;
}

}  // namespace

std::vector<TensorBase> FunctionalLevel::wrap_inputs(
    std::span<const TensorBase> inputs) {
  std::vector<TensorBase> wrappers(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (wrappers[i].defined()) continue;
    const TensorBase& t = inputs[i];
    if (holds(t)) {
      wrappers[i] = t;
      continue;
    }
    std::vector<size_t> group{i};
    for (size_t k = i + 1; k < inputs.size(); ++k) {
      const TensorBase& o = inputs[k];
      if (wrappers[k].defined() || o.is_same(t)) continue;
      bool shares = has_place(t) && has_place(o) &&
                    o.storage().get() == t.storage().get() &&
                    o.dtype() == t.dtype();
      if (shares) group.push_back(k);
    }
    // One with holes may be looked at beyond its elements.
    bool holes = has_place(t) && !t.is_non_overlapping_and_dense();
    if (group.size() > 1 || holes) {
      share_memory(inputs, group, wrappers);
    } else {
      wrappers[i] = wrap(t);
      functional_value(wrappers[i]).memory->origin = t;
      MemoryPtr memory = functional_value(wrappers[i]).memory;
      inputs_.push_back({t, wrappers[i], std::move(memory), {}});
    }
    for (size_t k = i + 1; k < inputs.size(); ++k) {
      if (inputs[k].is_same(t)) wrappers[k] = wrappers[i];
    }
  }
  return wrappers;
}

// Views of their storage, which is the base.
void FunctionalLevel::share_memory(std::span<const TensorBase> inputs,
                                   std::span<const size_t> group,
                                   std::vector<TensorBase>& wrappers) {
  const TensorBase& first = inputs[group[0]];
  auto count =
      static_cast<int64_t>(first.storage()->nbytes() / first.itemsize());
  auto memory = make_intrusive<Memory>();
  {
    GradModeGuard off(false);
    memory->value = ops::as_strided(first, IntArrayRef(count), {1}, 0);
  }
  memory->origin = memory->value;
  memory->has_views = true;
  for (size_t k : group) {
    const TensorBase& t = inputs[k];
    if (wrappers[k].defined()) continue;
    ViewStep step = strided_step(
        sym_sizes(*t.impl()), sym_strides(*t.impl()), sym_offset(*t.impl()));
    step.copied = !keep_views_;
    wrappers[k] = make(t, memory, {step}, t);
    inputs_.push_back({t, wrappers[k], memory, {step}});
    for (size_t other : group) {
      if (inputs[other].is_same(t)) wrappers[other] = wrappers[k];
    }
  }
}

bool FunctionalLevel::is_changed(const TensorBase& input) const {
  for (const Input& in : inputs_) {
    if (!in.wrapper.is_same(input) && !in.outside.is_same(input)) continue;
    const FunctionalValue& own = functional_value(in.wrapper);
    return in.memory->writes > 0 || own.moved || own.memory != in.memory;
  }
  return false;
}

void FunctionalLevel::write_back() {
  for (const Input& in : inputs_) write_back(in);
}

void FunctionalLevel::write_back(const Input& in) {
  const FunctionalValue& own = functional_value(in.wrapper);
  Memory& memory = *in.memory;
  if (memory.writes > 0) {
    // What was changed under no_grad has no history to be handed on.
    GradModeGuard mode(grad_enabled() && memory.recorded);
    TensorBase now = replay(in.steps, memory.value);
    bool symbolic = now.impl()->is_symbolic();
    if (!symbolic && now.sizes() != in.outside.sizes()) {
      ops::resize_(in.outside, now.sizes());
    }
    ops::copy_(in.outside, now);
  }
  if (own.memory != in.memory) {
    ops::set_(in.outside, output(in.wrapper));
  } else if (own.moved) {
    ArrayRef<SymInt> sizes = sym_sizes(*in.wrapper.impl());
    ArrayRef<SymInt> strides = sym_strides(*in.wrapper.impl());
    SymInt offset = sym_offset(*in.wrapper.impl()) - memory.offset +
                    sym_offset(*memory.origin.impl());
    std::array<IValue, 4> args{in.outside,
                               boxed_integers(sizes),
                               boxed_integers(strides),
                               boxed_integer(offset)};
    call_with(*Dispatcher::get().find("as_strided_", ""), args);
  }
}

TensorBase FunctionalLevel::output(const TensorBase& t) const {
  if (!holds(t)) return t;
  const FunctionalValue& own = functional_value(t);
  for (const Input& in : inputs_) {
    if (in.wrapper.is_same(t) && own.memory == in.memory) return in.outside;
  }
  // A view of an input, in whose memory the change is by now.
  bool of_input = own.memory->origin.defined() && own.memory->writes > 0;
  if (of_input && keep_views_) {
    return replay(own.steps, own.memory->origin);
  }
  return value_in(t);
}

}  // namespace taeda::functorch
