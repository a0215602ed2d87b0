// Max pooling with windows at random steps, and maxima put back.
#include <taeda/aten/native/fractional_max_pool.h>
#include <taeda/aten/native/max_pool.h>
#include <taeda/gen/native/fractional_max_pool2d.h>
#include <taeda/gen/native/fractional_max_pool2d_backward.h>
#include <taeda/gen/native/fractional_max_pool3d.h>
#include <taeda/gen/native/fractional_max_pool3d_backward.h>
#include <taeda/gen/native/max_unpool2d.h>
#include <taeda/gen/native/max_unpool3d.h>

#include <vector>

namespace taeda::native {

namespace {

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

void fractional_max_pool(std::string_view op,
                         const Tensor& self,
                         const Pool& p,
                         int64_t dims,
                         const Tensor& samples,
                         const Tensor& out,
                         const Tensor& indices) {
  if (out.numel() == 0) return;
  std::vector<int64_t> starts = all_starts(p, samples, dims);
  int64_t each = p.out[0] + p.out[1] + p.out[2];
  const int64_t before[3] = {0, p.out[0], p.out[0] + p.out[1]};
  auto range = [&](int64_t plane, size_t d, int64_t i) {
    int64_t at = starts[static_cast<size_t>(plane * each + before[d] + i)];
    return Range{at, at + p.kernel[d], 1};
  };
  max_pool(op, contiguous(self), p, dims, false, out, indices, range);
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

void max_unpool2d_cpu(const Tensor& self,
                      const Tensor& indices,
                      ArrayRef<int64_t> output_size,
                      const Tensor& out) {
  unpool("max_unpool2d", self, indices, output_size, out);
}

void max_unpool3d_cpu(const Tensor& self,
                      const Tensor& indices,
                      ArrayRef<int64_t> output_size,
                      ArrayRef<int64_t>,
                      ArrayRef<int64_t>,
                      const Tensor& out) {
  unpool("max_unpool3d", self, indices, output_size, out);
}

}  // namespace taeda::native
