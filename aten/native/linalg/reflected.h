// QR decompositions of real matrices by reflections of our own
// (docs/design/linalg.md, "One matrix").
#pragma once

#include <taeda/aten/native/cpu/kernels/reflections.h>

#include <cstdint>
#include <memory>
#include <vector>

namespace taeda::native {

// A row-major matrix whose rows the kernels of reflections.h take. Elements
// behind the last column are zeros, and so are all others at first.
template <class T>
class AlignedMatrix {
 public:
  AlignedMatrix(int64_t rows, int64_t columns);
  int64_t rows() const { return rows_; }
  int64_t columns() const { return columns_; }
  int64_t stride() const { return stride_; }
  T* row(int64_t i) const { return data_.get() + i * stride_; }
  T& operator()(int64_t i, int64_t j) const { return row(i)[j]; }

 private:
  struct Free {
    void operator()(T* p) const;
  };
  int64_t rows_, columns_, stride_;
  std::unique_ptr<T[], Free> data_;
};

// The reflections that bring the first `count` columns of a matrix to R, with
// count <= rows. LAPACK's conventions: R's diagonal has the other sign than
// what it replaces.
template <class T>
class Reflected {
 public:
  // Overwrites `a`, which must outlive this: R stands on and above the diagonal
  // of its first columns, the others are multiplied by Q^T. What is below R
  // has no meaning.
  Reflected(const AlignedMatrix<T>& a, int64_t count);
  // Whether all went well: not where there are NaN or numbers so large or small
  // that their squares are not representable.
  bool ok() const { return ok_; }
  // The first columns of Q.
  void product(const AlignedMatrix<T>& q);

 private:
  bool factor_blocks(const AlignedMatrix<T>& a);
  void make_triangle(int64_t first, int64_t count);
  void apply(bool transposed,
             int64_t first,
             int64_t count,
             const AlignedMatrix<T>& a,
             int64_t column) const;

  int64_t rows_, count_;
  AlignedMatrix<T> v_, triangles_;
  std::vector<T> tau_;
  bool blocks_;    // else all reflections are one block
  int64_t block_;  // reflections of a block
  bool ok_;
};

// Whether rcond <= least / largest singular value of the upper triangle R in
// the first n rows and columns of `r`, beyond doubt; false says nothing.
template <class T>
bool surely_conditioned(const AlignedMatrix<T>& r, int64_t n, double rcond);

extern template class AlignedMatrix<float>;
extern template class AlignedMatrix<double>;
extern template class Reflected<float>;
extern template class Reflected<double>;

}  // namespace taeda::native
