// Tensors continued over their border by elements of their own.
#include <taeda/aten/iter/copy.h>
#include <taeda/aten/native/cpu/isa_table.h>
#include <taeda/aten/native/cpu/kernels/copy_rows.h>
#include <taeda/aten/native/creation.h>
#include <taeda/aten/parallel/parallel.h>
#include <taeda/gen/native/reflection_pad1d.h>
#include <taeda/gen/native/reflection_pad2d.h>
#include <taeda/gen/native/reflection_pad3d.h>
#include <taeda/gen/native/replication_pad1d.h>
#include <taeda/gen/native/replication_pad2d.h>
#include <taeda/gen/native/replication_pad3d.h>

#include <algorithm>
#include <vector>

namespace taeda::native {

namespace {

constexpr int64_t kBorderGrain = 32768;

// Where the places of a padded dim come from. Those of [first, end) are
// neighbours in the input, too.
struct Places {
  int64_t size;  // in the input
  std::vector<int64_t> at;
  int64_t first = 0, end = 0;

  int64_t count() const { return static_cast<int64_t>(at.size()); }
  int64_t operator[](int64_t i) const { return at[static_cast<size_t>(i)]; }
};

Places places_of(bool reflect, int64_t size, int64_t before, int64_t after) {
  Places p{size, {}, 0, 0};
  int64_t wide = size + before + after;
  p.at.resize(static_cast<size_t>(wide));
  for (int64_t k = 0; k < wide; ++k) {
    int64_t i = k - before;
    if (reflect) {
      i = i < 0 ? -i : i;
      i = i < size ? i : 2 * (size - 1) - i;
    } else {
      i = std::clamp<int64_t>(i, 0, size - 1);
    }
    p.at[static_cast<size_t>(k)] = i;
  }
  p.first = std::clamp<int64_t>(before, 0, wide);
  p.end = std::clamp<int64_t>(before + size, p.first, wide);
  return p;
}

// Tensors as [planes, slices, rows, columns] of units, the last three padded;
// a unit is what stays together, an element or the channels of a place.
struct Frame {
  const char* from;
  char* to;
  int64_t unit;  // bytes
  Places slices, rows, columns;
};

// The columns of `n` rows that lie beside what is copied as a whole.
template <class T>
void write_borders(const Places& p, char* to, const char* from, int64_t n) {
  int64_t count = p.count();
  T* row = reinterpret_cast<T*>(to);
  const T* in = reinterpret_cast<const T*>(from);
  for (int64_t r = 0; r < n; ++r, row += count, in += p.size) {
    for (int64_t i = 0; i < p.first; ++i) row[i] = in[p[i]];
    for (int64_t i = p.end; i < count; ++i) row[i] = in[p[i]];
  }
}

// Rows that follow each other on both sides.
void write_rows(const Frame& f, char* to, const char* from, int64_t n) {
  static const CopyRowsFn copy_rows = TAEDA_ISA_TABLE(kCopyRows);
  const Places& p = f.columns;
  int64_t wide = p.count() * f.unit, narrow = p.size * f.unit;
  auto copy = [&](int64_t column, int64_t units) {
    copy_rows(to + column * f.unit,
              wide,
              from + p[column] * f.unit,
              narrow,
              n,
              units * f.unit);
  };
  if (p.first < p.end) copy(p.first, p.end - p.first);
  switch (f.unit) {
    case 1:
      return write_borders<uint8_t>(p, to, from, n);
    case 2:
      return write_borders<uint16_t>(p, to, from, n);
    case 4:
      return write_borders<uint32_t>(p, to, from, n);
    case 8:
      return write_borders<uint64_t>(p, to, from, n);
    default:
      for (int64_t i = 0; i < p.first; ++i) copy(i, 1);
      for (int64_t i = p.end; i < p.count(); ++i) copy(i, 1);
  }
}

// Rows [begin, end) of all planes.
void write_frame(const Frame& f, int64_t begin, int64_t end) {
  int64_t height = f.rows.count();
  int64_t wide = f.columns.count() * f.unit, narrow = f.columns.size * f.unit;
  while (begin < end) {
    int64_t slice = begin / height, row = begin % height;
    int64_t plane = slice / f.slices.count();
    int64_t from =
        (plane * f.slices.size + f.slices[slice % f.slices.count()]) *
        f.rows.size;
    int64_t n = 1, most = std::min(height - row, end - begin);
    while (n < most && f.rows[row + n] == f.rows[row] + n) ++n;
    write_rows(
        f, f.to + begin * wide, f.from + (from + f.rows[row]) * narrow, n);
    begin += n;
  }
}

// Where channels lie innermost, those of a place stay together.
void pad_border(bool reflect,
                const Tensor& self,
                ArrayRef<int64_t> padding,
                const Tensor& out) {
  if (out.numel() == 0) return;
  auto dims = static_cast<int64_t>(padding.size()) / 2;
  MemoryFormat format = self.suggest_memory_format();
  // Without a batch the innermost dim is no channel.
  bool last = format != MemoryFormat::Contiguous && self.dim() == dims + 2 &&
              out.is_contiguous(format);
  if (!last) format = MemoryFormat::Contiguous;
  Tensor in = self, made = out;
  if (!self.is_contiguous(format) || self.is_conj() || self.is_neg()) {
    in = new_like("pad", self, std::nullopt, std::nullopt, format);
    copy_into(in, self);
  }
  if (!out.is_contiguous(format)) {
    made = new_like("pad", out, std::nullopt, std::nullopt, format);
  }
  auto along = [&](int64_t i) {  // i counts from the last dim
    if (i >= dims) return places_of(false, 1, 0, 0);
    int64_t size = self.sizes()[self.dim() - 1 - i];
    return places_of(reflect, size, padding[2 * i], padding[2 * i + 1]);
  };
  auto unit = static_cast<int64_t>(self.itemsize());
  if (last) unit *= self.sizes()[1];
  Frame f{static_cast<const char*>(in.const_raw_data()),
          static_cast<char*>(made.mutable_raw_data()),
          unit,
          along(2),
          along(1),
          along(0)};
  int64_t row = f.columns.count() * unit;
  int64_t bytes = out.numel() * static_cast<int64_t>(out.itemsize());
  parallel_for(0,
               bytes / row,
               kBorderGrain / f.columns.count() + 1,
               [&](int64_t b, int64_t e) { write_frame(f, b, e); });
  if (!made.is_same(out)) copy_into(out, made);
}

}  // namespace

void reflection_pad_cpu(const Tensor& self,
                        ArrayRef<int64_t> padding,
                        const Tensor& out) {
  pad_border(/*reflect=*/true, self, padding, out);
}
void replication_pad_cpu(const Tensor& self,
                         ArrayRef<int64_t> padding,
                         const Tensor& out) {
  pad_border(/*reflect=*/false, self, padding, out);
}

}  // namespace taeda::native
