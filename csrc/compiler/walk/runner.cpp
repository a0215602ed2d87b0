#include <taeda/csrc/compiler/walk/runner.h>

#include <taeda/csrc/autograd/accumulate_grad.h>
#include <taeda/csrc/autograd/validate.h>
#include <taeda/csrc/compiler/graph/trace.h>

#include <algorithm>

namespace taeda::compiler {

namespace {

using autograd::Node;
using autograd::Tensors;

// More passes with one key, or more ways to go on from a call, are not
// compiled.
constexpr size_t kMostVersions = 16;
constexpr size_t kMostPlans = 1024;

// Inside, passes are the engine's.
class WithoutRunner {
 public:
  WithoutRunner() : before_(autograd::exchange_pass_runner(nullptr)) {}
  WithoutRunner(const WithoutRunner&) = delete;
  WithoutRunner& operator=(const WithoutRunner&) = delete;
  ~WithoutRunner() { autograd::exchange_pass_runner(before_); }

 private:
  autograd::PassRunner* before_;
};

class ExecutorCode final : public SegmentCode {
 public:
  explicit ExecutorCode(Graph graph) : executor_(std::move(graph)) {}
  std::vector<TensorBase> run(std::vector<TensorBase> inputs,
                              std::span<const int64_t> symbols) override {
    return executor_.run(std::move(inputs), symbols);
  }

 private:
  Executor executor_;
};

Look look_of(const TensorBase& t) {
  Look look;
  if (!t.defined()) return look;
  look.kind = is_plain(t) ? Look::Plain : Look::Other;
  if (look.kind == Look::Other) return look;
  look.sizes = as_symbolic(t.sizes()).vec();
  look.strides = as_symbolic(t.strides()).vec();
  look.dtype = t.dtype();
  look.device = t.device();
  look.keys = t.keys() - DispatchKeySet(DispatchKey::Autograd);
  return look;
}

// One run of a pass.
class Run {
 public:
  Run(autograd::PassView& pass,
      PassRecord& record,
      WalkPlan& plan,
      const DimVector& symbols,
      std::mutex& mutex,
      SegmentCompiler& compiler)
      : pass_(pass),
        record_(record),
        plan_(plan),
        symbols_(symbols),
        mutex_(mutex),
        compiler_(compiler),
        slots_(std::move(record.slots)) {}
  void go();

 private:
  Stage* stage_behind(Stage* before);
  bool fits(const Stage& stage, std::span<const Slot> given) const;
  std::vector<SymInt> expected_sizes(const Stage& before, size_t i) const;
  void name_sizes(Stage& stage,
                  const Stage& before,
                  std::span<const Slot> given);
  std::unique_ptr<Stage> capture(Stage* before, std::span<const Slot> given);
  Position position_behind(const Stage* before) const;
  void run_stage(const Stage& stage);
  void apply(const Effect& effect);
  void call(const Stage& stage);
  Tensors unpack(const RecordedCall& call);
  Tensors call_of(Node& node, Tensors grads);
  void finish(Position position);
  void release(Node& node) const {
    if (!pass_.options().keep_graph) node.release_variables();
  }
  TensorBase& at(Slot slot) { return slots_[static_cast<size_t>(slot)]; }
  TensorBase tensor_of(Slot slot) {
    return slot == kNoSlot ? TensorBase() : TensorBase(at(slot));
  }

  autograd::PassView& pass_;
  PassRecord& record_;
  WalkPlan& plan_;
  const DimVector& symbols_;
  std::mutex& mutex_;
  SegmentCompiler& compiler_;
  std::vector<TensorBase> slots_;
};

// Whether a stage was captured for what the slots hold now.
bool Run::fits(const Stage& stage, std::span<const Slot> given) const {
  SizeNumbers numbers;
  if (stage.has_sizes && !stage.table.try_run(symbols_, numbers)) return false;
  for (int32_t place : stage.guards) {
    if (numbers[static_cast<size_t>(place)] == 0) return false;
  }
  DimVector room;
  for (size_t i = 0; i < given.size(); ++i) {
    const TensorBase& t = slots_[static_cast<size_t>(given[i])];
    const Look& look = stage.looks[i];
    if (!t.defined() || look.kind != Look::Plain) {
      bool other = t.defined() && !is_plain(t);
      if (look.kind != (other ? Look::Other : Look::None)) return false;
      if (t.defined() && !other) return false;
      continue;
    }
    bool same = is_plain(t) && t.dtype() == look.dtype &&
                t.device() == look.device &&
                t.keys() - DispatchKeySet(DispatchKey::Autograd) == look.keys &&
                t.sizes() == stage.sizes[i].in(numbers.data(), room) &&
                t.strides() == stage.strides[i].in(numbers.data(), room);
    if (!same) return false;
  }
  return true;
}

// What the sizes of a call's result are expected to be; empty where nothing
// tells.
std::vector<SymInt> Run::expected_sizes(const Stage& before, size_t i) const {
  const Opaque& opaque = before.opaque;
  std::vector<SymInt> out;
  if (opaque.kind == Opaque::Hooks || opaque.kind == Opaque::Sum) {
    auto known = before.shapes.find(opaque.inputs[i]);
    if (known != before.shapes.end()) out = known->second.sizes;
  }
  if (opaque.kind == Opaque::Call) {
    RecordedCall::Target to = record_.calls[opaque.call].targets[i];
    if (to.call < 0) return out;
    const RecordedCall& call = record_.calls[static_cast<size_t>(to.call)];
    size_t count = call.at.node->output(to.input_nr).sizes.size();
    size_t at = numbers_of_output(call, to.input_nr);
    for (size_t d = 0; d < count; ++d) {
      out.push_back(plan_.numbers.at(at + d));
    }
  }
  return out;
}

// Row-major strides by symbols, if these are.
void follow_rows(Look& look) {
  SymInt run = 1;
  std::vector<SymInt> strides(look.sizes.size());
  for (size_t d = look.sizes.size(); d-- > 0;) {
    if (hint(run) != look.strides[d].plain()) return;
    strides[d] = run;
    run *= look.sizes[d];
  }
  look.strides = std::move(strides);
}

// Symbols for sizes of a call's results: those that are expected, or of what
// a hook has unpacked, those that have the same value.
void Run::name_sizes(Stage& stage,
                     const Stage& before,
                     std::span<const Slot> given) {
  for (size_t i = 0; i < given.size(); ++i) {
    Look& look = stage.looks[i];
    if (look.kind != Look::Plain) continue;
    std::vector<SymInt> expected = expected_sizes(before, i);
    bool unknown = before.opaque.kind == Opaque::Unpack;
    for (size_t d = 0; d < look.sizes.size(); ++d) {
      int64_t seen = look.sizes[d].plain();
      if (d < expected.size()) {
        SymInt wanted = moved(expected[d], *stage.env);
        if (hint(wanted) == seen) look.sizes[d] = wanted;
      }
      for (size_t k = 0; unknown && k < symbols_.size(); ++k) {
        if (symbols_[k] != seen) continue;
        look.sizes[d] = moved(plan_.numbers.symbols()[k], *stage.env);
        break;
      }
    }
    follow_rows(look);
    stage.shapes[given[i]] = {look.sizes, look.strides};
  }
}

Position Run::position_behind(const Stage* before) const {
  if (before == nullptr) return first_position(record_);
  Position at = before->after;
  auto drop = [&](Slot& slot) {
    bool undefined =
        slot != kNoSlot && !slots_[static_cast<size_t>(slot)].defined();
    if (undefined) slot = kNoSlot;
  };
  for (Slot& slot : at.grads) drop(slot);
  for (Slot& slot : at.unpacked) drop(slot);
  for (auto& [call, buffer] : at.buffers) {
    for (auto& summands : buffer) {
      for (Slot& slot : summands) drop(slot);
    }
  }
  return at;
}

std::unique_ptr<Stage> Run::capture(Stage* before,
                                    std::span<const Slot> given) {
  auto stage = std::make_unique<Stage>();
  if (plan_.numbers.has_symbols()) {
    const IntrusivePtr<ShapeEnv>& env =
        before == nullptr ? plan_.numbers.env() : before->env;
    std::unordered_map<symbolic::Id, int64_t> seen;
    for (size_t k = 0; k < symbols_.size(); ++k) {
      seen[plan_.numbers.symbols()[k].node()->id] = symbols_[k];
    }
    stage->env = env->with_hints(seen);
    stage->shapes = before == nullptr ? plan_.shapes : before->shapes;
    std::vector<SymInt> symbols;
    for (const SymInt& v : plan_.numbers.symbols()) {
      symbols.push_back(moved(v, *stage->env));
    }
    stage->table = SizeTable(symbols);
    stage->has_sizes = true;
  }
  for (Slot slot : given) {
    stage->looks.push_back(look_of(at(slot)));
  }
  if (stage->env && before != nullptr) name_sizes(*stage, *before, given);
  for (const Look& look : stage->looks) {
    stage->sizes.emplace_back(look.sizes, stage->table);
    stage->strides.emplace_back(look.strides, stage->table);
  }
  std::optional<Graph> graph =
      walk_stage(record_, plan_, position_behind(before), slots_, *stage);
  if (graph) stage->code = compiler_.compile(std::move(*graph));
  if (stage->env) {
    for (const ShapeGuard& g : stage->env->guards()) {
      stage->guards.push_back(
          stage->table.place(stage->env->expressions(), g.condition));
    }
  }
  const Opaque& opaque = stage->opaque;
  if (opaque.kind != Opaque::None) {
    compiler_.ended(record_.calls[opaque.call].at.node->name(), opaque.reason);
  }
  return stage;
}

// Null where no further stage is to be captured.
Stage* Run::stage_behind(Stage* before) {
  std::span<const Slot> given;
  if (before != nullptr) given = before->opaque.outputs;
  std::lock_guard<std::mutex> lock(mutex_);
  auto& known = before == nullptr ? plan_.first : before->next;
  for (auto& stage : known) {
    if (fits(*stage, given)) return stage.get();
  }
  if (known.size() >= kMostVersions) return nullptr;
  if (before == nullptr || !known.empty()) compiler_.captured();
  std::unique_ptr<Stage> made = capture(before, given);
  known.push_back(std::move(made));
  return known.back().get();
}

void Run::apply(const Effect& effect) {
  autograd::PassCall& call = record_.calls[effect.call].at;
  TensorBase t = effect.last ? TensorBase(std::move(at(effect.slot)))
                             : TensorBase(at(effect.slot));
  switch (effect.kind) {
    case Effect::Accumulate: {
      Tensors grads;
      grads.push_back(std::move(t));
      call.node->apply(std::move(grads));
      release(*call.node);
      return;
    }
    case Effect::Retain: {
      auto hook = call.node->extra().retain_hooks[effect.index].hook;
      hook->call(t);
      return;
    }
    case Effect::Capture:
      pass_.results()[effect.index] = std::move(t);
  }
}

void Run::run_stage(const Stage& stage) {
  slots_.resize(std::max(slots_.size(), static_cast<size_t>(stage.slots)));
  std::vector<TensorBase> inputs;
  for (size_t i = 0; i < stage.inputs.size(); ++i) {
    TensorBase& t = at(stage.inputs[i]);
    if (stage.takes[i]) {
      inputs.push_back(std::move(t));
    } else {
      inputs.push_back(t);
    }
  }
  // What the nodes hold is then free after its last use.
  for (size_t i : stage.released) release(*record_.calls[i].at.node);
  if (stage.code) {
    std::vector<TensorBase> found =
        stage.code->run(std::move(inputs), symbols_);
    for (size_t i = 0; i < found.size(); ++i) {
      at(stage.outputs[i]) = std::move(found[i]);
    }
  }
  for (const Effect& effect : stage.effects) apply(effect);
  for (Slot slot : stage.dropped) at(slot).reset();
}

Tensors Run::call_of(Node& node, Tensors grads) {
  Tensors found;
  pass_.run_as(node,
               [&] { found = autograd::call_node(node, std::move(grads)); });
  release(node);
  autograd::validate_grads(node, found);
  return found;
}

Tensors Run::unpack(const RecordedCall& call) {
  Tensors found;
  pass_.run_as(*call.at.node, [&] {
    each_saved(call.fields, [&](const autograd::SavedVariable& saved) {
      if (saved.is_packed()) found.push_back(saved.unpack(*call.at.node));
    });
  });
  return found;
}

// The call behind a stage, with the tensors themselves.
void Run::call(const Stage& stage) {
  const Opaque& opaque = stage.opaque;
  const RecordedCall& of = record_.calls[opaque.call];
  Node& node = *of.at.node;
  Tensors grads;
  for (Slot slot : opaque.inputs) grads.push_back(tensor_of(slot));
  for (Slot slot : stage.spent) at(slot).reset();
  switch (opaque.kind) {
    case Opaque::None:
      break;
    case Opaque::Hooks:
      pass_.run_as(node, [&] { autograd::run_tensor_hooks(node, grads); });
      break;
    case Opaque::Unpack:
      grads = unpack(of);
      break;
    case Opaque::Call:
      grads = call_of(node, std::move(grads));
      break;
    case Opaque::Sum:
      grads[0] = autograd::sum_of(std::move(grads[0]), grads[1]);
      break;
  }
  grads.resize(std::max(grads.size(), opaque.outputs.size()));
  for (size_t i = 0; i < opaque.outputs.size(); ++i) {
    at(opaque.outputs[i]) = std::move(grads[i]);
  }
}

// The rest of the pass as the engine runs it.
void Run::finish(Position position) {
  std::map<int32_t, std::vector<TensorBase>> buffers;
  auto add = [&](int32_t call, size_t input, const TensorBase& grad) {
    auto& buffer = buffers[call];
    const Node& to = *record_.calls[static_cast<size_t>(call)].at.node;
    buffer.resize(std::max<size_t>({buffer.size(), to.num_outputs(), 1}));
    if (!grad.defined()) return;
    TensorBase& slot = buffer[input];
    slot = slot.defined() ? autograd::sum_of(std::move(slot), grad) : grad;
  };
  for (const auto& [call, buffer] : position.buffers) {
    for (size_t i = 0; i < buffer.size(); ++i) {
      add(call, i, {});
      for (Slot slot : buffer[i]) add(call, i, tensor_of(slot));
    }
  }
  Tensors grads;
  for (Slot slot : position.grads) grads.push_back(tensor_of(slot));
  Position::Point point = position.point;
  slots_.clear();
  for (size_t i = position.call; i < record_.calls.size(); ++i) {
    const RecordedCall& call = record_.calls[i];
    Node& node = *call.at.node;
    if (point == Position::Start) {
      grads.clear();
      for (TensorBase& t : buffers[static_cast<int32_t>(i)]) {
        grads.push_back(std::move(t));
      }
      buffers.erase(static_cast<int32_t>(i));
      grads.resize(std::max<size_t>({grads.size(), node.num_outputs(), 1}));
      pass_.run_as(node, [&] { autograd::run_tensor_hooks(node, grads); });
      point = Position::Hooked;
    }
    if (point == Position::Hooked) {
      autograd::run_retain_hooks(node, grads);
      for (const auto& c : call.at.captured) {
        pass_.results()[c.result] = grads[c.input_nr];
      }
    }
    bool called = point == Position::Called;
    point = Position::Start;
    if (!call.at.needed) continue;
    if (!called) grads = call_of(node, std::move(grads));
    for (size_t k = 0; k < call.targets.size(); ++k) {
      const RecordedCall::Target& to = call.targets[k];
      if (to.call < 0) continue;
      add(to.call, to.input_nr, k < grads.size() ? grads[k] : TensorBase());
    }
  }
}

void Run::go() {
  Stage* before = nullptr;
  while (true) {
    Stage* stage = stage_behind(before);
    if (stage == nullptr) {
      compiler_.left("more than " + std::to_string(kMostVersions) +
                     " ways to go on from one call");
      finish(position_behind(before));
      return;
    }
    run_stage(*stage);
    if (stage->opaque.kind == Opaque::None) return;
    call(*stage);
    before = stage;
  }
}

// Why the engine runs a pass; null where it does not.
const char* why_left(const autograd::PassView& pass) {
  if (pass.options().create_graph) return "create_graph=True";
  if (autograd::anomaly_mode().enabled) return "anomaly mode";
  if (is_watched()) return "a transform or a mode is active";
  return nullptr;
}

}  // namespace

std::unique_ptr<SegmentCode> make_code(Graph graph,
                                       void (*fuse)(Graph& graph)) {
  if (fuse != nullptr) fuse(graph);
  check(graph);
  return std::make_unique<ExecutorCode>(std::move(graph));
}

size_t PassPlans::KeyHash::operator()(const std::vector<uint64_t>& key) const {
  uint64_t h = key.size();
  for (uint64_t word : key) {
    h = (h ^ word) * 0x9E3779B97F4A7C15u;
    h ^= h >> 29;
  }
  return h;
}

PassPlans::Found PassPlans::find(const PassRecord& record, bool dynamic) {
  std::lock_guard<std::mutex> lock(mutex_);
  Found found;
  auto at = plans_.find(record.key);
  if (at != plans_.end()) {
    for (const auto& plan : at->second) {
      if (!plan->numbers.read(record.numbers, found.symbols)) continue;
      found.plan = plan;
      return found;
    }
    if (at->second.size() >= kMostVersions) return found;
  } else {
    if (plans_.size() >= kMostPlans) return found;
    at = plans_.emplace(record.key, PlanList()).first;
  }
  PlanList& known = at->second;
  Numbers numbers = !known.empty()
                        ? Numbers(record.numbers, known.back()->numbers)
                    : dynamic ? Numbers::all_dynamic(record.numbers)
                              : Numbers(record.numbers);
  found.plan = make_plan(record, std::move(numbers));
  (void)found.plan->numbers.read(record.numbers, found.symbols);
  known.push_back(found.plan);
  return found;
}

void PassPlans::clear() {
  // Freed without the lock: code may be Python's.
  PlanTable old;
  std::lock_guard<std::mutex> lock(mutex_);
  old.swap(plans_);
}

bool CompiledPasses::run(autograd::PassView& pass) {
  if (const char* reason = why_left(pass)) {
    compiler_.left(reason);
    return false;
  }
  WithoutRunner inside;
  PassRecord record = record_pass(pass);
  PassPlans::Found found = plans_.find(record, dynamic_);
  if (!found.plan) {
    compiler_.left("too many kinds of passes");
    return false;
  }
  pass.grads.clear();
  Run(pass, record, *found.plan, found.symbols, plans_.mutex(), compiler_).go();
  return true;
}

}  // namespace taeda::compiler
