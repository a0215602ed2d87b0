// Products of sparse matrices on the device.
#pragma once

#include <taeda/aten/native/sparse/device_products.h>

namespace taeda::cuda {

// Note [Sparse products]
// Kernels of our own, and not cuSPARSE: a row's entries are added up in their
// order by one warp, so that results are deterministic (cuSPARSE promises that
// of few of its ways), nothing is analysed or allocated before a call, and the
// emulated device runs all of it. A warp reads 32 entries at once and has 32
// columns of the result; of one column its threads share the entries. What is
// lost are matrices whose rows differ much in length: the longest is one
// warp's.
extern const native::SparseProducts kSparseProducts;

}  // namespace taeda::cuda
