// Maxima over windows or bins, with the positions they were found at.
#include <taeda/aten/native/max_pool.h>
#include <taeda/aten/native/symbolic_sizes.h>
#include <taeda/gen/native/adaptive_max_pool2d.h>
#include <taeda/gen/native/adaptive_max_pool2d_backward.h>
#include <taeda/gen/native/adaptive_max_pool3d.h>
#include <taeda/gen/native/adaptive_max_pool3d_backward.h>
#include <taeda/gen/native/max_pool2d_with_indices.h>
#include <taeda/gen/native/max_pool2d_with_indices_backward.h>
#include <taeda/gen/native/max_pool3d_with_indices.h>
#include <taeda/gen/native/max_pool3d_with_indices_backward.h>

namespace taeda::native {

bool pools_channels(const Tensor& t, const Pool& p, int64_t dims) {
  // Lanes of few channels stay empty.
  bool floats = t.is_floating_point() && t.dim() == dims + 2;
  if (!floats || t.sizes()[1] < 8 || p.in_size() > (int64_t{1} << 31) - 1) {
    return false;
  }
  MemoryFormat f = t.suggest_memory_format();
  return f != MemoryFormat::Contiguous && t.is_contiguous(f) && !t.is_neg();
}

void scatter_planes(std::string_view op,
                    const Tensor& grad,
                    const Tensor& indices,
                    int64_t dims,
                    const Tensor& out) {
  RowMajor sums(out);
  fill_with(sums.tensor(), int64_t{0});
  if (grad.numel() == 0) return sums.finish();
  int64_t in_size = 1, out_size = 1;
  for (int64_t d = 0; d < dims; ++d) {
    in_size *= out.sizes()[out.dim() - 1 - d];
    out_size *= grad.sizes()[grad.dim() - 1 - d];
  }
  Tensor g = contiguous_as(grad, out.dtype()), at = contiguous(indices);
  const int64_t* index = at.const_data<int64_t>();
  visit_max_type(op, out.dtype(), true, [&](auto tag) {
    using T = decltype(tag);
    const T* dy = g.const_data<T>();
    T* dx = sums.tensor().mutable_data<T>();
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
  sums.finish();
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
// Maxima of random planes are found by branches that the processor guesses
// wrongly, and between neighbours that lie in one vector. Side by side,
// channels are compared in vectors: where there are enough of them, and a batch
// element for each thread, two copies cost less than that.
bool gains_by_channels(const Tensor& t, const Pool& p, int64_t dims) {
  constexpr int64_t kFewest = 16, kSmall = 8192;
  return t.dim() == dims + 2 && t.is_floating_point() && t.is_contiguous() &&
         !t.is_neg() && t.sizes()[1] >= kFewest && t.numel() >= kSmall &&
         t.sizes()[0] >= get_num_threads() && p.out_size() > 1 &&
         p.in_size() < int64_t{1} << 31;
}

// Room for one batch element of `like`.
Tensor with_channels_last(const Tensor& like, ScalarType dtype) {
  DimVector sizes(like.sizes().begin(), like.sizes().end());
  sizes[0] = 1;
  MemoryFormat format = like.dim() == 4 ? MemoryFormat::ChannelsLast
                                        : MemoryFormat::ChannelsLast3d;
  return make_tensor_strided(
      "max_pool", sizes, format_strides(sizes, format), dtype);
}

// Windows are the same for all planes.
template <class R>
void max_pool_planes(std::string_view op,
                     const Tensor& self,
                     const Pool& p,
                     int64_t dims,
                     bool ints,
                     const Tensor& out,
                     const Tensor& indices,
                     R range) {
  auto of_plane = [&](int64_t, size_t d, int64_t i) { return range(p, d, i); };
  if (!gains_by_channels(self, p, dims)) {
    return max_pool(op, self, p, dims, ints, out, indices, of_plane);
  }
  auto bytes_to = [](const Tensor& t, int64_t i) {
    return i * t.strides()[0] * static_cast<int64_t>(t.itemsize());
  };
  auto copy_back = [&](const Tensor& all, int64_t i, const Tensor& one) {
    copy_strided(static_cast<char*>(all.mutable_raw_data()) + bytes_to(all, i),
                 all.strides(),
                 static_cast<const char*>(one.const_raw_data()),
                 one.strides(),
                 one.sizes(),
                 one.dtype());
  };
  // One at a time, which stays in a thread's cache.
  parallel_for(0, self.sizes()[0], 1, [&](int64_t from, int64_t to) {
    Tensor x = with_channels_last(self, self.dtype());
    Tensor maxima = with_channels_last(out, out.dtype());
    Tensor places = with_channels_last(out, kLong);
    for (int64_t i = from; i < to; ++i) {
      copy_strided(
          static_cast<char*>(x.mutable_raw_data()),
          x.strides(),
          static_cast<const char*>(self.const_raw_data()) + bytes_to(self, i),
          self.strides(),
          x.sizes(),
          x.dtype());
      max_pool_channels(op, x, p, maxima, places, of_plane);
      copy_back(out, i, maxima);
      copy_back(indices, i, places);
    }
  });
}

}  // namespace

#define TAEDA_MAX_POOL(D)                                                     \
  void max_pool##D##d_cpu(const Tensor& self,                                 \
                          ArrayRef<int64_t> kernel_size,                      \
                          ArrayRef<int64_t> stride,                           \
                          ArrayRef<int64_t> padding,                          \
                          ArrayRef<int64_t> dilation,                         \
                          bool ceil_mode,                                     \
                          const Tensor& out,                                  \
                          const Tensor& indices) {                            \
    Pool p = make_pool<int64_t>("max_pool" #D "d",                            \
                                self,                                         \
                                D,                                            \
                                kernel_size,                                  \
                                stride,                                       \
                                padding,                                      \
                                dilation,                                     \
                                ceil_mode);                                   \
    max_pool_planes(                                                          \
        "max_pool" #D "d", self, p, D, true, out, indices, window);           \
  }                                                                           \
  void max_pool##D##d_backward_cpu(const Tensor& grad_output,                 \
                                   const Tensor&,                             \
                                   ArrayRef<int64_t>,                         \
                                   ArrayRef<int64_t>,                         \
                                   ArrayRef<int64_t>,                         \
                                   ArrayRef<int64_t>,                         \
                                   bool,                                      \
                                   const Tensor& indices,                     \
                                   const Tensor& out) {                       \
    scatter_planes("max_pool" #D "d_backward", grad_output, indices, D, out); \
  }                                                                           \
  void adaptive_max_pool##D##d_cpu(const Tensor& self,                        \
                                   ArrayRef<int64_t> output_size,             \
                                   const Tensor& out,                         \
                                   const Tensor& indices) {                   \
    Pool p = make_adaptive_pool<int64_t>(                                     \
        "adaptive_max_pool" #D "d", self, D, output_size);                    \
    max_pool_planes(                                                          \
        "adaptive_max_pool" #D "d", self, p, D, false, out, indices, bin);    \
  }                                                                           \
  void adaptive_max_pool##D##d_backward_cpu(const Tensor& grad_output,        \
                                            const Tensor&,                    \
                                            const Tensor& indices,            \
                                            const Tensor& out) {              \
    scatter_planes(                                                           \
        "adaptive_max_pool" #D "d_backward", grad_output, indices, D, out);   \
  }
TAEDA_MAX_POOL(2)
TAEDA_MAX_POOL(3)
#undef TAEDA_MAX_POOL

}  // namespace taeda::native
