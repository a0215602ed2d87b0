// Convolutions as matrix products over unfolded inputs: the way for dtypes and
// shapes that oneDNN does not have.
#include <taeda/aten/iter/copy.h>
#include <taeda/aten/iter/pointwise.h>
#include <taeda/aten/native/blas/gemm.h>
#include <taeda/aten/native/convolution.h>

#include <algorithm>

namespace taeda::native {

namespace {

// Sizes as three spatial dims, the missing ones in front with size 1.
struct Space {
  std::array<int64_t, 3> in, out, kernel, stride, dilation, pad;
  int64_t in_size = 1, out_size = 1, kernel_size = 1;

  explicit Space(const dnn::Conv& c) {
    in.fill(1), out.fill(1), kernel.fill(1), stride.fill(1), dilation.fill(1);
    pad.fill(0);
    for (int d = 0; d < c.spatial; ++d) {
      size_t to = static_cast<size_t>(3 - c.spatial + d);
      size_t from = static_cast<size_t>(d);
      in[to] = c.in[from];
      out[to] = c.out(d);
      kernel[to] = c.kernel[from];
      stride[to] = c.stride[from];
      dilation[to] = c.dilation[from];
      pad[to] = c.pad_begin[from];
    }
    for (size_t d = 0; d < 3; ++d) {
      in_size *= in[d];
      out_size *= out[d];
      kernel_size *= kernel[d];
    }
  }
};

// Calls f(column_row, offset_in_output, offset_in_input or -1) runs of one row
// of the output: f(columns offset, input offset, count, step, valid).
template <class F>
void each_row(const Space& s, int64_t channels, F&& f) {
  int64_t row = 0;
  for (int64_t c = 0; c < channels; ++c) {
    for (int64_t kz = 0; kz < s.kernel[0]; ++kz) {
      for (int64_t ky = 0; ky < s.kernel[1]; ++ky) {
        for (int64_t kx = 0; kx < s.kernel[2]; ++kx, ++row) {
          for (int64_t z = 0; z < s.out[0]; ++z) {
            int64_t iz = z * s.stride[0] - s.pad[0] + kz * s.dilation[0];
            for (int64_t y = 0; y < s.out[1]; ++y) {
              int64_t iy = y * s.stride[1] - s.pad[1] + ky * s.dilation[1];
              bool inside = iz >= 0 && iz < s.in[0] && iy >= 0 && iy < s.in[1];
              int64_t to = row * s.out_size + (z * s.out[1] + y) * s.out[2];
              int64_t x0 = kx * s.dilation[2] - s.pad[2];
              int64_t from =
                  inside ? c * s.in_size + (iz * s.in[1] + iy) * s.in[2] : -1;
              f(to, from, x0);
            }
          }
        }
      }
    }
  }
}

template <class T>
void unfold(const Space& s, int64_t channels, const T* in, T* columns) {
  each_row(s, channels, [&](int64_t to, int64_t from, int64_t x0) {
    for (int64_t x = 0; x < s.out[2]; ++x) {
      int64_t ix = x * s.stride[2] + x0;
      bool inside = from >= 0 && ix >= 0 && ix < s.in[2];
      columns[to + x] = inside ? in[from + ix] : T(0);
    }
  });
}

template <class T>
void fold(const Space& s, int64_t channels, const T* columns, T* in) {
  each_row(s, channels, [&](int64_t from, int64_t to, int64_t x0) {
    if (to < 0) return;
    for (int64_t x = 0; x < s.out[2]; ++x) {
      int64_t ix = x * s.stride[2] + x0;
      if (ix >= 0 && ix < s.in[2]) {
        in[to + ix] = static_cast<T>(in[to + ix] + columns[from + x]);
      }
    }
  });
}

template <class F>
void visit_conv_type(const Tensor& t, F&& f) {
  visit_type(t.dtype(), [&](auto tag) {
    using T = decltype(tag);
    constexpr bool known =
        std::is_same_v<T, float> || std::is_same_v<T, double> ||
        std::is_same_v<T, Half> || std::is_same_v<T, BFloat16> ||
        std::is_same_v<T, complex<float>> ||
        std::is_same_v<T, complex<double>> || std::is_same_v<T, uint8_t> ||
        std::is_same_v<T, int8_t> || std::is_same_v<T, int16_t> ||
        std::is_same_v<T, int32_t> || std::is_same_v<T, int64_t>;
    if constexpr (known) {
      f(tag);
    } else {
      not_implemented_for("slow_conv2d_cpu", t.dtype());
    }
  });
}

// Sizes of one group.
struct Group {
  int64_t in, out, columns;
  Group(const dnn::Conv& c, const Space& s)
      : in(c.in_channels / c.groups),
        out(c.out_channels / c.groups),
        columns(in * s.kernel_size) {}
};

}  // namespace

void conv_forward_loops(const dnn::Conv& c,
                        const Tensor& in,
                        const Tensor& weight,
                        const Tensor& out) {
  Space s(c);
  Group g(c, s);
  visit_conv_type(in, [&](auto tag) {
    using T = decltype(tag);
    std::vector<T> columns(static_cast<size_t>(g.columns * s.out_size));
    const T* x = in.const_data<T>();
    const T* w = weight.const_data<T>();
    T* y = out.mutable_data<T>();
    for (int64_t i = 0; i < c.batch * c.groups; ++i) {
      int64_t k = i % c.groups;
      unfold(s, g.in, x + i * g.in * s.in_size, columns.data());
      blas::gemm<T>(blas::Op::kNone,
                    blas::Op::kNone,
                    g.out,
                    s.out_size,
                    g.columns,
                    1,
                    w + k * g.out * g.columns,
                    std::max<int64_t>(g.columns, 1),
                    columns.data(),
                    std::max<int64_t>(s.out_size, 1),
                    0,
                    y + i * g.out * s.out_size,
                    std::max<int64_t>(s.out_size, 1));
    }
  });
}

void conv_input_loops(const dnn::Conv& c,
                      const Tensor& grad_out,
                      const Tensor& weight,
                      const Tensor& grad_in) {
  Space s(c);
  Group g(c, s);
  fill_with(grad_in, int64_t{0});
  visit_conv_type(grad_out, [&](auto tag) {
    using T = decltype(tag);
    std::vector<T> columns(static_cast<size_t>(g.columns * s.out_size));
    const T* dy = grad_out.const_data<T>();
    const T* w = weight.const_data<T>();
    T* dx = grad_in.mutable_data<T>();
    for (int64_t i = 0; i < c.batch * c.groups; ++i) {
      int64_t k = i % c.groups;
      blas::gemm<T>(blas::Op::kTrans,
                    blas::Op::kNone,
                    g.columns,
                    s.out_size,
                    g.out,
                    1,
                    w + k * g.out * g.columns,
                    std::max<int64_t>(g.columns, 1),
                    dy + i * g.out * s.out_size,
                    std::max<int64_t>(s.out_size, 1),
                    0,
                    columns.data(),
                    std::max<int64_t>(s.out_size, 1));
      fold(s, g.in, columns.data(), dx + i * g.in * s.in_size);
    }
  });
}

void conv_weight_loops(const dnn::Conv& c,
                       const Tensor& in,
                       const Tensor& grad_out,
                       const Tensor& grad_weight) {
  Space s(c);
  Group g(c, s);
  fill_with(grad_weight, int64_t{0});
  visit_conv_type(in, [&](auto tag) {
    using T = decltype(tag);
    std::vector<T> columns(static_cast<size_t>(g.columns * s.out_size));
    const T* x = in.const_data<T>();
    const T* dy = grad_out.const_data<T>();
    T* dw = grad_weight.mutable_data<T>();
    for (int64_t i = 0; i < c.batch * c.groups; ++i) {
      int64_t k = i % c.groups;
      unfold(s, g.in, x + i * g.in * s.in_size, columns.data());
      blas::gemm<T>(blas::Op::kNone,
                    blas::Op::kTrans,
                    g.out,
                    g.columns,
                    s.out_size,
                    1,
                    dy + i * g.out * s.out_size,
                    std::max<int64_t>(s.out_size, 1),
                    columns.data(),
                    std::max<int64_t>(s.out_size, 1),
                    1,
                    dw + k * g.out * g.columns,
                    std::max<int64_t>(g.columns, 1));
    }
  });
}

}  // namespace taeda::native
