// Maxima over windows or bins, with the positions they were found at.
#include <taeda/aten/native/argument_checks.h>
#include <taeda/aten/native/max_pool.h>
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

Tensor in_format_of(const Tensor& plain, const Tensor& like) {
  MemoryFormat f = like.suggest_memory_format();
  if (f == MemoryFormat::Contiguous || plain.dim() != like.dim()) return plain;
  Tensor out = make_tensor_strided("pool",
                                   plain.sizes(),
                                   format_strides(plain.sizes(), f),
                                   plain.dtype(),
                                   plain.device());
  if (!plain.is_meta()) copy_into(out, plain);
  return out;
}

bool pools_channels(const Tensor& t, const Pool& p, int64_t dims) {
  // Lanes of few channels stay empty.
  bool floats = t.is_floating_point() && t.dim() == dims + 2;
  if (!floats || t.sizes()[1] < 8 || p.in_size() > (int64_t{1} << 31) - 1) {
    return false;
  }
  MemoryFormat f = t.suggest_memory_format();
  return f != MemoryFormat::Contiguous && t.is_contiguous(f) && !t.is_neg();
}

Tensor scatter_planes(std::string_view op,
                      const Tensor& grad,
                      const Tensor& self,
                      const Tensor& indices,
                      int64_t dims) {
  TAEDA_CHECK(grad.sizes() == indices.sizes(),
              op,
              ": expected gradient of shape ",
              indices.sizes(),
              ", got ",
              grad.sizes());
  check_index_dtype(op, indices);
  TAEDA_CHECK(grad.dim() == self.dim() &&
                  (self.dim() == dims + 1 || self.dim() == dims + 2),
              op,
              ": expected an input with ",
              dims + 1,
              " or ",
              dims + 2,
              " dims and a gradient with as many, got ",
              self.sizes(),
              " and ",
              grad.sizes());
  const auto planes_of = [&](const Tensor& t) {
    return t.sizes().slice(0, static_cast<size_t>(t.dim() - dims));
  };
  TAEDA_CHECK(planes_of(grad) == planes_of(self),
              op,
              ": expected a gradient with the input's planes, got ",
              grad.sizes(),
              " for ",
              self.sizes());
  Tensor out = make_tensor(op, self.sizes(), self.dtype(), self.device());
  if (self.is_meta()) return in_format_of(out, self);
  fill_with(out, int64_t{0});
  if (grad.numel() == 0) return in_format_of(out, self);
  int64_t in_size = 1, out_size = 1;
  for (int64_t d = 0; d < dims; ++d) {
    in_size *= self.sizes()[self.dim() - 1 - d];
    out_size *= grad.sizes()[grad.dim() - 1 - d];
  }
  Tensor g = contiguous_as(grad, self.dtype()), at = contiguous(indices);
  const int64_t* index = at.const_data<int64_t>();
  visit_max_type(op, self.dtype(), true, [&](auto tag) {
    using T = decltype(tag);
    const T* dy = g.const_data<T>();
    T* dx = out.mutable_data<T>();
    int64_t planes = g.numel() / out_size;
    int64_t grain = std::max<int64_t>(1, 16384 / out_size);
    parallel_for(0, planes, grain, [&](int64_t from, int64_t to) {
      for (int64_t p = from; p < to; ++p) {
        for (int64_t i = p * out_size; i < (p + 1) * out_size; ++i) {
          TAEDA_CHECK(index[i] >= 0 && index[i] < in_size,
                      op,
                      ": index ",
                      index[i],
                      " is outside of the input's plane of ",
                      in_size,
                      " elements");
          T& target = dx[p * in_size + index[i]];
          target = static_cast<T>(target + dy[i]);
        }
      }
    });
  });
  return in_format_of(out, self);
}

namespace {

// The part of window i that lies inside of the input.
Range window(const Pool& p, size_t d, int64_t i) {
  int64_t start = i * p.stride[d] - p.padding[d];
  int64_t end =
      std::min(start + (p.kernel[d] - 1) * p.dilation[d] + 1, p.in[d]);
  while (start < 0) start += p.dilation[d];
  return {start, end, p.dilation[d]};
}
Range bin(const Pool& p, size_t d, int64_t i) {
  return {bin_start(i, p.in[d], p.out[d]), bin_end(i, p.in[d], p.out[d]), 1};
}
// The same windows for all planes.
template <class R>
auto of_all_planes(const Pool& p, R range) {
  return [&p, range](int64_t, size_t d, int64_t i) { return range(p, d, i); };
}

// [..., l] as [..., 1, l], and back.
Tensor with_height(const Tensor& t) {
  DimVector sizes(t.sizes());
  sizes.insert(sizes.end() - 1, 1);
  return ops::reshape(t, sizes);
}
Tensor without_height(const Tensor& t) {
  DimVector sizes(t.sizes());
  sizes.erase(sizes.end() - 2);
  return ops::reshape(t, sizes);
}
DimVector pair_of(IntArrayRef one, int64_t first) {
  if (one.empty()) return {};
  return {first, one[0]};
}

}  // namespace

#define TAEDA_MAX_POOL(D)                                                      \
  std::tuple<Tensor, Tensor> max_pool##D##d_with_indices(                      \
      const Tensor& self,                                                      \
      ArrayRef<int64_t> kernel_size,                                           \
      ArrayRef<int64_t> stride,                                                \
      ArrayRef<int64_t> padding,                                               \
      ArrayRef<int64_t> dilation,                                              \
      bool ceil_mode) {                                                        \
    Pool p = make_pool("max_pool" #D "d",                                      \
                       self,                                                   \
                       D,                                                      \
                       kernel_size,                                            \
                       stride,                                                 \
                       padding,                                                \
                       dilation,                                               \
                       ceil_mode);                                             \
    return max_pool(                                                           \
        "max_pool" #D "d", self, p, D, true, of_all_planes(p, window));        \
  }                                                                            \
  Tensor max_pool##D##d_with_indices_backward(const Tensor& grad_output,       \
                                              const Tensor& self,              \
                                              ArrayRef<int64_t>,               \
                                              ArrayRef<int64_t>,               \
                                              ArrayRef<int64_t>,               \
                                              ArrayRef<int64_t>,               \
                                              bool,                            \
                                              const Tensor& indices) {         \
    return scatter_planes(                                                     \
        "max_pool" #D "d_backward", grad_output, self, indices, D);            \
  }                                                                            \
  Tensor max_pool##D##d(const Tensor& self,                                    \
                        ArrayRef<int64_t> kernel_size,                         \
                        ArrayRef<int64_t> stride,                              \
                        ArrayRef<int64_t> padding,                             \
                        ArrayRef<int64_t> dilation,                            \
                        bool ceil_mode) {                                      \
    return std::get<0>(ops::max_pool##D##d_with_indices(                       \
        self, kernel_size, stride, padding, dilation, ceil_mode));             \
  }                                                                            \
  std::tuple<Tensor, Tensor> adaptive_max_pool##D##d(                          \
      const Tensor& self, ArrayRef<int64_t> output_size) {                     \
    Pool p =                                                                   \
        make_adaptive_pool("adaptive_max_pool" #D "d", self, D, output_size);  \
    return max_pool(                                                           \
        "adaptive_max_pool" #D "d", self, p, D, false, of_all_planes(p, bin)); \
  }                                                                            \
  Tensor adaptive_max_pool##D##d_backward(                                     \
      const Tensor& grad_output, const Tensor& self, const Tensor& indices) {  \
    return scatter_planes(                                                     \
        "adaptive_max_pool" #D "d_backward", grad_output, self, indices, D);   \
  }
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
  bool fits = (self.dim() == 2 || self.dim() == 3) && self.size(-1) != 0 &&
              self.size(-2) != 0;
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
  auto [out, indices] =
      ops::adaptive_max_pool2d(with_height(self), pair_of(output_size, 1));
  return {without_height(out), without_height(indices)};
}

}  // namespace taeda::native
