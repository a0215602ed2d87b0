#include <taeda/csrc/compiler/graph/partition.h>

#include <taeda/csrc/compiler/graph/max_flow.h>
#include <taeda/csrc/compiler/graph/passes.h>

#include <algorithm>

namespace taeda::compiler {

namespace {

// Note [Saved values]
// The backward graph is computed from saved values and tangents. Which are
// saved is a cheapest cut: a value is an edge whose capacity is its bytes, a
// call leads from what it reads to what it makes without a limit, what must not
// be made twice hangs on the source, what the backward pass reads on the sink.
// Of equally cheap cuts the one that leaves least to be made again is taken.
// Views are never saved, since what they show would be. Inputs and results,
// which the program may write to afterwards, are saved only where the backward
// pass reads them itself, as eager calls save them.

constexpr int64_t kUnlimited = MaxFlow::kUnlimited;

bool has_base(const Value& v) { return v.base != kNoValue; }

int64_t bytes_of(const Value& v) {
  int64_t n = static_cast<int64_t>(element_size(v.dtype));
  for (const SymInt& s : v.sizes) n *= std::max<int64_t>(hint(s), 1);
  return n;
}

bool is_cheap(const Node& node) {
  if (node.op == nullptr || is_random(node)) return false;
  Family family = node.op->info->record->family;
  return family == Family::Pointwise || family == Family::Map ||
         family == Family::View;
}

// Whether it compares tensors of floating point with each other. What such a
// call reads may be made again by other kernels, which round otherwise: a
// maximum would be equal to none of its elements.
bool compares_tensors(const Graph& graph, const Node& node) {
  if (node.op->info->record->dtypes.out != OutKind::Bool) return false;
  auto is_float = [&](const Use& u) {
    return is_floating(graph.values[static_cast<size_t>(u.value)].dtype);
  };
  return std::count_if(node.uses.begin(), node.uses.end(), is_float) > 1;
}

bool known_name(const std::vector<ValueId>& names, ValueId id) {
  return id != kNoValue && static_cast<size_t>(id) < names.size() &&
         names[static_cast<size_t>(id)] != kNoValue;
}

class Partition {
 public:
  Partition(const Graph& joint,
            size_t inputs,
            size_t outputs,
            const std::vector<bool>& written,
            const PartitionOptions& options)
      : joint_(joint),
        inputs_(inputs),
        outputs_(outputs),
        written_(written),
        options_(options) {}
  Split run();
  Graph made_again();
  Graph backward(const std::vector<ValueId>& saved) {
    find_backward();
    std::vector<ValueId> inputs = saved;
    auto places = joint_.inputs.begin() + static_cast<std::ptrdiff_t>(inputs_);
    inputs.insert(inputs.end(), places, joint_.inputs.end());
    return part(inputs, joint_.outputs, /*backward=*/true);
  }

 private:
  bool known(const std::vector<bool>& set, ValueId id) const {
    return id != kNoValue && set[static_cast<size_t>(id)];
  }
  void find_backward(bool marked = false);
  void append_renamed(Graph& g, const Graph& behind) const;
  void find_exposed();
  void find_saved(bool all);
  void choose_saved();
  void rebase_views(Graph& g) const;
  void make_late(Graph& g) const;
  bool may_repeat(const Node& node, bool all) const;
  void add_value(MaxFlow& flow, size_t id) const;
  Graph part(const std::vector<ValueId>& inputs,
             const std::vector<ValueId>& outputs,
             bool backward) const;

  size_t value_in(size_t id) const { return 2 + 2 * id; }
  size_t value_out(size_t id) const { return 3 + 2 * id; }

  const Graph& joint_;
  size_t inputs_, outputs_;
  const std::vector<bool>& written_;
  PartitionOptions options_;
  std::vector<bool> backward_;     // by node: computed from tangents
  std::vector<bool> of_backward_;  // by value: made by such a node, or tangent
  std::vector<bool> exposed_;      // by value: not to be saved for others
  std::vector<ValueId> saved_;
};

void Partition::find_backward(bool marked) {
  of_backward_.assign(joint_.values.size(), false);
  backward_.assign(joint_.nodes.size(), false);
  for (size_t i = inputs_; i < joint_.inputs.size(); ++i) {
    of_backward_[static_cast<size_t>(joint_.inputs[i])] = true;
  }
  for (size_t n = 0; n < joint_.nodes.size(); ++n) {
    const Node& node = joint_.nodes[n];
    backward_[n] = marked && node.backward;
    for (const Use& u : node.uses) {
      if (known(of_backward_, u.value)) backward_[n] = true;
    }
    if (!backward_[n]) continue;
    for (ValueId id : node.results) {
      if (id != kNoValue) of_backward_[static_cast<size_t>(id)] = true;
    }
  }
}

void Partition::find_exposed() {
  exposed_.assign(joint_.values.size(), false);
  auto root_of = [&](ValueId id) {
    return static_cast<size_t>(has_base(joint_[id]) ? joint_[id].base : id);
  };
  for (size_t i = 0; i < inputs_; ++i) {
    exposed_[root_of(joint_.inputs[i])] = true;
  }
  for (size_t i = 0; i < outputs_; ++i) {
    ValueId id = joint_.outputs[i];
    if (id != kNoValue) exposed_[root_of(id)] = true;
  }
  for (const Node& node : joint_.nodes) {
    if (!node.backward) continue;
    for (const Use& u : node.uses) exposed_[root_of(u.value)] = false;
  }
  for (size_t i = outputs_; i < joint_.outputs.size(); ++i) {
    ValueId id = joint_.outputs[i];
    if (id != kNoValue) exposed_[root_of(id)] = false;
  }
}

bool Partition::may_repeat(const Node& node, bool all) const {
  if (is_random(node) || node.op->info->record->family == Family::User) {
    return false;
  }
  if (node.op->info->record->family == Family::View) return true;
  if (compares_tensors(joint_, node)) return false;
  return all || (options_.recompute && is_cheap(node));
}

void Partition::add_value(MaxFlow& flow, size_t id) const {
  const Value& v = joint_.values[id];
  if (v.constant.defined() || v.node < 0) return;
  // What only sometimes is a view (contiguous) is saved as it is.
  bool view =
      has_base(v) &&
      joint_.nodes[static_cast<size_t>(v.node)].op->info->record->family ==
          Family::View;
  int64_t capacity = view || exposed_[id] ? kUnlimited : bytes_of(v);
  flow.add_edge(value_in(id), value_out(id), capacity);
}

void Partition::find_saved(bool all) {
  constexpr size_t kSource = 0, kSink = 1;
  MaxFlow flow(2 + 2 * joint_.values.size());
  std::vector<bool> input(joint_.values.size());
  for (size_t i = 0; i < inputs_; ++i) {
    auto id = static_cast<size_t>(joint_.inputs[i]);
    input[id] = true;
    // It lives on anyway, but for one that is written to a copy is saved.
    int64_t capacity = written_[i] ? bytes_of(joint_.values[id]) : 1;
    if (exposed_[id] && !written_[i]) capacity = kUnlimited;
    flow.add_edge(kSource, value_in(id), kUnlimited);
    flow.add_edge(value_in(id), value_out(id), capacity);
  }
  for (size_t id = 0; id < joint_.values.size(); ++id) {
    if (!input[id] && !of_backward_[id]) add_value(flow, id);
  }
  auto read_by_backward = [&](ValueId id) {
    if (id == kNoValue || known(of_backward_, id)) return;
    if (joint_[id].constant.defined()) return;
    flow.add_edge(value_out(static_cast<size_t>(id)), kSink, kUnlimited);
  };
  for (size_t n = 0; n < joint_.nodes.size(); ++n) {
    const Node& node = joint_.nodes[n];
    for (const Use& u : node.uses) {
      if (joint_[u.value].constant.defined()) continue;
      if (backward_[n]) {
        read_by_backward(u.value);
        continue;
      }
      for (ValueId id : node.results) {
        if (id == kNoValue) continue;
        flow.add_edge(value_out(static_cast<size_t>(u.value)),
                      value_in(static_cast<size_t>(id)),
                      kUnlimited);
      }
    }
    if (backward_[n] || may_repeat(node, all)) continue;
    for (ValueId id : node.results) {
      if (id == kNoValue) continue;
      flow.add_edge(kSource, value_in(static_cast<size_t>(id)), kUnlimited);
    }
  }
  for (size_t i = outputs_; i < joint_.outputs.size(); ++i) {
    read_by_backward(joint_.outputs[i]);
  }
  flow.run(kSource, kSink);
  saved_.clear();
  for (size_t id = 0; id < joint_.values.size(); ++id) {
    const Value& v = joint_.values[id];
    bool there = input[id] || (v.node >= 0 && !v.constant.defined());
    if (of_backward_[id] || !there) continue;
    bool cut = flow.on_source_side(value_in(id)) &&
               !flow.on_source_side(value_out(id));
    if (cut) saved_.push_back(static_cast<ValueId>(id));
  }
}

// Where a view was saved, the views of it show that one.
void Partition::rebase_views(Graph& g) const {
  for (ValueId id : g.inputs) {
    g[id].base = kNoValue;
    g[id].offset = 0;
  }
  std::vector<bool> there(g.values.size());
  for (ValueId id : g.inputs) there[static_cast<size_t>(id)] = true;
  for (const Node& node : g.nodes) {
    for (ValueId id : node.results) {
      if (id == kNoValue) continue;
      there[static_cast<size_t>(id)] = true;
      Value& v = g[id];
      if (v.base == kNoValue || known(there, v.base)) continue;
      if (joint_[v.base].constant.defined()) continue;
      ValueId of = kNoValue;
      for (const Use& u : node.uses) {
        if (joint_[u.value].base == v.base) of = u.value;
      }
      if (of != kNoValue && g[of].base != kNoValue) of = g[of].base;
      if (of != kNoValue) v.offset = joint_[id].offset - joint_[of].offset;
      v.base = of;
    }
  }
}

// What is made again is made right before it is first read: memory that is not
// saved is not to be taken before saved memory is given back.
void Partition::make_late(Graph& g) const {
  size_t count = g.nodes.size();
  std::vector<size_t> first_read(g.values.size(), count);
  std::vector<std::pair<size_t, size_t>> order(count);
  for (size_t n = count; n-- > 0;) {
    const Node& node = g.nodes[n];
    size_t when = count;
    for (ValueId id : node.results) {
      if (id == kNoValue) continue;
      auto result = static_cast<size_t>(id);
      when = std::min(when, of_backward_[result] ? n : first_read[result]);
    }
    if (node.results.empty()) when = n;
    order[n] = {when, n};
    for (const Use& u : node.uses) {
      size_t& first = first_read[static_cast<size_t>(u.value)];
      first = std::min(first, when);
    }
  }
  std::sort(order.begin(), order.end());
  std::vector<Node> nodes;
  nodes.reserve(count);
  for (auto [when, n] : order) nodes.push_back(std::move(g.nodes[n]));
  g.nodes = std::move(nodes);
}

// The nodes that make `outputs` of `inputs`.
Graph Partition::part(const std::vector<ValueId>& inputs,
                      const std::vector<ValueId>& outputs,
                      bool backward) const {
  Graph g;
  g.values = joint_.values;
  g.symbols = joint_.symbols;
  g.inputs = inputs;
  g.outputs = outputs;
  std::vector<bool> wanted(g.values.size()), given(g.values.size());
  auto want = [&](ValueId id) {
    if (id != kNoValue) wanted[static_cast<size_t>(id)] = true;
  };
  for (ValueId id : outputs) want(id);
  for (ValueId id : inputs) {
    given[static_cast<size_t>(id)] = true;
    g[id].node = -1;
  }
  for (size_t n = joint_.nodes.size(); n-- > 0;) {
    const Node& node = joint_.nodes[n];
    if (!backward && backward_[n]) continue;
    bool drawn = is_random(node) && backward_[n] == backward;
    bool needed = drawn || (!backward && node.results.empty());
    for (ValueId id : node.results) {
      needed = needed || (known(wanted, id) && !known(given, id));
    }
    if (!needed) continue;
    for (const Use& u : node.uses) want(u.value);
    g.nodes.push_back(node);
    for (ValueId& id : g.nodes.back().results) {
      // One of several results that is given already.
      if (known(given, id)) id = kNoValue;
    }
  }
  std::reverse(g.nodes.begin(), g.nodes.end());
  if (backward) make_late(g);
  renumber(g);
  rebase_views(g);
  return g;
}

void Partition::choose_saved() {
  find_saved(/*all=*/false);
  if (options_.budget >= 1.0) return;
  // Between saving everything and making everything again.
  auto total = [&] {
    int64_t sum = 0;
    for (ValueId id : saved_) sum += bytes_of(joint_[id]);
    return sum;
  };
  std::vector<ValueId> usual = saved_;
  int64_t full = total();
  find_saved(/*all=*/true);
  bool smaller = static_cast<double>(total()) <
                 options_.budget * static_cast<double>(full);
  if (!smaller && total() >= full) saved_ = std::move(usual);
}

Split Partition::run() {
  find_backward();
  find_exposed();
  choose_saved();
  auto places = joint_.inputs.begin() + static_cast<std::ptrdiff_t>(inputs_);
  std::vector<ValueId> inputs(joint_.inputs.begin(), places);
  auto middle = joint_.outputs.begin() + static_cast<std::ptrdiff_t>(outputs_);
  std::vector<ValueId> outputs(joint_.outputs.begin(), middle);
  Split split;
  std::vector<ValueId> copied;
  for (ValueId id : saved_) {
    auto at = std::find(inputs.begin(), inputs.end(), id);
    auto place = static_cast<size_t>(at - inputs.begin());
    if (at != inputs.end() && !written_[place]) {
      split.saved.push_back({/*input=*/true, place});
      continue;
    }
    if (at != inputs.end()) copied.push_back(id);
    split.saved.push_back({/*input=*/false, outputs.size()});
    outputs.push_back(id);
  }
  split.forward = part(inputs, outputs, /*backward=*/false);
  for (size_t i = outputs_; i < outputs.size(); ++i) {
    ValueId& id = split.forward.outputs[i];
    bool copy = std::find(copied.begin(), copied.end(), id) != copied.end();
    if (copy) id = append_copy(split.forward, id);
  }
  inputs = saved_;
  inputs.insert(inputs.end(), places, joint_.inputs.end());
  outputs.assign(middle, joint_.outputs.end());
  split.backward = part(inputs, outputs, /*backward=*/true);
  split.saved_values = std::move(saved_);
  return split;
}

// The nodes of another part behind these: what both make is made twice.
void Partition::append_renamed(Graph& g, const Graph& behind) const {
  std::vector<ValueId> names(joint_.values.size(), kNoValue);
  for (const Node& node : behind.nodes) {
    for (ValueId id : node.results) {
      if (id == kNoValue || known(of_backward_, id)) continue;
      names[static_cast<size_t>(id)] = static_cast<ValueId>(g.values.size());
      g.values.push_back(behind[id]);
    }
  }
  auto rename = [&](ValueId& id) {
    if (known_name(names, id)) id = names[static_cast<size_t>(id)];
  };
  auto place = [&](ValueId id) {
    Value& v = g[id];
    if (v.base == kNoValue) return;
    rename(v.base);
    const Value& base = g[v.base];
    if (base.base == kNoValue) return;
    // A view that was kept: what shows it shows its base.
    v.offset = v.offset + base.offset;
    v.base = base.base;
  };
  for (const Node& node : behind.nodes) {
    g.nodes.push_back(node);
    g.nodes.back().behind = true;
    for (Use& u : g.nodes.back().uses) rename(u.value);
    for (ValueId& id : g.nodes.back().results) {
      if (id == kNoValue) continue;
      if (known(of_backward_, id)) g[id] = behind[id];
      rename(id);
      place(id);
    }
  }
  renumber(g);
}

Graph Partition::made_again() {
  find_backward(/*marked=*/true);
  bool effects = false;
  for (size_t n = 0; n < backward_.size(); ++n) {
    effects = effects || (backward_[n] && joint_.nodes[n].results.empty());
  }
  bool none =
      std::find(backward_.begin(), backward_.end(), true) == backward_.end();
  if (none || effects) return joint_;
  exposed_.assign(joint_.values.size(), false);
  choose_saved();
  std::vector<ValueId> before = saved_, after;
  for (ValueId id : joint_.outputs) {
    (known(of_backward_, id) ? after : before).push_back(id);
  }
  Graph g = part(joint_.inputs, before, /*backward=*/false);
  std::vector<ValueId> given = joint_.inputs;
  given.insert(given.end(), saved_.begin(), saved_.end());
  append_renamed(g, part(given, after, /*backward=*/true));
  g.outputs = joint_.outputs;
  return g;
}

// Whether all that is read is given or made, and the same at each call.
bool is_whole(const Graph& g) {
  std::vector<bool> there(g.values.size());
  for (ValueId id : g.inputs) there[static_cast<size_t>(id)] = true;
  auto is_there = [&](ValueId id) {
    return there[static_cast<size_t>(id)] || g[id].constant.defined();
  };
  for (const Node& node : g.nodes) {
    if (is_random(node)) return false;
    for (const Use& u : node.uses) {
      if (!is_there(u.value)) return false;
    }
    for (ValueId id : node.results) {
      if (id != kNoValue) there[static_cast<size_t>(id)] = true;
    }
  }
  return std::ranges::all_of(
      g.outputs, [&](ValueId id) { return id == kNoValue || is_there(id); });
}

}  // namespace

std::optional<Graph> backward_from(const Graph& joint,
                                   size_t inputs,
                                   const std::vector<ValueId>& saved) {
  Graph found = Partition(joint, inputs, 0, {}, {}).backward(saved);
  if (!is_whole(found)) return std::nullopt;
  return found;
}

Graph made_again(const Graph& graph, const PartitionOptions& options) {
  const std::vector<bool> written(graph.inputs.size());
  return Partition(
             graph, graph.inputs.size(), graph.outputs.size(), written, options)
      .made_again();
}

Split partition(const Graph& joint,
                size_t inputs,
                size_t outputs,
                const std::vector<bool>& written,
                const PartitionOptions& options) {
  return Partition(joint, inputs, outputs, written, options).run();
}

}  // namespace taeda::compiler
