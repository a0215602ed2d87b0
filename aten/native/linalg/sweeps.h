// Eigenvalues and eigenvectors of one symmetric matrix of medium size by
// rotations (docs/design/linalg.md, "One matrix").
#pragma once

#include <cstdint>

namespace taeda::native {

// Rows up to which this is quicker than LAPACK's divide and conquer.
inline constexpr int64_t kMostSwept = 160;

// Of the n x n column-major `matrix`, whose lower or upper triangle is read:
// eigenvalues go to w, rising, and eigenvectors over the matrix where they are
// wanted. False where the matrix is left as it was, for LAPACK: it has NaN,
// infinities or numbers whose squares are not representable, or the iteration
// does not end.
template <class T>
bool eigh_by_sweeps(int64_t n, T* matrix, T* w, bool lower, bool vectors);

}  // namespace taeda::native
