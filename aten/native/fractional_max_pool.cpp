// Max pooling with windows at random steps (Graham, "Fractional Max-Pooling",
// 2014), and maxima put back to their places: shapes.
#include <taeda/aten/native/fractional_max_pool.h>
#include <taeda/aten/native/max_pool.h>
#include <taeda/gen/native/fractional_max_pool2d.h>
#include <taeda/gen/native/fractional_max_pool2d_backward.h>
#include <taeda/gen/native/fractional_max_pool3d.h>
#include <taeda/gen/native/fractional_max_pool3d_backward.h>
#include <taeda/gen/native/max_unpool2d.h>
#include <taeda/gen/native/max_unpool3d.h>

namespace taeda::native {

namespace {

template <class I>
void check_samples(std::string_view op,
                   const Spec<I>& self,
                   const Spec<I>& samples,
                   int64_t dims) {
  bool batch = self.dim() == dims + 2;
  I n = batch ? self.sizes()[0] : I(1);
  I channels = self.sizes()[batch ? 1 : 0];
  TAEDA_CHECK(samples.dim() == 3 && samples.sizes()[0] >= n &&
                  samples.sizes()[1] == channels && samples.sizes()[2] == dims,
              op,
              ": Expect _random_samples of shape [",
              n,
              ", ",
              channels,
              ", ",
              dims,
              "], got ",
              samples.sizes());
  TAEDA_CHECK(samples.dtype() == self.dtype(),
              op,
              ": Expect _random_samples to have the same dtype as input, got ",
              samples.dtype(),
              " and ",
              self.dtype());
}

// What was pooled has its sizes from the caller.
template <class I>
void plan_unpool(std::string_view op,
                 const Spec<I>& self,
                 const Spec<I>& indices,
                 ArrayRef<I> output_size,
                 int64_t dims,
                 Plan<I>& plan) {
  TAEDA_CHECK(indices.dtype() == kLong,
              "elements in indices should be type int64 but got: ",
              indices.dtype());
  TAEDA_CHECK(static_cast<int64_t>(output_size.size()) == dims,
              op,
              ": There should be exactly ",
              dims,
              " elements in output_size, but got ",
              output_size.size(),
              " elements.");
  TAEDA_CHECK(self.dim() == dims + 1 || self.dim() == dims + 2,
              op,
              ": Input should be a ",
              dims + 1,
              "d or ",
              dims + 2,
              "d Tensor, but got a tensor with dim ",
              self.dim());
  TAEDA_CHECK(self.sizes() == indices.sizes(),
              op,
              ": Expected shape of indices to be same as that of the input "
              "tensor (",
              self.sizes(),
              ") but got indices tensor with shape: ",
              indices.sizes());
  for (int64_t d = self.dim() - dims - 1; d < self.dim(); ++d) {
    TAEDA_CHECK(self.sizes()[d] > 0,
                op,
                ": Expected input to have non-zero size for non-batch "
                "dimensions, but got ",
                self.sizes());
  }
  Dims<I> sizes(self.sizes());
  for (size_t d = 0; d < output_size.size(); ++d) {
    sizes[sizes.size() - output_size.size() + d] = output_size[d];
  }
  plan.set(0, sizes, self.suggest_memory_format(), self.dtype());
}

}  // namespace

#define TAEDA_FRACTIONAL(D)                                                 \
  template <class I>                                                        \
  void fractional_max_pool##D##d_shape(const Spec<I>& self,                 \
                                       ArrayRef<int64_t> kernel_size,       \
                                       ArrayRef<int64_t> output_size,       \
                                       const Spec<I>& random_samples,       \
                                       Plan<I>& plan) {                     \
    const char* op = "fractional_max_pool" #D "d";                          \
    auto p = make_fractional_pool(op, self, D, kernel_size, output_size);   \
    check_samples(op, self, random_samples, D);                             \
    plan_max_pool(self, p, D, MemoryFormat::Contiguous, plan);              \
  }                                                                         \
  TAEDA_SHAPE(fractional_max_pool##D##d_shape);                             \
  template <class I>                                                        \
  void fractional_max_pool##D##d_backward_shape(const Spec<I>& grad_output, \
                                                const Spec<I>& self,        \
                                                ArrayRef<int64_t>,          \
                                                ArrayRef<int64_t>,          \
                                                const Spec<I>& indices,     \
                                                Plan<I>& plan) {            \
    scatter_planes_shape("fractional_max_pool" #D "d_backward",             \
                         grad_output,                                       \
                         self,                                              \
                         indices,                                           \
                         D,                                                 \
                         plan);                                             \
  }                                                                         \
  TAEDA_SHAPE(fractional_max_pool##D##d_backward_shape);
TAEDA_FRACTIONAL(2)
TAEDA_FRACTIONAL(3)
#undef TAEDA_FRACTIONAL

template <class I>
void max_unpool2d_shape(const Spec<I>& self,
                        const Spec<I>& indices,
                        ArrayRef<I> output_size,
                        Plan<I>& plan) {
  plan_unpool("max_unpool2d", self, indices, output_size, 2, plan);
}
TAEDA_SHAPE(max_unpool2d_shape);

template <class I>
void max_unpool3d_shape(const Spec<I>& self,
                        const Spec<I>& indices,
                        ArrayRef<I> output_size,
                        ArrayRef<int64_t> stride,
                        ArrayRef<int64_t> padding,
                        Plan<I>& plan) {
  plan_unpool("max_unpool3d", self, indices, output_size, 3, plan);
  TAEDA_CHECK(stride.size() == 3 && padding.size() == 3,
              "max_unpool3d: stride and padding should have 3 elements, got ",
              stride,
              " and ",
              padding);
  TAEDA_CHECK(stride[0] > 0 && stride[1] > 0 && stride[2] > 0,
              "max_unpool3d: strides should be greater than zero, but got "
              "stride: ",
              stride);
}
TAEDA_SHAPE(max_unpool3d_shape);

}  // namespace taeda::native
