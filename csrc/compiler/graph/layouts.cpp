#include <taeda/csrc/compiler/graph/layouts.h>

#include <taeda/aten/core/boxing_impl.h>
#include <taeda/c10/core/strides.h>
#include <taeda/csrc/compiler/graph/passes.h>

#include <algorithm>
#include <string_view>

namespace taeda::compiler {

namespace {

constexpr DispatchKeySet kAbove{
    DispatchKey::Autograd, DispatchKey::SymbolicGrad, DispatchKey::Autocast};

// Conversions may move this share of what reorders would have moved.
constexpr double kWorthIt = 0.6;
// Weights are reordered too, more slowly for channels that are innermost. A
// convolution with so many more weights than pixels is mostly that.
constexpr int64_t kHeavyWeights = 4;

size_t at(ValueId id) { return static_cast<size_t>(id); }

MemoryFormat last_format(size_t dims) {
  return dims == 4 ? MemoryFormat::ChannelsLast : MemoryFormat::ChannelsLast3d;
}

int64_t elements(const Value& v) {
  int64_t n = 1;
  for (const SymInt& size : v.sizes) n *= hint(size);
  return n;
}
int64_t bytes(const Value& v) {
  return elements(v) * static_cast<int64_t>(element_size(v.dtype));
}

DimVector hints(const std::vector<SymInt>& sizes) {
  DimVector out;
  for (const SymInt& size : sizes) out.push_back(hint(size));
  return out;
}

std::vector<SymInt> strides_last(const Value& v) {
  Dims<SymInt> out = strides::of_format<SymInt>(v.sizes,  //
                                                last_format(v.sizes.size()));
  return {out.begin(), out.end()};
}

// Whether its channels can be innermost and are not.
bool is_row_major_image(const Value& v) {
  size_t dims = v.sizes.size();
  if ((dims != 4 && dims != 5) || v.lazy) return false;
  if (!v.device.is_cpu()) return false;
  int64_t channels = hint(v.sizes[1]);
  if (channels < 2 || elements(v) <= channels * hint(v.sizes[0])) return false;
  Dims<SymInt> plain = strides::contiguous<SymInt>(v.sizes);
  return same(v.strides, plain);
}

bool same_where_it_counts(IntArrayRef sizes, IntArrayRef a, IntArrayRef b) {
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (sizes[d] > 1 && a[d] != b[d]) return false;
  }
  return true;
}

// A convolution's images among its arguments and results, and what of them it
// would reorder.
struct Images {
  bool known = false;
  size_t arguments = 0;  // the first ones
  int64_t reordered = 0;
};

Images images_of(const Graph& graph, const Node& node, bool trains) {
  Images out;
  std::string_view name = node.op->name;
  bool forward = name == "convolution", backward = !forward;
  if (backward && name != "convolution_backward") return out;
  out.arguments = forward ? 1 : 2;
  if (node.uses.size() <= out.arguments) return out;
  const Value& first = graph[node.uses[0].value];
  const Value& weight = graph[node.uses[out.arguments].value];
  bool quick = first.dtype == kFloat || first.dtype == kBFloat16;
  int64_t pixels = elements(first);
  if (forward) {
    const Value& made = graph[node.results[0]];
    pixels += elements(made);
    out.reordered = bytes(first) + bytes(made);
  } else {
    const Value& image = graph[node.uses[1].value];
    pixels += elements(image);
    // Each of the two passes reorders one image of either side.
    for (size_t i = 0; i < 2 && i < node.results.size(); ++i) {
      if (node.results[i] == kNoValue) continue;
      out.reordered += bytes(first) + bytes(image);
    }
  }
  bool heavy = elements(weight) > kHeavyWeights * pixels;
  out.known = quick && !(heavy && trains);
  for (size_t i = 0; i < out.arguments; ++i) {
    const Value& v = graph[node.uses[i].value];
    out.known = out.known && (is_row_major_image(v));
  }
  return out;
}

bool takes_any_layout(const Graph& graph, const Node& node) {
  if (node.op == nullptr || is_random(node)) return false;
  if (node.op->info->record->family == Family::User) return false;
  return std::ranges::none_of(node.results, [&](ValueId id) {
    return id != kNoValue && graph[id].base != kNoValue;
  });
}

IValue with_hints(const IValue& v) {
  if (v.is<SymInt>()) return hint(v.get<SymInt>());
  if (!v.is<std::vector<SymInt>>()) return v;
  std::vector<int64_t> out;
  for (const SymInt& i : v.get<std::vector<SymInt>>()) out.push_back(hint(i));
  return out;
}

// The strides of a call's results by its record's rule, in the order of the
// results; nothing where the rule refuses.
std::optional<std::vector<DimVector>> strides_by_rule(
    const Graph& graph, const Node& node, const std::vector<DimVector>& given) {
  Stack stack;
  for (const IValue& v : node.arguments) stack.push_back(with_hints(v));
  for (size_t i = 0; i < node.uses.size(); ++i) {
    const Use& u = node.uses[i];
    const Value& v = graph[u.value];
    TensorBase t = make_tensor_strided(
        "compile", hints(v.sizes), given[i], v.dtype, DeviceType::Meta);
    IValue& argument = stack[u.argument];
    if (u.element < 0) {
      argument.get<TensorBase>() = t;
    } else if (argument.is<std::vector<TensorBase>>()) {
      argument.get<std::vector<TensorBase>>()[u.element] = t;
    } else {
      argument.get<std::vector<OptionalTensor>>()[u.element] = t;
    }
  }
  try {
    GradModeGuard off(false);
    ExcludeKeysGuard below(kAbove);
    call_operator(*node.op, stack);
  } catch (const Error&) {
    return std::nullopt;
  }
  std::vector<DimVector> out;
  for (IValue& v : stack) {
    bool undefined =
        v.is_none() || (v.is<TensorBase>() && !v.get<TensorBase>().defined());
    if (undefined) {
      out.emplace_back();
    } else {
      each_tensor(v, [&](TensorBase& t) {
        out.emplace_back(t.strides().begin(), t.strides().end());
      });
    }
  }
  if (out.size() != node.results.size()) return std::nullopt;
  return out;
}

// One walk over a graph, with a given set of convolutions to convert for.
class Walk {
 public:
  Walk(const Graph& graph,
       const std::vector<bool>& wanted,
       const LayoutOptions& options)
      : graph_(graph), wanted_(wanted), options_(options) {
    grow();
  }

  void run() {
    for (size_t i : options_.turned) change(graph_.inputs[i]);
    std::vector<Node> nodes = std::move(graph_.nodes);
    for (size_t i = 0; i < nodes.size(); ++i) visit(std::move(nodes[i]), i);
    for (size_t i = 0; i < options_.fixed && i < graph_.outputs.size(); ++i) {
      ValueId& id = graph_.outputs[i];
      if (id != kNoValue) id = row_major(id);
    }
    graph_.nodes = std::move(made_);
    renumber(graph_);
  }
  Graph take() { return std::move(graph_); }

  // Of the wanted convolutions, those that gain by it.
  std::vector<bool> worth_it() {
    std::vector<bool> out(wanted_.size());
    std::vector<double> balance(graph_.values.size());
    for (auto [id, moved] : moved_) {
      balance[at(piece_of(id))] -= static_cast<double>(moved);
    }
    for (auto [node, id, spared] : spared_) {
      balance[at(piece_of(id))] += kWorthIt * static_cast<double>(spared);
    }
    for (auto [node, id, spared] : spared_) {
      out[node] = balance[at(piece_of(id))] >= 0;
    }
    return out;
  }

 private:
  struct Spared {
    size_t node;
    ValueId image;
    int64_t bytes;
  };

  void grow() {
    size_t from = piece_.size(), to = graph_.values.size();
    other_.resize(to, kNoValue);
    changed_.resize(to);
    for (size_t i = from; i < to; ++i) {
      piece_.push_back(static_cast<ValueId>(i));
    }
  }
  ValueId piece_of(ValueId id) {
    while (piece_[at(id)] != id) {
      id = piece_[at(id)] = piece_[at(piece_[at(id)])];
    }
    return id;
  }
  void join(ValueId a, ValueId b) { piece_[at(piece_of(a))] = piece_of(b); }

  void change(ValueId id) {
    graph_[id].strides = strides_last(graph_[id]);
    changed_[at(id)] = true;
  }

  // A copy in the other layout, made once.
  ValueId converted(ValueId id, MemoryFormat format) {
    if (other_[at(id)] != kNoValue) return other_[at(id)];
    static const OperatorEntry* const clone =
        Dispatcher::get().find("clone", "");
    Value copy = graph_[id];
    copy.constant = {};
    copy.base = kNoValue;
    copy.offset = 0;
    copy.result = 0;
    copy.name.clear();
    Dims<SymInt> to = strides::of_format<SymInt>(copy.sizes, format);
    copy.strides = {to.begin(), to.end()};
    Node node;
    node.op = clone;
    boxing::push(node.arguments, TensorBase());
    boxing::push(node.arguments, format);
    node.uses = {{0, -1, id}};
    auto made = static_cast<ValueId>(graph_.values.size());
    node.results = {made};
    moved_.emplace_back(made, bytes(copy));
    graph_.values.push_back(std::move(copy));
    made_.push_back(std::move(node));
    grow();
    other_[at(id)] = made;
    other_[at(made)] = id;
    join(id, made);
    return made;
  }
  ValueId row_major(ValueId id) {
    return changed_[at(id)] ? converted(id, MemoryFormat::Contiguous) : id;
  }
  ValueId channels_last(ValueId id) {
    if (changed_[at(id)]) return id;
    ValueId made = converted(id, last_format(graph_[id].sizes.size()));
    changed_[at(made)] = true;
    return made;
  }

  // As it was traced.
  void keep(Node node) {
    for (Use& u : node.uses) u.value = row_major(u.value);
    for (ValueId id : node.results) {
      if (id == kNoValue || graph_[id].base == kNoValue) continue;
      graph_[id].base = row_major(graph_[id].base);
    }
    made_.push_back(std::move(node));
  }

  void visit(Node node, size_t index) {
    bool reads_changed = std::ranges::any_of(
        node.uses, [&](const Use& u) { return changed_[at(u.value)]; });
    bool wanted = wanted_[index];
    if (!wanted && !reads_changed) return keep(std::move(node));
    if (!takes_any_layout(graph_, node)) return keep(std::move(node));
    Images images = images_of(graph_, node, options_.trains);
    bool convolves = images.arguments > 0;
    if (convolves && !wanted) return keep(std::move(node));
    std::vector<bool> turn = to_turn(node, convolves ? images.arguments : 0);
    std::vector<DimVector> given;
    for (size_t i = 0; i < node.uses.size(); ++i) {
      const Value& v = graph_[node.uses[i].value];
      given.push_back(hints(turn[i] ? strides_last(v) : v.strides));
    }
    auto found = strides_by_rule(graph_, node, given);
    if (!found || !can_be(node, *found)) return keep(std::move(node));
    accept(std::move(node), turn, *found);
    if (!convolves) return;
    ValueId image = made_.back().uses[0].value;
    spared_.push_back({index, image, images.reordered});
  }

  // Which arguments are converted: a convolution's images, and of other calls
  // those that are as large as what has changed already.
  std::vector<bool> to_turn(const Node& node, size_t images) const {
    int64_t large = 0;
    for (const Use& u : node.uses) {
      if (changed_[at(u.value)]) {
        large = std::max(large, elements(graph_[u.value]));
      }
    }
    std::vector<bool> out;
    for (size_t i = 0; i < node.uses.size(); ++i) {
      const Value& v = graph_[node.uses[i].value];
      bool counts = images > 0 ? i < images : 2 * elements(v) >= large;
      out.push_back(counts && !changed_[at(node.uses[i].value)] &&
                    is_row_major_image(v));
    }
    return out;
  }

  bool lies_last(ValueId id, const DimVector& strides) const {
    const Value& v = graph_[id];
    return is_row_major_image(v) &&
           same_where_it_counts(
               hints(v.sizes), strides, hints(strides_last(v)));
  }
  // Results lie as they did, or with their channels innermost.
  bool can_be(const Node& node, const std::vector<DimVector>& found) const {
    for (size_t i = 0; i < found.size(); ++i) {
      ValueId id = node.results[i];
      if (id == kNoValue || lies_last(id, found[i])) continue;
      const Value& v = graph_[id];
      if (found[i].size() != v.sizes.size()) return false;
      if (!same_where_it_counts(hints(v.sizes), found[i], hints(v.strides))) {
        return false;
      }
    }
    return true;
  }

  void accept(Node node,
              const std::vector<bool>& turn,
              const std::vector<DimVector>& found) {
    ValueId first = kNoValue;
    auto hang_together = [&](ValueId id) {
      if (!changed_[at(id)]) return;
      if (first == kNoValue) first = id;
      join(id, first);
    };
    for (size_t i = 0; i < node.uses.size(); ++i) {
      ValueId& id = node.uses[i].value;
      if (turn[i]) id = channels_last(id);
      hang_together(id);
    }
    for (size_t i = 0; i < found.size(); ++i) {
      ValueId id = node.results[i];
      if (id == kNoValue || !lies_last(id, found[i])) continue;
      change(id);
      hang_together(id);
    }
    made_.push_back(std::move(node));
  }

  Graph graph_;
  const std::vector<bool>& wanted_;
  const LayoutOptions& options_;
  std::vector<Node> made_;
  std::vector<ValueId> other_;  // by value: the same in the other layout
  std::vector<bool> changed_;   // by value
  std::vector<ValueId> piece_;  // by value: one of the same piece
  std::vector<std::pair<ValueId, int64_t>> moved_;  // by conversions
  std::vector<Spared> spared_;
};

}  // namespace

void choose_layouts(Graph& graph, const LayoutOptions& options) {
  std::vector<bool> wanted;
  for (const Node& node : graph.nodes) {
    bool known =
        node.op != nullptr && images_of(graph, node, options.trains).known;
    wanted.push_back(known);
  }
  auto nothing_to_do = [&] {
    bool some = std::ranges::find(wanted, true) != wanted.end();
    return !some && options.turned.empty();
  };
  while (!nothing_to_do()) {
    Walk walk(graph, wanted, options);
    walk.run();
    std::vector<bool> gain = walk.worth_it();
    if (gain == wanted) {
      graph = walk.take();
      return;
    }
    wanted = std::move(gain);
  }
}

}  // namespace taeda::compiler
