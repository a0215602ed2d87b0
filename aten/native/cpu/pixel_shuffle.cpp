// Channels as the elements of finer planes, and back.
#include <taeda/aten/iter/copy.h>
#include <taeda/aten/parallel/parallel.h>
#include <taeda/gen/native/pixel_shuffle.h>
#include <taeda/gen/native/pixel_unshuffle.h>

#include <algorithm>

namespace taeda::native {

namespace {

// A coarse tensor [..., c r r, h, w] and the fine one [..., c, h r, w r] that
// holds the same elements.
struct Shuffle {
  Tensor coarse, fine;
  int64_t r;
  int64_t planes = 1, h, w;  // of the fine channels, and the coarse sizes

  Shuffle(const Tensor& coarse_in, const Tensor& fine_in, int64_t factor)
      : coarse(coarse_in),
        fine(fine_in),
        r(factor),
        h(coarse.size(-2)),
        w(coarse.size(-1)) {
    for (int64_t d = 0; d + 2 < fine.dim(); ++d) planes *= fine.sizes()[d];
  }

  // Both as [..., c, r, r, h, w].
  Tensor coarse_view() const {
    int64_t step = coarse.stride(-3);
    return view(
        coarse,
        {step * r * r, step * r, step, coarse.stride(-2), coarse.stride(-1)});
  }
  Tensor fine_view() const {
    int64_t down = fine.stride(-2), right = fine.stride(-1);
    return view(fine, {fine.stride(-3), down, right, down * r, right * r});
  }

 private:
  Tensor view(const Tensor& t, std::initializer_list<int64_t> tail) const {
    size_t lead = static_cast<size_t>(t.dim()) - 3;
    DimVector sizes(t.sizes().slice(0, lead));
    DimVector strides(t.strides().slice(0, lead));
    for (int64_t s : {fine.size(-3), r, r, h, w}) sizes.push_back(s);
    for (int64_t s : tail) strides.push_back(s);
    return make_view(t, sizes, strides, t.storage_offset());
  }
};

// Row by row, so that both sides stay in the cache; `E` has an element's size.
template <class E, bool kToFine>
void move_rows(const Shuffle& s, E* coarse, E* fine) {
  int64_t rows = s.planes * s.h * s.r;
  int64_t grain = std::max<int64_t>(1, 16384 / std::max<int64_t>(s.w, 1));
  parallel_for(0, rows, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      int64_t plane = i / (s.h * s.r), y = i / s.r % s.h, down = i % s.r;
      E* wide = fine + i * s.w * s.r;
      for (int64_t right = 0; right < s.r; ++right) {
        int64_t channel = (plane * s.r + down) * s.r + right;
        E* row = coarse + (channel * s.h + y) * s.w;
        for (int64_t x = 0; x < s.w; ++x) {
          if constexpr (kToFine) {
            wide[x * s.r + right] = row[x];
          } else {
            row[x] = wide[x * s.r + right];
          }
        }
      }
    }
  });
}

template <bool kToFine>
bool move_dense(const Shuffle& s) {
  bool dense = s.coarse.is_contiguous() && s.fine.is_contiguous();
  const Tensor& from = kToFine ? s.coarse : s.fine;
  if (!dense || from.is_conj() || from.is_neg()) return false;
  auto with = [&](auto tag) {
    using E = decltype(tag);
    const Tensor& to = kToFine ? s.fine : s.coarse;
    E* source = const_cast<E*>(from.const_data<E>());
    E* target = to.mutable_data<E>();
    move_rows<E, kToFine>(
        s, kToFine ? source : target, kToFine ? target : source);
    return true;
  };
  switch (from.itemsize()) {
    case 1:
      return with(uint8_t{});
    case 2:
      return with(uint16_t{});
    case 4:
      return with(uint32_t{});
    case 8:
      return with(uint64_t{});
    default:
      return false;
  }
}

}  // namespace

void pixel_shuffle_cpu(const Tensor& self, int64_t r, const Tensor& out) {
  Shuffle s(self, out, r);
  if (!move_dense<true>(s)) copy_into(s.fine_view(), s.coarse_view());
}

void pixel_unshuffle_cpu(const Tensor& self, int64_t r, const Tensor& out) {
  Shuffle s(out, self, r);
  if (!move_dense<false>(s)) copy_into(s.coarse_view(), s.fine_view());
}

}  // namespace taeda::native
