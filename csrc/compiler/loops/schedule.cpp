#include <taeda/aten/parallel/parallel.h>
#include <taeda/csrc/compiler/graph/sizes.h>
#include <taeda/csrc/compiler/loops/schedule.h>

#include <algorithm>
#include <numeric>

namespace taeda::compiler::loops {

namespace {

// Columns of a block at least, where threads share them, and at most: whole
// rows are read faster than parts of them, and their sums lie in the first
// cache.
constexpr int64_t kColumns = 256, kMostColumns = 2048;
// Elements of a block of a loop without reductions.
constexpr int64_t kElements = 4096;
// Elements that arrays of kept values may have, all together.
constexpr int64_t kKept = 32768;
constexpr int kExpensive = 12;

// What vector code gains along an axis: the loads and stores that go through
// memory step by step, where stores count twice and loads by short steps half.
// An axis shorter than a vector gains as much less.
int64_t gain_along(const Program& p, size_t axis) {
  int64_t steps = 0;
  for (Var v = 0; v < p.count(); ++v) {
    const Instruction& i = p[v];
    if (i.op != Op::Load && i.op != Op::Store) continue;
    int64_t size = std::min(hint(p.extent(i.axes)), int64_t{1} << 40);
    SymInt step = i.step(axis);
    bool single = same(step, 1);
    if (single && i.op == Op::Store) steps += 4 * size;
    if (single && i.op == Op::Load) steps += 2 * size;
    if (!single && is_short_step(i, axis)) steps += size;
  }
  return steps * std::min(hint(p.sizes()[axis]), kVector);
}

// Whether all results lie along one axis at the places that another one, of a
// few elements, leaves free; operands lie so too, step by one or not at all.
bool may_weave(const Program& p, size_t axis, size_t woven) {
  const SymInt& size = p.sizes()[woven];
  if (axis == woven || size.is_symbolic() || size.plain() > kShortStep) {
    return false;
  }
  for (Var v = 0; v < p.count(); ++v) {
    const Instruction& i = p[v];
    if (i.op == Op::Gather || !i.bounds.empty()) return false;
    if (i.op != Op::Load && i.op != Op::Store) continue;
    SymInt step = i.step(axis);
    bool woven_too = same(step, size) && same(i.step(woven), 1);
    bool plain = i.op == Op::Load && (same(step, 0) || same(step, 1));
    if (!woven_too && !plain) return false;
  }
  return true;
}

// The vector axis and the one that is woven into it, if that is to be.
bool choose_woven(const Program& p, Schedule& s) {
  if (p.reduced() != 0) return false;
  constexpr int64_t kLeast = 8;
  for (size_t woven = 0; woven < p.sizes().size(); ++woven) {
    for (size_t a = 0; a < p.sizes().size(); ++a) {
      if (hint(p.sizes()[a]) < kLeast || !may_weave(p, a, woven)) continue;
      s.vector = a;
      s.woven = woven;
      return true;
    }
  }
  return false;
}

// The widest step that any access takes along an axis: outer loops first.
int64_t widest_step(const Program& p, size_t axis) {
  int64_t widest = 0, size = -1;
  for (Var v = 0; v < p.count(); ++v) {
    const Instruction& i = p[v];
    if (i.op != Op::Load && i.op != Op::Store) continue;
    int64_t extent = hint(p.extent(i.axes)), step = hint(i.step(axis));
    if (extent <= size || step == 0) continue;
    widest = step;
    size = extent;
  }
  return widest;
}

int64_t columns_at_a_time(int64_t columns) {
  int64_t share = (columns + get_num_threads() - 1) / get_num_threads();
  share = (share + kColumns - 1) / kColumns * kColumns;
  return std::min(share, kMostColumns);
}

void choose_vector(const Program& p, Schedule& s) {
  int64_t best = -1;
  for (size_t a = 0; a < p.sizes().size(); ++a) {
    int64_t steps = gain_along(p, a);
    bool reduced = (p.reduced() & axis_bit(a)) != 0;
    if (steps > best || (steps == best && reduced)) {
      best = steps;
      s.vector = a;
    }
  }
}

void choose_loops(const Program& p, Schedule& s, bool weaves) {
  if (!weaves || !choose_woven(p, s)) choose_vector(p, s);
  std::vector<size_t> order(p.sizes().size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return widest_step(p, a) > widest_step(p, b);
  });
  for (size_t a : order) {
    if (a == s.vector || a == s.woven) continue;
    bool reduced = (p.reduced() & axis_bit(a)) != 0;
    (reduced ? s.inner : s.outer).push_back(a);
  }
  if (s.vector == Schedule::kNone) return;
  const SymInt& size = p.sizes()[s.vector];
  bool kept = (p.reduced() & axis_bit(s.vector)) == 0;
  s.columns = kept && p.reduced() != 0;
  if (kept) {
    s.block = s.columns ? columns_at_a_time(hint(size)) : kElements;
  }
  if (!size.is_symbolic() && s.block >= size.plain()) s.block = 0;
}

void find_stages(const Program& p, Schedule& s) {
  auto count = static_cast<size_t>(p.count());
  s.full.resize(count);
  s.stage.resize(count);
  AxisSet inside = p.reduced();
  if (inside == 0 && s.vector != Schedule::kNone) inside = axis_bit(s.vector);
  if (s.woven != Schedule::kNone) inside |= axis_bit(s.woven);
  for (Var v = 0; v < p.count(); ++v) {
    const Instruction& i = p[v];
    auto at = static_cast<size_t>(v);
    for (Var o : i.operands) {
      s.stage[at] = std::max(s.stage[at], s.stage[static_cast<size_t>(o)]);
    }
    s.full[at] = (i.axes & inside) != 0;
    if (i.op == Op::Reduce) ++s.stage[at];
    if (s.full[at] || i.op == Op::Reduce) {
      int pass = i.op == Op::Reduce ? s.stage[at] : s.stage[at] + 1;
      s.passes = std::max(s.passes, pass);
    }
  }
}

// Marks what a pass must compute for `v`, down to what is there already.
void need(const Program& p,
          const Schedule& s,
          Var v,
          std::vector<bool>& needed) {
  auto at = static_cast<size_t>(v);
  if (!s.full[at] || needed[at]) return;
  needed[at] = true;
  for (Var o : p[v].operands) need(p, s, o, needed);
}

// Full values that several passes need and that are not cheap to have again.
void choose_kept(const Program& p, Schedule& s) {
  auto count = static_cast<size_t>(p.count());
  s.kept.assign(count, false);
  std::vector<int> users(count, 0);
  for (int pass = 0; pass < s.passes; ++pass) {
    std::vector<bool> needed(count, false);
    for (Var v = 0; v < p.count(); ++v) {
      const Instruction& i = p[v];
      if (i.op != Op::Store && i.op != Op::Reduce) continue;
      Var o = i.operands[0];
      if (s.stage[static_cast<size_t>(o)] != pass) continue;
      if (i.op == Op::Store && !s.full[static_cast<size_t>(v)]) continue;
      need(p, s, o, needed);
    }
    for (size_t v = 0; v < count; ++v) users[v] += needed[v];
  }
  std::vector<int> cost(count, 0);
  int64_t left = kKept / std::max<int64_t>(hint(s.array_size(p)), 1);
  for (Var v = 0; v < p.count(); ++v) {
    auto at = static_cast<size_t>(v);
    if (!s.full[at]) continue;
    cost[at] = cost_of(p, v);
    for (Var o : p[v].operands) cost[at] += cost[static_cast<size_t>(o)];
    if (users[at] < 2 || cost[at] < kExpensive || left == 0) continue;
    s.kept[at] = true;
    cost[at] = 0;
    --left;
  }
}

}  // namespace

bool is_short_step(const Instruction& i, size_t axis) {
  SymInt step = i.step(axis);
  return i.op == Op::Load && !step.is_symbolic() && step.plain() > 0 &&
         step.plain() <= kShortStep;
}

int cost_of(const Program& program, Var v) {
  const Instruction& i = program[v];
  if (i.op == Op::Gather) return 8;
  if (i.op != Op::Compute) return 1;
  return work_of(program.expressions, i.value);
}

SymInt Schedule::vector_size(const Program& program) const {
  if (vector == kNone) return 1;
  return block > 0 ? SymInt(block) : program.sizes()[vector];
}

SymInt Schedule::outer_count(const Program& program) const {
  SymInt count = 1;
  for (size_t a : outer) count *= program.sizes()[a];
  if (block > 0) {
    count *= (program.sizes()[vector] + block - 1) / block;
  }
  return count;
}

SymInt Schedule::array_size(const Program& program) const {
  SymInt count = vector_size(program);
  for (size_t a : inner) count *= program.sizes()[a];
  if (woven != kNone) count *= program.sizes()[woven];
  return count;
}

Schedule schedule(const Program& program, bool weaves) {
  Schedule s;
  choose_loops(program, s, weaves);
  find_stages(program, s);
  choose_kept(program, s);
  return s;
}

}  // namespace taeda::compiler::loops
