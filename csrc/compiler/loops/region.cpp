#include <taeda/aten/parallel/parallel.h>
#include <taeda/csrc/compiler/loops/region.h>

#include <algorithm>

namespace taeda::compiler::loops {

namespace {

// Additions that a thread gets at least.
constexpr int64_t kWork = int64_t{1} << 17;

int64_t work_of_point(const Program& program, const Schedule& s) {
  int64_t inside = 0, beside = 1;
  for (Var v = 0; v < program.count(); ++v) {
    bool full = s.full[static_cast<size_t>(v)];
    (full ? inside : beside) += cost_of(program, v);
  }
  return inside * s.array_size(program) + beside;
}

}  // namespace

LoopRegion::LoopRegion(Graph calls,
                       const Program& program,
                       const Schedule& schedule,
                       std::vector<size_t> from)
    : program_(program),
      from_(std::move(from)),
      outer_(schedule.outer_count(program)) {
  body = std::move(calls);
  grain_ = std::max<int64_t>(1, kWork / work_of_point(program, schedule));
  auto buffers = static_cast<int>(program.buffers().size());
  for (int to = 0; to < buffers; ++to) {
    for (int read = 0; read < buffers; ++read) {
      if (!may_share(program, to, read)) continue;
      sharing_.emplace_back(from_[static_cast<size_t>(to)],
                            from_[static_cast<size_t>(read)]);
    }
  }
}

// What the kernel does not read at all may be written anyhow.
bool LoopRegion::may_overwrite(size_t output, size_t input) const {
  bool read = std::find(from_.begin(), from_.end(), input) != from_.end();
  std::pair<size_t, size_t> pair(body.inputs.size() + output, input);
  return !read ||
         std::find(sharing_.begin(), sharing_.end(), pair) != sharing_.end();
}

// Kernels know strides by number; a tensor that lies otherwise, or whose
// elements are negated when they are read, is for the calls.
bool LoopRegion::lies_as_planned(std::span<const TensorBase> inputs) const {
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Value& v = body[body.inputs[i]];
    const TensorBase& t = inputs[i];
    bool same = t.dtype() == v.dtype && t.sizes() == as_plain(v.sizes) &&
                !t.is_conj() && !t.is_neg();
    for (size_t d = 0; same && d < v.sizes.size(); ++d) {
      same = t.sizes()[d] == 1 || t.strides()[d] == v.strides[d].plain();
    }
    if (!same) return false;
  }
  return true;
}

bool LoopRegion::run(std::span<const TensorBase> inputs,
                     std::span<const TensorBase> outputs) {
  if (!unit_ || !unit_->ready() || !lies_as_planned(inputs)) return false;
  SmallVector<void*, 16> buffers;
  for (size_t place : from_) {
    buffers.push_back(place < inputs.size()
                          ? const_cast<void*>(inputs[place].const_raw_data())
                          : outputs[place - inputs.size()].mutable_raw_data());
  }
  Kernel kernel = unit_->kernel(index_);
  void* const* given = buffers.data();
  parallel_for(0, outer_, grain_, [=](int64_t begin, int64_t end) {
    kernel(given, begin, end);
  });
  return true;
}

}  // namespace taeda::compiler::loops
