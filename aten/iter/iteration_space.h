// The iteration space of several operands: dims ordered and merged so that the
// inner loop is long, strides in bytes.
#pragma once

#include <taeda/c10/util/macros.h>
#include <taeda/c10/util/small_vector.h>

#include <cstdint>

namespace taeda {

inline constexpr int kMaxOperands = 8;

// Note [Iteration order]
// Dim 0 is the innermost. Dims are sorted by stride of the first operand (the
// output), ties by the next ones, so that a permuted but dense set of operands
// is walked in memory order; then neighbours that every operand walks
// contiguously are merged.
class TAEDA_API IterationSpace {
 public:
  // `sizes` outermost first; strides[k] likewise, in bytes, one array an
  // operand. `keep_order`: no sorting (the caller depends on logical order).
  IterationSpace(IntArrayRef sizes,
                 ArrayRef<const int64_t*> strides,
                 bool keep_order = false);

  int dim() const { return static_cast<int>(sizes_.size()); }
  int64_t size(int d) const { return sizes_[d]; }
  int64_t numel() const { return numel_; }
  int operands() const { return operands_; }
  int64_t stride(int operand, int d) const {
    return strides_[static_cast<size_t>(d * operands_ + operand)];
  }
  // perm()[d]: which of the caller's dims stands at d before merging.
  ArrayRef<int> perm() const { return perm_; }

  // True when the operand's elements follow each other at `itemsize` bytes in
  // iteration order.
  bool is_linear(int operand, int64_t itemsize) const;

 private:
  void sort();
  void merge();
  bool before(int a, int b) const;

  int operands_;
  int64_t numel_ = 1;
  DimVector sizes_;
  SmallVector<int64_t, 20> strides_;
  SmallVector<int, 8> perm_;
};

// Walks one operand of a space from a linear position on, row by row.
class TAEDA_API OperandWalker {
 public:
  OperandWalker(const IterationSpace& space, int operand, int64_t position);
  // Calls f(byte_offset, stride, count) for the rows of the next n elements.
  template <class F>
  void advance(int64_t n, F&& f) {
    while (n > 0) {
      int64_t count = inner_ - column_;
      if (count > n) count = n;
      f(offset_, stride0_, count);
      n -= count;
      step(count);
    }
  }
  // The same for one row at most: f sees min(n, rest of the row).
  template <class F>
  void advance_row(int64_t n, F&& f) {
    int64_t count = inner_ - column_;
    if (count > n) count = n;
    f(offset_, stride0_, count);
    step(count);
  }

 private:
  // The next row of a plane (dims 0 and 1) takes a few additions.
  void step(int64_t count) {
    column_ += count;
    if (column_ < inner_) {
      offset_ += count * stride0_;
      return;
    }
    offset_ += count * stride0_ + to_next_row_;
    column_ = 0;
    if (++row_ == rows_) next_plane();
  }
  void next_plane();

  const IterationSpace& space_;
  int operand_;
  int64_t inner_;
  int64_t stride0_;
  int64_t rows_;
  int64_t to_next_row_;  // from one past the end of the row before
  int64_t column_;
  int64_t row_ = 0;
  int64_t offset_ = 0;
  DimVector index_;  // of dims 2 and above
};

}  // namespace taeda
