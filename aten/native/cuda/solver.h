// Factors of matrices by cuSOLVER, systems of triangles by cuBLAS.
#pragma once

#include <taeda/aten/core/op_types.h>

namespace taeda::cuda {

TAEDA_INTERNAL_NAMES

// Note [Factors by cuSOLVER]
// The library sees matrices as LAPACK does, column by column, which is how the
// rules of the operators have results lie: a call copies what it is given into
// its result once, and the library works there. All functions here take such
// tensors, [..., rows, columns] one matrix behind the other; a batch is a call
// for each matrix, or, of Hermitian ones where the library is new enough, one.
// What it says of a matrix goes to an int32 of the device, one for each, which
// the operators' checks read as they read LAPACK's.
//
// The library's handles are kept, one for each stream that is worked in, so
// that what a handle has of its own is used by no two streams at once; a call
// holds the handle's lock. Workspace is taken for each call on the current
// stream.
//
// Matrices that fit into the shared memory of a block are our own kernels'
// (factors.cuh) unless the program prefers cuSOLVER
// (`backends.cuda.preferred_linalg_library`), in which case all are the
// library's. Where there is no library all run by our kernels, after one
// warning.

// Whether the libraries are there; warn once where they are not.
bool has_cusolver();
bool has_triangles();
// Where the version has it.
bool has_general_eigenvalues();

// What programs prefer, PyTorch's numbers; any thread may set it.
enum class LinalgLibrary : uint8_t { Default, Cusolver, Magma };
LinalgLibrary preferred_linalg();

// `a` ends as its factor in the triangle that is read; the other is as it was.
void cholesky_by_library(const char* op,
                         const Tensor& a,
                         bool upper,
                         const Tensor& info);
// Pivots are int64, from 1 on.
void lu_by_library(const char* op,
                   const Tensor& a,
                   const Tensor& pivots,
                   const Tensor& info);
// x begins as the right sides.
void lu_solve_by_library(const char* op,
                         const Tensor& lu,
                         const Tensor& pivots,
                         const Tensor& x);
// R, the reflections below it.
void qr_by_library(const char* op, const Tensor& a, const Tensor& tau);
// `q` begins with the reflections in its first columns, as many as `tau` has.
void orthogonal_by_library(const char* op, const Tensor& q, const Tensor& tau);
// c = Q c, or c Q where not `left`; Q^H where `adjoint`.
void multiply_by_library(const char* op,
                         const Tensor& from,
                         const Tensor& tau,
                         const Tensor& c,
                         bool left,
                         bool adjoint);
// `a`, of which a triangle is read, ends as the eigenvectors where they are
// wanted.
void eigh_by_library(const char* op,
                     const Tensor& a,
                     bool upper,
                     bool vectors,
                     const Tensor& w,
                     const Tensor& info);
// Of matrices with at least as many rows as columns, which are used up; `u` and
// `vh` are undefined where nobody wants them.
void svd_by_library(const char* op,
                    const Tensor& a,
                    const Tensor& u,
                    const Tensor& s,
                    const Tensor& vh,
                    const Tensor& info);
// `a` is used up. `v` is undefined where nobody wants it; of real matrices it
// is real, a pair of conjugate vectors being two columns, real and imaginary
// parts.
void eig_by_library(const char* op,
                    const Tensor& a,
                    const Tensor& w,
                    const Tensor& v,
                    const Tensor& info);
// x begins as the right sides of a x = b, or x a = b where not `left`.
void triangles_by_library(const char* op,
                          const Tensor& a,
                          const Tensor& x,
                          bool upper,
                          bool left,
                          bool unit);

}  // namespace taeda::cuda
