#include <taeda/csrc/compiler/walk/segment.h>

#include <taeda/csrc/autograd/validate.h>
#include <taeda/csrc/compiler/graph/passes.h>

#include <taeda/aten/iter/symbolic.h>

namespace taeda::compiler {

namespace {

using autograd::OutputInfo;
using autograd::SavedVariable;

// What a stand-in's edges lead to: it only knows what is wanted there.
class TargetNode final : public autograd::Node {
 public:
  std::string name() const override { return "Target"; }
  autograd::Tensors apply(autograd::Tensors&&) override { return {}; }
};

}  // namespace

Segment::Segment(const PassRecord& record,
                 const Numbers& numbers,
                 const SlotShapes& shapes,
                 IntrusivePtr<ShapeEnv> env,
                 std::span<const TensorBase> slots)
    : record_(record),
      numbers_(numbers),
      shapes_(shapes),
      env_(std::move(env)),
      slots_(slots),
      level_(make_intrusive<TraceLevel>()),
      functional_(make_intrusive<functorch::FunctionalLevel>(
          /*keep_views=*/true, /*is_transform=*/false)),
      outer_(level_),
      inner_(functional_) {
  if (!env_) return;
  for (const SymInt& v : numbers_.symbols()) {
    level_->graph().symbols.push_back(moved(v, *env_));
  }
}

SymInt Segment::number(size_t position) const {
  SymInt v = numbers_.at(position);
  return env_ ? moved(v, *env_) : v;
}

TensorBase Segment::like(Slot slot) const {
  const TensorBase& t = slots_[static_cast<size_t>(slot)];
  TAEDA_CHECK_AS(NotImplemented,
                 is_plain(t),
                 "compiled_autograd: no plain tensor (",
                 t,
                 ")");
  if (!env_) return t;
  auto found = shapes_.find(slot);
  if (found == shapes_.end()) return t;
  std::vector<SymInt> sizes, strides;
  for (const SymInt& v : found->second.sizes) sizes.push_back(moved(v, *env_));
  for (const SymInt& v : found->second.strides) {
    strides.push_back(moved(v, *env_));
  }
  TensorBase out = make_symbolic_tensor(sizes, strides, t.dtype());
  constexpr DispatchKeySet kLazy{DispatchKey::Conjugate, DispatchKey::Negative};
  out.impl()->set_keys(out.keys() | (t.keys() & kLazy));
  out.impl()->is_wrapped_number = t.impl()->is_wrapped_number;
  return out;
}

TensorBase Segment::stand_in(Slot slot) {
  auto known = stand_ins_.find(slot);
  if (known != stand_ins_.end()) return known->second;
  TensorBase shown = like(slot);
  Device device = slots_[static_cast<size_t>(slot)].device();
  TensorBase wrapper(functional_->wrap(level_->add_input(shown, device)));
  inputs_.push_back(slot);
  stand_ins_.emplace(slot, wrapper);
  return wrapper;
}

ValueId Segment::value_of(const TensorBase& wrapper) {
  return level_->id_of(functional_->unwrap(wrapper));
}

Slot Segment::input_of(const TensorBase& wrapper) {
  ValueId id = value_of(wrapper);
  const std::vector<ValueId>& inputs = level_->graph().inputs;
  auto found = std::find(inputs.begin(), inputs.end(), id);
  if (found == inputs.end()) return kNoSlot;
  return inputs_[static_cast<size_t>(found - inputs.begin())];
}

std::optional<SlotShape> Segment::shape_of(ValueId value) const {
  const Value& v = level_->graph()[value];
  auto any = [](const std::vector<SymInt>& list) {
    return std::any_of(list.begin(), list.end(), [](const SymInt& n) {
      return n.is_symbolic();
    });
  };
  if (!any(v.sizes) && !any(v.strides)) return std::nullopt;
  return SlotShape{v.sizes, v.strides};
}

OutputInfo Segment::info_of(const RecordedCall& call, size_t output) const {
  size_t position = numbers_of_output(call, output);
  OutputInfo info = call.at.node->output(output);
  if (!info.known || !env_) return info;
  std::vector<SymInt> sizes;
  bool symbolic = false;
  for (size_t d = 0; d < info.sizes.size(); ++d) {
    sizes.push_back(number(position + d));
    symbolic = symbolic || sizes.back().is_symbolic();
  }
  if (symbolic) info.symbols = std::move(sizes);
  return info;
}

const IntrusivePtr<autograd::Node>& Segment::target(int32_t call) {
  IntrusivePtr<autograd::Node>& node = targets_[call];
  if (node) return node;
  node = make_intrusive<TargetNode>();
  const RecordedCall& of = record_.calls[static_cast<size_t>(call)];
  for (size_t i = 0; i < of.at.node->num_outputs(); ++i) {
    node->add_output(info_of(of, i));
  }
  return node;
}

// A node like that of the call, over stand-ins.
IntrusivePtr<autograd::Node> Segment::copy(const RecordedCall& call,
                                           std::span<const Slot> unpacked) {
  IntrusivePtr<autograd::Node> node = call.at.node->blank();
  size_t outputs = call.at.node->num_outputs();
  for (size_t i = 0; i < outputs; ++i) node->add_output(info_of(call, i));
  size_t position = numbers_of_output(call, outputs);
  for (const RecordedCall::Target& t : call.targets) {
    node->add_next_edge(t.call < 0
                            ? autograd::Edge()
                            : autograd::Edge{target(t.call), t.input_nr});
  }
  size_t next_saved = 0, next_unpacked = 0;
  auto save = [&](SavedVariable& to) {
    Slot slot = call.saved[next_saved++];
    if (slot == kPacked) slot = unpacked[next_unpacked++];
    if (slot != kNoSlot) to.stand_in(stand_in(slot));
  };
  auto fill = [&](auto& self, auto& from, auto& to) -> void {
    using M = std::remove_reference_t<decltype(to)>;
    if constexpr (std::is_same_v<M, SavedVariable>) {
      save(to);
    } else if constexpr (std::is_same_v<M, autograd::SavedList>) {
      to.resize(from.size());
      for (SavedVariable& v : to) save(v);
    } else if constexpr (std::is_same_v<M, SymInt>) {
      to = number(position++);
    } else if constexpr (std::is_same_v<M, std::optional<SymInt>>) {
      if (from) to = number(position++);
    } else if constexpr (std::is_same_v<M, Dims<SymInt>> ||
                         std::is_same_v<M, std::vector<Dims<SymInt>>>) {
      to.resize(from.size());
      for (size_t i = 0; i < from.size(); ++i) self(self, from[i], to[i]);
    } else {
      to = from;
    }
  };
  autograd::NodeFields own;
  node->list_fields(own);
  for (size_t i = 0; i < own.list().size(); ++i) {
    std::visit(
        [&](auto* to) {
          auto* from = std::get<decltype(to)>(call.fields.list()[i]);
          fill(fill, *from, *to);
        },
        own.list()[i]);
  }
  return node;
}

autograd::Tensors Segment::apply(const RecordedCall& call,
                                 autograd::Tensors grads,
                                 std::span<const Slot> unpacked) {
  IntrusivePtr<autograd::Node> node = copy(call, unpacked);
  autograd::Tensors out = node->apply(std::move(grads));
  autograd::validate_grads(*node, out);
  return out;
}

Graph Segment::take_graph(std::vector<ValueId> outputs) {
  Graph& graph = level_->graph();
  graph.outputs = std::move(outputs);
  for (compiler::Node& node : graph.nodes) node.backward = true;
  std::vector<ValueId> results = graph.outputs;
  merge_equal(graph, results);
  remove_dead(graph);
  check(graph);
  return std::move(graph);
}

}  // namespace taeda::compiler
