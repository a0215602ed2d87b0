// Averages over windows or bins: shapes, and the forms of one dim.
#include <taeda/aten/iter/row_major.h>
#include <taeda/aten/native/avg_pool.h>
#include <taeda/aten/native/normalization.h>
#include <taeda/aten/native/pooling.h>
#include <taeda/aten/native/symbolic_sizes.h>
#include <taeda/gen/native/_adaptive_avg_pool2d.h>
#include <taeda/gen/native/_adaptive_avg_pool2d_backward.h>
#include <taeda/gen/native/_adaptive_avg_pool3d.h>
#include <taeda/gen/native/_adaptive_avg_pool3d_backward.h>
#include <taeda/gen/native/adaptive_avg_pool1d.h>
#include <taeda/gen/native/avg_pool1d.h>
#include <taeda/gen/native/avg_pool2d.h>
#include <taeda/gen/native/avg_pool2d_backward.h>
#include <taeda/gen/native/avg_pool3d.h>
#include <taeda/gen/native/avg_pool3d_backward.h>
#include <taeda/gen/ops/_adaptive_avg_pool2d.h>
#include <taeda/gen/ops/avg_pool2d.h>

namespace taeda::native {

namespace {

template <class I>
void plan_average(const Spec<I>& self,
                  const PoolOver<I>& p,
                  int64_t dims,
                  Plan<I>& plan) {
  plan.set(0,
           pooled_sizes(self, p, dims),
           self.suggest_memory_format(),
           self.dtype());
}

template <class I>
void plan_spread(std::string_view op,
                 const Spec<I>& grad,
                 const Spec<I>& self,
                 const PoolOver<I>& p,
                 int64_t dims,
                 Plan<I>& plan) {
  Dims<I> sizes = pooled_sizes(self, p, dims);
  TAEDA_CHECK(grad.sizes() == ArrayRef<I>(sizes),
              op,
              ": expected gradient of shape ",
              ArrayRef<I>(sizes),
              ", got ",
              grad.sizes());
  plan.set(0, self.sizes(), self.suggest_memory_format(), self.dtype());
}

void check_divisor(std::string_view op, std::optional<int64_t> divisor) {
  TAEDA_CHECK(!divisor || *divisor != 0, op, ": divisor must be not zero");
}

}  // namespace

#define TAEDA_AVG_POOL(D)                                                     \
  template <class I>                                                          \
  void avg_pool##D##d_shape(const Spec<I>& self,                              \
                            ArrayRef<int64_t> kernel_size,                    \
                            ArrayRef<int64_t> stride,                         \
                            ArrayRef<int64_t> padding,                        \
                            bool ceil_mode,                                   \
                            bool,                                             \
                            std::optional<int64_t> divisor_override,          \
                            Plan<I>& plan) {                                  \
    check_divisor("avg_pool" #D "d", divisor_override);                       \
    auto p = make_pool("avg_pool" #D "d",                                     \
                       self,                                                  \
                       D,                                                     \
                       kernel_size,                                           \
                       stride,                                                \
                       padding,                                               \
                       kOne,                                                  \
                       ceil_mode);                                            \
    plan_average(self, p, D, plan);                                           \
  }                                                                           \
  TAEDA_SHAPE(avg_pool##D##d_shape);                                          \
  template <class I>                                                          \
  void avg_pool##D##d_backward_shape(const Spec<I>& grad_output,              \
                                     const Spec<I>& self,                     \
                                     ArrayRef<int64_t> kernel_size,           \
                                     ArrayRef<int64_t> stride,                \
                                     ArrayRef<int64_t> padding,               \
                                     bool ceil_mode,                          \
                                     bool,                                    \
                                     std::optional<int64_t> divisor_override, \
                                     Plan<I>& plan) {                         \
    check_divisor("avg_pool" #D "d", divisor_override);                       \
    auto p = make_pool("avg_pool" #D "d_backward",                            \
                       self,                                                  \
                       D,                                                     \
                       kernel_size,                                           \
                       stride,                                                \
                       padding,                                               \
                       kOne,                                                  \
                       ceil_mode);                                            \
    plan_spread("avg_pool" #D "d_backward", grad_output, self, p, D, plan);   \
  }                                                                           \
  TAEDA_SHAPE(avg_pool##D##d_backward_shape);                                 \
  template <class I>                                                          \
  void _adaptive_avg_pool##D##d_shape(                                        \
      const Spec<I>& self, ArrayRef<I> output_size, Plan<I>& plan) {          \
    auto p =                                                                  \
        make_adaptive_pool("adaptive_avg_pool" #D "d", self, D, output_size); \
    if (D == 3)                                                               \
      check_not_empty("adaptive_avg_pool3d", "input", self.sizes(), 1);       \
    plan_average(self, p, D, plan);                                           \
  }                                                                           \
  TAEDA_SHAPE(_adaptive_avg_pool##D##d_shape);                                \
  template <class I>                                                          \
  void _adaptive_avg_pool##D##d_backward_shape(                               \
      const Spec<I>& grad_output, const Spec<I>& self, Plan<I>& plan) {       \
    const char* op = "adaptive_avg_pool" #D "d_backward";                     \
    auto p = make_adaptive_pool(op, self, D, last_sizes(op, grad_output, D)); \
    check_not_empty(op, "grad_output", grad_output.sizes(), 1);               \
    plan_spread(op, grad_output, self, p, D, plan);                           \
  }                                                                           \
  TAEDA_SHAPE(_adaptive_avg_pool##D##d_backward_shape);
TAEDA_AVG_POOL(2)
TAEDA_AVG_POOL(3)
#undef TAEDA_AVG_POOL

namespace {

Tensor add_height(const char* op, const Tensor& t) {
  TAEDA_CHECK(t.dim() == 2 || t.dim() == 3,
              "Expected 2 to 3 dimensions, but got ",
              t.dim(),
              "-dimensional tensor for argument #1 'self' (while checking "
              "arguments for ",
              op,
              ")");
  Dims<SymInt> sizes(symbolic_sizes(t));
  sizes.insert(sizes.end() - 1, SymInt(1));
  return reshape_sized(t, sizes);
}
Tensor drop_height(const Tensor& t) {
  Dims<SymInt> sizes(symbolic_sizes(t));
  sizes.erase(sizes.end() - 2);
  return reshape_sized(t, sizes);
}
DimVector two(IntArrayRef one, int64_t first) {
  return one.empty() ? DimVector() : DimVector{first, one[0]};
}

}  // namespace

Tensor avg_pool1d(const Tensor& self,
                  ArrayRef<int64_t> kernel_size,
                  ArrayRef<int64_t> stride,
                  ArrayRef<int64_t> padding,
                  bool ceil_mode,
                  bool count_include_pad) {
  return drop_height(ops::avg_pool2d(add_height("avg_pool1d", self),
                                     two(kernel_size, 1),
                                     two(stride, 1),
                                     two(padding, 0),
                                     ceil_mode,
                                     count_include_pad,
                                     std::nullopt));
}

Tensor adaptive_avg_pool1d(const Tensor& self, ArrayRef<int64_t> output_size) {
  check_one_size("adaptive_avg_pool1d", output_size);
  return drop_height(ops::_adaptive_avg_pool2d(
      add_height("adaptive_avg_pool1d", self), two(output_size, 1)));
}

}  // namespace taeda::native
