// Sizes and strides of a tensor some of which are symbols.
#pragma once

#include <taeda/c10/core/strides.h>
#include <taeda/c10/core/tensor_impl.h>

namespace taeda {

// See Note [Symbolic geometry]. Does not change once a tensor has it.
struct TAEDA_API SymbolicGeometry final : IntrusiveTarget {
  SymbolicGeometry(ArrayRef<SymInt> sizes,
                   ArrayRef<SymInt> strides,
                   SymInt offset);
  // Fixes every symbol to its hint.
  void fix() const;

  Dims<SymInt> sizes, strides;
  SymInt offset, numel;
};

inline const SymbolicGeometry* symbolic_or_null(const TensorImpl& t) {
  if (TAEDA_LIKELY(!t.is_symbolic())) return nullptr;
  return static_cast<const SymbolicGeometry*>(
      t.extra_or_null()->symbolic.get());
}
// The geometry of any tensor; nothing is fixed by asking. The lists belong to
// the tensor.
inline ArrayRef<SymInt> sym_sizes(const TensorImpl& t) {
  const SymbolicGeometry* g = symbolic_or_null(t);
  return g != nullptr ? ArrayRef<SymInt>(g->sizes) : as_symbolic(t.sizes());
}
inline ArrayRef<SymInt> sym_strides(const TensorImpl& t) {
  const SymbolicGeometry* g = symbolic_or_null(t);
  return g != nullptr ? ArrayRef<SymInt>(g->strides) : as_symbolic(t.strides());
}
inline SymInt sym_offset(const TensorImpl& t) {
  const SymbolicGeometry* g = symbolic_or_null(t);
  return g != nullptr ? g->offset : SymInt(t.storage_offset());
}
inline SymInt sym_numel(const TensorImpl& t) {
  const SymbolicGeometry* g = symbolic_or_null(t);
  return g != nullptr ? g->numel : SymInt(t.numel());
}

// What a symbol stands for by its hint, without a guard; `otherwise` where it
// has none. For what must not decide anything.
TAEDA_API int64_t hint_of(const SymInt& v, int64_t otherwise);
TAEDA_API DimVector hints_of(ArrayRef<SymInt> list, int64_t otherwise);
TAEDA_API bool has_hints(ArrayRef<SymInt> list);

}  // namespace taeda
