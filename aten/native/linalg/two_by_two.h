// The general eigenproblem of one matrix of two rows, by Eigen: the one size at
// which it is quicker than LAPACK and gives eigenvalues in LAPACK's order,
// which PyTorch's users see (docs/design/linalg.md).
#pragma once

#include <taeda/aten/native/blas/lapack.h>

namespace taeda::native {

// The eigenvalues of the column-major 2 x 2 `matrix` of finite numbers go to
// `values`, and eigenvectors of norm 1 to the columns of `vectors` unless that
// is null. False where LAPACK shall decide, and then the results are undefined:
// triangular matrices, whose eigenvalues LAPACK gives exactly, matrices with
// one eigenvalue up to rounding, and numbers whose squares are not
// representable.
template <class R>
bool eig_two_by_two(const R* matrix, complex<R>* values, complex<R>* vectors);

}  // namespace taeda::native
