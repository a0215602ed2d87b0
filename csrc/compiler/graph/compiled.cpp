#include <taeda/csrc/compiler/graph/compiled.h>

#include <taeda/aten/iter/output.h>
#include <taeda/csrc/autograd/accumulate_grad.h>
#include <taeda/csrc/compiler/graph/causes.h>
#include <taeda/csrc/compiler/graph/compiled_node.h>
#include <taeda/csrc/compiler/graph/layouts.h>
#include <taeda/csrc/compiler/graph/leaves.h>
#include <taeda/csrc/compiler/graph/overwrite.h>
#include <taeda/csrc/compiler/graph/passes.h>
#include <taeda/gen/ops/copy_.h>

#include <algorithm>

namespace taeda::compiler {

namespace {

// Results that are different tensors eagerly do not share memory here either,
// nor with an input or a constant.
void copy_what_is_shared(Graph& graph, size_t outputs) {
  std::vector<bool> taken(graph.values.size());
  for (ValueId id : graph.inputs) taken[static_cast<size_t>(id)] = true;
  for (size_t i = 0; i < outputs; ++i) {
    ValueId id = graph.outputs[i];
    if (id == kNoValue) continue;
    ValueId root = graph[id].base == kNoValue ? id : graph[id].base;
    bool shared =
        taken[static_cast<size_t>(root)] || graph[root].constant.defined();
    taken[static_cast<size_t>(root)] = true;
    if (shared) graph.outputs[i] = append_copy(graph, id);
  }
}

// A tensor of its own where the graph has made a view: for autograd nothing
// else shows that memory.
TensorBase as_result(const TensorBase& t) {
  if (!t.is_view()) return t;
  return TensorBase(t.impl()->shallow_copy(/*share_version=*/true));
}

bool same_settings(const autocast::Settings& a, const autocast::Settings& b) {
  if (a.enabled != b.enabled) return false;
  return a.enabled == 0 ||
         std::equal(
             std::begin(a.dtypes), std::end(a.dtypes), std::begin(b.dtypes));
}

}  // namespace

CompiledProgram::CompiledProgram(const Program& program,
                                 std::span<const TensorBase> inputs,
                                 const CompileOptions& options,
                                 const SymbolicInputs* symbolic,
                                 const InnerPasses* passes)
    : grad_mode_(grad_enabled()),
      inference_(inference_mode()),
      autocast_(autocast::settings()),
      passes_(passes == nullptr ? std::nullopt : std::optional(*passes)) {
  if (symbolic != nullptr) table_ = SizeTable(symbolic->symbols);
  bool joint = false;
  for (const TensorBase& t : inputs) {
    bool plain = t.layout() == Layout::Strided &&
                 !t.keys().has(DispatchKey::Wrapped) &&
                 !t.keys().has(DispatchKey::Python);
    TAEDA_CHECK_AS(NotImplemented,
                   plain,
                   "compile: an input is no plain tensor (",
                   t,
                   ")");
    joint = joint || t.requires_grad();
  }
  TAEDA_CHECK_AS(NotImplemented,
                 !passes_ || has_same_grads(inputs),
                 "compile: a backward pass with hooks of leaves, or in anomaly "
                 "mode");
  Traced traced = trace(program, inputs, joint, symbolic, passes);
  outputs_ = traced.outputs;
  results_ = std::move(traced.results);
  graded_ = std::move(traced.graded);
  released_ = std::move(traced.released);
  mutations_ = std::move(traced.mutations);
  look_at(inputs, symbolic);
  for (const Mutation& m : mutations_) {
    // Calls may fill such a tensor, copies into it are refused.
    TAEDA_CHECK_AS(NotImplemented,
                   repeated_dim(inputs[m.input]) < 0,
                   "compile: an input that is written has elements that share "
                   "memory");
  }
  TAEDA_CHECK_AS(NotImplemented,
                 !shares_written(inputs),
                 "compile: an input that is written shares memory with another "
                 "one");
  look_at_offsets(traced.graph, inputs);
  keep_steps();
  split_graph(std::move(traced), inputs.size(), options);
  if (symbolic != nullptr) keep_guards(*symbolic);
}

void CompiledProgram::split_graph(Traced traced,
                                  size_t inputs,
                                  const CompileOptions& options) {
  const auto first = traced.graph.outputs.begin();
  std::vector<ValueId> results(first, first + static_cast<long>(outputs_));
  merge_equal(traced.graph, results);
  remove_dead(traced.graph);
  copy_what_is_shared(traced.graph, outputs_);
  if (passes_ && !traced.joint) {
    traced.graph = made_again(traced.graph, options.partition);
  }
  causes_ = causes_of_gradients(traced.graph, traced.inputs, outputs_);
  for (int32_t t : traced.tangents) {
    tangents_.push_back(t < 0 ? -1 : t - static_cast<int32_t>(traced.inputs));
  }
  std::vector<bool> written(inputs);
  for (const Mutation& m : mutations_) written[m.input] = true;
  Split split = partition(
      traced.graph, traced.inputs, outputs_, written, options.partition);
  saved_ = std::move(split.saved);
  std::vector<size_t> turned;
  if (traced.joint) readers_ = readers_of_saved(split.backward, saved_.size());
  TangentSet all(tangents_.size(), true);
  for (const TangentSet& set : readers_)
    all_readers_.push_back(meets(set, all));
  if (options.layouts) turned = choose_layouts_of(split, traced.joint);
  if (options.fuse != nullptr) options.fuse(split.forward);
  std::vector<ValueId> into = overwritten(split.forward);
  check(split.forward);
  forward_ =
      std::make_unique<Executor>(std::move(split.forward), std::move(into));
  if (!traced.joint) return;
  if (options.fuse != nullptr) options.fuse(split.backward);
  check(split.backward);
  backward_ = std::make_unique<Executor>(std::move(split.backward));
  if (!traced.tape) return;
  traced.tape->settle();
  others_ = std::make_unique<Backwards>(std::move(traced.tape),
                                        traced.inputs,
                                        std::move(results),
                                        std::move(split.saved_values),
                                        std::move(turned),
                                        options);
}

// Forward and backward; which saved values have their channels innermost.
std::vector<size_t> CompiledProgram::choose_layouts_of(Split& split,
                                                       bool joint) const {
  auto saved = [&](size_t i) -> const Value& {
    return split.forward[split.forward.outputs[saved_[i].index]];
  };
  std::vector<std::vector<SymInt>> before;
  for (size_t i = 0; i < saved_.size(); ++i) {
    before.emplace_back();
    if (!saved_[i].input) before.back() = saved(i).strides;
  }
  choose_layouts(split.forward, {.fixed = outputs_, .trains = joint});
  std::vector<size_t> turned;
  for (size_t i = 0; i < saved_.size(); ++i) {
    bool kept = saved_[i].input || same(before[i], saved(i).strides);
    if (!kept) turned.push_back(i);
  }
  choose_layouts(split.backward,
                 {.fixed = split.backward.outputs.size(), .turned = turned});
  return turned;
}

// What autograd records is written by calls, which may refuse it.
std::vector<ValueId> CompiledProgram::overwritten(Graph& graph) const {
  std::vector<Overwrite> writes;
  for (const Mutation& m : mutations_) {
    if (m.recorded) return {};
    writes.push_back({graph.inputs[m.input], graph.outputs[m.output]});
  }
  return overwrite_inputs(graph, writes);
}

// Guards that passes left count too, so that they are taken last.
void CompiledProgram::keep_guards(const SymbolicInputs& symbolic) {
  ShapeEnv& env = *symbolic.env;
  for (const SymInt& v : symbolic.symbols) {
    bool is_symbol = v.is_symbolic() && env.expressions()[v.node()->id].type ==
                                            symbolic::Type::Symbol;
    lowest_.push_back(is_symbol ? env.lowest(v.node()->id)
                                : symbolic::Range::kLow);
  }
  for (const ShapeGuard& g : env.guards()) {
    guards_.push_back(table_.place(env.expressions(), g.condition));
  }
}

// Expressions among the arguments of views that are made of results.
void CompiledProgram::keep_steps() {
  for (Result& r : results_) {
    steps_.emplace_back();
    for (functorch::ViewStep& step : r.steps) {
      steps_.back().emplace_back(step.arguments, table_);
      has_steps_ = has_steps_ || !steps_.back().back().empty();
    }
  }
}

void CompiledProgram::look_at(std::span<const TensorBase> inputs,
                              const SymbolicInputs* symbolic) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    const TensorBase& t = inputs[i];
    Look look;
    if (symbolic != nullptr && symbolic->inputs[i]) {
      look.sizes = {symbolic->inputs[i]->sizes, table_};
      look.strides = {symbolic->inputs[i]->strides, table_};
    } else {
      look.sizes = {as_symbolic(t.sizes()), table_};
      look.strides = {as_symbolic(t.strides()), table_};
    }
    look.dtype = t.dtype();
    look.device = t.device();
    look.keys = t.keys();
    for (size_t k = 0; k < i && look.same_as < 0; ++k) {
      if (inputs[k].is_same(t)) look.same_as = static_cast<int32_t>(k);
    }
    looks_.push_back(std::move(look));
  }
}

// as_strided counts from the beginning of the storage.
void CompiledProgram::look_at_offsets(const Graph& graph,
                                      std::span<const TensorBase> inputs) {
  for (const Node& node : graph.nodes) {
    if (std::string_view(node.op->name) != "as_strided") continue;
    ValueId base = graph[node.results[0]].base;
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (graph.inputs[i] != base) continue;
      looks_[i].offset = inputs[i].storage_offset();
    }
  }
}

bool CompiledProgram::shares_written(std::span<const TensorBase> inputs) const {
  for (const Mutation& m : mutations_) {
    const TensorBase& t = inputs[m.input];
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (inputs[i].is_same(t)) {
        bool known =
            i == m.input || looks_[i].same_as == static_cast<int32_t>(m.input);
        if (!known) return true;
        continue;
      }
      bool shares = inputs[i].storage().get() == t.storage().get();
      if (shares && inputs[i].storage()) return true;
    }
  }
  return false;
}

bool CompiledProgram::looks_like(const TensorBase& t,
                                 const Look& look,
                                 const int64_t* numbers) const {
  DimVector room;
  return t.keys() == look.keys && t.dtype() == look.dtype &&
         t.sizes() == look.sizes.in(numbers, room) &&
         t.strides() == look.strides.in(numbers, room) &&
         t.device() == look.device &&
         (look.offset < 0 || look.offset == t.storage_offset());
}

bool CompiledProgram::fits(std::span<const TensorBase> inputs,
                           std::span<const int64_t> symbols) const {
  bool modes = inputs.size() == looks_.size() &&
               symbols.size() == lowest_.size() &&
               grad_mode_ == grad_enabled() && inference_ == inference_mode() &&
               same_settings(autocast_, autocast::settings());
  if (!modes) return false;
  for (size_t i = 0; i < symbols.size(); ++i) {
    if (symbols[i] < lowest_[i]) return false;
  }
  SizeNumbers numbers;
  if (!table_.try_run(symbols, numbers)) return false;
  for (int32_t place : guards_) {
    if (numbers[static_cast<size_t>(place)] == 0) return false;
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Look& look = looks_[i];
    if (!looks_like(inputs[i], look, numbers.data())) return false;
    if (look.same_as < 0) continue;
    if (!inputs[static_cast<size_t>(look.same_as)].is_same(inputs[i])) {
      return false;
    }
  }
  return (!passes_ || has_same_grads(inputs)) && !shares_written(inputs);
}

// Whether a pass inside finds leaves without hooks, and the grads that it knows
// of. Anomaly mode looks at each call of a pass.
bool CompiledProgram::has_same_grads(std::span<const TensorBase> inputs) const {
  if (autograd::anomaly_mode().enabled) return false;
  size_t known = 0;
  for (size_t i = 0; i < passes_->own; ++i) {
    if (!inputs[i].requires_grad()) continue;
    if (autograd::is_leaf(inputs[i]) && !autograd::is_plain_leaf(inputs[i]))
      return false;
    const TensorBase& grad = autograd::grad_of(inputs[i]);
    if (!grad.defined()) continue;
    bool same = known < passes_->holders.size() &&
                passes_->holders[known] == i && !grad.requires_grad() &&
                inputs[passes_->own + known].is_same(grad);
    if (!same) return false;
    ++known;
  }
  return known == passes_->holders.size();
}

void CompiledProgram::add_inputs_to(autograd::Node& node,
                                    std::span<const TensorBase> inputs) const {
  for (size_t i = 0; i < inputs.size(); ++i) {
    bool edge = inputs[i].requires_grad() && looks_[i].same_as < 0;
    node.add_next_edge(edge ? autograd::gradient_edge(inputs[i])
                            : autograd::Edge());
  }
}

// The node of this call; the program's results become its outputs.
void CompiledProgram::record(std::span<const TensorBase> inputs,
                             std::vector<TensorBase>& outputs,
                             std::span<const int64_t> symbols) {
  auto self = IntrusivePtr<CompiledProgram>::share(this);
  auto node = make_intrusive<CompiledNode>(std::move(self), symbols);
  add_inputs_to(*node, inputs);
  node->reserve(saved_.size());
  const Graph& graph = forward_->graph();
  for (size_t i = 0; i < outputs_; ++i) {
    if (tangents_[i] >= 0) autograd::set_history(outputs[i], node);
  }
  for (const Split::Saved& s : saved_) {
    if (s.input) {
      node->save(inputs[s.index], /*is_output=*/false);
      continue;
    }
    // A result that is saved too must not hold the node that holds it.
    size_t given = 0;
    while (given < outputs_ && graph.outputs[given] != graph.outputs[s.index]) {
      ++given;
    }
    bool result = given < outputs_ && tangents_[given] >= 0;
    node->save(outputs[result ? given : s.index], result);
  }
}

void CompiledProgram::write_back(std::span<const TensorBase> inputs,
                                 std::span<const TensorBase> outputs) const {
  for (const Mutation& m : mutations_) {
    // Results share memory with an input only where they were computed there.
    const TensorBase& t = inputs[m.input];
    if (outputs[m.output].storage().get() == t.storage().get()) {
      t.impl()->bump_version();
      continue;
    }
    GradModeGuard mode(m.recorded && grad_enabled());
    ops::copy_(t, outputs[m.output]);
  }
}

TensorBase CompiledProgram::result(size_t place,
                                   std::span<const TensorBase> inputs,
                                   std::span<const TensorBase> outputs,
                                   const int64_t* numbers) const {
  const Result& r = results_[place];
  auto view = [&](const TensorBase& base) {
    const std::vector<SizeArguments>& expressions = steps_[place];
    bool plain = std::all_of(expressions.begin(),
                             expressions.end(),
                             [](const SizeArguments& e) { return e.empty(); });
    if (plain) return functorch::replay(r.steps, base);
    functorch::ViewSteps steps = r.steps;
    for (size_t i = 0; i < steps.size(); ++i) {
      expressions[i].put(steps[i].arguments, numbers);
    }
    return functorch::replay(steps, base);
  };
  switch (r.kind) {
    case Result::None:
      return {};
    case Result::Output:
      return outputs[r.index];
    case Result::Input:
      return inputs[r.index];
    case Result::OfInput:
      return view(inputs[r.index]);
    case Result::OfOutput:
      return view(outputs[r.index]);
    case Result::Constant:
      break;
  }
  return r.constant;
}

std::vector<TensorBase> CompiledProgram::call(
    std::span<const TensorBase> inputs, std::span<const int64_t> symbols) {
  bool in_place =
      inference_ ||
      std::all_of(mutations_.begin(), mutations_.end(), [&](const Mutation& m) {
        const TensorBase& t = inputs[m.input];
        return !t.impl()->is_inference;
      });
  std::vector<TensorBase> outputs =
      forward_->run({inputs.begin(), inputs.end()}, symbols, in_place);
  for (size_t i = 0; i < outputs_; ++i) {
    if (outputs[i].defined()) outputs[i] = as_result(outputs[i]);
  }
  if (backward_ && grad_enabled()) record(inputs, outputs, symbols);
  for (const auto& [output, what] : released_) {
    IntrusivePtr<autograd::Node> node = released_node(what);
    add_inputs_to(*node, inputs);
    autograd::set_history(outputs[output], node);
  }
  write_back(inputs, outputs);
  std::vector<TensorBase> results;
  results.reserve(results_.size());
  SizeNumbers numbers;
  if (has_steps_) table_.run(symbols, numbers);
  for (size_t i = 0; i < results_.size(); ++i) {
    results.push_back(result(i, inputs, outputs, numbers.data()));
  }
  return results;
}

void CompiledProgram::give_grads(std::span<const TensorBase> inputs,
                                 std::vector<TensorBase>& results) const {
  size_t first = results.size() - graded_.size();
  for (size_t k = 0; k < graded_.size(); ++k) {
    autograd::set_grad(inputs[graded_[k]], std::move(results[first + k]));
  }
  results.resize(first);
}

}  // namespace taeda::compiler
