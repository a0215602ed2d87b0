#include <taeda/aten/iter/geometry.h>

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

// Whether dim b must stand inside dim a although it comes later.
bool IterationSpace::before(int a, int b) const {
  for (int k = 0; k < operands_; ++k) {
    int64_t x = std::llabs(stride(k, a)), y = std::llabs(stride(k, b));
    if (x == 0 || y == 0) continue;  // broadcast operands have no opinion
    if (x != y) return x > y;
    if (sizes_[a] != sizes_[b]) return sizes_[a] > sizes_[b];
  }
  return false;
}

void IterationSpace::sort() {
  int rank = dim();
  for (int i = 1; i < rank; ++i) {
    for (int j = i; j > 0 && before(j - 1, j); --j) {
      std::swap(sizes_[j - 1], sizes_[j]);
      std::swap(perm_[j - 1], perm_[j]);
      for (int k = 0; k < operands_; ++k) {
        std::swap(strides_[static_cast<size_t>((j - 1) * operands_ + k)],
                  strides_[static_cast<size_t>(j * operands_ + k)]);
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
      index_(static_cast<size_t>(space.dim())) {
  for (int d = 0; d < space.dim(); ++d) {
    index_[d] = position % space.size(d);
    position /= space.size(d);
    offset_ += index_[d] * space.stride(operand, d);
  }
}

void OperandWalker::step(int64_t count) {
  index_[0] += count;
  offset_ += count * stride0_;
  for (int d = 0; index_[d] == space_.size(d); ++d) {
    offset_ -= index_[d] * space_.stride(operand_, d);
    index_[d] = 0;
    if (d + 1 == space_.dim()) return;
    ++index_[d + 1];
    offset_ += space_.stride(operand_, d + 1);
  }
}

}  // namespace taeda
