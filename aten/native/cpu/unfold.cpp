// im2col and col2im: windows of planes as columns, and back.
#include <taeda/aten/core/dtype_rule.h>
#include <taeda/aten/iter/copy.h>
#include <taeda/aten/native/unfold.h>
#include <taeda/aten/parallel/parallel.h>
#include <taeda/gen/native/col2im.h>
#include <taeda/gen/native/im2col.h>

namespace taeda::native {

namespace {

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
