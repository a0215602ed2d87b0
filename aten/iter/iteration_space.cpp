#include <taeda/aten/iter/iteration_space.h>

#include <cstdlib>

namespace taeda {

IterationSpace::IterationSpace(IntArrayRef sizes,
                               ArrayRef<const int64_t*> strides,
                               bool keep_order)
    : operands_(static_cast<int>(strides.size())) {
  size_t rank = sizes.size();
  for (size_t d = rank; d-- > 0;) {
    sizes_.push_back(sizes[d]);
    numel_ *= sizes[d];
    perm_.push_back(static_cast<int>(d));
    for (const int64_t* s : strides) strides_.push_back(s[d]);
  }
  if (numel_ == 0) return;
  if (!keep_order && rank > 1) sort();
  merge();
}

// Whether an operand wants dim b inside dim a; the first with an opinion
// decides.
bool IterationSpace::before(int a, int b) const {
  for (int k = 0; k < operands_; ++k) {
    int64_t x = std::llabs(stride(k, a)), y = std::llabs(stride(k, b));
    if (x == 0 || y == 0) continue;  // broadcast operands have no opinion
    if (x != y) return x > y;
    if (sizes_[a] > sizes_[b]) return true;
  }
  return false;
}

// Insertion that looks past dims no operand has an opinion on: with broadcast
// operands "before" is no order, and the places of results' dims hang on it.
void IterationSpace::sort() {
  auto exchange = [&](int a, int b) {
    std::swap(sizes_[a], sizes_[b]);
    std::swap(perm_[a], perm_[b]);
    for (int k = 0; k < operands_; ++k) {
      std::swap(strides_[static_cast<size_t>(a * operands_ + k)],
                strides_[static_cast<size_t>(b * operands_ + k)]);
    }
  };
  int rank = dim();
  for (int i = 1; i < rank; ++i) {
    int at = i;
    for (int j = i - 1; j >= 0; --j) {
      if (before(j, at)) {
        exchange(j, at);
        at = j;
      } else if (before(at, j)) {
        break;
      }
    }
  }
}

void IterationSpace::merge() {
  int rank = dim(), last = 0;
  for (int d = 1; d < rank; ++d) {
    bool joins = true;
    for (int k = 0; k < operands_ && joins; ++k) {
      joins = stride(k, d) == stride(k, last) * sizes_[last];
    }
    joins = joins || sizes_[d] == 1 || sizes_[last] == 1;
    if (joins && sizes_[last] == 1) {
      for (int k = 0; k < operands_; ++k) {
        strides_[static_cast<size_t>(last * operands_ + k)] = stride(k, d);
      }
    }
    if (joins) {
      sizes_[last] *= sizes_[d];
      continue;
    }
    ++last;
    sizes_[last] = sizes_[d];
    for (int k = 0; k < operands_; ++k) {
      strides_[static_cast<size_t>(last * operands_ + k)] = stride(k, d);
    }
  }
  if (rank > 0) {
    sizes_.resize(static_cast<size_t>(last + 1));
    strides_.resize(static_cast<size_t>((last + 1) * operands_));
  } else {
    sizes_.push_back(1);
    strides_.resize(static_cast<size_t>(operands_), 0);
  }
}

bool IterationSpace::is_linear(int operand, int64_t itemsize) const {
  int64_t expected = itemsize;
  for (int d = 0; d < dim(); ++d) {
    if (sizes_[d] == 1) continue;
    if (stride(operand, d) != expected) return false;
    expected *= sizes_[d];
  }
  return true;
}

OperandWalker::OperandWalker(const IterationSpace& space,
                             int operand,
                             int64_t position)
    : space_(space),
      operand_(operand),
      inner_(space.size(0)),
      stride0_(space.stride(operand, 0)),
      rows_(space.dim() > 1 ? space.size(1) : 1),
      to_next_row_(
          space.dim() > 1 ? space.stride(operand, 1) - inner_ * stride0_ : 0),
      column_(position % inner_) {
  offset_ = column_ * stride0_;
  position /= inner_;
  for (int d = 1; d < space.dim(); ++d) {
    int64_t at = position % space.size(d);
    position /= space.size(d);
    offset_ += at * space.stride(operand, d);
    if (d == 1) {
      row_ = at;
    } else {
      index_.push_back(at);
    }
  }
}

void OperandWalker::next_plane() {
  if (space_.dim() < 3) return;  // past the end
  row_ = 0;
  offset_ += space_.stride(operand_, 2) - rows_ * space_.stride(operand_, 1);
  for (int d = 2; ++index_[d - 2] == space_.size(d); ++d) {
    if (d + 1 == space_.dim()) return;
    index_[d - 2] = 0;
    offset_ += space_.stride(operand_, d + 1) -
               space_.size(d) * space_.stride(operand_, d);
  }
}

}  // namespace taeda
