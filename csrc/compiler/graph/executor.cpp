#include <taeda/csrc/compiler/graph/executor.h>

#include <taeda/csrc/profiler/recorder.h>
#include <taeda/gen/ops/copy_.h>

#include <algorithm>

namespace taeda::compiler {

namespace {

// Above the backends: what a graph was recorded below.
constexpr DispatchKeySet kAbove{
    DispatchKey::Autograd, DispatchKey::SymbolicGrad, DispatchKey::Autocast};

bool same_where_it_counts(IntArrayRef sizes, IntArrayRef a, IntArrayRef b) {
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (sizes[d] > 1 && a[d] != b[d]) return false;
  }
  return true;
}

// What a profile shows a kernel as: the operators that it computes.
std::string kernel_name(const Graph& body) {
  std::string name = "compiled kernel:";
  for (const Node& node : body.nodes) {
    if (node.op != nullptr) name += str_cat(" ", node.op->name);
  }
  return name;
}

}  // namespace

TensorBase laid_out(const TensorBase& t, IntArrayRef strides) {
  bool empty = t.numel() == 0;
  if (empty || same_where_it_counts(t.sizes(), t.strides(), strides)) return t;
  TensorBase out =
      make_tensor_strided("compile", t.sizes(), strides, t.dtype(), t.device());
  ops::copy_(out, t);
  return out;
}

struct Executor::Step {
  enum Kind : uint8_t { Call, View, Region };
  Kind kind = Call;
  const Node* node = nullptr;
  std::unique_ptr<Executor> body;  // of a region
  std::vector<ValueId> frees;
  // Of calls with expressions among their arguments.
  std::vector<IValue> arguments;
  SizeArguments expressions;
  SizeList numbers;  // of a region; the offset of a view
};

Executor::Executor(Graph graph, std::vector<ValueId> into)
    : graph_(std::move(graph)), table_(graph_.symbols), into_(std::move(into)) {
  lists_.resize(graph_.values.size());
  auto list = [&](ValueId id) {
    if (id == kNoValue) return;
    const Value& v = graph_[id];
    lists_[static_cast<size_t>(id)] = {{v.sizes, table_}, {v.strides, table_}};
  };
  for (ValueId id : graph_.inputs) list(id);
  for (const Node& node : graph_.nodes) {
    for (ValueId id : node.results) list(id);
  }
  into_.resize(graph_.values.size(), kNoValue);
  plan();
}
Executor::~Executor() = default;
Executor::Executor(Executor&&) noexcept = default;

void Executor::plan() {
  steps_.reserve(graph_.nodes.size());
  for (const Node& node : graph_.nodes) {
    Step step;
    step.node = &node;
    if (node.region) {
      step.kind = Step::Region;
      step.body = std::make_unique<Executor>(node.region->body);
      step.numbers = {node.region->numbers, table_};
    } else if (node.results.size() == 1 && node.results[0] != kNoValue) {
      const Value& v = graph_[node.results[0]];
      bool simple = v.base != kNoValue && v.dtype == graph_[v.base].dtype &&
                    node.op->info->record->family == Family::View && !v.lazy &&
                    !graph_[v.base].lazy;
      if (simple) {
        step.kind = Step::View;
        step.numbers = {SymIntArrayRef(&v.offset, 1), table_};
      }
    }
    if (step.kind == Step::Call) {
      step.arguments = node.arguments;
      step.expressions = {step.arguments, table_};
    }
    steps_.push_back(std::move(step));
  }
  drop_unread_views();
  plan_frees();
}

// A view of a view is made of the base, so that those between may be unread.
void Executor::drop_unread_views() {
  std::vector<bool> read(graph_.values.size());
  for (ValueId id : graph_.outputs) {
    if (id != kNoValue) read[static_cast<size_t>(id)] = true;
  }
  std::vector<Step> kept;
  for (size_t i = steps_.size(); i-- > 0;) {
    Step& step = steps_[i];
    if (step.kind == Step::View) {
      ValueId made = step.node->results[0];
      if (!read[static_cast<size_t>(made)]) continue;
      read[static_cast<size_t>(graph_[made].base)] = true;
    } else {
      for (const Use& u : step.node->uses) {
        read[static_cast<size_t>(u.value)] = true;
      }
    }
    kept.push_back(std::move(step));
  }
  std::reverse(kept.begin(), kept.end());
  steps_ = std::move(kept);
}

void Executor::plan_frees() {
  constexpr int32_t kNever = -2;
  std::vector<int32_t> last(graph_.values.size(), kNever);
  for (size_t i = 0; i < steps_.size(); ++i) {
    const Node& node = *steps_[i].node;
    auto at = static_cast<int32_t>(i);
    auto mark = [&](ValueId id) {
      if (id != kNoValue) last[static_cast<size_t>(id)] = at;
    };
    for (ValueId id : node.results) {
      mark(id);
      if (id != kNoValue) mark(into_[static_cast<size_t>(id)]);
    }
    if (steps_[i].kind == Step::View) {
      mark(graph_[node.results[0]].base);
      continue;
    }
    for (const Use& u : node.uses) mark(u.value);
  }
  for (ValueId id : graph_.outputs) {
    if (id != kNoValue) last[static_cast<size_t>(id)] = kNever;
  }
  for (size_t id = 0; id < last.size(); ++id) {
    if (graph_.values[id].constant.defined()) {
      kept_constants_.push_back(static_cast<ValueId>(id));
    } else if (last[id] >= 0) {
      steps_[static_cast<size_t>(last[id])].frees.push_back(
          static_cast<ValueId>(id));
    }
  }
}

void Executor::run_view(const Step& step, Values& values) const {
  ValueId id = step.node->results[0];
  const TensorBase& base = values[graph_[id].base];
  const Lists& lists = lists_[static_cast<size_t>(id)];
  const int64_t* numbers = values.numbers.data();
  DimVector sizes, strides, offset;
  values[id] =
      make_view(base,
                lists.sizes.in(numbers, sizes),
                lists.strides.in(numbers, strides),
                base.storage_offset() + step.numbers.in(numbers, offset)[0]);
}

void Executor::run_call(const Step& step, Values& values, Stack& stack) const {
  const Node& node = *step.node;
  stack.clear();
  stack.insert(stack.end(), step.arguments.begin(), step.arguments.end());
  step.expressions.put(stack, values.numbers.data());
  for (const Use& u : node.uses) put_use(stack, u, values[u.value]);
  call_operator(*node.op, stack);
  take_results(step, values, stack);
}

void Executor::take_results(const Step& step,
                            Values& values,
                            Stack& stack) const {
  const std::vector<ValueId>& results = step.node->results;
  size_t next = 0;
  auto take = [&](TensorBase& t) {
    if (next >= results.size()) return;
    ValueId id = results[next++];
    if (id == kNoValue) return;
    DimVector room;
    const SizeList& strides = lists_[static_cast<size_t>(id)].strides;
    values[id] = laid_out(t, strides.in(values.numbers.data(), room));
  };
  for (IValue& v : stack) {
    bool undefined =
        v.is_none() || (v.is<TensorBase>() && !v.get<TensorBase>().defined());
    if (undefined) {
      ++next;
    } else {
      each_tensor(v, take);
    }
  }
  TAEDA_CHECK(next == results.size(),
              "compile: ",
              step.node->op->qualified_name(),
              " gave ",
              next,
              " results, ",
              results.size(),
              " when it was traced");
}

void Executor::run_region(const Step& step,
                          Values& values,
                          bool in_place) const {
  const Node& node = *step.node;
  const Graph& body = node.region->body;
  std::vector<TensorBase> inputs, outputs;
  inputs.reserve(node.uses.size());
  outputs.reserve(node.results.size());
  for (const Use& u : node.uses) {
    inputs.push_back(values[u.value]);
  }
  const int64_t* numbers = values.numbers.data();
  DimVector rooms[3];
  for (size_t i = 0; i < body.outputs.size(); ++i) {
    ValueId own = node.results[i];
    ValueId into = own == kNoValue ? own : into_[static_cast<size_t>(own)];
    if (in_place && into != kNoValue) {
      outputs.push_back(values[into]);
      continue;
    }
    const Value& v = body[body.outputs[i]];
    const Lists& lists = lists_[static_cast<size_t>(own)];
    outputs.push_back(make_tensor_strided("compile",
                                          lists.sizes.in(numbers, rooms[0]),
                                          lists.strides.in(numbers, rooms[1]),
                                          v.dtype,
                                          v.device));
  }
  profiler::Mark mark([&] { return kernel_name(body); });
  if (!node.region->run(inputs, outputs, step.numbers.in(numbers, rooms[2]))) {
    outputs = step.body->run(std::move(inputs), values.symbols);
  }
  for (size_t i = 0; i < node.results.size(); ++i) {
    if (node.results[i] == kNoValue) continue;
    values[node.results[i]] = std::move(outputs[i]);
  }
}

Executor::Layout Executor::layout_of_input(
    size_t input, std::span<const int64_t> symbols) const {
  const Lists& lists = lists_[static_cast<size_t>(graph_.inputs[input])];
  SizeNumbers numbers;
  bool plain = lists.sizes.all_plain() && lists.strides.all_plain();
  if (!plain) table_.run(symbols, numbers);
  DimVector sizes, strides;
  return {lists.sizes.in(numbers.data(), sizes),
          lists.strides.in(numbers.data(), strides)};
}

std::vector<TensorBase> Executor::run(std::vector<TensorBase> inputs,
                                      std::span<const int64_t> symbols,
                                      bool in_place) const {
  TAEDA_CHECK(inputs.size() == graph_.inputs.size(),
              "compile: a graph of ",
              graph_.inputs.size(),
              " inputs got ",
              inputs.size());
  GradModeGuard off(false);
  ExcludeKeysGuard below(kAbove);
  Values values;
  values.tensors.resize(graph_.values.size());
  values.symbols = symbols;
  table_.run(symbols, values.numbers);
  for (size_t i = 0; i < inputs.size(); ++i) {
    values[graph_.inputs[i]] = std::move(inputs[i]);
  }
  inputs.clear();
  for (ValueId id : kept_constants_) values[id] = graph_[id].constant;
  Stack stack;
  for (const Step& step : steps_) {
    if (step.kind == Step::View) {
      run_view(step, values);
    } else if (step.kind == Step::Region) {
      run_region(step, values, in_place);
    } else {
      run_call(step, values, stack);
    }
    for (ValueId id : step.frees) values[id].reset();
  }
  std::vector<TensorBase> outputs;
  outputs.reserve(graph_.outputs.size());
  for (ValueId id : graph_.outputs) {
    outputs.push_back(id == kNoValue ? TensorBase() : values[id]);
  }
  return outputs;
}

}  // namespace taeda::compiler
