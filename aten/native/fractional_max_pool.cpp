// Max pooling with windows at random steps (Graham, "Fractional Max-Pooling",
// 2014), and maxima put back to their places.
#include <taeda/aten/native/max_pool.h>
#include <taeda/gen/native/fractional_max_pool2d.h>
#include <taeda/gen/native/fractional_max_pool2d_backward.h>
#include <taeda/gen/native/fractional_max_pool3d.h>
#include <taeda/gen/native/fractional_max_pool3d_backward.h>
#include <taeda/gen/native/max_unpool2d.h>
#include <taeda/gen/native/max_unpool3d.h>

namespace taeda::native {

namespace {

// Windows of `kernel` elements; where they begin is drawn.
template <class I>
PoolOver<I> make_fractional_pool(std::string_view op,
                                 const Spec<I>& self,
                                 int64_t dims,
                                 IntArrayRef kernel,
                                 IntArrayRef output_size) {
  auto p = make_adaptive_pool<I>(op, self, dims, dims_of<I>(output_size));
  TAEDA_CHECK(static_cast<int64_t>(kernel.size()) == dims,
              op,
              ": kernel_size must either be a single Int or tuple of Ints");
  for (int64_t d = 0; d < dims; ++d) {
    size_t at = static_cast<size_t>(3 - dims + d);
    p.kernel[at] = kernel[static_cast<size_t>(d)];
    TAEDA_CHECK(p.out[at] > 0 && p.kernel[at] > 0,
                op,
                ": kernel_size and output_size must be positive, got ",
                kernel,
                " and ",
                output_size);
    TAEDA_CHECK(p.out[at] + p.kernel[at] - 1 <= p.in[at],
                op,
                ": pool size ",
                kernel,
                " too large relative to input of size ",
                self.sizes());
  }
  return p;
}

// PyTorch's sequence: steps of about (in - kernel) / (out - 1), shifted by a
// random part, the last window at the end.
template <class T>
void window_starts(
    T sample, int64_t in, int64_t out, int64_t kernel, int64_t* starts) {
  T step = out > 1 ? static_cast<T>(in - kernel) / static_cast<T>(out - 1) : 0;
  for (int64_t i = 0; i < out - 1; ++i) {
    starts[i] = static_cast<int64_t>((static_cast<T>(i) + sample) * step) -
                static_cast<int64_t>(sample * step);
  }
  starts[out - 1] = in - kernel;
}

// Where the windows of every plane begin: of the first dim, the second, ...
std::vector<int64_t> all_starts(const Pool& p,
                                const Tensor& samples,
                                int64_t dims) {
  int64_t each = p.out[0] + p.out[1] + p.out[2];
  std::vector<int64_t> starts(static_cast<size_t>(p.planes * each));
  Tensor drawn = contiguous(samples);
  visit_max_type("fractional_max_pool", drawn.dtype(), false, [&](auto tag) {
    using T = decltype(tag);
    using C = compare_t<T>;
    for (int64_t plane = 0; plane < p.planes; ++plane) {
      const T* sample = drawn.const_data<T>() + plane * dims;
      int64_t* at = starts.data() + plane * each;
      for (size_t d = 0; d < 3; ++d) {
        int64_t which = static_cast<int64_t>(d) - (3 - dims);
        // Of planes the width's number comes first, of volumes the depth's.
        if (dims == 2) which = 1 - which;
        C value = d < static_cast<size_t>(3 - dims)
                      ? C(0)
                      : static_cast<C>(sample[which]);
        window_starts<C>(value, p.in[d], p.out[d], p.kernel[d], at);
        at += p.out[d];
      }
    }
  });
  return starts;
}

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

void fractional_max_pool(std::string_view op,
                         const Tensor& self,
                         const Pool& p,
                         int64_t dims,
                         const Tensor& samples,
                         const Tensor& out,
                         const Tensor& indices) {
  std::vector<int64_t> starts = all_starts(p, samples, dims);
  int64_t each = p.out[0] + p.out[1] + p.out[2];
  const int64_t before[3] = {0, p.out[0], p.out[0] + p.out[1]};
  auto range = [&](int64_t plane, size_t d, int64_t i) {
    int64_t at = starts[static_cast<size_t>(plane * each + before[d] + i)];
    return Range{at, at + p.kernel[d], 1};
  };
  max_pool(op, contiguous(self), p, dims, false, out, indices, range);
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

void unpool(std::string_view op,
            const Tensor& self,
            const Tensor& indices,
            IntArrayRef output_size,
            const Tensor& out) {
  int64_t in_size = 1, out_size = 1;
  for (size_t d = 0; d < output_size.size(); ++d) {
    in_size *= self.sizes()[static_cast<size_t>(self.dim()) - 1 - d];
    out_size *= output_size[d];
  }
  RowMajor planes(out);
  fill_with(planes.tensor(), int64_t{0});
  Tensor x = contiguous(self), at = contiguous(indices);
  visit_max_type(op, self.dtype(), false, [&](auto tag) {
    using T = decltype(tag);
    const T* from = x.const_data<T>();
    const int64_t* index = at.const_data<int64_t>();
    T* to = planes.tensor().mutable_data<T>();
    for (int64_t i = 0; i < x.numel(); ++i) {
      TAEDA_CHECK(index[i] >= 0 && index[i] < out_size,
                  op,
                  ": Found an invalid max index: ",
                  index[i],
                  " (output is of size ",
                  output_size,
                  ")");
      to[i / in_size * out_size + index[i]] = from[i];
    }
  });
  planes.finish();
}

}  // namespace

#define TAEDA_FRACTIONAL(D)                                                   \
  template <class I>                                                          \
  void fractional_max_pool##D##d_shape(const Spec<I>& self,                   \
                                       ArrayRef<int64_t> kernel_size,         \
                                       ArrayRef<int64_t> output_size,         \
                                       const Spec<I>& random_samples,         \
                                       Plan<I>& plan) {                       \
    const char* op = "fractional_max_pool" #D "d";                            \
    auto p = make_fractional_pool(op, self, D, kernel_size, output_size);     \
    check_samples(op, self, random_samples, D);                               \
    plan_max_pool(self, p, D, MemoryFormat::Contiguous, plan);                \
  }                                                                           \
  TAEDA_SHAPE(fractional_max_pool##D##d_shape);                               \
  void fractional_max_pool##D##d_cpu(const Tensor& self,                      \
                                     ArrayRef<int64_t> kernel_size,           \
                                     ArrayRef<int64_t> output_size,           \
                                     const Tensor& random_samples,            \
                                     const Tensor& out,                       \
                                     const Tensor& indices) {                 \
    const char* op = "fractional_max_pool" #D "d";                            \
    Pool p =                                                                  \
        make_fractional_pool<int64_t>(op, self, D, kernel_size, output_size); \
    fractional_max_pool(op, self, p, D, random_samples, out, indices);        \
  }                                                                           \
  template <class I>                                                          \
  void fractional_max_pool##D##d_backward_shape(const Spec<I>& grad_output,   \
                                                const Spec<I>& self,          \
                                                ArrayRef<int64_t>,            \
                                                ArrayRef<int64_t>,            \
                                                const Spec<I>& indices,       \
                                                Plan<I>& plan) {              \
    scatter_planes_shape("fractional_max_pool" #D "d_backward",               \
                         grad_output,                                         \
                         self,                                                \
                         indices,                                             \
                         D,                                                   \
                         plan);                                               \
  }                                                                           \
  TAEDA_SHAPE(fractional_max_pool##D##d_backward_shape);                      \
  void fractional_max_pool##D##d_backward_cpu(const Tensor& grad_output,      \
                                              const Tensor&,                  \
                                              ArrayRef<int64_t>,              \
                                              ArrayRef<int64_t>,              \
                                              const Tensor& indices,          \
                                              const Tensor& out) {            \
    scatter_planes(                                                           \
        "fractional_max_pool" #D "d_backward", grad_output, indices, D, out); \
  }
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

void max_unpool2d_cpu(const Tensor& self,
                      const Tensor& indices,
                      ArrayRef<int64_t> output_size,
                      const Tensor& out) {
  unpool("max_unpool2d", self, indices, output_size, out);
}

template <class I>
void max_unpool3d_shape(const Spec<I>& self,
                        const Spec<I>& indices,
                        ArrayRef<I> output_size,
                        ArrayRef<int64_t> stride,
                        ArrayRef<int64_t> padding,
                        Plan<I>& plan) {
  TAEDA_CHECK(stride.size() == 3 && padding.size() == 3,
              "max_unpool3d: stride and padding should have 3 elements, got ",
              stride,
              " and ",
              padding);
  TAEDA_CHECK(stride[0] > 0 && stride[1] > 0 && stride[2] > 0,
              "max_unpool3d: strides should be greater than zero, but got "
              "stride: ",
              stride);
  plan_unpool("max_unpool3d", self, indices, output_size, 3, plan);
}
TAEDA_SHAPE(max_unpool3d_shape);

void max_unpool3d_cpu(const Tensor& self,
                      const Tensor& indices,
                      ArrayRef<int64_t> output_size,
                      ArrayRef<int64_t>,
                      ArrayRef<int64_t>,
                      const Tensor& out) {
  unpool("max_unpool3d", self, indices, output_size, out);
}

}  // namespace taeda::native
