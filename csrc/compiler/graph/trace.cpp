#include <taeda/csrc/compiler/graph/trace.h>

#include <taeda/aten/iter/symbolic.h>
#include <taeda/c10/core/symbolic_geometry.h>
#include <taeda/csrc/autograd/autocast.h>
#include <taeda/csrc/autograd/engine.h>
#include <taeda/csrc/autograd/saved_variable.h>
#include <taeda/csrc/autograd/variable.h>
#include <taeda/csrc/compiler/graph/leaves.h>
#include <taeda/csrc/compiler/graph/trace_level.h>
#include <taeda/csrc/functorch/functional_level.h>

#include <algorithm>
#include <map>
#include <string_view>

namespace taeda::compiler {

namespace {

constexpr DispatchKeySet kLazyKeys{DispatchKey::Conjugate,
                                   DispatchKey::Negative};

using functorch::functional_value;
using functorch::FunctionalLevel;
using functorch::FunctionalValue;
using functorch::Memory;

// Where the gradient of an input that is no leaf arrives. A pass that goes on
// from there is none of the program alone.
class InputNode final : public autograd::Node {
 public:
  std::string name() const override { return "CompiledInput"; }
  autograd::Tensors apply(autograd::Tensors&&) override {
    TAEDA_CHECK_AS(NotImplemented,
                   false,
                   "compile: a backward pass that leaves the graph");
  }
};

// Without a cache a leaf is cast once for each use; equal casts are one.
class WithoutCastCache {
 public:
  WithoutCastCache() { autocast::set_cache_enabled(false); }
  WithoutCastCache(const WithoutCastCache&) = delete;
  WithoutCastCache& operator=(const WithoutCastCache&) = delete;
  ~WithoutCastCache() { autocast::set_cache_enabled(before_); }

 private:
  bool before_ = autocast::cache_enabled();
};

class Tracer final : public Tape {
 public:
  Tracer(std::span<const TensorBase> inputs,
         bool joint,
         const SymbolicInputs* symbolic,
         const InnerPasses* passes)
      : level_(make_intrusive<TraceLevel>()),
        functional_(make_intrusive<FunctionalLevel>(/*keep_views=*/true,
                                                    /*is_transform=*/false)),
        given_(inputs),
        symbolic_(symbolic),
        passes_(passes),
        joint_(joint) {
    if (symbolic == nullptr) return;
    env_ = symbolic->env;
    level_->graph().symbols = symbolic->symbols;
  }
  ~Tracer() override { functional_->forget_inputs(); }
  Tracer(const Tracer&) = delete;
  Tracer& operator=(const Tracer&) = delete;
  Traced run(const Program& program);
  bool has_other_passes() const { return joint_ && tangents_.size() > 1; }
  Graph backward(const std::vector<bool>& arrived) override;
  bool has_decided() const override {
    return env_ && env_->guards().size() > guards_;
  }
  void settle() override {
    if (env_) guards_ = env_->guards().size();
  }

 private:
  struct Input {
    TensorBase wrapper;
    const Memory* memory = nullptr;
    autograd::Edge edge;  // where its gradient arrives
    uint32_t version = 0;
  };
  // A tensor that the graph's output shows.
  struct Output {
    ValueId value = kNoValue;
    TensorBase wrapper;
  };

  void add_inputs();
  TensorBase looking_like(size_t input) const;
  void add_grads(std::vector<TensorBase>& results);
  void add_results(std::span<const TensorBase> results);
  void add_mutations();
  void trace_backward();
  bool is_released(size_t output);
  std::vector<ValueId> gradients(const std::vector<bool>& arrived);
  void copy_what_is_shared();
  size_t add_output(const TensorBase& wrapper);
  Result result_for(const TensorBase& t);
  TensorBase root_in(const Memory* memory,
                     std::span<const TensorBase> results) const;
  size_t first_input(const TensorBase& t) const;

  IntrusivePtr<TraceLevel> level_;
  IntrusivePtr<FunctionalLevel> functional_;
  std::span<const TensorBase> given_;
  const SymbolicInputs* symbolic_;  // while the program runs
  const InnerPasses* passes_;       // likewise; null where it makes none
  IntrusivePtr<ShapeEnv> env_;
  size_t guards_ = 0;  // of the env that are known
  bool joint_;
  std::vector<Input> inputs_;
  std::vector<Output> outputs_;
  std::map<const Memory*, size_t> bases_;  // outputs that others are views of
  // Of outputs that are differentiated.
  std::vector<autograd::Edge> roots_;
  std::vector<TensorBase> tangents_;  // wrappers of the TraceLevel alone
  Traced traced_;
};

size_t Tracer::first_input(const TensorBase& t) const {
  size_t i = 0;
  while (!given_[i].is_same(t)) ++i;
  return i;
}

// The input, or what has its geometry by symbols.
TensorBase Tracer::looking_like(size_t input) const {
  const TensorBase& t = given_[input];
  if (symbolic_ == nullptr || !symbolic_->inputs[input]) return t;
  const SymbolicInputs::Geometry& g = *symbolic_->inputs[input];
  TensorBase like = make_symbolic_tensor(g.sizes, g.strides, t.dtype());
  like.impl()->set_keys(like.keys() | (t.keys() & kLazyKeys));
  like.impl()->is_wrapped_number = t.impl()->is_wrapped_number;
  return like;
}

void Tracer::add_inputs() {
  for (size_t i = 0; i < given_.size(); ++i) {
    const TensorBase& t = given_[i];
    size_t first = first_input(t);
    if (first != i) {
      // One tensor twice. The second place of the graph is never read.
      level_->add_input(looking_like(i), t.device());
      inputs_.push_back(inputs_[first]);
      inputs_.back().edge = {};
      continue;
    }
    std::vector<TensorBase> inner{
        level_->add_input(looking_like(i), t.device())};
    Input in;
    in.wrapper = functional_->wrap_inputs(inner)[0];
    in.memory = functional_value(in.wrapper).memory.get();
    bool differentiable = joint_ && t.requires_grad();
    if (differentiable && autograd::is_leaf(t)) {
      autograd::set_requires_grad(in.wrapper, true);
      IntrusivePtr<autograd::Node> collector;
      if (passes_ != nullptr) collector = collect_at(in.wrapper);
      in.edge = autograd::gradient_edge(in.wrapper);
    } else if (differentiable) {
      auto node = make_intrusive<InputNode>();
      uint32_t nr = node->add_output(in.wrapper);
      in.edge = {node, nr};
      autograd::set_gradient_edge(in.wrapper, in.edge);
    }
    inputs_.push_back(std::move(in));
  }
  if (passes_ == nullptr) return;
  for (size_t k = 0; k < passes_->holders.size(); ++k) {
    autograd::set_grad(inputs_[passes_->holders[k]].wrapper,
                       inputs_[passes_->own + k].wrapper);
  }
}

// Grads that inputs have in the end and did not have before.
void Tracer::add_grads(std::vector<TensorBase>& results) {
  if (passes_ == nullptr) return;
  std::vector<TensorBase> before(passes_->own);
  for (size_t k = 0; k < passes_->holders.size(); ++k) {
    before[passes_->holders[k]] = inputs_[passes_->own + k].wrapper;
  }
  for (size_t i = 0; i < passes_->own; ++i) {
    if (first_input(given_[i]) != i) continue;
    TensorBase grad = autograd::grad_of(inputs_[i].wrapper);
    bool same = grad.defined() ? grad.is_same(before[i]) : !before[i].defined();
    // So that no wrapper holds another one for ever.
    autograd::set_grad(inputs_[i].wrapper, {});
    if (same) continue;
    traced_.graded.push_back(i);
    results.push_back(std::move(grad));
  }
}

size_t Tracer::add_output(const TensorBase& wrapper) {
  ValueId id = level_->id_of(functional_->unwrap(wrapper));
  for (size_t i = 0; i < outputs_.size(); ++i) {
    if (outputs_[i].wrapper.is_same(wrapper)) return i;
  }
  outputs_.push_back({id, wrapper});
  return outputs_.size() - 1;
}

// The wrapper of a memory's base.
TensorBase Tracer::root_in(const Memory* memory,
                           std::span<const TensorBase> results) const {
  TensorBase known;
  for (const TensorBase& t : results) {
    if (!t.defined() || !functional_->holds(t)) continue;
    const FunctionalValue& own = functional_value(t);
    if (own.memory.get() != memory) continue;
    if (own.steps.empty()) {
      if (t.requires_grad() || !known.defined()) known = t;
      continue;
    }
    TensorBase base(t.impl()->base());
    if (!base.defined() || !functional_->holds(base)) continue;
    bool better = !known.defined() || !known.requires_grad();
    if (better && functional_value(base).steps.empty()) known = base;
  }
  return known;
}

// How a result is made of what it is a view of. Autograd detaches wrappers
// without a call. What was written to behind a detach has a history that no
// view has.
functorch::ViewSteps steps_of(const TensorBase& t, const TensorBase& base) {
  functorch::ViewSteps steps = functional_value(t).steps;
  auto detaches = [](const functorch::ViewStep& step) {
    return std::string_view(step.op->name) == "detach";
  };
  TAEDA_CHECK_AS(NotImplemented,
                 !t.requires_grad() || std::ranges::none_of(steps, detaches),
                 "compile: a write to a detached result that is recorded");
  bool detached = base.requires_grad() && !t.requires_grad();
  if (!t.is_same(base) && (detached || steps.empty())) {
    steps.push_back({Dispatcher::get().find("detach", ""), {TensorBase()}});
  }
  return steps;
}

Result Tracer::result_for(const TensorBase& t) {
  Result r;
  if (!t.defined()) return r;
  if (!functional_->holds(t)) {
    TAEDA_CHECK_AS(NotImplemented,
                   wrapped_or_null(t) == nullptr,
                   "compile: a result of another level");
    r.kind = Result::Constant;
    r.constant = t;
    return r;
  }
  const FunctionalValue& own = functional_value(t);
  for (size_t i = 0; i < inputs_.size(); ++i) {
    if (own.memory.get() != inputs_[i].memory) continue;
    r.kind = t.is_same(inputs_[i].wrapper) ? Result::Input : Result::OfInput;
    r.index = i;
    r.steps = steps_of(t, inputs_[i].wrapper);
    return r;
  }
  auto base = bases_.find(own.memory.get());
  if (base != bases_.end() && !outputs_[base->second].wrapper.is_same(t)) {
    r.kind = Result::OfOutput;
    r.index = base->second;
    r.steps = steps_of(t, outputs_[r.index].wrapper);
    return r;
  }
  r.kind = Result::Output;
  r.index = add_output(t);
  return r;
}

void Tracer::add_results(std::span<const TensorBase> results) {
  // Memories that more than one tensor shows.
  std::map<const Memory*, const TensorImpl*> shown;
  std::vector<const Memory*> shared;
  for (const TensorBase& t : results) {
    if (!t.defined() || !functional_->holds(t)) continue;
    const Memory* memory = functional_value(t).memory.get();
    auto [at, first] = shown.emplace(memory, t.impl());
    if (!first && at->second != t.impl()) shared.push_back(memory);
  }
  for (const Memory* memory : shared) {
    bool input = false;
    for (const Input& in : inputs_) input = input || in.memory == memory;
    if (input || bases_.contains(memory)) continue;
    TensorBase root = root_in(memory, results);
    if (!root.defined()) root = functional_->wrap(memory->value);
    bases_[memory] = add_output(root);
  }
  for (const TensorBase& t : results) {
    traced_.results.push_back(result_for(t));
  }
}

void Tracer::add_mutations() {
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const Input& in = inputs_[i];
    if (first_input(given_[i]) != i) continue;
    const FunctionalValue& own = functional_value(in.wrapper);
    TAEDA_CHECK_AS(NotImplemented,
                   own.memory.get() == in.memory && !own.moved,
                   "compile: an input was made another tensor (set_, resize_ "
                   "or a view in place)");
    if (in.memory->writes == 0) continue;
    bool recorded = joint_ && in.memory->recorded;
    outputs_.push_back({level_->id_of(functional_->unwrap(in.wrapper)),
                        recorded ? in.wrapper : TensorBase()});
    traced_.mutations.push_back({i, outputs_.size() - 1, recorded});
  }
}

// The tangent of an output: laid out like it where that is without holes.
TensorBase tangent_like(const TensorBase& t) {
  if (t.impl()->is_symbolic()) {
    SymIntArrayRef sizes = sym_sizes(*t.impl());
    SymIntArrayRef strides = sym_strides(*t.impl());
    if (!is_dense(sizes, strides)) strides = {};
    return make_symbolic_tensor(sizes, strides, t.dtype());
  }
  if (t.is_non_overlapping_and_dense()) {
    return make_tensor_strided(
        "compile", t.sizes(), t.strides(), t.dtype(), DeviceType::Meta);
  }
  return make_tensor("compile", t.sizes(), t.dtype(), DeviceType::Meta);
}

// One for each input, of a pass in which these tangents arrive.
std::vector<ValueId> Tracer::gradients(const std::vector<bool>& arrived) {
  std::vector<autograd::Edge> roots, wanted;
  std::vector<TensorBase> tangents;
  for (size_t i = 0; i < roots_.size(); ++i) {
    if (!arrived[i]) continue;
    roots.push_back(roots_[i]);
    // A wrapper for this pass, which may write to it.
    tangents.push_back(functional_->wrap(tangents_[i]));
  }
  for (const Input& in : inputs_) {
    if (in.edge.valid()) wanted.push_back(in.edge);
  }
  std::vector<TensorBase> grads;
  if (!roots.empty() && !wanted.empty()) {
    autograd::BackwardOptions options;
    options.accumulate = false;
    options.keep_graph = has_other_passes();
    grads = autograd::run_backward(roots, std::move(tangents), wanted, options);
    traced_.joint = true;
  }
  std::vector<ValueId> out;
  size_t next = 0;
  for (const Input& in : inputs_) {
    TensorBase grad;
    if (in.edge.valid() && next < grads.size()) grad = grads[next++];
    out.push_back(grad.defined() ? level_->id_of(functional_->unwrap(grad))
                                 : kNoValue);
  }
  return out;
}

// Whether a pass inside has let go of what this output's would need: by trying.
bool Tracer::is_released(size_t output) {
  const TensorBase& t = outputs_[output].wrapper;
  std::vector<autograd::Edge> wanted;
  for (const Input& in : inputs_) {
    if (in.edge.valid()) wanted.push_back(in.edge);
  }
  autograd::BackwardOptions options;
  options.accumulate = false;
  options.keep_graph = true;
  Graph& graph = level_->graph();
  size_t nodes = graph.nodes.size(), values = graph.values.size();
  TensorBase tangent = level_->add_input(tangent_like(t), t.device());
  graph.inputs.pop_back();
  bool released = false;
  try {
    autograd::run_backward({autograd::gradient_edge(t)},
                           {functional_->wrap(tangent)},
                           wanted,
                           options);
  } catch (const Error& error) {
    if (!autograd::says_backward_twice(error)) throw;
    traced_.released.emplace_back(output, error.message());
    released = true;
  }
  graph.nodes.resize(nodes);
  for (size_t v = values; v < graph.values.size(); ++v) {
    graph.values[v].node = -1;
  }
  return released;
}

void Tracer::trace_backward() {
  Graph& graph = level_->graph();
  traced_.tangents.assign(outputs_.size(), -1);
  for (size_t i = 0; i < outputs_.size(); ++i) {
    const TensorBase& t = outputs_[i].wrapper;
    if (!joint_ || !t.defined() || !t.requires_grad()) continue;
    if (passes_ != nullptr && is_released(i)) continue;
    traced_.tangents[i] = static_cast<int32_t>(graph.inputs.size());
    tangents_.push_back(level_->add_input(tangent_like(t), t.device()));
    roots_.push_back(autograd::gradient_edge(t));
  }
  std::vector<bool> all(roots_.size(), true);
  for (ValueId id : gradients(all)) graph.outputs.push_back(id);
}

Graph Tracer::backward(const std::vector<bool>& arrived) {
  WithoutCastCache casts;
  LevelScope outer(level_);
  LevelScope inner(functional_);
  std::vector<ValueId> found = gradients(arrived);
  Graph graph = level_->graph();
  graph.outputs = std::move(found);
  return graph;
}

Traced Tracer::run(const Program& program) {
  WithoutCastCache casts;
  LevelScope outer(level_);
  LevelScope inner(functional_);
  add_inputs();
  std::vector<TensorBase> arguments;
  for (const Input& in : inputs_) arguments.push_back(in.wrapper);
  std::vector<TensorBase> results;
  {
    LocalStateGuard modes;
    results = program(arguments);
  }
  add_grads(results);
  add_results(results);
  add_mutations();
  Graph& graph = level_->graph();
  for (const Output& out : outputs_) graph.outputs.push_back(out.value);
  traced_.inputs = inputs_.size();
  traced_.outputs = outputs_.size();
  trace_backward();
  given_ = {};
  symbolic_ = nullptr;
  passes_ = nullptr;
  if (traced_.joint && has_other_passes()) {
    traced_.graph = graph;
  } else {
    traced_.graph = std::move(graph);
  }
  return std::move(traced_);
}

}  // namespace

bool is_watched() {
  constexpr DispatchKeySet kWatchers{DispatchKey::Intercept,
                                     DispatchKey::Python};
  return (local_state.included & kWatchers.bits()) != 0;
}

Traced trace(const Program& program,
             std::span<const TensorBase> inputs,
             bool joint,
             const SymbolicInputs* symbolic,
             const InnerPasses* passes) {
  auto tracer = std::make_unique<Tracer>(inputs, joint, symbolic, passes);
  Traced traced = tracer->run(program);
  if (traced.joint && tracer->has_other_passes()) {
    traced.tape = std::move(tracer);
  }
  return traced;
}

}  // namespace taeda::compiler
