#include <taeda/csrc/compiler/loops/cuda_schedule.h>

#include <algorithm>
#include <bit>

namespace taeda::compiler::loops {

namespace {

constexpr int64_t kWarp = 32, kBlock = 256;
constexpr int64_t kPackBytes = 16;  // the widest access of a thread
constexpr int64_t kMostWidth = 8;
// 32-bit registers for values that are kept between passes.
constexpr int64_t kRegisters = 32;
// Packs that a thread of a warp folds before a whole block shares the row, and
// that a thread of a block folds.
constexpr int64_t kPacksInWarp = 8, kPacksInBlock = 4;
// Additions that a value costs which is kept rather than computed again, and
// those that a load counts for.
constexpr int kExpensive = 12;
// Elements that are worth two kernels.
constexpr int64_t kSplit = int64_t{1} << 16;

int64_t part_up(int64_t a, int64_t b) { return (a + b - 1) / b; }
int64_t power_of_two(int64_t least) {
  return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(least)));
}

bool is_access(const Instruction& i) {
  return i.op == Op::Load || i.op == Op::Store;
}
int64_t extent(const Program& p, AxisSet axes) {
  return p.extent(axes).plain();
}
// Of what is read or written at its place alone: bounds are no part of packs.
int64_t step(const Instruction& i, size_t axis) {
  return i.place.strides[axis].plain();
}
int64_t bytes_of(const Program& p, const Instruction& i) {
  ScalarType dtype = p.buffers()[static_cast<size_t>(i.buffer)].dtype;
  return static_cast<int64_t>(element_size(dtype));
}

void choose_axes(const Program& p, CudaSchedule& s) {
  // As the CPU's loops are nested: the smallest steps are innermost.
  auto add = [&](size_t a) {
    bool reduced = (p.reduced() & axis_bit(a)) != 0;
    (reduced ? s.folded : s.points).push_back(a);
  };
  for (size_t a : s.nest.outer) add(a);
  for (size_t a : s.nest.inner) add(a);
  if (s.nest.vector != Schedule::kNone) add(s.nest.vector);
  if (p.reduced() == 0) {
    s.layout = CudaSchedule::kElements;
  } else {
    s.layout = s.nest.columns ? CudaSchedule::kColumns : CudaSchedule::kRows;
  }
}

// For BodyPrinter: all axes have an index, and there is no vector loop.
void flatten(const Program& p, CudaSchedule& s) {
  Schedule& n = s.nest;
  n.outer.clear();
  n.inner.clear();
  for (size_t a = 0; a < p.sizes().size(); ++a) n.inner.push_back(a);
  n.vector = Schedule::kNone;
  n.block = 0;
  n.columns = false;
  n.kept.assign(n.kept.size(), false);
  if (s.layout == CudaSchedule::kElements) n.full.assign(n.full.size(), true);
}

// Whether an access may take `width` elements at once along an axis.
bool divides(const Program& p, const Instruction& i, size_t axis, int64_t w) {
  int64_t size = p.sizes()[axis].plain(), offset = i.place.offset.plain();
  if (size % w != 0 || offset % w != 0) return false;
  for (size_t a = 0; a < p.sizes().size(); ++a) {
    if (a != axis && step(i, a) % w != 0) return false;
  }
  return true;
}

// Vectors are taken where they carry at least half of what is read and written
// along the axis, as wide as all of it allows.
int64_t width_along(const Program& p, size_t axis) {
  int64_t all = 0, together = 0, largest = 1;
  for (Var v = 0; v < p.count(); ++v) {
    const Instruction& i = p[v];
    if (!is_access(i) || step(i, axis) == 0) continue;
    all += bytes_of(p, i);
    if (step(i, axis) != 1) continue;
    together += bytes_of(p, i);
    largest = std::max(largest, bytes_of(p, i));
  }
  if (together == 0 || 2 * together < all) return 1;
  int64_t width = std::min(kPackBytes / largest, kMostWidth);
  for (Var v = 0; v < p.count(); ++v) {
    const Instruction& i = p[v];
    if (!is_access(i) || step(i, axis) != 1) continue;
    while (!divides(p, i, axis, width)) width /= 2;
  }
  return width;
}

void choose_width(const Program& p, const CudaDevice& d, CudaSchedule& s) {
  size_t axis = s.pack_axis();
  if (axis == Schedule::kNone) return;
  s.width = width_along(p, axis);
  // Few elements are rather spread over many threads.
  int64_t all = extent(p, p.all_axes());
  while (s.width > 1 && all / s.width < d.processors * d.threads / 8) {
    s.width /= 2;
  }
  for (Var v = 0; v < p.count(); ++v) {
    if (!s.is_packed(p, v)) continue;
    s.alignment = std::max(s.alignment, s.width * bytes_of(p, p[v]));
  }
}

void choose_threads(const Program& p, const CudaDevice& d, CudaSchedule& s) {
  int64_t elements = extent(p, p.reduced());
  int64_t points = extent(p, p.all_axes() & ~p.reduced());
  int64_t packs = part_up(elements, s.width);
  if (s.layout == CudaSchedule::kColumns) {
    int64_t side = std::min(kWarp, power_of_two(points));
    s.lanes = std::min(kBlock / side, power_of_two(elements));
    s.block = side * s.lanes;
    // The lanes meet in shared memory.
    while (s.block * 8 > d.shared_bytes && s.lanes > 1) {
      s.lanes /= 2;
      s.block /= 2;
    }
  } else {
    s.lanes = std::min(kWarp, power_of_two(packs));
    if (packs > kWarp * kPacksInWarp) {
      // Rows that blocks share are cut into parts of a smaller block.
      int64_t most = points < d.processors ? kBlock : 4 * kBlock;
      s.lanes = std::min(most, power_of_two(part_up(packs, kPacksInBlock)));
    }
    s.block = std::max(kBlock / 2, s.lanes);
  }
}

void choose_splits(const Program& p, const CudaDevice& d, CudaSchedule& s) {
  int64_t elements = extent(p, p.reduced());
  int64_t points = extent(p, p.all_axes() & ~p.reduced());
  int64_t blocks = part_up(points, s.points_of_block());
  s.part = elements;
  if (blocks >= d.processors || points * elements < kSplit) return;
  int64_t turn = s.lanes * s.width;
  int64_t least = kPacksInBlock * turn;
  int64_t splits =
      std::min(part_up(2 * d.processors, blocks), elements / least);
  if (splits < 2) return;
  s.part = part_up(part_up(elements, splits), turn) * turn;
  s.splits = part_up(elements, s.part);
}

// Finds the values that passes read of earlier ones: for each pass it walks
// down from what the pass stores and sums to the first values that an earlier
// pass has as well and that cost something to have again.
class Keeper {
 public:
  Keeper(const Program& p, Schedule& nest, int64_t most)
      : p_(p),
        n_(nest),
        left_(most),
        first_(size(), nest.passes),
        cost_(size()) {
    for (Var v = 0; v < p_.count(); ++v) {
      int& cost = cost_[static_cast<size_t>(v)];
      cost = p_[v].op == Op::Load ? kExpensive : cost_of(p_, v);
      for (Var o : p_[v].operands) {
        if (is_full(o)) cost += cost_[static_cast<size_t>(o)];
      }
    }
  }

  // Whether anything is kept.
  bool run() {
    bool found = false;
    for (bool keeps : {false, true}) {
      for (int pass = 0; pass < n_.passes; ++pass) {
        seen_.assign(size(), false);
        for (Var v = 0; v < p_.count(); ++v) {
          if (pass_of(v) == pass) found |= walk(p_[v].operands[0], pass, keeps);
        }
      }
    }
    return found;
  }

 private:
  size_t size() const { return static_cast<size_t>(p_.count()); }
  bool is_full(Var v) const { return n_.full[static_cast<size_t>(v)]; }
  // Of what is stored or summed; -1 for other variables.
  int pass_of(Var v) const {
    int stage = n_.stage[static_cast<size_t>(v)];
    if (p_[v].op == Op::Reduce) return stage - 1;
    return p_[v].op == Op::Store && is_full(v) ? stage : -1;
  }

  bool walk(Var v, int pass, bool keeps) {
    auto at = static_cast<size_t>(v);
    if (!n_.full[at] || seen_[at]) return false;
    seen_[at] = true;
    first_[at] = std::min(first_[at], pass);
    if (keeps && first_[at] < pass && cost_[at] >= kExpensive) {
      if (n_.kept[at]) return true;
      if (left_ > 0) {
        --left_;
        n_.kept[at] = true;
        return true;
      }
    }
    bool found = false;
    for (Var o : p_[v].operands) found |= walk(o, pass, keeps);
    return found;
  }

  const Program& p_;
  Schedule& n_;
  int64_t left_;
  std::vector<int> first_;  // pass that needs a value
  std::vector<int> cost_;   // of a value and what it is made of
  std::vector<bool> seen_;
};

// Rows stay in registers where a thread's part of them is short.
void choose_registers(const Program& p, CudaSchedule& s) {
  if (s.splits > 1 || s.nest.passes < 2) return;
  int64_t turns = part_up(extent(p, p.reduced()), s.lanes * s.width);
  bool doubles = false;
  for (Var v = 0; v < p.count(); ++v) {
    bool large = p[v].type == Compute::F64 || p[v].type == Compute::I64;
    doubles |= large && s.nest.full[static_cast<size_t>(v)];
  }
  int64_t most = kRegisters / (turns * s.width * (doubles ? 2 : 1));
  if (Keeper(p, s.nest, most).run()) s.turns = turns;
}

// Whether 32 bits hold every index and place, with a step of the grid to spare.
bool is_wide(const Program& p) {
  int64_t most = extent(p, p.all_axes());
  for (Var v = 0; v < p.count(); ++v) {
    const Instruction& i = p[v];
    if (!is_access(i)) continue;
    int64_t reach = std::abs(i.place.offset.plain());
    for (size_t a = 0; a < p.sizes().size(); ++a) {
      reach += std::abs(step(i, a)) * (p.sizes()[a].plain() - 1);
    }
    for (const Bound& b : i.bounds) reach += b.size * b.stride.plain();
    most = std::max(most, reach);
  }
  return most >= int64_t{1} << 30;
}

}  // namespace

size_t CudaSchedule::pack_axis() const {
  if (layout == kColumns) return Schedule::kNone;
  const std::vector<size_t>& axes = layout == kRows ? folded : points;
  return axes.empty() ? Schedule::kNone : axes.back();
}

bool CudaSchedule::is_packed(const Program& program, Var v) const {
  const Instruction& i = program[v];
  return width > 1 && is_access(i) && i.bounds.empty() &&
         step(i, pack_axis()) == 1;
}

CudaSchedule cuda_schedule(const Program& program,
                           const CudaDevice& device,
                           bool aligned) {
  CudaSchedule s;
  s.nest = schedule(program, /*weaves=*/false);
  choose_axes(program, s);
  flatten(program, s);
  if (aligned) choose_width(program, device, s);
  s.wide = is_wide(program);
  if (s.layout == CudaSchedule::kElements) return s;
  choose_threads(program, device, s);
  choose_splits(program, device, s);
  choose_registers(program, s);
  return s;
}

}  // namespace taeda::compiler::loops
