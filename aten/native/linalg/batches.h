// Batches of matrices on their way through a kernel: small ones in lanes
// (cpu/kernels/small_matrices.h), the others, and the small ones that lanes
// cannot decide, through LAPACK one at a time.
#pragma once

#include <taeda/aten/iter/copy.h>
#include <taeda/aten/native/cpu/isa_table.h>
#include <taeda/aten/native/cpu/kernels/small_matrices.h>
#include <taeda/aten/native/linalg/matrices.h>
#include <taeda/aten/parallel/parallel.h>

#include <algorithm>
#include <string>
#include <vector>

namespace taeda::native {

// Reads the matrices of a tensor as it lies.
template <class T>
class MatrixReader {
 public:
  MatrixReader() = default;
  // `t` must outlive the reader, and have no lazy negation.
  explicit MatrixReader(const Tensor& t)
      : data_(t.const_data<T>()),
        sizes_(batch_sizes(t)),
        strides_(t.strides().slice(0, sizes_.size())),
        rows_(t.size(-2)),
        columns_(t.size(-1)) {
    items_.row = t.stride(-2);
    items_.column = t.stride(-1);
    items_.conj = t.is_conj();
  }

  // The adjoint of each matrix, or its transpose.
  MatrixReader adjoint() const {
    MatrixReader other = transposed();
    other.items_.conj = !items_.conj;
    return other;
  }
  MatrixReader transposed() const {
    MatrixReader other = *this;
    std::swap(other.items_.row, other.items_.column);
    std::swap(other.rows_, other.columns_);
    return other;
  }
  // The last row first, and the last column first too.
  MatrixReader upside_down(bool columns_too) const {
    MatrixReader other = *this;
    other.data_ += (rows_ - 1) * items_.row;
    other.items_.row = -items_.row;
    if (columns_too) {
      other.data_ += (columns_ - 1) * items_.column;
      other.items_.column = -items_.column;
    }
    return other;
  }

  int64_t rows() const { return rows_; }
  int64_t columns() const { return columns_; }

  // The places of matrices begin .. end - 1; `pointers` has room for them.
  MatrixItems<T> items(int64_t begin, int64_t end, const T** pointers) const {
    DimVector index(sizes_);
    const T* p = data_;
    int64_t rest = begin;
    for (size_t d = sizes_.size(); d-- > 0;) {
      index[d] = rest % sizes_[d];
      rest /= sizes_[d];
      p += index[d] * strides_[d];
    }
    for (int64_t i = begin; i < end; ++i) {
      pointers[i - begin] = p;
      for (size_t d = sizes_.size(); d-- > 0;) {
        p += strides_[d];
        if (++index[d] < sizes_[d]) break;
        p -= strides_[d] * sizes_[d];
        index[d] = 0;
      }
    }
    MatrixItems<T> found = items_;
    found.items = pointers;
    return found;
  }

  // Matrix i, column-major, to `out`; the identity without data.
  void copy(int64_t i, T* out, int64_t rows, int64_t columns) const {
    if (data_ == nullptr) {
      std::fill(out, out + rows * columns, T(0));
      for (int64_t d = 0; d < rows; ++d) out[d * rows + d] = T(1);
      return;
    }
    const T* p = nullptr;
    items(i, i + 1, &p);
    copy_strided(reinterpret_cast<char*>(out),
                 {1, rows},
                 reinterpret_cast<const char*>(p),
                 {items_.row, items_.column},
                 {rows, columns},
                 scalar_type_of<T>);
    if constexpr (!std::is_same_v<T, blas::real_t<T>>) {
      if (!items_.conj) return;
      for (int64_t e = 0; e < rows * columns; ++e) out[e] = conj(out[e]);
    }
  }

  // Matrix i, row-major, to `out`; only of real numbers, and there is data.
  void copy_rows(int64_t i, T* out, int64_t stride) const {
    const T* p = nullptr;
    items(i, i + 1, &p);
    copy_strided(reinterpret_cast<char*>(out),
                 {stride, 1},
                 reinterpret_cast<const char*>(p),
                 {items_.row, items_.column},
                 {rows_, columns_},
                 scalar_type_of<T>);
  }

  bool is_identity() const { return data_ == nullptr; }

 private:
  const T* data_ = nullptr;
  DimVector sizes_, strides_;
  int64_t rows_ = 0, columns_ = 0;
  MatrixItems<T> items_;
};

// Below some thousand operations a second thread costs more than it brings.
inline int64_t matrices_per_thread(int64_t rows, int64_t columns) {
  return 1 + 16384 / (1 + rows * columns * std::min(rows, columns));
}

// Whether lanes are quicker than LAPACK: they compute as many matrices as
// there are lanes even where the batch has fewer, each some times as quickly
// (docs/design/linalg.md).
inline bool in_lanes(int64_t count, int64_t rows, int64_t columns, int lanes) {
  int64_t most = std::max(rows, columns);
  int64_t quicker = most <= 4 ? 8 : most <= 8 ? 4 : 2;
  return most <= kMostRows && count * quicker >= lanes;
}

// Calls one(i) for every matrix, on several threads.
template <class F>
void each_matrix(int64_t count, int64_t rows, int64_t columns, F&& one) {
  parallel_for(0,
               count,
               matrices_per_thread(rows, columns),
               [&](int64_t begin, int64_t end) {
                 for (int64_t i = begin; i < end; ++i) one(i);
               });
}

// A kernel's results for the matrices of `a` (and `b`), with `job` saying
// where the first of them go. Each matrix has `numbers` numbers and `pivots`
// pivots. again(i) computes what lanes leave undecided.
template <class T, class F>
void run_in_lanes(SmallKernel<T> kernel,
                  const SmallBatch<T>& job,
                  const MatrixReader<T>& a,
                  const MatrixReader<T>& b,
                  int64_t numbers,
                  int64_t pivots,
                  F&& again) {
  constexpr int64_t kPart = 128;
  auto part = [&](int64_t begin, int64_t end) {
    const T* a_items[kPart];
    const T* b_items[kPart];
    int report[kPart];
    SmallBatch<T> now = job;
    now.count = end - begin;
    now.a = a.items(begin, end, a_items);
    if (!b.is_identity()) now.b = b.items(begin, end, b_items);
    now.report = report;
    if (now.first.data != nullptr) now.first.data += begin * now.first.step;
    if (now.second.data != nullptr) now.second.data += begin * now.second.step;
    if (now.numbers != nullptr) now.numbers += begin * numbers;
    if (now.pivots != nullptr) now.pivots += begin * pivots;
    kernel(now);
    for (int64_t i = begin; i < end; ++i) {
      int found = report[i - begin];
      if (job.report != nullptr) job.report[i] = found;
      if (found == kUndecided) again(i);
    }
  };
  int64_t grain = matrices_per_thread(job.rows, job.columns);
  parallel_for(0, job.count, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i += kPart) {
      part(i, std::min(i + kPart, end));
    }
  });
}

// Where a column-major batch of matrices of this many rows and columns begins.
template <class T>
MatrixResults<T> column_major_results(const Tensor& t) {
  int64_t rows = t.size(-2), columns = t.size(-1);
  return {t.mutable_data<T>(), 1, rows, rows * columns, false};
}

// A tensor that MatrixReader can read.
inline Tensor readable(const Tensor& t) {
  return t.is_neg() ? contiguous(t) : t;
}

// "(Batch element i): " in messages about one matrix of a batch.
inline std::string batch_element(const Tensor& batch, int64_t i, int dims) {
  if (batch.dim() == dims) return "";
  return "(Batch element " + std::to_string(i) + "): ";
}

}  // namespace taeda::native
