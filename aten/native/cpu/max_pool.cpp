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
// The same windows for all planes.
template <class R>
auto of_all_planes(const Pool& p, R range) {
  return [&p, range](int64_t, size_t d, int64_t i) { return range(p, d, i); };
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
    max_pool("max_pool" #D "d",                                               \
             self,                                                            \
             p,                                                               \
             D,                                                               \
             true,                                                            \
             out,                                                             \
             indices,                                                         \
             of_all_planes(p, window));                                       \
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
    max_pool("adaptive_max_pool" #D "d",                                      \
             self,                                                            \
             p,                                                               \
             D,                                                               \
             false,                                                           \
             out,                                                             \
             indices,                                                         \
             of_all_planes(p, bin));                                          \
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
