// Sparse tensors: what one holds, how kernels make and write them.
#pragma once

#include <taeda/aten/core/tensor_base.h>

namespace taeda::native {

// Note [Sparse tensors]
// A sparse tensor is a TensorImpl without memory whose layout is not strided
// and whose backend key is SparseCPU or SparseCUDA. What it holds, its parts,
// hangs in TensorExtra::wrapped, so that shallow copies (detach, saved results)
// share it. Parts are never changed: what writes to a sparse tensor gives it
// others (set_parts), which its shallow copies do not see. The tensors among
// the parts have no history; autograd records the sparse tensor as a whole.
struct SparseParts final : IntrusiveTarget {
  // COO: places, int64 [sparse dims, entries]. Else the column (CSR, BSR) or
  // the row of each entry, [*batch, entries].
  Tensor indices;
  // Where each row (CSR, BSR) or column begins, [*batch, rows + 1]; undefined
  // for COO.
  Tensor offsets;
  // [*batch, entries, *block, *dense]; without batch and block for COO.
  Tensor values;
  // Of COO: places are ordered and no two are equal.
  bool coalesced = false;
};

inline bool is_compressed(Layout l) {
  return l == Layout::SparseCsr || l == Layout::SparseCsc ||
         l == Layout::SparseBsr || l == Layout::SparseBsc;
}
inline bool is_sparse_layout(Layout l) {
  return l == Layout::Sparse || is_compressed(l);
}
inline bool is_blocked(Layout l) {
  return l == Layout::SparseBsr || l == Layout::SparseBsc;
}
inline bool is_by_rows(Layout l) {
  return l == Layout::SparseCsr || l == Layout::SparseBsr;
}
inline bool is_sparse(const Tensor& t) { return is_sparse_layout(t.layout()); }
inline bool is_coo(const Tensor& t) { return t.layout() == Layout::Sparse; }

// "SparseCsr", "Strided": layouts as error messages spell them.
std::string_view layout_word(Layout l);

TAEDA_API const SparseParts& parts_of(const Tensor& t);
inline int64_t entries_of(const SparseParts& p) {
  return p.offsets.defined() ? p.indices.size(-1) : p.values.size(0);
}

// The tensors are taken over without history; nothing is checked.
TAEDA_API Tensor make_coo(const Tensor& indices,
                          const Tensor& values,
                          IntArrayRef sizes,
                          bool coalesced);
TAEDA_API Tensor make_compressed(Layout layout,
                                 const Tensor& offsets,
                                 const Tensor& indices,
                                 const Tensor& values,
                                 IntArrayRef sizes);
// A tensor like `self` with other values for its entries.
Tensor with_values(const Tensor& self, const Tensor& values);
// The same parts, said to be coalesced or not.
Tensor with_order(const Tensor& self, bool coalesced);
// Without entries.
Tensor empty_coo(IntArrayRef sizes,
                 int64_t sparse_dims,
                 ScalarType dtype,
                 Device device);

// `self`, which is sparse, becomes what `from` is; its dtype stays.
void set_parts(const Tensor& self, const Tensor& from);

// How many dims of each kind the tensor has: batch, then two or, of COO, those
// that indices name, then dense ones.
int64_t batch_dims(const Tensor& t);
int64_t sparse_dims(const Tensor& t);
int64_t dense_dims(const Tensor& t);
// Rows and columns of a block; {1, 1} in layouts without blocks.
std::array<int64_t, 2> block_of(const Tensor& t);

// Which checks constructors make: those of the parts of every sparse tensor
// that is made. Any thread may change it; constructors read it once.
TAEDA_API bool checks_sparse_invariants();
TAEDA_API void set_checks_sparse_invariants(bool on);

}  // namespace taeda::native
