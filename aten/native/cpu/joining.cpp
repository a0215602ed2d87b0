// Tensors copied one behind another: cat and stack.
#include <taeda/aten/core/promotion.h>
#include <taeda/aten/iter/copy.h>
#include <taeda/aten/iter/derived.h>
#include <taeda/aten/native/joining.h>
#include <taeda/aten/parallel/parallel.h>
#include <taeda/gen/native/cat.h>
#include <taeda/gen/native/stack.h>

#include <algorithm>
#include <cstring>

namespace taeda::native {

namespace {

constexpr size_t kParallelBytes = 1 << 18;
constexpr size_t kShortWidth = 64;

// Whether rows of bytes can be copied as they are.
bool is_plain(const Tensor& t, const Tensor& out) {
  return t.dtype() == out.dtype() && t.is_contiguous() && !t.is_conj() &&
         !t.is_neg();
}

struct Piece {
  const char* data;
  size_t bytes;  // of one row
};

// Rows [begin, end) of pieces that are too short for a call each: a block of
// rows at a time, each piece's elements below each other.
void copy_columns(ArrayRef<Piece> pieces,
                  ScalarType unit,
                  int64_t begin,
                  int64_t end,
                  size_t width,
                  char* out) {
  constexpr int64_t kBlock = 1024;
  auto size = static_cast<int64_t>(element_size(unit));
  for (int64_t row = begin; row < end; row += kBlock) {
    char* to = out + static_cast<size_t>(row) * width;
    for (const Piece& p : pieces) {
      int64_t count = static_cast<int64_t>(p.bytes) / size;
      int64_t sizes[] = {std::min(kBlock, end - row), count};
      int64_t to_strides[] = {static_cast<int64_t>(width) / size, 1};
      int64_t from_strides[] = {count, 1};
      copy_strided(to,
                   to_strides,
                   p.data + static_cast<size_t>(row) * p.bytes,
                   from_strides,
                   sizes,
                   unit);
      to += p.bytes;
    }
  }
}

void copy_rows(ArrayRef<Piece> pieces,
               ScalarType unit,
               int64_t rows,
               size_t width,
               char* out) {
  int64_t grain =
      width == 0 ? rows : static_cast<int64_t>(kParallelBytes / width) + 1;
  parallel_for(0, rows, grain, [&](int64_t begin, int64_t end) {
    if (width < kShortWidth * pieces.size()) {
      return copy_columns(pieces, unit, begin, end, width, out);
    }
    for (int64_t row = begin; row < end; ++row) {
      char* to = out + static_cast<size_t>(row) * width;
      for (const Piece& p : pieces) {
        std::memcpy(to, p.data + static_cast<size_t>(row) * p.bytes, p.bytes);
        to += p.bytes;
      }
    }
  });
}

}  // namespace

void cat_cpu(TensorList tensors, int64_t dim, const Tensor& out) {
  if (out.numel() == 0) return;
  dim = wrap_dim(dim, out.dim());
  bool plain = out.is_contiguous();
  for (const Tensor& t : tensors) {
    plain = plain && (t.numel() == 0 || is_plain(t, out));
  }
  int64_t rows = 1;
  for (int64_t d = 0; d < dim; ++d) rows *= out.sizes()[d];
  if (plain && rows > 1) {
    SmallVector<Piece, 8> pieces;
    for (const Tensor& t : tensors) {
      if (t.numel() == 0) continue;
      pieces.push_back({static_cast<const char*>(t.const_raw_data()),
                        t.nbytes() / static_cast<size_t>(rows)});
    }
    copy_rows(pieces,
              out.dtype(),
              rows,
              out.nbytes() / static_cast<size_t>(rows),
              static_cast<char*>(out.mutable_raw_data()));
    return;
  }
  int64_t start = 0;
  for (const Tensor& t : tensors) {
    if (is_skipped(t)) continue;
    copy_into(make_view(out,
                        t.sizes(),
                        out.strides(),
                        out.storage_offset() + start * out.strides()[dim]),
              t);
    start += t.sizes()[dim];
  }
}

void stack_cpu(TensorList tensors, int64_t dim, const Tensor& out) {
  if (out.numel() == 0) return;
  dim = wrap_dim(dim, out.dim());
  DimVector sizes(out.sizes());
  sizes[dim] = 1;
  int64_t rows = 1;
  for (int64_t d = 0; d < dim; ++d) rows *= out.sizes()[d];
  bool plain = out.is_contiguous() && rows > 1;
  for (const Tensor& t : tensors) plain = plain && is_plain(t, out);
  if (plain) {
    SmallVector<Piece, 8> pieces;
    for (const Tensor& t : tensors) {
      pieces.push_back({static_cast<const char*>(t.const_raw_data()),
                        t.nbytes() / static_cast<size_t>(rows)});
    }
    copy_rows(pieces,
              out.dtype(),
              rows,
              out.nbytes() / static_cast<size_t>(rows),
              static_cast<char*>(out.mutable_raw_data()));
    return;
  }
  DimVector inner(out.strides());
  inner.erase(inner.begin() + dim);
  for (size_t i = 0; i < tensors.size(); ++i) {
    int64_t offset =
        out.storage_offset() + static_cast<int64_t>(i) * out.strides()[dim];
    copy_into(make_view(out, tensors[i].sizes(), inner, offset), tensors[i]);
  }
}

}  // namespace taeda::native
