// Kernels of operators that strided tensors have too.
#pragma once

#include <taeda/aten/core/library.h>
#include <taeda/aten/native/sparse/sparse_tensor.h>

namespace taeda::native {

// Note [Sparse kernels]
// Operators that only sparse tensors have are records with a kernel for every
// backend. Of the others, those with a meaning of their own for sparse tensors
// are registered here for SparseCPU and SparseCUDA, the functional forms alone;
// they get the call where a tensor among the arguments is sparse. What has none
// of these goes to the fallback:
// - in-place and out= forms run the functional form and write its result;
// - an operator of one tensor and a scalar formula (a pointwise record) that
//   keeps zero runs on the values;
// - all others are refused by name.
// The first sparse tensor registers them, so that programs without one do not
// pay for it.
void register_sparse_kernels();

void add_copies(Library& m);
void add_conversions(Library& m);
void add_arithmetic(Library& m);
void add_products(Library& m);
void add_reductions(Library& m);
void add_views(Library& m);
void add_joins(Library& m);
void add_resizes(Library& m);
// The fallback; views of strided tensors are kept from sparse ones.
void add_fallback(DispatchKey key);

}  // namespace taeda::native
