// im2col and col2im: windows of planes as columns, and back.
#include <taeda/aten/iter/copy.h>
#include <taeda/aten/iter/pointwise.h>
#include <taeda/aten/parallel/parallel.h>
#include <taeda/gen/native/col2im.h>
#include <taeda/gen/native/im2col.h>

#include <algorithm>
#include <array>

namespace taeda::native {

namespace {

// Two spatial dims; `count` windows in each.
template <class I>
struct Windows {
  std::array<I, 2> size, count;
  std::array<int64_t, 2> kernel, dilation, padding, stride;
  I columns() const { return count[0] * count[1]; }
  int64_t kernel_size() const { return kernel[0] * kernel[1]; }
};

template <class I>
Windows<I> make_windows(std::string_view op,
                        ArrayRef<I> size,
                        IntArrayRef kernel,
                        IntArrayRef dilation,
                        IntArrayRef padding,
                        IntArrayRef stride) {
  Windows<I> w;
  auto fill = [&](std::array<int64_t, 2>& to,
                  const char* name,
                  IntArrayRef from,
                  int64_t least) {
    TAEDA_CHECK(from.size() == 2,
                "It is expected ",
                name,
                " equals to 2, but got size ",
                static_cast<int64_t>(from.size()));
    to = {from[0], from[1]};
    TAEDA_CHECK(from[0] >= least && from[1] >= least,
                op,
                ": ",
                name,
                " should be ",
                least > 0 ? "greater than zero" : "non-negative",
                ", but got ",
                from);
  };
  w.size = {size[0], size[1]};
  fill(w.kernel, "kernel_size", kernel, 1);
  fill(w.dilation, "dilation", dilation, 1);
  fill(w.padding, "padding", padding, 0);
  fill(w.stride, "stride", stride, 1);
  for (size_t d = 0; d < 2; ++d) {
    I room =
        w.size[d] + 2 * w.padding[d] - (w.dilation[d] * (w.kernel[d] - 1) + 1);
    w.count[d] = room < 0 ? I(0) : room / w.stride[d] + 1;
    TAEDA_CHECK(w.count[d] > 0,
                op,
                ": Given spatial size ",
                size,
                ", kernel_size=",
                kernel,
                ", dilation=",
                dilation,
                ", padding=",
                padding,
                ", stride=",
                stride,
                ", calculated shape of the array of sliding blocks is too "
                "small (non-positive)");
  }
  return w;
}

// Calls f(column element, plane offset or -1) for one channel's windows.
template <class F>
void each_element(const Windows<int64_t>& w, F&& f) {
  int64_t at = 0;
  for (int64_t ky = 0; ky < w.kernel[0]; ++ky) {
    for (int64_t kx = 0; kx < w.kernel[1]; ++kx) {
      for (int64_t oy = 0; oy < w.count[0]; ++oy) {
        int64_t y = oy * w.stride[0] - w.padding[0] + ky * w.dilation[0];
        bool row = y >= 0 && y < w.size[0];
        for (int64_t ox = 0; ox < w.count[1]; ++ox, ++at) {
          int64_t x = ox * w.stride[1] - w.padding[1] + kx * w.dilation[1];
          bool inside = row && x >= 0 && x < w.size[1];
          f(at, inside ? y * w.size[1] + x : int64_t{-1});
        }
      }
    }
  }
}

template <class F>
void visit_fold_type(std::string_view op, ScalarType t, F&& f) {
  visit_type(t, [&](auto tag) {
    using T = decltype(tag);
    if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double> ||
                  std::is_same_v<T, Half> || std::is_same_v<T, BFloat16> ||
                  std::is_same_v<T, complex<float>> ||
                  std::is_same_v<T, complex<double>> ||
                  std::is_same_v<T, bool>) {
      f(tag);
    } else {
      not_implemented_for(op, t);
    }
  });
}

int64_t product_of_lead(const Tensor& t, int64_t rest) {
  int64_t n = 1;
  for (int64_t d = 0; d < t.dim() - rest; ++d) n *= t.sizes()[d];
  return n;
}

}  // namespace

template <class I>
void im2col_shape(const Spec<I>& self,
                  ArrayRef<int64_t> kernel_size,
                  ArrayRef<int64_t> dilation,
                  ArrayRef<int64_t> padding,
                  ArrayRef<int64_t> stride,
                  Plan<I>& plan) {
  int64_t rank = self.dim();
  bool fits = (rank == 3 || rank == 4) && self.sizes()[rank - 1] != 0 &&
              self.sizes()[rank - 2] != 0 && self.sizes()[rank - 3] != 0;
  TAEDA_CHECK_AS(Index,
                 rank > 2,
                 "im2col: Expected 3D or 4D (batch mode) tensor, got ",
                 self);
  TAEDA_CHECK(fits,
              "im2col: Expected 3D or 4D (batch mode) tensor with possibly 0 "
              "batch size and other non-zero dimensions for input, but got: ",
              self.sizes());
  auto w = make_windows<I>("im2col",
                           self.sizes().slice(rank - 2),
                           kernel_size,
                           dilation,
                           padding,
                           stride);
  Dims<I> sizes;
  if (rank == 4) sizes.push_back(self.sizes()[0]);
  sizes.push_back(self.sizes()[rank - 3] * w.kernel_size());
  sizes.push_back(w.columns());
  plan.set(0, sizes, self.dtype());
}
TAEDA_SHAPE(im2col_shape);

void im2col_cpu(const Tensor& self,
                ArrayRef<int64_t> kernel_size,
                ArrayRef<int64_t> dilation,
                ArrayRef<int64_t> padding,
                ArrayRef<int64_t> stride,
                const Tensor& out) {
  auto w = make_windows<int64_t>("im2col",
                                 self.sizes().slice(self.dim() - 2),
                                 kernel_size,
                                 dilation,
                                 padding,
                                 stride);
  Tensor x = contiguous(self);
  int64_t channels = product_of_lead(self, 2), plane = w.size[0] * w.size[1];
  int64_t block = w.kernel_size() * w.columns();
  visit_fold_type("im2col_out_cpu", self.dtype(), [&](auto tag) {
    using T = decltype(tag);
    const T* in = x.const_data<T>();
    T* y = out.mutable_data<T>();
    parallel_for(0, channels, 4, [&](int64_t from, int64_t to) {
      for (int64_t c = from; c < to; ++c) {
        each_element(w, [&](int64_t at, int64_t source) {
          y[c * block + at] = source < 0 ? T(0) : in[c * plane + source];
        });
      }
    });
  });
}

template <class I>
void col2im_shape(const Spec<I>& self,
                  ArrayRef<I> output_size,
                  ArrayRef<int64_t> kernel_size,
                  ArrayRef<int64_t> dilation,
                  ArrayRef<int64_t> padding,
                  ArrayRef<int64_t> stride,
                  Plan<I>& plan) {
  TAEDA_CHECK(output_size.size() == 2,
              "It is expected output_size equals to 2, but got size ",
              static_cast<int64_t>(output_size.size()));
  int64_t rank = self.dim();
  TAEDA_CHECK(rank == 2 || rank == 3,
              "Expected 2D or 3D (batch mode) tensor for input with possibly 0 "
              "batch size and non-zero dimensions for input, but got: ",
              self.sizes());
  auto w = make_windows<I>(
      "col2im", output_size, kernel_size, dilation, padding, stride);
  I rows = self.sizes()[rank - 2];
  TAEDA_CHECK(rows % w.kernel_size() == 0,
              "Expected size of input's dimension 1 to be divisible by the "
              "product of kernel_size, but got input.size(1)=",
              rows,
              " and kernel_size=",
              kernel_size,
              ".");
  TAEDA_CHECK(self.sizes()[rank - 1] == w.columns(),
              "Given output_size=",
              output_size,
              ", kernel_size=",
              kernel_size,
              ", expected size of input's dimension 2 to match the calculated "
              "number of sliding blocks ",
              w.columns(),
              ", but got input.size(2)=",
              self.sizes()[rank - 1],
              ".");
  Dims<I> sizes;
  if (rank == 3) sizes.push_back(self.sizes()[0]);
  sizes.push_back(rows / w.kernel_size());
  sizes.push_back(output_size[0]);
  sizes.push_back(output_size[1]);
  plan.set(0, sizes, self.dtype());
}
TAEDA_SHAPE(col2im_shape);

void col2im_cpu(const Tensor& self,
                ArrayRef<int64_t> output_size,
                ArrayRef<int64_t> kernel_size,
                ArrayRef<int64_t> dilation,
                ArrayRef<int64_t> padding,
                ArrayRef<int64_t> stride,
                const Tensor& out) {
  auto w = make_windows<int64_t>(
      "col2im", output_size, kernel_size, dilation, padding, stride);
  Tensor x = contiguous(self);
  fill_with(out, int64_t{0});
  int64_t channels = product_of_lead(out, 2), plane = w.size[0] * w.size[1];
  int64_t block = w.kernel_size() * w.columns();
  visit_fold_type("col2im_out_cpu", self.dtype(), [&](auto tag) {
    using T = decltype(tag);
    const T* in = x.const_data<T>();
    T* y = out.mutable_data<T>();
    parallel_for(0, channels, 4, [&](int64_t from, int64_t to) {
      for (int64_t c = from; c < to; ++c) {
        each_element(w, [&](int64_t at, int64_t target) {
          if (target < 0) return;
          T& value = y[c * plane + target];
          value = static_cast<T>(value + in[c * block + at]);
        });
      }
    });
  });
}

}  // namespace taeda::native
