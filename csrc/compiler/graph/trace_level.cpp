#include <taeda/csrc/compiler/graph/trace_level.h>

#include <taeda/aten/iter/symbolic.h>
#include <taeda/c10/core/symbolic_geometry.h>

#include <algorithm>

namespace taeda::compiler {

namespace {

constexpr DispatchKeySet kLazy{DispatchKey::Conjugate, DispatchKey::Negative};

struct TracedValue final : Wrapped {
  TracedValue(LevelPtr level, TensorBase meta, ValueId v)
      : Wrapped(std::move(level), std::move(meta), -1), id(v) {}
  ValueId id;
};

const TracedValue* traced_or_null(const Level* level, const TensorBase& t) {
  const Wrapped* w = wrapped_or_null(t);
  bool own = w != nullptr && w->level.get() == level;
  return own ? static_cast<const TracedValue*>(w) : nullptr;
}

// The place behind a tensor's last element, in its storage.
int64_t elements_reached(const TensorBase& t) {
  int64_t last = t.storage_offset() + (t.numel() > 0 ? 1 : 0);
  for (int64_t d = 0; d < t.dim() && t.numel() > 0; ++d) {
    last += (t.size(d) - 1) * t.stride(d);
  }
  return last;
}

// A meta tensor that looks like `t`.
TensorBase meta_like(const TensorBase& t) {
  const Device device(DeviceType::Meta);
  TensorBase meta;
  if (t.impl()->is_symbolic()) {
    meta = make_symbolic_tensor(
        sym_sizes(*t.impl()), sym_strides(*t.impl()), t.dtype());
  } else {
    // With the whole storage, which as_strided may look at.
    auto room = static_cast<int64_t>(t.storage()->nbytes() / t.itemsize());
    room = std::max(room, elements_reached(t));
    meta = make_tensor("compile", {room}, t.dtype(), device);
    meta.impl()->set_sizes_and_strides(
        t.sizes(), t.strides(), t.storage_offset());
  }
  TensorImpl& impl = *meta.impl();
  impl.set_keys(impl.keys() | (t.keys() & kLazy));
  impl.is_wrapped_number = t.impl()->is_wrapped_number;
  return meta;
}

void refuse_values(const OperatorEntry& op, std::span<IValue> args) {
  bool reads = op.info->has(OpTag::DataDependentOutput) ||
               op.info->has(OpTag::DynamicOutputShape);
  if (!reads) return;
  each_tensor(args, [&](TensorBase& t) {
    TAEDA_CHECK_AS(NotImplemented,
                   wrapped_or_null(t) == nullptr,
                   "compile: ",
                   op.qualified_name(),
                   " depends on what a traced tensor holds (",
                   t,
                   ")");
  });
}

}  // namespace

TensorBase TraceLevel::wrap(ValueId id, const TensorBase& meta) {
  // As make_wrapper, on the device that the value will be on.
  TensorBase empty = make_tensor("wrapper", {1}, kByte, graph_[id].device);
  empty.storage()->resize(0);
  auto impl = make_intrusive<TensorImpl>(
      empty.storage(),
      meta.dtype(),
      DispatchKeySet{DispatchKey::Wrapped, DispatchKey::Intercept});
  impl->is_wrapped_number = meta.impl()->is_wrapped_number;
  impl->extra().wrapped =
      make_intrusive<TracedValue>(LevelPtr::share(this), meta, id);
  TensorBase wrapper(std::move(impl));
  set_symbolic_geometry(wrapper, ViewGeometry<SymInt>(meta));
  TensorImpl& made = *wrapper.impl();
  made.set_keys(made.keys() | (meta.keys() & kLazy));
  return wrapper;
}

ValueId TraceLevel::add_value(const TensorBase& meta, Device device) {
  Value v;
  v.sizes = sym_sizes(*meta.impl()).vec();
  v.strides = sym_strides(*meta.impl()).vec();
  v.dtype = meta.dtype();
  v.device = device;
  v.lazy = !(meta.keys() & kLazy).empty();
  graph_.values.push_back(std::move(v));
  metas_.push_back(meta);
  return static_cast<ValueId>(graph_.values.size() - 1);
}

TensorBase TraceLevel::add_input(const TensorBase& like, Device device) {
  TensorBase meta = meta_like(like);
  ValueId id = add_value(meta, device);
  graph_.inputs.push_back(id);
  return wrap(id, meta);
}

ValueId TraceLevel::id_of(const TensorBase& t) {
  if (!t.defined()) return kNoValue;
  if (const TracedValue* own = traced_or_null(this, t)) return own->id;
  auto known = constants_.find(t.impl());
  if (known != constants_.end()) return known->second;
  TAEDA_CHECK_AS(NotImplemented,
                 wrapped_or_null(t) == nullptr,
                 "compile: a tensor of another level (",
                 level_of(t)->kind(),
                 ") inside of a graph");
  TAEDA_CHECK_AS(NotImplemented,
                 !(grad_enabled() && t.requires_grad()),
                 "compile: a tensor that requires grad and is no input of the "
                 "graph (",
                 t,
                 ")");
  ValueId id = add_value(meta_like(t), t.device());
  graph_[id].constant = t;
  constants_.emplace(t.impl(), id);
  return id;
}

// Results that share a storage with an argument are views of it.
ValueId TraceLevel::root_of(const TensorBase& meta, const Node& node) const {
  for (const Use& u : node.uses) {
    const TensorBase& used = metas_[static_cast<size_t>(u.value)];
    if (used.storage().get() != meta.storage().get()) continue;
    ValueId base = graph_[u.value].base;
    return base == kNoValue ? u.value : base;
  }
  return kNoValue;
}

// The argument that a call has given back.
ValueId TraceLevel::argument_like(const TensorBase& meta,
                                  const Node& node) const {
  for (const Use& u : node.uses) {
    if (meta.is_same(metas_[static_cast<size_t>(u.value)])) return u.value;
  }
  return kNoValue;
}

Device TraceLevel::device_for(const OperatorEntry& op, const Node& node) const {
  for (size_t i = 0; i < op.info->arguments; ++i) {
    if (op.info->values[i].type != ValueType::Device) continue;
    if (node.arguments[i].is<Device>()) return node.arguments[i].get<Device>();
  }
  // Numbers in tensors of the CPU go with tensors of any device.
  Device found = default_device();
  bool known = false;
  for (const Use& u : node.uses) {
    const Value& v = graph_[u.value];
    bool better = !known || (found.is_cpu() && !v.sizes.empty());
    if (better) found = v.device;
    known = true;
  }
  return found;
}

void TraceLevel::add_results(const OperatorEntry& op,
                             Node node,
                             Stack& results) {
  Device device = device_for(op, node);
  auto number = static_cast<int32_t>(graph_.nodes.size());
  for (IValue& result : results) {
    bool undefined = result.is_none() || (result.is<TensorBase>() &&
                                          !result.get<TensorBase>().defined());
    if (undefined) node.results.push_back(kNoValue);
    each_tensor(result, [&](TensorBase& t) {
      if (ValueId same = argument_like(t, node); same != kNoValue) {
        node.results.push_back(kNoValue);
        t = wrap(same, t);
        return;
      }
      ValueId id = add_value(t, device);
      Value& v = graph_[id];
      v.node = number;
      v.result = static_cast<int32_t>(node.results.size());
      v.base = root_of(t, node);
      if (v.base != kNoValue) {
        const TensorBase& base = metas_[static_cast<size_t>(v.base)];
        v.offset = sym_offset(*t.impl()) - sym_offset(*base.impl());
      }
      node.results.push_back(id);
      t = wrap(id, t);
    });
  }
  uint64_t pass = autograd::current_task_id();
  node.backward = pass != outer_pass_;
  graph_.nodes.push_back(std::move(node));
}

// Calls f(TensorBase&, element) for every defined tensor of an argument.
template <class F>
void each_place(IValue& v, F&& f) {
  if (v.is<TensorBase>()) {
    if (v.get<TensorBase>().defined()) f(v.get<TensorBase>(), -1);
  } else if (v.is<std::vector<TensorBase>>()) {
    int i = 0;
    for (TensorBase& t : v.get<std::vector<TensorBase>>()) {
      if (t.defined()) f(t, i);
      ++i;
    }
  } else if (v.is<std::vector<OptionalTensor>>()) {
    int i = 0;
    for (OptionalTensor& t : v.get<std::vector<OptionalTensor>>()) {
      if (t && t->defined()) f(*t, i);
      ++i;
    }
  }
}

// Fills in the node's arguments; those given become what the meta kernels get.
void TraceLevel::take_arguments(std::span<IValue> args, Node& node) {
  const Device meta(DeviceType::Meta);
  const OpInfo& info = *node.op->info;
  for (size_t i = 0; i < args.size(); ++i) {
    node.arguments.push_back(args[i]);
    each_tensor(node.arguments.back(), [](TensorBase& t) { t.reset(); });
    each_place(args[i], [&](TensorBase& t, int element) {
      ValueId id = id_of(t);
      node.uses.push_back(
          {static_cast<uint16_t>(i), static_cast<int16_t>(element), id});
      t = metas_[static_cast<size_t>(id)];
    });
  }
  for (size_t i = 0; i < args.size(); ++i) {
    if (info.values[i].type != ValueType::Device) continue;
    if (args[i].is_none() && !node.uses.empty()) continue;
    if (args[i].is_none()) node.arguments[i] = default_device();
    args[i] = meta;
  }
}

// What is made of constants alone stays one where its value is asked for.
bool TraceLevel::folds(const OperatorEntry& op, std::span<IValue> args) const {
  bool asked = op.info->has(OpTag::DataDependentOutput) ||
               std::string_view(op.name) == "lift_fresh";
  each_tensor(args, [&](TensorBase& t) {
    asked = asked && wrapped_or_null(t) == nullptr;
  });
  return asked;
}

void TraceLevel::call(const OperatorEntry& op, Stack& stack) {
  std::span<IValue> args = arguments_on(op, stack);
  if (folds(op, args)) {
    BelowLevel below(*this);
    call_operator(op, stack);
    return;
  }
  refuse_values(op, args);
  Node node;
  node.op = &op;
  take_arguments(args, node);
  std::vector<IValue> given(args.begin(), args.end());
  stack.resize(stack.size() - given.size());
  Stack results;
  {
    BelowLevel below(*this);
    GradModeGuard off(false);
    // What was to be cast has been.
    ExcludeKeysGuard past(DispatchKey::Autocast);
    results = call_with(op, given);
  }
  add_results(op, std::move(node), results);
  for (IValue& v : results) stack.push_back(std::move(v));
}

}  // namespace taeda::compiler
