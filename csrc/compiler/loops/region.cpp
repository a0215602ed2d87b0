#include <taeda/aten/parallel/parallel.h>
#include <taeda/csrc/compiler/loops/region.h>

#include <algorithm>

namespace taeda::compiler::loops {

namespace {

// Additions that a thread gets at least.
constexpr int64_t kPortion = int64_t{1} << 17;

// Steps over tiles that are quicker than a call: `benchmarks/compile_tiles.py`.
constexpr size_t kStepsOfCall = 2;

// Elements that the arrays of a kernel may have, whose size is an expression.
constexpr int64_t kMostElements = int64_t{1} << 16;

SymInt work_of_point(const Program& program, const Schedule& s) {
  int64_t inside = 0, beside = 1;
  for (Var v = 0; v < program.count(); ++v) {
    bool full = s.full[static_cast<size_t>(v)];
    (full ? inside : beside) += cost_of(program, v);
  }
  return SymInt(inside) * s.array_size(program) + SymInt(beside);
}

}  // namespace

LoopRegion::LoopRegion(Graph calls,
                       const Program& program,
                       const Schedule& schedule,
                       std::vector<SymInt> kernel_numbers)
    : program_(program), kernel_numbers_(kernel_numbers.size()) {
  body = std::move(calls);
  numbers = std::move(kernel_numbers);
  numbers.push_back(schedule.outer_count(program));
  numbers.push_back(work_of_point(program, schedule));
  auto arrays = std::count(schedule.kept.begin(), schedule.kept.end(), true);
  numbers.push_back(schedule.array_size(program) * SymInt(int64_t{arrays}));
  for (size_t i = 0; i < body.inputs.size(); ++i) {
    const Value& v = body[body.inputs[i]];
    for (size_t d = 0; d < v.sizes.size(); ++d) {
      for (bool is_stride : {false, true}) {
        dims_.push_back({i, d, is_stride});
        numbers.push_back(is_stride ? v.strides[d] : v.sizes[d]);
      }
    }
  }
  auto buffers = static_cast<int>(program.buffers().size());
  for (int to = 0; to < buffers; ++to) {
    for (int read = 0; read < buffers; ++read) {
      if (may_share(program, to, read)) sharing_.emplace_back(to, read);
    }
  }
}

// What the kernel does not read at all may be written anyhow.
bool LoopRegion::may_overwrite(size_t output, size_t input) const {
  bool read = std::find(from_.begin(), from_.end(), input) != from_.end();
  size_t place = body.inputs.size() + output;
  auto is_pair = [&](std::pair<int, int> p) {
    return from_[static_cast<size_t>(p.first)] == place &&
           from_[static_cast<size_t>(p.second)] == input;
  };
  return !read || std::any_of(sharing_.begin(), sharing_.end(), is_pair);
}

// Kernels count on strides; a tensor that lies otherwise, or whose elements are
// negated when they are read, is for the calls.
bool LoopRegion::lies_as_planned(std::span<const TensorBase> inputs,
                                 IntArrayRef values) const {
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Value& v = body[body.inputs[i]];
    const TensorBase& t = inputs[i];
    bool same = t.dtype() == v.dtype && t.sizes().size() == v.sizes.size() &&
                !t.is_conj() && !t.is_neg();
    if (!same) return false;
  }
  const int64_t* expected = values.data() + kernel_numbers_ + kFacts;
  for (const Dim& d : dims_) {
    const TensorBase& t = inputs[d.input];
    int64_t has = d.is_stride ? t.strides()[d.dim] : t.sizes()[d.dim];
    bool counts = !d.is_stride || t.sizes()[d.dim] != 1;
    if (counts && has != *expected) return false;
    ++expected;
  }
  return true;
}

const TileProgram* LoopRegion::tiles() {
  std::call_once(tiles_asked_, [&] {
    tiles_ = TileProgram::make(program_, kStepsOfCall * body.nodes.size());
  });
  return tiles_.get();
}

bool LoopRegion::run(std::span<const TensorBase> inputs,
                     std::span<const TensorBase> outputs,
                     IntArrayRef values) {
  if (!lies_as_planned(inputs, values)) return false;
  const int64_t* facts = values.data() + kernel_numbers_;
  if (facts[kArrays] > kMostElements) return false;
  bool is_compiled = unit_ && unit_->ready();
  const TileProgram* tiles = is_compiled ? nullptr : this->tiles();
  if (!is_compiled && tiles == nullptr) return false;
  SmallVector<void*, 16> buffers;
  for (size_t place : from_) {
    buffers.push_back(place < inputs.size()
                          ? const_cast<void*>(inputs[place].const_raw_data())
                          : outputs[place - inputs.size()].mutable_raw_data());
  }
  void* const* given = buffers.data();
  const int64_t* n = values.data();
  int64_t grain =
      std::max<int64_t>(1, kPortion / std::max<int64_t>(1, facts[kWork]));
  parallel_for(0, facts[kOuter], grain, [&](int64_t begin, int64_t end) {
    if (tiles != nullptr) return tiles->run(given, begin, end);
    unit_->kernel(index_)(given, n, begin, end);
  });
  return true;
}

}  // namespace taeda::compiler::loops
