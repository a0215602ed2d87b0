// Maxima over windows or bins: shapes, and the forms of one dim.
#include <taeda/aten/native/max_pool.h>
#include <taeda/aten/native/symbolic_sizes.h>
#include <taeda/gen/native/adaptive_max_pool1d.h>
#include <taeda/gen/native/adaptive_max_pool2d.h>
#include <taeda/gen/native/adaptive_max_pool2d_backward.h>
#include <taeda/gen/native/adaptive_max_pool3d.h>
#include <taeda/gen/native/adaptive_max_pool3d_backward.h>
#include <taeda/gen/native/max_pool1d.h>
#include <taeda/gen/native/max_pool1d_with_indices.h>
#include <taeda/gen/native/max_pool2d.h>
#include <taeda/gen/native/max_pool2d_with_indices.h>
#include <taeda/gen/native/max_pool2d_with_indices_backward.h>
#include <taeda/gen/native/max_pool3d.h>
#include <taeda/gen/native/max_pool3d_with_indices.h>
#include <taeda/gen/native/max_pool3d_with_indices_backward.h>
#include <taeda/gen/ops/adaptive_max_pool2d.h>
#include <taeda/gen/ops/max_pool1d_with_indices.h>
#include <taeda/gen/ops/max_pool2d_with_indices.h>
#include <taeda/gen/ops/max_pool3d_with_indices.h>
#include <taeda/gen/ops/reshape.h>

namespace taeda::native {

namespace {

// [..., l] as [..., 1, l], and back.
Tensor with_height(const Tensor& t) {
  Dims<SymInt> sizes(symbolic_sizes(t));
  sizes.insert(sizes.end() - 1, SymInt(1));
  return reshape_sized(t, sizes);
}
Tensor without_height(const Tensor& t) {
  Dims<SymInt> sizes(symbolic_sizes(t));
  sizes.erase(sizes.end() - 2);
  return reshape_sized(t, sizes);
}
DimVector pair_of(IntArrayRef one, int64_t first) {
  if (one.empty()) return {};
  return {first, one[0]};
}

}  // namespace

#define TAEDA_MAX_POOL(D)                                                  \
  template <class I>                                                       \
  void max_pool##D##d_shape(const Spec<I>& self,                           \
                            ArrayRef<int64_t> kernel_size,                 \
                            ArrayRef<int64_t> stride,                      \
                            ArrayRef<int64_t> padding,                     \
                            ArrayRef<int64_t> dilation,                    \
                            bool ceil_mode,                                \
                            Plan<I>& plan) {                               \
    auto p = make_pool("max_pool" #D "d",                                  \
                       self,                                               \
                       D,                                                  \
                       kernel_size,                                        \
                       stride,                                             \
                       padding,                                            \
                       dilation,                                           \
                       ceil_mode);                                         \
    plan_max_pool(self, p, D, self.suggest_memory_format(), plan);         \
  }                                                                        \
  TAEDA_SHAPE(max_pool##D##d_shape);                                       \
  template <class I>                                                       \
  void max_pool##D##d_backward_shape(const Spec<I>& grad_output,           \
                                     const Spec<I>& self,                  \
                                     ArrayRef<int64_t>,                    \
                                     ArrayRef<int64_t>,                    \
                                     ArrayRef<int64_t>,                    \
                                     ArrayRef<int64_t>,                    \
                                     bool,                                 \
                                     const Spec<I>& indices,               \
                                     Plan<I>& plan) {                      \
    scatter_planes_shape(                                                  \
        "max_pool" #D "d_backward", grad_output, self, indices, D, plan);  \
  }                                                                        \
  TAEDA_SHAPE(max_pool##D##d_backward_shape);                              \
  Tensor max_pool##D##d(const Tensor& self,                                \
                        ArrayRef<int64_t> kernel_size,                     \
                        ArrayRef<int64_t> stride,                          \
                        ArrayRef<int64_t> padding,                         \
                        ArrayRef<int64_t> dilation,                        \
                        bool ceil_mode) {                                  \
    return std::get<0>(ops::max_pool##D##d_with_indices(                   \
        self, kernel_size, stride, padding, dilation, ceil_mode));         \
  }                                                                        \
  template <class I>                                                       \
  void adaptive_max_pool##D##d_shape(                                      \
      const Spec<I>& self, ArrayRef<int64_t> output_size, Plan<I>& plan) { \
    auto p = make_adaptive_pool<I>(                                        \
        "adaptive_max_pool" #D "d", self, D, dims_of<I>(output_size));     \
    check_not_empty("adaptive_max_pool" #D "d", "input", self.sizes(), 1); \
    plan_max_pool(self, p, D, self.suggest_memory_format(), plan);         \
  }                                                                        \
  TAEDA_SHAPE(adaptive_max_pool##D##d_shape);                              \
  template <class I>                                                       \
  void adaptive_max_pool##D##d_backward_shape(const Spec<I>& grad_output,  \
                                              const Spec<I>& self,         \
                                              const Spec<I>& indices,      \
                                              Plan<I>& plan) {             \
    const char* op = "adaptive_max_pool" #D "d_backward";                  \
    scatter_planes_shape(op, grad_output, self, indices, D, plan);         \
    check_not_empty(op, "grad_output", grad_output.sizes(), 1);            \
  }                                                                        \
  TAEDA_SHAPE(adaptive_max_pool##D##d_backward_shape);
TAEDA_MAX_POOL(2)
TAEDA_MAX_POOL(3)
#undef TAEDA_MAX_POOL

std::tuple<Tensor, Tensor> max_pool1d_with_indices(
    const Tensor& self,
    ArrayRef<int64_t> kernel_size,
    ArrayRef<int64_t> stride,
    ArrayRef<int64_t> padding,
    ArrayRef<int64_t> dilation,
    bool ceil_mode) {
  bool fits = (self.dim() == 2 || self.dim() == 3) &&
              symbolic_sizes(self).back() != 0 &&
              symbolic_sizes(self)[static_cast<size_t>(self.dim() - 2)] != 0;
  TAEDA_CHECK(fits,
              "max_pool1d: Expected 2D or 3D (batch mode) tensor with optional "
              "0 dim batch size for input, but got:",
              self.sizes());
  TAEDA_CHECK(stride.empty() || stride[0] > 0,
              "max_pool1d: stride must be greater than zero, but got ",
              stride[0]);
  TAEDA_CHECK(dilation.empty() || dilation[0] > 0,
              "max_pool1d: dilation must be greater than zero, but got ",
              dilation[0]);
  auto [out, indices] = ops::max_pool2d_with_indices(with_height(self),
                                                     pair_of(kernel_size, 1),
                                                     pair_of(stride, 1),
                                                     pair_of(padding, 0),
                                                     pair_of(dilation, 1),
                                                     ceil_mode);
  return {without_height(out), without_height(indices)};
}

Tensor max_pool1d(const Tensor& self,
                  ArrayRef<int64_t> kernel_size,
                  ArrayRef<int64_t> stride,
                  ArrayRef<int64_t> padding,
                  ArrayRef<int64_t> dilation,
                  bool ceil_mode) {
  return std::get<0>(ops::max_pool1d_with_indices(
      self, kernel_size, stride, padding, dilation, ceil_mode));
}

std::tuple<Tensor, Tensor> adaptive_max_pool1d(const Tensor& self,
                                               ArrayRef<int64_t> output_size) {
  TAEDA_CHECK(self.dim() == 2 || self.dim() == 3,
              "adaptive_max_pool1d(): Expected 2D or 3D tensor, but got ",
              self.sizes());
  check_one_size("adaptive_max_pool1d", output_size);
  ArrayRef<SymInt> sizes = symbolic_sizes(self);
  check_not_empty("adaptive_max_pool1d", "input", sizes, 1);
  auto [out, indices] =
      ops::adaptive_max_pool2d(with_height(self), pair_of(output_size, 1));
  return {without_height(out), without_height(indices)};
}

}  // namespace taeda::native
