// Planes resized dim by dim: every filter is a product of filters of lines.
#include <taeda/aten/iter/copy.h>
#include <taeda/aten/native/normalization.h>
#include <taeda/aten/native/upsample.h>
#include <taeda/aten/native/upsample_taps.h>
#include <taeda/aten/parallel/parallel.h>
#include <taeda/gen/native/_upsample_bicubic2d_aa.h>
#include <taeda/gen/native/_upsample_bicubic2d_aa_backward.h>
#include <taeda/gen/native/_upsample_bilinear2d_aa.h>
#include <taeda/gen/native/_upsample_bilinear2d_aa_backward.h>
#include <taeda/gen/native/_upsample_lanczos2d_aa.h>
#include <taeda/gen/native/_upsample_lanczos2d_aa_backward.h>
#include <taeda/gen/native/_upsample_nearest_exact1d.h>
#include <taeda/gen/native/_upsample_nearest_exact1d_backward.h>
#include <taeda/gen/native/_upsample_nearest_exact2d.h>
#include <taeda/gen/native/_upsample_nearest_exact2d_backward.h>
#include <taeda/gen/native/_upsample_nearest_exact3d.h>
#include <taeda/gen/native/_upsample_nearest_exact3d_backward.h>
#include <taeda/gen/native/upsample_bicubic2d.h>
#include <taeda/gen/native/upsample_bicubic2d_backward.h>
#include <taeda/gen/native/upsample_bilinear2d.h>
#include <taeda/gen/native/upsample_bilinear2d_backward.h>
#include <taeda/gen/native/upsample_linear1d.h>
#include <taeda/gen/native/upsample_linear1d_backward.h>
#include <taeda/gen/native/upsample_nearest1d.h>
#include <taeda/gen/native/upsample_nearest1d_backward.h>
#include <taeda/gen/native/upsample_nearest2d.h>
#include <taeda/gen/native/upsample_nearest2d_backward.h>
#include <taeda/gen/native/upsample_nearest3d.h>
#include <taeda/gen/native/upsample_nearest3d_backward.h>
#include <taeda/gen/native/upsample_trilinear3d.h>
#include <taeda/gen/native/upsample_trilinear3d_backward.h>

#include <algorithm>
#include <array>
#include <vector>

namespace taeda::native {

namespace {

// The steps of one slab: a plane, or in channels_last order all planes of one
// batch element, whose `inner` channels lie side by side.
template <class W>
struct Slab {
  std::array<int64_t, 3> in{1, 1, 1}, out{1, 1, 1};
  int64_t slabs = 1, inner = 1;
  std::array<Taps<W>, 3> taps;
  std::array<bool, 3> picks{};
  int64_t in_size() const { return in[0] * in[1] * in[2] * inner; }
  int64_t out_size() const { return out[0] * out[1] * out[2] * inner; }
};

// Whether every output is an element as it is.
template <class W>
bool only_picks(const Taps<W>& t) {
  W one = 1;
  if constexpr (std::is_integral_v<W>) one <<= t.shift;
  return t.width == 1 &&
         std::count(t.count.begin(), t.count.end(), 1) == t.out &&
         std::count(t.weight.begin(), t.weight.end(), one) == t.out;
}

template <class S, class W>
void pick_lines(
    const Taps<W>& t, const S* in, S* out, int64_t outer, int64_t inner) {
  const int64_t* at = t.at.data();
  for (int64_t o = 0; o < outer; ++o, in += t.in * inner) {
    if (inner == 1) {
      S* __restrict to = out;
      const S* __restrict from = in;
#pragma GCC unroll 8
      for (int64_t i = 0; i < t.out; ++i) to[i] = from[at[i]];
    } else {
      for (int64_t i = 0; i < t.out; ++i) {
        std::copy_n(in + at[i] * inner, inner, out + i * inner);
      }
    }
    out += t.out * inner;
  }
}

template <class W>
W line_sum(
    const W* in, int64_t step, const int64_t* at, const W* w, int64_t n) {
  W sum = w[0] * in[at[0] * step];
  for (int64_t k = 1; k < n; ++k) sum += w[k] * in[at[k] * step];
  return sum;
}

// [outer, in, inner] to [outer, out, inner].
template <class W>
void resize_lines(
    const Taps<W>& t, const W* in, W* out, int64_t outer, int64_t inner) {
  for (int64_t o = 0; o < outer; ++o, in += t.in * inner) {
    for (int64_t i = 0; i < t.out; ++i, out += inner) {
      const int64_t* at = t.at.data() + i * t.width;
      const W* w = t.weight.data() + i * t.width;
      int64_t count = t.count[static_cast<size_t>(i)];
      if (count == 0) {
        std::fill(out, out + inner, W(0));
      } else if (inner == 1) {
        *out = line_sum(in, 1, at, w, count);
      } else {
        const W* __restrict row = in + at[0] * inner;
        W* __restrict to = out;
        for (int64_t j = 0; j < inner; ++j) to[j] = w[0] * row[j];
        for (int64_t k = 1; k < count; ++k) {
          const W* __restrict more = in + at[k] * inner;
          for (int64_t j = 0; j < inner; ++j) to[j] += w[k] * more[j];
        }
      }
    }
  }
}

// uint8 is rounded after every dim, by integer arithmetic.
void resize_lines(const Taps<int32_t>& t,
                  const uint8_t* in,
                  uint8_t* out,
                  int64_t outer,
                  int64_t inner) {
  const int32_t half = t.shift > 0 ? 1 << (t.shift - 1) : 0;
  for (int64_t o = 0; o < outer; ++o, in += t.in * inner) {
    for (int64_t i = 0; i < t.out; ++i) {
      const int64_t* at = t.at.data() + i * t.width;
      const int32_t* w = t.weight.data() + i * t.width;
      int64_t count = t.count[static_cast<size_t>(i)];
      for (int64_t j = 0; j < inner; ++j) {
        int32_t sum = half;
        for (int64_t k = 0; k < count; ++k) sum += w[k] * in[at[k] * inner + j];
        *out++ = static_cast<uint8_t>(std::clamp(sum >> t.shift, 0, 255));
      }
    }
  }
}

// The transpose: adds [outer, out, inner] into [outer, in, inner].
template <class W>
void spread_lines(
    const Taps<W>& t, const W* grad, W* into, int64_t outer, int64_t inner) {
  for (int64_t o = 0; o < outer; ++o, into += t.in * inner) {
    for (int64_t i = 0; i < t.out; ++i, grad += inner) {
      const int64_t* at = t.at.data() + i * t.width;
      const W* w = t.weight.data() + i * t.width;
      int64_t count = t.count[static_cast<size_t>(i)];
      for (int64_t k = 0; k < count; ++k) {
        W* __restrict to = into + at[k] * inner;
        for (int64_t j = 0; j < inner; ++j) to[j] += w[k] * grad[j];
      }
    }
  }
}

bool keeps(const LineResize& how, int64_t in, int64_t out) {
  bool same = how.factor <= 0 || how.align_corners || how.factor == 1;
  return in == out && same;
}

template <class W, class Make>
Slab<W> make_slab(const Request& r,
                  IntArrayRef in,
                  IntArrayRef out,
                  bool channels_last,
                  Make&& make) {
  Slab<W> s;
  size_t dims = in.size() - 2;
  s.slabs = channels_last ? in[0] : in[0] * in[1];
  s.inner = channels_last ? in[1] : 1;
  for (size_t d = 0; d < dims; ++d) {
    size_t to = 3 - dims + d;
    s.in[to] = in[d + 2], s.out[to] = out[d + 2];
    LineResize how{r.filter, r.align_corners, r.factors[d]};
    if (!keeps(how, s.in[to], s.out[to])) {
      s.taps[to] = make(how, s.in[to], s.out[to]);
      s.picks[to] = only_picks(s.taps[to]);
    }
  }
  return s;
}

// Dims from the last to the first, through two scratch buffers; the last dim
// that changes writes the result.
template <class S, class W>
void resize_slab(const Slab<W>& s,
                 const S* in,
                 S* out,
                 std::vector<S>* buffer) {
  size_t final = 0;
  while (final < 3 && s.taps[final].width == 0) ++final;
  if (final == 3) std::copy(in, in + s.out_size(), out);
  int64_t inner = s.inner, outer = s.in[0] * s.in[1];
  const S* from = in;
  int turn = 0;
  for (size_t d = 3; d-- > final;) {
    const Taps<W>& t = s.taps[d];
    if (t.width != 0) {
      S* to = out;
      if (d != final) {
        std::vector<S>& scratch = buffer[turn];
        turn ^= 1;
        scratch.resize(static_cast<size_t>(outer * t.out * inner));
        to = scratch.data();
      }
      if (s.picks[d]) {
        pick_lines(t, from, to, outer, inner);
      } else {
        resize_lines(t, from, to, outer, inner);
      }
      from = to;
    }
    inner *= s.out[d];
    if (d > 0) outer /= s.in[d - 1];
  }
}

template <class W>
W* spread_slab(const Slab<W>& s, std::vector<W>* buffer) {
  // buffer[0] holds the gradient; dims from the first to the last.
  int64_t outer = 1, inner = s.inner * s.out[1] * s.out[2];
  int turn = 0;
  for (size_t d = 0; d < 3; ++d) {
    const Taps<W>& t = s.taps[d];
    if (t.width != 0) {
      std::vector<W>& into = buffer[turn ^ 1];
      into.assign(static_cast<size_t>(outer * t.in * inner), W(0));
      spread_lines(t, buffer[turn].data(), into.data(), outer, inner);
      turn ^= 1;
    }
    outer *= s.in[d];
    if (d < 2) inner /= s.out[d + 1];
  }
  return buffer[turn].data();
}

Tensor in_format(const Tensor& t, MemoryFormat f) {
  if (t.is_contiguous(f)) return t;
  Tensor dense = make_tensor_strided(
      "upsample", t.sizes(), format_strides(t.sizes(), f), t.dtype());
  copy_into(dense, t);
  return dense;
}

template <class W, class T>
void resize_float(const Slab<W>& s, const T* in, T* out) {
  int64_t grain =
      std::max<int64_t>(1, 32768 / std::max<int64_t>(s.out_size(), 1));
  parallel_for(0, s.slabs, grain, [&](int64_t begin, int64_t end) {
    std::vector<W> wide, result, buffer[2];
    for (int64_t i = begin; i < end; ++i) {
      const T* from = in + i * s.in_size();
      T* to = out + i * s.out_size();
      if constexpr (std::is_same_v<T, W>) {
        resize_slab(s, from, to, buffer);
      } else {
        wide.assign(from, from + s.in_size());
        result.resize(static_cast<size_t>(s.out_size()));
        resize_slab(s, wide.data(), result.data(), buffer);
        for (int64_t j = 0; j < s.out_size(); ++j) {
          to[j] = static_cast<T>(result[static_cast<size_t>(j)]);
        }
      }
    }
  });
}

void resize(const Tensor& self, const Request& r, const Tensor& out) {
  if (out.numel() == 0) return;
  MemoryFormat format = format_of(self);
  bool last = format != MemoryFormat::Contiguous;
  Tensor x = in_format(self, format);
  if (self.dtype() == kByte) {
    auto make = [](const LineResize& how, int64_t in, int64_t to) {
      return integer_taps(make_taps<double>(how, in, to));
    };
    auto s = make_slab<int32_t>(r, self.sizes(), out.sizes(), last, make);
    const uint8_t* from = x.const_data<uint8_t>();
    uint8_t* to = out.mutable_data<uint8_t>();
    parallel_for(0, s.slabs, 1, [&](int64_t begin, int64_t end) {
      std::vector<uint8_t> buffer[2];
      for (int64_t i = begin; i < end; ++i) {
        resize_slab(s, from + i * s.in_size(), to + i * s.out_size(), buffer);
      }
    });
    return;
  }
  visit_norm_type("upsample", self.dtype(), [&](auto tag) {
    using T = decltype(tag);
    using W = lane_sum_t<T>;
    auto s = make_slab<W>(r, self.sizes(), out.sizes(), last, &make_taps<W>);
    resize_float(s, x.const_data<T>(), out.mutable_data<T>());
  });
}

void spread(const Tensor& grad_output, const Request& r, const Tensor& out) {
  if (out.numel() == 0) return;
  MemoryFormat format = format_of(grad_output);
  bool last = format != MemoryFormat::Contiguous;
  Tensor g = in_format(grad_output, format);
  visit_norm_type("upsample_backward", g.dtype(), [&](auto tag) {
    using T = decltype(tag);
    using W = lane_sum_t<T>;
    auto s = make_slab<W>(r, out.sizes(), g.sizes(), last, &make_taps<W>);
    const T* from = g.const_data<T>();
    T* to = out.mutable_data<T>();
    parallel_for(0, s.slabs, 1, [&](int64_t begin, int64_t end) {
      std::vector<W> buffer[2];
      for (int64_t i = begin; i < end; ++i) {
        const T* part = from + i * s.out_size();
        buffer[0].assign(part, part + s.out_size());
        const W* sums = spread_slab(s, buffer);
        for (int64_t j = 0; j < s.in_size(); ++j) {
          to[i * s.in_size() + j] = static_cast<T>(sums[j]);
        }
      }
    });
  });
}

}  // namespace

// An operator and its gradient.
#define TAEDA_UPSAMPLE(NAME, FILTER, HOW, NAMES)                          \
  void NAME##_cpu(const Tensor& self,                                     \
                  ArrayRef<int64_t>,                                      \
                  TAEDA_PLAIN HOW,                                        \
                  const Tensor& out) {                                    \
    resize(self, request(Filter::FILTER, TAEDA_PLAIN NAMES), out);        \
  }                                                                       \
  void NAME##_backward_cpu(const Tensor& grad_output,                     \
                           ArrayRef<int64_t>,                             \
                           ArrayRef<int64_t>,                             \
                           TAEDA_PLAIN HOW,                               \
                           const Tensor& out) {                           \
    spread(grad_output, request(Filter::FILTER, TAEDA_PLAIN NAMES), out); \
  }

TAEDA_UPSAMPLE_FILTERS(TAEDA_UPSAMPLE)
#undef TAEDA_UPSAMPLE

}  // namespace taeda::native
