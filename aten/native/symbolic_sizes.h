// For composites whose tensors may have symbols among their sizes: questions
// and calls that leave them as they are. Of plain tensors they cost as much as
// those on integers.
#pragma once

#include <taeda/aten/iter/symbolic.h>

namespace taeda::native {

inline ArrayRef<SymInt> symbolic_sizes(const Tensor& t) {
  return sym_sizes(*t.impl());
}
// Of a dim that a program names: raises where there is none.
inline const SymInt& symbolic_size(const Tensor& t, int64_t dim) {
  int64_t wrapped = wrap_dim(dim, t.dim());
  TAEDA_CHECK_AS(Index,
                 t.dim() > 0,
                 "Dimension specified as ",
                 dim,
                 " but tensor has no dimensions");
  return symbolic_sizes(t)[static_cast<size_t>(wrapped)];
}
inline bool has_no_elements(const Tensor& t) {
  return t.impl()->is_symbolic() ? sym_numel(*t.impl()) == 0 : t.numel() == 0;
}
// Whether two dims, counted from the front, have one size.
inline bool same_size(const Tensor& a, int64_t i, const Tensor& b, int64_t j) {
  return symbolic_sizes(a)[static_cast<size_t>(i)] ==
         symbolic_sizes(b)[static_cast<size_t>(j)];
}
TAEDA_API bool same_sizes(ArrayRef<SymInt> a, ArrayRef<SymInt> b);

// A number as a tensor without axes where `like` is, in the same levels and
// modes: arithmetic with a symbol.
TAEDA_API Tensor number_as_tensor(const Tensor& like, const SymInt& number);
TAEDA_API Tensor zeros_sized(const Tensor& like, ArrayRef<SymInt> sizes);

Tensor reshape_sized(const Tensor& self, ArrayRef<SymInt> shape);
Tensor expand_sized(const Tensor& self, ArrayRef<SymInt> shape);
// [n, c, plane] in groups: the normalised values, means and scales.
std::tuple<Tensor, Tensor, Tensor> group_norm_sized(
    const Tensor& input,
    const OptionalTensor& weight,
    const OptionalTensor& bias,
    const SymInt& n,
    const SymInt& c,
    const SymInt& plane,
    int64_t groups,
    double eps);

}  // namespace taeda::native
