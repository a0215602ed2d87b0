// Averages over windows or bins.
#include <taeda/aten/iter/copy.h>
#include <taeda/aten/iter/pointwise.h>
#include <taeda/aten/native/pooling.h>
#include <taeda/aten/parallel/parallel.h>
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
#include <taeda/gen/ops/reshape.h>

#include <algorithm>

namespace taeda::native {

namespace {

template <class T>
using sum_t =
    std::conditional_t<std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>,
                       float,
                       T>;

// One window: its part inside of the input, and what its sum is divided by.
struct Average {
  int64_t z0, z1, y0, y1, x0, x1;
  int64_t count;
};

struct Windows {
  const Pool& p;
  bool count_pad;
  int64_t divisor;  // 0: the count
  Average operator()(int64_t oz, int64_t oy, int64_t ox) const {
    int64_t at[3] = {oz, oy, ox}, start[3], end[3], padded = 1, inside = 1;
    for (size_t d = 0; d < 3; ++d) {
      start[d] = at[d] * p.stride[d] - p.padding[d];
      end[d] = std::min(start[d] + p.kernel[d], p.in[d] + p.padding[d]);
      padded *= end[d] - start[d];
      start[d] = std::max<int64_t>(start[d], 0);
      end[d] = std::min(end[d], p.in[d]);
      inside *= std::max<int64_t>(end[d] - start[d], 0);
    }
    int64_t count = divisor != 0 ? divisor : count_pad ? padded : inside;
    return {start[0], end[0], start[1], end[1], start[2], end[2], count};
  }
};

struct Bins {
  const Pool& p;
  Average operator()(int64_t oz, int64_t oy, int64_t ox) const {
    int64_t at[3] = {oz, oy, ox}, start[3], end[3], count = 1;
    for (size_t d = 0; d < 3; ++d) {
      start[d] = bin_start(at[d], p.in[d], p.out[d]);
      end[d] = bin_end(at[d], p.in[d], p.out[d]);
      count *= end[d] - start[d];
    }
    return {start[0], end[0], start[1], end[1], start[2], end[2], count};
  }
};

template <class T, class W>
void average_plane(const Pool& p, const T* x, T* y, const W& windows) {
  using A = sum_t<T>;
  for (int64_t oz = 0; oz < p.out[0]; ++oz) {
    for (int64_t oy = 0; oy < p.out[1]; ++oy) {
      for (int64_t ox = 0; ox < p.out[2]; ++ox) {
        Average w = windows(oz, oy, ox);
        A sum = 0;
        for (int64_t iz = w.z0; iz < w.z1; ++iz) {
          for (int64_t iy = w.y0; iy < w.y1; ++iy) {
            const T* row = x + (iz * p.in[1] + iy) * p.in[2];
            for (int64_t ix = w.x0; ix < w.x1; ++ix) {
              sum += static_cast<A>(row[ix]);
            }
          }
        }
        *y++ =
            w.count == 0 ? T(0) : static_cast<T>(sum / static_cast<A>(w.count));
      }
    }
  }
}

// Adds to dx, in the type of sums.
template <class T, class W>
void spread_plane(const Pool& p, const T* dy, sum_t<T>* dx, const W& windows) {
  using A = sum_t<T>;
  for (int64_t oz = 0; oz < p.out[0]; ++oz) {
    for (int64_t oy = 0; oy < p.out[1]; ++oy) {
      for (int64_t ox = 0; ox < p.out[2]; ++ox) {
        Average w = windows(oz, oy, ox);
        A g = static_cast<A>(*dy++);
        if (w.count == 0) continue;
        g /= static_cast<A>(w.count);
        for (int64_t iz = w.z0; iz < w.z1; ++iz) {
          for (int64_t iy = w.y0; iy < w.y1; ++iy) {
            A* row = dx + (iz * p.in[1] + iy) * p.in[2];
            for (int64_t ix = w.x0; ix < w.x1; ++ix) row[ix] += g;
          }
        }
      }
    }
  }
}

template <class F>
void visit_average_type(std::string_view op, ScalarType t, bool longs, F&& f) {
  switch (t) {
    case kFloat:
      return f(float{});
    case kDouble:
      return f(double{});
    case kBFloat16:
      return f(BFloat16{});
    case kHalf:
      return f(Half{});
    case kLong:
      if (longs) return f(int64_t{});
      [[fallthrough]];
    default:
      not_implemented_for(op, t);
  }
}

Tensor format_like(const Tensor& plain, const Tensor& like) {
  MemoryFormat f = like.suggest_memory_format();
  if (f == MemoryFormat::Contiguous) return plain;
  Tensor out = make_tensor_strided("pool",
                                   plain.sizes(),
                                   format_strides(plain.sizes(), f),
                                   plain.dtype(),
                                   plain.device());
  if (!plain.is_meta()) copy_into(out, plain);
  return out;
}

template <class W>
Tensor average(std::string_view op,
               const Tensor& self,
               const Pool& p,
               int64_t dims,
               const W& windows) {
  bool longs = std::is_same_v<W, Windows>;
  Tensor out =
      make_tensor(op, pooled_sizes(self, p, dims), self.dtype(), self.device());
  if (!self.is_meta()) {
    Tensor x = contiguous(self);
    visit_average_type(op, self.dtype(), longs, [&](auto tag) {
      using T = decltype(tag);
      const T* in = x.const_data<T>();
      T* y = out.mutable_data<T>();
      int64_t grain =
          std::max<int64_t>(1, 16384 / std::max<int64_t>(p.in_size(), 1));
      parallel_for(0, p.planes, grain, [&](int64_t from, int64_t to) {
        for (int64_t i = from; i < to; ++i) {
          average_plane(p, in + i * p.in_size(), y + i * p.out_size(), windows);
        }
      });
    });
  }
  return format_like(out, self);
}

template <class W>
Tensor spread(std::string_view op,
              const Tensor& grad,
              const Tensor& self,
              const Pool& p,
              int64_t dims,
              const W& windows) {
  TAEDA_CHECK(grad.sizes() == IntArrayRef(pooled_sizes(self, p, dims)),
              op,
              ": expected gradient of shape ",
              IntArrayRef(pooled_sizes(self, p, dims)),
              ", got ",
              grad.sizes());
  Tensor out = make_tensor(op, self.sizes(), self.dtype(), self.device());
  if (!self.is_meta()) {
    Tensor g = contiguous_as(grad, self.dtype());
    visit_average_type(op, self.dtype(), true, [&](auto tag) {
      using T = decltype(tag);
      const T* dy = g.const_data<T>();
      T* dx = out.mutable_data<T>();
      int64_t grain =
          std::max<int64_t>(1, 16384 / std::max<int64_t>(p.in_size(), 1));
      parallel_for(0, p.planes, grain, [&](int64_t from, int64_t to) {
        std::vector<sum_t<T>> plane(static_cast<size_t>(p.in_size()));
        for (int64_t i = from; i < to; ++i) {
          std::fill(plane.begin(), plane.end(), sum_t<T>(0));
          spread_plane(p, dy + i * p.out_size(), plane.data(), windows);
          T* to_plane = dx + i * p.in_size();
          for (size_t j = 0; j < plane.size(); ++j) {
            to_plane[j] = static_cast<T>(plane[j]);
          }
        }
      });
    });
  }
  return format_like(out, self);
}

int64_t divisor_of(std::string_view op, std::optional<int64_t> divisor) {
  TAEDA_CHECK(!divisor || *divisor != 0, op, ": divisor must be not zero");
  return divisor.value_or(0);
}

constexpr int64_t kOne[] = {1};

}  // namespace

#define TAEDA_AVG_POOL(D)                                                     \
  Tensor avg_pool##D##d(const Tensor& self,                                   \
                        ArrayRef<int64_t> kernel_size,                        \
                        ArrayRef<int64_t> stride,                             \
                        ArrayRef<int64_t> padding,                            \
                        bool ceil_mode,                                       \
                        bool count_include_pad,                               \
                        std::optional<int64_t> divisor_override) {            \
    int64_t divisor = divisor_of("avg_pool" #D "d", divisor_override);        \
    Pool p = make_pool("avg_pool" #D "d",                                     \
                       self,                                                  \
                       D,                                                     \
                       kernel_size,                                           \
                       stride,                                                \
                       padding,                                               \
                       kOne,                                                  \
                       ceil_mode);                                            \
    return average("avg_pool" #D "d",                                         \
                   self,                                                      \
                   p,                                                         \
                   D,                                                         \
                   Windows{p, count_include_pad, divisor});                   \
  }                                                                           \
  Tensor avg_pool##D##d_backward(const Tensor& grad_output,                   \
                                 const Tensor& self,                          \
                                 ArrayRef<int64_t> kernel_size,               \
                                 ArrayRef<int64_t> stride,                    \
                                 ArrayRef<int64_t> padding,                   \
                                 bool ceil_mode,                              \
                                 bool count_include_pad,                      \
                                 std::optional<int64_t> divisor_override) {   \
    int64_t divisor = divisor_of("avg_pool" #D "d", divisor_override);        \
    Pool p = make_pool("avg_pool" #D "d_backward",                            \
                       self,                                                  \
                       D,                                                     \
                       kernel_size,                                           \
                       stride,                                                \
                       padding,                                               \
                       kOne,                                                  \
                       ceil_mode);                                            \
    return spread("avg_pool" #D "d_backward",                                 \
                  grad_output,                                                \
                  self,                                                       \
                  p,                                                          \
                  D,                                                          \
                  Windows{p, count_include_pad, divisor});                    \
  }                                                                           \
  Tensor _adaptive_avg_pool##D##d(const Tensor& self,                         \
                                  ArrayRef<int64_t> output_size) {            \
    Pool p =                                                                  \
        make_adaptive_pool("adaptive_avg_pool" #D "d", self, D, output_size); \
    return average("adaptive_avg_pool" #D "d", self, p, D, Bins{p});          \
  }                                                                           \
  Tensor _adaptive_avg_pool##D##d_backward(const Tensor& grad_output,         \
                                           const Tensor& self) {              \
    size_t rank = grad_output.sizes().size();                                 \
    Pool p = make_adaptive_pool("adaptive_avg_pool" #D "d_backward",          \
                                self,                                         \
                                D,                                            \
                                grad_output.sizes().slice(rank - D));         \
    return spread("adaptive_avg_pool" #D "d_backward",                        \
                  grad_output,                                                \
                  self,                                                       \
                  p,                                                          \
                  D,                                                          \
                  Bins{p});                                                   \
  }
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
  DimVector sizes(t.sizes());
  sizes.insert(sizes.end() - 1, 1);
  return ops::reshape(t, sizes);
}
Tensor drop_height(const Tensor& t) {
  DimVector sizes(t.sizes());
  sizes.erase(sizes.end() - 2);
  return ops::reshape(t, sizes);
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
  return drop_height(ops::_adaptive_avg_pool2d(
      add_height("adaptive_avg_pool1d", self), two(output_size, 1)));
}

}  // namespace taeda::native
