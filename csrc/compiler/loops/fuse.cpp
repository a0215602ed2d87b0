#include <taeda/aten/parallel/parallel.h>
#include <taeda/c10/util/format.h>
#include <taeda/csrc/compiler/graph/passes.h>
#include <taeda/csrc/compiler/loops/fuse.h>
#include <taeda/csrc/compiler/loops/groups.h>
#include <taeda/csrc/compiler/loops/print.h>
#include <taeda/csrc/compiler/loops/print_cuda.h>
#include <taeda/csrc/compiler/loops/region.h>
#include <taeda/csrc/compiler/loops/simplify.h>

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

namespace taeda::compiler {

using namespace loops;

namespace {

// The calls of a group as a graph of its own, and what its inputs are.
struct Body {
  Graph graph;
  std::vector<ValueId> inputs;  // in the graph that the calls come from
};

class BodyBuilder {
 public:
  explicit BodyBuilder(const Graph& graph) : graph_(graph) {
    body_.graph.symbols = graph.symbols;
  }

  void add(const Node& node) {
    Node copy = node;
    for (Use& use : copy.uses) use.value = input(use.value);
    if (graph_[node.results[0]].base != kNoValue) {
      input(graph_[node.results[0]].base);
    }
    for (ValueId& result : copy.results) {
      if (result != kNoValue) result = made(result);
    }
    body_.graph.nodes.push_back(std::move(copy));
  }
  ValueId input(ValueId id) {
    if (auto known = ids_.find(id); known != ids_.end()) return known->second;
    Value value = graph_[id];
    value.base = kNoValue;
    value.offset = 0;
    value.constant = TensorBase();
    value.node = -1;
    ValueId own = append(id, std::move(value));
    body_.graph.inputs.push_back(own);
    body_.inputs.push_back(id);
    return own;
  }
  Body finish(const std::vector<ValueId>& outputs) {
    for (ValueId id : outputs) body_.graph.outputs.push_back(ids_.at(id));
    renumber(body_.graph);
    return std::move(body_);
  }

 private:
  ValueId made(ValueId id) {
    Value value = graph_[id];
    if (value.base != kNoValue) value.base = ids_.at(value.base);
    return append(id, std::move(value));
  }
  ValueId append(ValueId id, Value value) {
    auto own = static_cast<ValueId>(body_.graph.values.size());
    body_.graph.values.push_back(std::move(value));
    ids_[id] = own;
    return own;
  }

  const Graph& graph_;
  Body body_;
  std::unordered_map<ValueId, ValueId> ids_;
};

// Results beside the first that nobody reads are none: a definition is then of
// the others alone.
void drop_unread_results(Graph& graph) {
  std::vector<bool> read(graph.values.size(), false);
  auto mark = [&](ValueId v) {
    if (v != kNoValue) read[static_cast<size_t>(v)] = true;
  };
  for (ValueId v : graph.outputs) mark(v);
  for (const Node& node : graph.nodes) {
    for (const Use& u : node.uses) mark(u.value);
  }
  for (Node& node : graph.nodes) {
    for (size_t i = 1; i < node.results.size(); ++i) {
      ValueId& v = node.results[i];
      if (v != kNoValue && !read[static_cast<size_t>(v)]) v = kNoValue;
    }
  }
}

// A kernel's loops run well: no access of full size jumps in the innermost
// one, and threads have points to share.
bool runs_well(const Program& program, const Schedule& s) {
  if (s.vector == Schedule::kNone) return false;
  for (Var v = 0; v < program.count(); ++v) {
    const Instruction& i = program[v];
    if (i.op != Op::Load && i.op != Op::Store) continue;
    SymInt step = i.step(s.vector);
    if (same(step, 0) || same(step, 1)) continue;
    if (s.woven != Schedule::kNone) continue;  // the schedule has looked
    if (!is_short_step(i, s.vector)) return false;
  }
  int64_t all = hint(program.extent(program.all_axes()));
  bool long_row = hint(s.outer_count(program)) < get_num_threads();
  return !(long_row && all > 65536);
}

class Fuser {
 public:
  Fuser(Graph& graph, const FuseOptions& options)
      : graph_(graph), options_(options) {}

  void run() {
    drop_identities(graph_);
    drop_unread_results(graph_);
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      // Not by reference: values are added.
      Node node = graph_.nodes[i];
      items_.push_back(item_of(graph_, node));
    }
    while (!make_regions()) continue;
    if (regions_.empty()) return;
    make_unit();
    put_in_order();
    renumber(graph_);
    if (options_.check != nullptr) add_checks();
  }

 private:
  struct Made {
    Group group;
    Node node;
    std::vector<Node> views;  // that others read
  };

  void add_checks() {
    for (Node& node : graph_.nodes) {
      if (!node.region) continue;
      auto& kernel = static_cast<LoopRegion&>(*node.region);
      node.region = make_intrusive<CheckedRegion>(
          IntrusivePtr<LoopRegion>::share(&kernel), options_.check);
    }
  }

  // False where maps now stand alone: groups are to be found again.
  bool make_regions() {
    Groups groups(graph_, items_);
    std::vector<Group> found = groups.find();
    bool fit = true;
    for (const Group& group : found) fit &= suits_maps(groups, group);
    if (!fit) return false;
    for (const Group& group : found) make_region(groups, group);
    return true;
  }

  Lowering lowered(const Groups& groups,
                   const Group& group,
                   const std::vector<ValueId>& outputs) const {
    Lowering lowering(graph_, *groups.spaces_of(group));
    for (size_t i : group) {
      for (size_t k = 0; k < items_[i].nodes.size(); ++k) {
        lowering.lower(items_[i].nodes[k], items_[i].calls[k]);
      }
      if (!options_.emulate_precision_casts) continue;
      // Of a definition only the results: its kernel keeps what is between.
      for (ValueId v : graph_.nodes[i].results) {
        if (v != kNoValue) lowering.round(v);
      }
    }
    for (ValueId v : outputs) lowering.store(v);
    lowering.program().join_axes();
    return lowering;
  }

  // Maps that want a woven loop stand alone where their group gets none, which
  // runs well without them.
  bool suits_maps(const Groups& groups, const Group& group) {
    Group weaving;
    for (size_t i : group) {
      const std::vector<Call>& calls = items_[i].calls;
      auto weaves = [](const Call& call) { return call.weaves; };
      if (std::any_of(calls.begin(), calls.end(), weaves)) weaving.push_back(i);
    }
    if (weaving.empty()) return true;
    Lowering lowering = lowered(groups, group, groups.outputs_of(group));
    const Program& program = lowering.program();
    if (runs_well(program, schedule(program))) return true;
    bool alone = true;
    for (size_t i : weaving) {
      alone &= !items_[i].fusible;
      items_[i].fusible = false;
    }
    return alone;
  }

  void make_region(const Groups& groups, const Group& group) {
    std::vector<ValueId> outputs = groups.outputs_of(group);
    if (outputs.empty()) return;
    Lowering lowering = lowered(groups, group, outputs);
    Program& program = lowering.program();
    Schedule s = schedule(program);
    if (!runs_well(program, s)) return;
    BodyBuilder builder(graph_);
    for (size_t i : group) builder.add(graph_.nodes[i]);
    for (ValueId v : lowering.inputs()) builder.input(v);
    Body body = builder.finish(outputs);
    KernelText kernel = kernel_text(program, s);
    kernels_.push_back(kernel_of(kernel.text));
    made_.push_back(make_intrusive<LoopRegion>(
        std::move(body.graph), program, s, std::move(kernel.numbers)));
    add_node(groups, group, lowering.inputs(), outputs, body.inputs);
  }

  // The place of a kernel in the unit; equal blocks of a model share theirs.
  size_t kernel_of(const std::string& text) {
    auto [known, is_new] = known_.try_emplace(text, names_.size());
    if (is_new) {
      names_.push_back(message("region{}", names_.size()));
      text_ += str_cat("extern \"C\" void ", names_.back(), text);
    }
    return known->second;
  }

  void add_node(const Groups& groups,
                const Group& group,
                const std::vector<ValueId>& buffers,
                const std::vector<ValueId>& outputs,
                const std::vector<ValueId>& inputs) {
    std::vector<size_t> from;
    for (ValueId v : buffers) {
      auto place = std::find(inputs.begin(), inputs.end(), v);
      from.push_back(static_cast<size_t>(place - inputs.begin()));
    }
    for (size_t k = 0; k < outputs.size(); ++k) {
      from.push_back(inputs.size() + k);
    }
    made_.back()->set_buffers(std::move(from));
    Made made;
    made.group = group;
    made.node.results = outputs;
    made.node.line = graph_.nodes[group.back()].line;
    for (size_t i = 0; i < inputs.size(); ++i) {
      made.node.uses.push_back({static_cast<uint16_t>(i), -1, inputs[i]});
      made.node.arguments.emplace_back(TensorBase());
    }
    made.node.region = made_.back();
    for (ValueId v : groups.views_of(group)) add_view(group, v, made.views);
    regions_.push_back(std::move(made));
  }

  // A view that others read is made beside the region, as are views that its
  // call takes.
  void add_view(const Group& group, ValueId view, std::vector<Node>& views) {
    for (size_t i : group) {
      const Node& node = graph_.nodes[i];
      if (node.results[0] != view) continue;
      for (const Node& made : views) {
        if (made.results[0] == view) return;
      }
      for (const Use& u : node.uses) {
        if (graph_[u.value].base != kNoValue) add_view(group, u.value, views);
      }
      views.push_back(node);
    }
  }

  // The same kernels for a GPU of usual size, with their launches. Equal ones
  // stand there once; they have less in common than the CPU's, which get the
  // count of outer points when they are called.
  void keep_cuda_text() const {
    std::string text = cuda_prelude();
    std::unordered_set<std::string> known;
    for (const auto& region : made_) {
      const Program& program = region->program();
      if (has_symbols(program)) continue;
      if (!known.insert(cuda_text(program, "region")).second) continue;
      text += cuda_text(program, message("region{}", known.size() - 1));
    }
    if (!known.empty()) keep_text(text, ".cu");
  }

  static std::string cuda_text(const Program& program,
                               const std::string& name) {
    std::string text;
    for (const CudaCode& c : cuda_codes(program, {}, name)) {
      text += launches_of(c) + c.text;
    }
    return text;
  }

  void make_unit() {
    if (keeps_texts()) keep_cuda_text();
    auto unit =
        make_intrusive<Unit>(unit_prelude(text_) + text_, std::move(names_));
    for (size_t i = 0; i < made_.size(); ++i) {
      made_[i]->set_unit(unit, kernels_[i]);
    }
    if (options_.blocking || options_.check != nullptr) {
      unit->wait();
    } else {
      unit->ready();
    }
  }

  // Regions stand where all that they read is there; calls that draw numbers
  // keep their order.
  void put_in_order() {
    owner_.assign(graph_.nodes.size(), kAlone);
    for (size_t r = 0; r < regions_.size(); ++r) {
      for (size_t i : regions_[r].group) owner_[i] = r;
    }
    placed_.assign(graph_.nodes.size(), false);
    maker_.assign(graph_.values.size(), kAlone);
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      for (ValueId v : graph_.nodes[i].results) {
        if (v != kNoValue) maker_[static_cast<size_t>(v)] = i;
      }
    }
    size_t last_random = kAlone;
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      if (is_random(graph_.nodes[i])) {
        if (last_random != kAlone) place(last_random);
        last_random = i;
      }
      place(i);
    }
    graph_.nodes = std::move(ordered_);
  }

  void place_uses(const Node& node) {
    for (const Use& u : node.uses) {
      size_t maker = maker_[static_cast<size_t>(u.value)];
      if (maker != kAlone) place(maker);
    }
  }

  void place(size_t i) {
    if (placed_[i]) return;
    if (owner_[i] == kAlone) {
      placed_[i] = true;
      place_uses(graph_.nodes[i]);
      ordered_.push_back(graph_.nodes[i]);
      return;
    }
    Made& region = regions_[owner_[i]];
    for (size_t member : region.group) placed_[member] = true;
    place_uses(region.node);
    ordered_.push_back(region.node);
    for (Node& view : region.views) ordered_.push_back(std::move(view));
  }

  static constexpr size_t kAlone = ~size_t{0};
  Graph& graph_;
  FuseOptions options_;
  std::vector<Item> items_;
  std::vector<Made> regions_;
  std::vector<IntrusivePtr<LoopRegion>> made_;
  std::string text_;
  std::vector<std::string> names_;
  std::unordered_map<std::string, size_t> known_;  // places of kernels by text
  std::vector<size_t> kernels_;                    // of `made_`
  std::vector<size_t> owner_, maker_;
  std::vector<bool> placed_;
  std::vector<Node> ordered_;
};

}  // namespace

void fuse(Graph& graph, const FuseOptions& options) {
  Fuser(graph, options).run();
}

}  // namespace taeda::compiler
