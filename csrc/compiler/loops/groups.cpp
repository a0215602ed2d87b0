#include <taeda/csrc/compiler/loops/groups.h>
#include <taeda/csrc/compiler/loops/schedule.h>

#include <algorithm>

namespace taeda::compiler::loops {

namespace {

constexpr size_t kNobody = ~size_t{0};
constexpr size_t kMaxCalls = 64;
// Work that is not to be done again for each element of a wider value.
constexpr int kHeavy = 8;

size_t at(ValueId v) { return static_cast<size_t>(v); }

Spaces::Axes flat(const Spaces::Dims& dims) {
  Spaces::Axes all;
  for (const Spaces::Axes& axes : dims) {
    all.insert(all.end(), axes.begin(), axes.end());
  }
  return all;
}

// Axes that results and heavy work may have: all, or all that are kept.
class WholeAxes {
 public:
  explicit WholeAxes(const Spaces& spaces) : all_(spaces.all()) {
    Spaces::Axes reduced = sorted(spaces.reduced());
    std::set_difference(all_.begin(),
                        all_.end(),
                        reduced.begin(),
                        reduced.end(),
                        std::back_inserter(kept_));
  }
  bool are_kept(const Spaces::Dims& dims) const {
    return sorted(flat(dims)) == kept_;
  }
  bool are_whole(const Spaces::Dims& dims) const {
    return are_kept(dims) || sorted(flat(dims)) == all_;
  }

 private:
  static Spaces::Axes sorted(Spaces::Axes axes) {
    std::sort(axes.begin(), axes.end());
    return axes;
  }
  Spaces::Axes all_, kept_;
};

}  // namespace

Groups::Groups(const Graph& graph, const std::vector<Item>& items)
    : graph_(graph),
      items_(items),
      maker_(graph.values.size(), kNobody),
      readers_(graph.values.size()),
      result_(graph.values.size(), false),
      group_of_(items.size()),
      groups_(items.size()),
      spans_(items.size()) {
  for (size_t i = 0; i < items.size(); ++i) {
    for (ValueId v : graph.nodes[i].results) {
      if (v != kNoValue) maker_[at(v)] = i;
    }
    for (const Use& u : graph.nodes[i].uses) readers_[at(u.value)].push_back(i);
    group_of_[i] = i;
    groups_[i] = {i};
  }
  for (ValueId v : graph.outputs) {
    if (v != kNoValue) result_[at(v)] = true;
  }
}

bool Groups::is_view(size_t item) const {
  const Item& it = items_[item];
  return it.calls.size() == 1 && it.calls[0].kind == CallKind::View;
}

size_t Groups::passes_of(const Group& group) const {
  size_t passes = 0;
  for (size_t i : group) passes += is_view(i) ? 0 : items_[i].passes;
  return passes;
}

bool Groups::read_outside(ValueId value, size_t item) const {
  if (result_[at(value)]) return true;
  size_t group = group_of_[item];
  for (size_t reader : readers_[at(value)]) {
    if (group_of_[reader] != group) return true;
  }
  return false;
}

std::vector<ValueId> Groups::views_of(const Group& group) const {
  std::vector<ValueId> found;
  for (size_t i : group) {
    if (!is_view(i)) continue;
    ValueId v = graph_.nodes[i].results[0];
    if (read_outside(v, i)) found.push_back(v);
  }
  return found;
}

std::vector<ValueId> Groups::outputs_of(const Group& group) const {
  std::vector<ValueId> found;
  auto add = [&](ValueId v) {
    bool known = std::find(found.begin(), found.end(), v) != found.end();
    if (!known) found.push_back(v);
  };
  for (size_t i : group) {
    if (is_view(i)) continue;
    for (ValueId v : graph_.nodes[i].results) {
      if (v != kNoValue && read_outside(v, i)) add(v);
    }
  }
  for (ValueId v : views_of(group)) {
    ValueId base = graph_[v].base;
    size_t maker = maker_[at(base)];
    if (maker != kNobody && group_of_[maker] == group_of_[group[0]]) add(base);
  }
  return found;
}

namespace {

// What reads one value from outside of a group, element by element, runs
// together.
class SharedInputs {
 public:
  explicit SharedInputs(const Graph& graph) : graph_(graph) {}
  bool add(const Node& node, const Call& call, Spaces& spaces) {
    if (call.kind != CallKind::Pointwise) return true;
    ValueId result = node.results[0];
    for (auto [argument, value] : call.operands) {
      bool alike = graph_[value].sizes == graph_[result].sizes;
      if (spaces.has(value) || !alike) continue;
      auto [known, fresh] = reader_.emplace(value, result);
      if (fresh) continue;
      Spaces::Axes mine = flat(spaces.dims(result));
      if (!spaces.unify(flat(spaces.dims(known->second)), mine)) return false;
    }
    return spaces.valid();
  }

 private:
  const Graph& graph_;
  std::unordered_map<ValueId, ValueId> reader_;  // by input: result of one
};

}  // namespace

std::optional<Spaces> Groups::spaces_of(const Group& group) const {
  std::optional<Spaces> found = spaces_of(group, /*inputs=*/true);
  return found ? found : spaces_of(group, /*inputs=*/false);
}

std::optional<Spaces> Groups::spaces_of(const Group& group, bool inputs) const {
  Spaces spaces;
  SharedInputs shared(graph_);
  for (size_t i : group) {
    const Item& item = items_[i];
    for (size_t k = 0; k < item.nodes.size(); ++k) {
      bool inner = item.nodes.size() > 1;
      if (inner && is_window(graph_, item.nodes[k], spaces)) continue;
      if (inner && is_frame(item.calls[k], spaces)) continue;
      if (!add_call(graph_, item.nodes[k], item.calls[k], spaces)) {
        return std::nullopt;
      }
      if (inputs && !shared.add(item.nodes[k], item.calls[k], spaces)) {
        return std::nullopt;
      }
    }
  }
  if (spaces.all().size() > 12) return std::nullopt;
  if (!has_places_of(group, spaces)) return std::nullopt;
  return spaces;
}

bool Groups::has_places_of(const Group& group, const Spaces& spaces) const {
  for (size_t i : group) {
    const Item& item = items_[i];
    bool framed = std::any_of(item.calls.begin(),
                              item.calls.end(),
                              [](const Call& call) { return call.frames; });
    for (size_t k = 0; k < item.nodes.size(); ++k) {
      const Call& call = item.calls[k];
      if (!framed && call.kind != CallKind::Map) continue;
      if (!has_places(graph_, item.nodes[k], call, spaces)) return false;
    }
  }
  return true;
}

// All axes, or (beside reductions) all that are kept.
bool Groups::fits_outputs(const Group& group, const Spaces& spaces) const {
  WholeAxes axes(spaces);
  for (ValueId v : outputs_of(group)) {
    if (!spaces.has(v)) return false;
    const Spaces::Dims& dims = spaces.dims(v);
    if (!axes.are_whole(dims)) return false;
    // Along an expanded dim there is no axis: it would be written once.
    for (size_t d = 0; d < dims.size(); ++d) {
      if (dims[d].empty() && !same(graph_[v].sizes[d], 1)) return false;
    }
  }
  return true;
}

// Whether a reduction, or heavy work, would be done again along an axis that
// it does not have.
bool Groups::repeats_work(const Group& group, const Spaces& spaces) const {
  WholeAxes axes(spaces);
  for (size_t i : group) {
    const Item& item = items_[i];
    for (size_t k = 0; k < item.nodes.size(); ++k) {
      const Call& call = item.calls[k];
      ValueId v = item.nodes[k].results[0];
      if (!spaces.has(v)) continue;  // shows what the group does not make
      Spaces::Dims own = spaces.dims(v);
      if (call.kind == CallKind::Reduce && !axes.are_kept(own)) return true;
      bool heavy = call.kind == CallKind::Pointwise && call.cost >= kHeavy;
      if (heavy && !axes.are_whole(own)) return true;
    }
  }
  return false;
}

void Groups::count_spans(const Group& group, int by) {
  for (size_t i = group.front() + 1; i < group.back(); ++i) spans_[i] += by;
}

// Whether a way leads from one group to another through groups outside of both.
bool Groups::reaches(size_t group,
                     size_t target,
                     std::vector<bool>& seen) const {
  for (size_t i : groups_[group]) {
    for (const Use& u : graph_.nodes[i].uses) {
      size_t maker = maker_[at(u.value)];
      if (maker == kNobody) continue;
      size_t next = group_of_[maker];
      if (next == target) return true;
      if (seen[next]) continue;
      seen[next] = true;
      // A way from what ends before the target begins leads through a group
      // that spans the target's beginning.
      size_t first = groups_[target].front();
      if (groups_[next].back() < first && spans_[first] == 0) continue;
      if (reaches(next, target, seen)) return true;
    }
  }
  return false;
}

bool Groups::path_between(size_t from, size_t to) const {
  std::vector<bool> seen(groups_.size(), false);
  seen[to] = true;
  for (size_t i : groups_[to]) {
    for (const Use& u : graph_.nodes[i].uses) {
      size_t maker = maker_[at(u.value)];
      if (maker == kNobody) continue;
      size_t next = group_of_[maker];
      if (next == from || seen[next]) continue;
      seen[next] = true;
      if (reaches(next, from, seen)) return true;
    }
  }
  return false;
}

bool Groups::merge(size_t from, size_t into) {
  if (from == into) return true;
  auto behind = [&](size_t g) { return graph_.nodes[groups_[g][0]].behind; };
  if (behind(from) != behind(into)) return false;
  Group both;
  std::merge(groups_[from].begin(),
             groups_[from].end(),
             groups_[into].begin(),
             groups_[into].end(),
             std::back_inserter(both));
  if (both.size() > kMaxCalls) return false;
  if (path_between(from, into) || path_between(into, from)) return false;
  std::optional<Spaces> spaces = spaces_of(both);
  if (!spaces || repeats_work(both, *spaces)) return false;
  for (size_t i : groups_[from]) group_of_[i] = into;
  count_spans(groups_[from], -1);
  count_spans(groups_[into], -1);
  count_spans(both, 1);
  groups_[from].clear();
  groups_[into] = std::move(both);
  return true;
}

void Groups::grow(size_t item) {
  if (!items_[item].fusible) return;
  // A view has axes beside the value that it shows only.
  if (!is_view(item) && !spaces_of(groups_[item])) return;
  for (const Use& u : graph_.nodes[item].uses) {
    size_t maker = maker_[at(u.value)];
    if (maker == kNobody || !items_[maker].fusible) continue;
    merge(group_of_[maker], group_of_[item]);
  }
}

bool Groups::is_heavy_reader(size_t item, ValueId value) const {
  const Item& it = items_[item];
  if (!it.fusible || it.calls.size() != 1) return false;
  const Call& call = it.calls[0];
  bool heavy = call.kind == CallKind::Pointwise && call.cost >= kHeavy;
  ValueId made = it.nodes[0].results[0];
  return heavy && graph_[made].sizes == graph_[value].sizes;
}

// Note [Siblings]
// Costly formulas of one value go together although neither reads the other:
// gelu, made again for a product's gradient, and gelu's own backward share
// their erf and one pass over memory. The earlier one waits, and with it the
// calls that read it, whose other operands are held until then: so no more than
// one call may stand between. Nothing that was together is parted.
void Groups::join_siblings() {
  for (size_t v = 0; v < readers_.size(); ++v) {
    size_t last = kNobody;
    for (size_t reader : readers_[v]) {
      if (!is_heavy_reader(reader, static_cast<ValueId>(v))) continue;
      bool near = last != kNobody && calls_between(last, reader) <= 1;
      if (near) join(group_of_[reader], group_of_[last]);
      last = reader;
    }
  }
}

size_t Groups::calls_between(size_t first, size_t last) const {
  return static_cast<size_t>(
      std::count_if(items_.begin() + static_cast<std::ptrdiff_t>(first),
                    items_.begin() + static_cast<std::ptrdiff_t>(last),
                    [](const Item& item) { return !item.fusible; }));
}

void Groups::join(size_t from, size_t into) {
  if (from == into) return;
  Group kept = groups_[into], taken = groups_[from];
  if (!merge(from, into)) return;
  if (fits_outputs(groups_[into], *spaces_of(groups_[into]))) return;
  for (size_t i : taken) group_of_[i] = from;
  count_spans(groups_[into], -1);
  count_spans(kept, 1);
  count_spans(taken, 1);
  groups_[into] = std::move(kept);
  groups_[from] = std::move(taken);
}

std::vector<Group> Groups::find() {
  for (size_t i = 0; i < items_.size(); ++i) grow(i);
  join_siblings();
  std::vector<Group> found;
  for (size_t g = 0; g < groups_.size(); ++g) {
    // From its end until each result has the axes that it must have.
    while (!groups_[g].empty()) {
      if (passes_of(groups_[g]) < 2) break;
      std::optional<Spaces> spaces = spaces_of(groups_[g]);
      if (spaces && fits_outputs(groups_[g], *spaces)) break;
      group_of_[groups_[g].back()] = kNobody;
      groups_[g].pop_back();
    }
    if (passes_of(groups_[g]) >= 2) found.push_back(groups_[g]);
  }
  return found;
}

}  // namespace taeda::compiler::loops
