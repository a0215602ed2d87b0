// Factors of matrices on a device, by cuSOLVER or by kernels of our own.
#pragma once

#include <taeda/aten/core/op_types.h>

namespace taeda::cuda {

TAEDA_INTERNAL_NAMES

// Note [Factors in blocks]
// A matrix that fits into a block's shared memory, with what else the kernel
// holds of it (right sides, eigenvectors), is a block's: a warp up to 32 rows
// and columns, four warps above. It is read and written once. So one matrix of
// some 100 rows (float; 76 of double) takes one launch, and a batch of small
// ones as many blocks as there are. Larger ones are the library's, or, where
// there is none, the same kernels' in the device's memory.
//
// Eigenvalues and singular values are computed in double, so that vectors of
// float have one rounding: derivatives divide by differences of the values.
//
// All functions take tensors as Note [Factors by cuSOLVER] says, with at least
// one element, and write into them.

// One triangle is read; the other is to be 0.
void factor_cholesky(const char* op,
                     const Tensor& a,
                     bool upper,
                     const Tensor& info);
void factor_lu(const char* op,
               const Tensor& a,
               const Tensor& pivots,  // int32
               const Tensor& info);
// x begins as the right sides, `a` is used up.
void solve_by_elimination(const char* op,
                          const Tensor& a,
                          const Tensor& x,
                          const Tensor& info);
void solve_triangles(
    const char* op, const Tensor& a, const Tensor& x, bool upper, bool unit);
void factor_qr(const char* op, const Tensor& a, const Tensor& tau);
// `q` begins with the reflections in its first columns, as many as `tau` has.
void make_orthogonal(const char* op, const Tensor& q, const Tensor& tau);
// Whether multiply_by_library is to be preferred to a product with all of Q.
bool multiplies_by_library(const Tensor& reflections);
// `a`, of which a triangle is read, ends as the eigenvectors where they are
// wanted.
void factor_hermitian(const char* op,
                      const Tensor& a,
                      bool upper,
                      bool vectors,
                      const Tensor& w,
                      const Tensor& info);
enum class SvdDriver : uint8_t { AsItSuits, Library, Rotations };
// Of matrices with at least as many rows as columns, which are used up; `u` and
// `vh` are undefined where nobody wants them.
void factor_singular(const char* op,
                     const Tensor& a,
                     const Tensor& u,
                     const Tensor& s,
                     const Tensor& vh,
                     const Tensor& info,
                     SvdDriver driver = SvdDriver::AsItSuits);

}  // namespace taeda::cuda
