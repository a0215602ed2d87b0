// Products of sparse matrices that a device's library computes by kernels of
// its own, in place of calls of operators on the parts.
#pragma once

#include <taeda/aten/native/sparse/sparse_tensor.h>

namespace taeda::native {

// Of matrices in rows (CSR), of floating or complex numbers. Results are new
// and row-major. Sums come in the order of the entries: the same bits each
// time.
struct SparseProducts {
  // [rows, columns of dense]
  Tensor (*times)(const Tensor& offsets,
                  const Tensor& places,
                  const Tensor& values,
                  const Tensor& dense);
  // The entries that the matrix has, of left times right: [entries]
  Tensor (*sampled)(const Tensor& offsets,
                    const Tensor& places,
                    const Tensor& left,
                    const Tensor& right);
};

// The library of CUDA devices sets them when it is loaded.
TAEDA_API void set_sparse_products_on_cuda(const SparseProducts* products);
// Null where the device of `t` has none, or none of its dtype.
const SparseProducts* sparse_products_of(const Tensor& t);

}  // namespace taeda::native
