// A tensor in a frame of one value.
#include <taeda/aten/iter/copy.h>
#include <taeda/aten/native/cpu/copy_row.h>
#include <taeda/aten/native/creation.h>
#include <taeda/aten/native/indexing.h>
#include <taeda/aten/parallel/parallel.h>
#include <taeda/gen/native/constant_pad_nd.h>

#include <algorithm>
#include <cstring>

namespace taeda::native {

namespace {

constexpr int64_t kPadGrain = 32768;

// What of one dim comes from the input: `count` places from `source` on, which
// stand in the result from `target` on.
struct Kept {
  int64_t source, target, count;
};

// One for each dim; without any where the frame is all there is.
SmallVector<Kept, 5> kept_of(const Tensor& self, ArrayRef<int64_t> pad) {
  SmallVector<Kept, 5> all;
  int64_t rank = self.dim(), padded = static_cast<int64_t>(pad.size()) / 2;
  for (int64_t d = 0; d < rank; ++d) {
    int64_t i = rank - 1 - d;
    int64_t before = i < padded ? pad[2 * i] : 0;
    int64_t after = i < padded ? pad[2 * i + 1] : 0;
    int64_t count = self.sizes()[d] + std::min<int64_t>(before, 0) +
                    std::min<int64_t>(after, 0);
    if (count <= 0) return {};
    all.push_back(
        {std::max<int64_t>(-before, 0), std::max<int64_t>(before, 0), count});
  }
  return all;
}

// Where in the input the part of a plane (the last two dims) begins that is
// kept; -1 for a plane that is all frame.
int64_t plane_of(const Tensor& self,
                 const Tensor& out,
                 const SmallVector<Kept, 5>& kept,
                 int64_t plane) {
  int64_t source = 0;
  for (int64_t d = self.dim() - 3; d >= 0; --d) {
    int64_t at = plane % out.sizes()[d] - kept[d].target;
    if (at < 0 || at >= kept[d].count) return -1;
    source += (kept[d].source + at) * self.strides()[d];
    plane /= out.sizes()[d];
  }
  for (int64_t d = std::max<int64_t>(self.dim() - 2, 0); d < self.dim(); ++d) {
    source += kept[d].source * self.strides()[d];
  }
  return source;
}

// Rows [begin, end) of a plane, whose first row is at `to`.
template <class T>
void frame_plane(T* to,
                 int64_t width,
                 const T* from,
                 int64_t from_width,
                 Kept rows,
                 Kept inner,
                 T value,
                 int64_t begin,
                 int64_t end) {
  int64_t first = std::clamp(rows.target, begin, end);
  int64_t last = std::clamp(rows.target + rows.count, first, end);
  std::fill_n(to + begin * width, (first - begin) * width, value);
  int64_t behind = inner.target + inner.count;
  for (int64_t r = first; r < last; ++r) {
    T* row = to + r * width;
    for (int64_t i = 0; i < inner.target; ++i) row[i] = value;
    copy_row(
        reinterpret_cast<char*>(row + inner.target),
        reinterpret_cast<const char*>(from + (r - rows.target) * from_width),
        inner.count * static_cast<int64_t>(sizeof(T)));
    for (int64_t i = behind; i < width; ++i) row[i] = value;
  }
  std::fill_n(to + last * width, (end - last) * width, value);
}

// Both tensors are row-major; every element of the result is written once.
template <class T>
void frame(const Tensor& self,
           const SmallVector<Kept, 5>& kept,
           T value,
           const Tensor& out) {
  int64_t rank = self.dim();
  int64_t width = out.sizes()[rank - 1], from_width = self.sizes()[rank - 1];
  int64_t height = rank > 1 ? out.sizes()[rank - 2] : 1;
  Kept inner = kept.back();
  Kept rows = rank > 1 ? kept[rank - 2] : Kept{0, 0, 1};
  auto* from = static_cast<const T*>(self.const_raw_data());
  auto* to = static_cast<T*>(out.mutable_raw_data());
  int64_t grain = kPadGrain / width + 1;
  parallel_for(0, out.numel() / width, grain, [&](int64_t begin, int64_t end) {
    while (begin < end) {
      int64_t plane = begin / height, row = begin % height;
      int64_t stop = std::min(height, row + end - begin);
      int64_t source = plane_of(self, out, kept, plane);
      Kept part = source < 0 ? Kept{0, 0, 0} : rows;
      frame_plane(to + plane * height * width,
                  width,
                  from + std::max<int64_t>(source, 0),
                  from_width,
                  part,
                  inner,
                  value,
                  row,
                  stop);
      begin += stop - row;
    }
  });
}

}  // namespace

void constant_pad_nd_cpu(const Tensor& self,
                         ArrayRef<int64_t> pad,
                         const Scalar& value,
                         const Tensor& out) {
  if (out.numel() == 0) return;
  SmallVector<Kept, 5> kept = kept_of(self, pad);
  bool lazy = self.is_conj() || self.is_neg();
  if (!kept.empty() && self.is_contiguous() && out.is_contiguous() && !lazy) {
    Tensor one = make_tensor("constant_pad_nd", {1}, out.dtype());
    fill_with(one, value);
    visit_size(self.itemsize(), [&](auto tag) {
      decltype(tag) bits;
      std::memcpy(&bits, one.const_raw_data(), sizeof(bits));
      frame(self, kept, bits, out);
    });
    return;
  }
  fill_with(out, value);
  int64_t src = self.storage_offset(), dst = out.storage_offset();
  if (kept.empty() && self.dim() > 0) return;
  DimVector part(self.sizes());
  for (size_t d = 0; d < kept.size(); ++d) {
    part[d] = kept[d].count;
    src += kept[d].source * self.strides()[d];
    dst += kept[d].target * out.strides()[d];
  }
  copy_into(make_view(out, part, out.strides(), dst),
            make_view(self, part, self.strides(), src));
}

}  // namespace taeda::native
