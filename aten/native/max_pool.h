// Maxima over windows of planes: what all max pooling operators stand on.
#pragma once

#include <taeda/aten/iter/copy.h>
#include <taeda/aten/iter/pointwise.h>
#include <taeda/aten/iter/row_major.h>
#include <taeda/aten/native/argument_checks.h>
#include <taeda/aten/native/cpu/isa_table.h>
#include <taeda/aten/native/cpu/kernels/pool.h>
#include <taeda/aten/native/pooling.h>
#include <taeda/aten/parallel/parallel.h>

#include <algorithm>
#include <limits>
#include <vector>

namespace taeda::native {

template <class T>
bool above(T v, T best) {
  if constexpr (std::is_integral_v<T>) {
    return v > best;
  } else {
    return v > best || v != v;
  }
}

template <class T>
T lowest() {
  if constexpr (std::is_integral_v<T>) {
    return std::numeric_limits<T>::lowest();
  } else {
    return -std::numeric_limits<T>::infinity();
  }
}

// What windows compare in: 16-bit floats as float.
template <class T>
using compare_t =
    std::conditional_t<std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>,
                       float,
                       T>;

struct Range {
  int64_t start, end, step;
};

// `range(d, i)` is what output i reads of dim d.
template <class T, class R>
void max_plane(const Pool& p, const T* x, T* y, int64_t* index, R&& range) {
  using C = compare_t<T>;
  for (int64_t oz = 0; oz < p.out[0]; ++oz) {
    Range z = range(0, oz);
    for (int64_t oy = 0; oy < p.out[1]; ++oy) {
      Range h = range(1, oy);
      for (int64_t ox = 0; ox < p.out[2]; ++ox) {
        Range w = range(2, ox);
        C best = lowest<C>();
        int64_t at = (z.start * p.in[1] + h.start) * p.in[2] + w.start;
        for (int64_t iz = z.start; iz < z.end; iz += z.step) {
          for (int64_t iy = h.start; iy < h.end; iy += h.step) {
            int64_t row = (iz * p.in[1] + iy) * p.in[2];
            for (int64_t ix = w.start; ix < w.end; ix += w.step) {
              C v = static_cast<C>(x[row + ix]);
              if (above(v, best)) best = v, at = row + ix;
            }
          }
        }
        *y++ = static_cast<T>(best);
        *index++ = at;
      }
    }
  }
}

// The same of one batch element whose channels lie side by side.
template <class T, class R>
void max_channels(const Pool& p,
                  int64_t channels,
                  const T* x,
                  T* y,
                  int64_t* index,
                  R&& range) {
  auto max_window = TAEDA_ISA_TABLE(kPoolTable).template of<T>().max_window;
  std::vector<int32_t> places;
  for (int64_t oz = 0; oz < p.out[0]; ++oz) {
    Range z = range(0, oz);
    for (int64_t oy = 0; oy < p.out[1]; ++oy) {
      Range h = range(1, oy);
      for (int64_t ox = 0; ox < p.out[2]; ++ox, y += channels) {
        Range w = range(2, ox);
        places.clear();
        for (int64_t iz = z.start; iz < z.end; iz += z.step) {
          for (int64_t iy = h.start; iy < h.end; iy += h.step) {
            for (int64_t ix = w.start; ix < w.end; ix += w.step) {
              places.push_back(
                  static_cast<int32_t>((iz * p.in[1] + iy) * p.in[2] + ix));
            }
          }
        }
        max_window(x,
                   places.data(),
                   static_cast<int64_t>(places.size()),
                   channels,
                   y,
                   index);
        index += channels;
      }
    }
  }
}

template <class T>
constexpr bool kPoolsChannels = !std::is_integral_v<T>;

template <class F>
void visit_max_type(std::string_view op, ScalarType t, bool ints, F&& f) {
  visit_type(t, [&](auto tag) {
    using T = decltype(tag);
    constexpr bool real =
        std::is_same_v<T, float> || std::is_same_v<T, double> ||
        std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>;
    constexpr bool integer =
        std::is_same_v<T, uint8_t> || std::is_same_v<T, int8_t> ||
        std::is_same_v<T, int16_t> || std::is_same_v<T, int32_t> ||
        std::is_same_v<T, int64_t>;
    if constexpr (real) {
      f(tag);
    } else if constexpr (integer) {
      if (!ints) not_implemented_for(op, t);
      f(tag);
    } else {
      not_implemented_for(op, t);
    }
  });
}

// Whether the planes of `t` are walked channels first, in its memory format.
bool pools_channels(const Tensor& t, const Pool& p, int64_t dims);

template <class I>
void plan_max_pool(const Spec<I>& self,
                   const PoolOver<I>& p,
                   int64_t dims,
                   MemoryFormat format,
                   Plan<I>& plan) {
  Dims<I> sizes = pooled_sizes(self, p, dims);
  plan.set(0, sizes, format, self.dtype());
  plan.set(1, sizes, format, kLong);
}

template <class R>
void max_pool_channels(std::string_view op,
                       const Tensor& self,
                       const Pool& p,
                       const Tensor& out,
                       const Tensor& indices,
                       R&& range) {
  visit_max_type(op, self.dtype(), false, [&](auto tag) {
    using T = decltype(tag);
    if constexpr (kPoolsChannels<T>) {
      int64_t channels = self.sizes()[1];
      int64_t from_step = p.in_size() * channels;
      int64_t to_step = p.out_size() * channels;
      parallel_for(0, self.sizes()[0], 1, [&](int64_t from, int64_t to) {
        for (int64_t i = from; i < to; ++i) {
          max_channels(p,
                       channels,
                       self.const_data<T>() + i * from_step,
                       out.mutable_data<T>() + i * to_step,
                       indices.mutable_data<int64_t>() + i * to_step,
                       [&](size_t d, int64_t o) { return range(0, d, o); });
        }
      });
    }
  });
}

// `range(plane, d, i)`: windows may differ from plane to plane, which only
// callers with row-major inputs may use.
template <class R>
void max_pool(std::string_view op,
              const Tensor& self,
              const Pool& p,
              int64_t dims,
              bool ints,
              const Tensor& out,
              const Tensor& indices,
              R&& range) {
  if (pools_channels(self, p, dims)) {
    return max_pool_channels(op, self, p, out, indices, range);
  }
  if (out.numel() == 0) return;
  Tensor x = contiguous(self);
  RowMajor maxima(out), places(indices);
  visit_max_type(op, self.dtype(), ints, [&](auto tag) {
    using T = decltype(tag);
    const T* in = x.const_data<T>();
    T* y = maxima.tensor().mutable_data<T>();
    int64_t* at = places.tensor().mutable_data<int64_t>();
    int64_t from_step = p.in_size(), to_step = p.out_size();
    parallel_for(0, p.planes, pool_grain(p), [&](int64_t from, int64_t to) {
      for (int64_t i = from; i < to; ++i) {
        max_plane(p,
                  in + i * from_step,
                  y + i * to_step,
                  at + i * to_step,
                  [&](size_t d, int64_t o) { return range(i, d, o); });
      }
    });
  });
  maxima.finish();
  places.finish();
}

// Adds every gradient to the element its maximum came from.
template <class I>
void scatter_planes_shape(std::string_view op,
                          const Spec<I>& grad,
                          const Spec<I>& self,
                          const Spec<I>& indices,
                          int64_t dims,
                          Plan<I>& plan) {
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
  const auto planes_of = [&](const Spec<I>& t) {
    return t.sizes().slice(0, static_cast<size_t>(t.dim() - dims));
  };
  TAEDA_CHECK(planes_of(grad) == planes_of(self),
              op,
              ": expected a gradient with the input's planes, got ",
              grad.sizes(),
              " for ",
              self.sizes());
  plan.set(0, self.sizes(), self.suggest_memory_format(), self.dtype());
}
void scatter_planes(std::string_view op,
                    const Tensor& grad,
                    const Tensor& indices,
                    int64_t dims,
                    const Tensor& out);

}  // namespace taeda::native
