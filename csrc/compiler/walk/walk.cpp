#include <taeda/csrc/compiler/walk/walk.h>

#include <taeda/csrc/autograd/accumulate_grad.h>
#include <taeda/csrc/autograd/autocast.h>

#include <algorithm>
#include <set>

namespace taeda::compiler {

namespace {

// A gradient: a wrapper of the stretch, or a slot that has none yet.
struct Grad {
  TensorBase wrapper;
  Slot slot = kNoSlot;
  bool defined() const { return wrapper.defined() || slot != kNoSlot; }
};
using Grads = std::vector<Grad>;

class Walk {
 public:
  Walk(const PassRecord& record,
       WalkPlan& plan,
       Position from,
       std::span<const TensorBase> slots,
       Stage& stage)
      : record_(record),
        plan_(plan),
        stage_(stage),
        segment_(record, plan.numbers, stage.shapes, stage.env, slots),
        slots_(slots),
        from_(std::move(from)) {}
  std::optional<Graph> run();

 private:
  void load();
  bool step();
  bool start(const RecordedCall& call);
  bool after_hooks(const RecordedCall& call);
  bool apply(const RecordedCall& call);
  void deliver(const RecordedCall& call);
  void add(int32_t call, uint32_t input_nr, Grad grad);
  void sum(SmallVector<Grad, 1>& summands);
  void add_effect(Effect::Kind kind, Grad& grad, size_t index);
  void end_with(Opaque::Kind kind,
                const Grads& inputs,
                size_t outputs,
                std::string reason = {});
  void next_call() {
    ++call_;
    point_ = Position::Start;
    grads_.clear();
    unpacked_.clear();
  }
  Slot slot_of(const Grad& grad);
  void settle();
  void find_lasts();
  std::set<Slot> needed_after() const;
  const RecordedCall& call_at(size_t i) const { return record_.calls[i]; }

  const PassRecord& record_;
  WalkPlan& plan_;
  Stage& stage_;
  Segment segment_;
  std::span<const TensorBase> slots_;
  Position from_;

  size_t call_ = 0;
  Position::Point point_ = Position::Start;
  Grads grads_;
  std::vector<Slot> unpacked_;
  std::map<int32_t, std::vector<SmallVector<Grad, 1>>> buffers_;
  std::map<ValueId, Slot> made_;  // slots of values
  std::vector<ValueId> outputs_;
};

void Walk::load() {
  auto grad = [](Slot slot) { return Grad{{}, slot}; };
  call_ = from_.call;
  point_ = from_.point;
  for (Slot slot : from_.grads) grads_.push_back(grad(slot));
  unpacked_ = from_.unpacked;
  for (const auto& [call, buffer] : from_.buffers) {
    auto& own = buffers_[call];
    for (const auto& summands : buffer) {
      own.emplace_back();
      for (Slot slot : summands) own.back().push_back(grad(slot));
    }
  }
}

// The slot of a gradient; a value of the stretch becomes an output of it.
Slot Walk::slot_of(const Grad& grad) {
  if (grad.slot != kNoSlot || !grad.wrapper.defined()) return grad.slot;
  Slot input = segment_.input_of(grad.wrapper);
  if (input != kNoSlot) return input;
  ValueId id = segment_.value_of(grad.wrapper);
  auto [at, is_new] = made_.emplace(id, plan_.next_slot);
  if (is_new) {
    ++plan_.next_slot;
    outputs_.push_back(id);
    stage_.outputs.push_back(at->second);
    auto shape = segment_.shape_of(id);
    if (shape) stage_.shapes[at->second] = std::move(*shape);
  }
  return at->second;
}

void Walk::add(int32_t call, uint32_t input_nr, Grad grad) {
  auto& buffer = buffers_[call];
  const RecordedCall& to = call_at(static_cast<size_t>(call));
  size_t wanted = std::max<size_t>(to.at.node->num_outputs(), 1);
  if (buffer.size() < wanted) buffer.resize(wanted);
  if (!grad.defined()) return;
  buffer[input_nr].push_back(std::move(grad));
  sum(buffer[input_nr]);
}

// As far as graphs hold it.
void Walk::sum(SmallVector<Grad, 1>& summands) {
  auto traced = [&](const Grad& g) {
    return g.wrapper.defined() || is_plain(slots_[static_cast<size_t>(g.slot)]);
  };
  auto wrapper = [&](Grad& g) {
    return g.wrapper.defined() ? std::move(g.wrapper)
                               : segment_.stand_in(g.slot);
  };
  while (summands.size() > 1 && traced(summands[0]) && traced(summands[1])) {
    TensorBase before = wrapper(summands[0]);
    TensorBase more = wrapper(summands[1]);
    summands[1] = {autograd::sum_of(std::move(before), more), kNoSlot};
    summands.erase(summands.begin());
  }
}

void Walk::add_effect(Effect::Kind kind, Grad& grad, size_t index) {
  Effect effect;
  effect.kind = kind;
  effect.call = static_cast<uint32_t>(call_);
  effect.index = index;
  effect.slot = slot_of(grad);
  stage_.effects.push_back(effect);
}

// The stretch ends before a call that is made as it is.
void Walk::end_with(Opaque::Kind kind,
                    const Grads& inputs,
                    size_t outputs,
                    std::string reason) {
  Opaque& opaque = stage_.opaque;
  opaque.kind = kind;
  opaque.call = call_;
  opaque.reason = std::move(reason);
  for (const Grad& g : inputs) opaque.inputs.push_back(slot_of(g));
  for (size_t i = 0; i < outputs; ++i) {
    opaque.outputs.push_back(plan_.next_slot++);
  }
}

bool Walk::start(const RecordedCall& call) {
  auto found = buffers_.find(static_cast<int32_t>(call_));
  size_t inputs = std::max<size_t>(call.at.node->num_outputs(), 1);
  if (found != buffers_.end()) {
    for (size_t i = 0; i < found->second.size(); ++i) {
      auto& summands = found->second[i];
      sum(summands);
      if (summands.size() < 2) continue;
      Grads two{summands[0], summands[1]};
      summands.erase(summands.begin());
      summands.erase(summands.begin());
      end_with(Opaque::Sum, two, 1, "a sum that no graph holds");
      stage_.opaque.index = i;
      summands.insert(summands.begin(), Grad{{}, stage_.opaque.outputs[0]});
      return false;
    }
    for (auto& summands : found->second) {
      grads_.push_back(summands.empty() ? Grad() : std::move(summands[0]));
    }
    buffers_.erase(found);
  }
  grads_.resize(std::max(inputs, grads_.size()));
  point_ = Position::Hooked;
  bool any = std::any_of(
      grads_.begin(), grads_.end(), [](const Grad& g) { return g.defined(); });
  if (!call.hooked || !any) return true;
  end_with(Opaque::Hooks, grads_, grads_.size(), "hooks of tensors");
  grads_.clear();
  for (Slot slot : stage_.opaque.outputs) grads_.push_back({{}, slot});
  return false;
}

bool Walk::after_hooks(const RecordedCall& call) {
  if (const autograd::NodeExtra* extra = call.at.node->extra_or_null()) {
    for (size_t i = 0; i < extra->retain_hooks.size(); ++i) {
      Grad& grad = grads_[extra->retain_hooks[i].output_nr];
      if (grad.defined()) add_effect(Effect::Retain, grad, i);
    }
  }
  for (const auto& c : call.at.captured) {
    Grad& grad = grads_[c.input_nr];
    if (grad.defined()) add_effect(Effect::Capture, grad, c.result);
  }
  if (call.kind == RecordedCall::Captured) {
    next_call();
    return true;
  }
  if (call.kind == RecordedCall::Accumulate) {
    if (grads_[0].defined()) add_effect(Effect::Accumulate, grads_[0], 0);
    next_call();
    return true;
  }
  point_ = Position::Unpacked;
  if (call.kind == RecordedCall::Opaque || !call.packed) return true;
  auto packed = static_cast<size_t>(
      std::count(call.saved.begin(), call.saved.end(), kPacked));
  end_with(Opaque::Unpack, {}, packed, "hooks of saved tensors");
  unpacked_ = stage_.opaque.outputs;
  return false;
}

// The node's formula on stand-ins; where that does not go, the node itself.
bool Walk::apply(const RecordedCall& call) {
  bool any = std::any_of(
      grads_.begin(), grads_.end(), [](const Grad& g) { return g.defined(); });
  std::string reason = "the node's own code";
  if (call.kind == RecordedCall::Traced) {
    try {
      autograd::Tensors given;
      for (const Grad& g : grads_) {
        given.push_back(g.slot != kNoSlot ? segment_.stand_in(g.slot)
                                          : g.wrapper);
      }
      autograd::Tensors found(call.targets.size());
      if (any) found = segment_.apply(call, std::move(given), unpacked_);
      grads_.clear();
      for (TensorBase& t : found) {
        if (t.defined()) (void)segment_.value_of(t);
        grads_.push_back({std::move(t), kNoSlot});
      }
      stage_.released.push_back(call_);
      point_ = Position::Called;
      return true;
    } catch (const std::exception& error) {
      reason = error.what();
    }
  }
  end_with(Opaque::Call, grads_, call.targets.size(), std::move(reason));
  grads_.clear();
  for (Slot slot : stage_.opaque.outputs) grads_.push_back({{}, slot});
  point_ = Position::Called;
  return false;
}

void Walk::deliver(const RecordedCall& call) {
  for (size_t i = 0; i < call.targets.size(); ++i) {
    const RecordedCall::Target& to = call.targets[i];
    if (to.call < 0) continue;
    add(to.call,
        to.input_nr,
        i < grads_.size() ? std::move(grads_[i]) : Grad());
  }
  next_call();
}

// False where the stretch is over.
bool Walk::step() {
  const RecordedCall& call = call_at(call_);
  if (point_ == Position::Start && !start(call)) return false;
  if (point_ == Position::Hooked) {
    size_t before = call_;
    if (!after_hooks(call)) return false;
    if (call_ != before) return true;
  }
  if (point_ == Position::Unpacked && !apply(call)) return false;
  deliver(call);
  return true;
}

// What is alive becomes outputs, and the position of the next stage.
void Walk::settle() {
  Position& after = stage_.after;
  after.call = call_;
  after.point = point_;
  for (const Grad& g : grads_) after.grads.push_back(slot_of(g));
  after.unpacked = unpacked_;
  for (auto& [call, buffer] : buffers_) {
    Buffer& own = after.buffers[call];
    for (auto& summands : buffer) {
      own.emplace_back();
      for (const Grad& g : summands) own.back().push_back(slot_of(g));
    }
  }
}

std::set<Slot> Walk::needed_after() const {
  std::set<Slot> out;
  const Position& after = stage_.after;
  out.insert(after.grads.begin(), after.grads.end());
  out.insert(after.unpacked.begin(), after.unpacked.end());
  for (const auto& [call, buffer] : after.buffers) {
    for (const auto& summands : buffer) {
      out.insert(summands.begin(), summands.end());
    }
  }
  for (size_t i = 0; i < plan_.last_reads.size(); ++i) {
    bool later = plan_.last_reads[i] >= static_cast<int32_t>(after.call);
    if (later) out.insert(static_cast<Slot>(i));
  }
  return out;
}

// Who is the last to need each slot.
void Walk::find_lasts() {
  std::set<Slot> later = needed_after();
  std::set<Slot> touched(from_.grads.begin(), from_.grads.end());
  touched.insert(from_.unpacked.begin(), from_.unpacked.end());
  for (const auto& [call, buffer] : from_.buffers) {
    for (const auto& summands : buffer) {
      touched.insert(summands.begin(), summands.end());
    }
  }
  for (size_t i = 0; i < plan_.last_reads.size(); ++i) {
    touched.insert(static_cast<Slot>(i));
  }
  touched.insert(stage_.outputs.begin(), stage_.outputs.end());
  const Opaque& opaque = stage_.opaque;
  for (Slot slot : opaque.inputs) {
    if (slot != kNoSlot && !later.contains(slot)) stage_.spent.push_back(slot);
  }
  later.insert(opaque.inputs.begin(), opaque.inputs.end());
  touched.erase(kNoSlot);
  for (Slot slot : touched) {
    if (!later.contains(slot)) stage_.dropped.push_back(slot);
  }
  for (size_t i = stage_.effects.size(); i-- > 0;) {
    Effect& effect = stage_.effects[i];
    effect.last = later.insert(effect.slot).second;
  }
  for (Slot slot : stage_.inputs) {
    stage_.takes.push_back(!later.contains(slot));
  }
}

std::optional<Graph> Walk::run() {
  std::optional<Graph> graph;
  {
    LevelScope outer(segment_.outer());
    LevelScope inner(segment_.inner());
    load();
    if (point_ == Position::Called) deliver(call_at(call_));
    while (call_ < record_.calls.size() && step()) {
    }
    settle();
    if (!outputs_.empty()) {
      graph = segment_.take_graph(outputs_);
      stage_.inputs = segment_.inputs();
    }
  }
  find_lasts();
  stage_.slots = plan_.next_slot;
  return graph;
}

}  // namespace

Position first_position(const PassRecord& record) {
  Position out;
  for (const PassRecord::Root& root : record.roots) {
    if (root.call < 0) continue;
    Buffer& buffer = out.buffers[root.call];
    const RecordedCall& to = record.calls[static_cast<size_t>(root.call)];
    size_t wanted = std::max<size_t>(to.at.node->num_outputs(), 1);
    if (buffer.size() < wanted) buffer.resize(wanted);
    if (root.slot != kNoSlot) buffer[root.input_nr].push_back(root.slot);
  }
  return out;
}

std::unique_ptr<WalkPlan> make_plan(const PassRecord& record, Numbers numbers) {
  auto plan = std::make_unique<WalkPlan>(std::move(numbers));
  plan->next_slot = static_cast<Slot>(record.slots.size());
  plan->last_reads.assign(record.slots.size(), -1);
  for (size_t i = 0; i < record.calls.size(); ++i) {
    const RecordedCall& call = record.calls[i];
    for (const auto& shared : call.fields.shared())
      plan->kept.push_back(shared);
    if (call.kind != RecordedCall::Traced) continue;
    for (Slot slot : call.saved) {
      if (slot < 0) continue;
      plan->last_reads[static_cast<size_t>(slot)] = static_cast<int32_t>(i);
    }
  }
  if (!plan->numbers.has_symbols()) return plan;
  for (size_t i = 0; i < record.slots.size(); ++i) {
    const RecordedLook& look = record.looks[i];
    const TensorBase& t = record.slots[i];
    if (!is_plain(t)) continue;
    auto rank = static_cast<size_t>(t.dim());
    SlotShape shape;
    for (size_t d = 0; d < rank; ++d) {
      shape.sizes.push_back(plan->numbers.at(look.sizes_at + d));
    }
    shape.strides.resize(rank);
    SymInt run = 1;
    for (size_t k = rank; k-- > 0;) {
      if (look.is_dense) {
        shape.strides[look.order[k]] = run;
        run *= shape.sizes[look.order[k]];
      } else {
        shape.strides[k] = plan->numbers.at(look.sizes_at + rank + k);
      }
    }
    plan->shapes.emplace(static_cast<Slot>(i), std::move(shape));
  }
  return plan;
}

std::optional<Graph> walk_stage(const PassRecord& record,
                                WalkPlan& plan,
                                Position from,
                                std::span<const TensorBase> slots,
                                Stage& stage) {
  return Walk(record, plan, std::move(from), slots, stage).run();
}

}  // namespace taeda::compiler
