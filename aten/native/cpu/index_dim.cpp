// Slices along one dim at positions that a vector names: index_select,
// index_add, index_copy, index_fill, index_reduce.
#include <taeda/aten/iter/copy.h>
#include <taeda/aten/iter/output.h>
#include <taeda/aten/iter/repeats.h>
#include <taeda/aten/native/blas/gemm.h>
#include <taeda/aten/native/creation.h>
#include <taeda/aten/native/index_dim.h>
#include <taeda/aten/native/indexing.h>
#include <taeda/aten/native/scatter.h>
#include <taeda/aten/parallel/parallel.h>
#include <taeda/gen/native/index_add.h>
#include <taeda/gen/native/index_copy.h>
#include <taeda/gen/native/index_fill.h>
#include <taeda/gen/native/index_reduce.h>
#include <taeda/gen/native/index_select.h>
#include <taeda/gen/ops/mul.h>

#include <algorithm>
#include <cstring>
#include <vector>

namespace taeda::native {

WorkingCopy::WorkingCopy(const Tensor& target) : target_(target) {
  work_ = contiguous(target);
}
void WorkingCopy::finish() const {
  if (!work_.is_same(target_)) copy_into(target_, work_);
}

namespace {

constexpr int64_t kSliceGrain = 16384;

// The slice at position `k` of a dim, which stays with size one.
Tensor one_slice(const Tensor& t, int64_t dim, int64_t k) {
  DimVector sizes(t.sizes());
  sizes[dim] = 1;
  int64_t offset = t.storage_offset() + k * t.strides()[dim];
  return make_view(t, sizes, t.strides(), offset);
}

// The positions as int64, negative ones counted from the end if allowed.
std::vector<int64_t> positions(const char* op,
                               const Tensor& index,
                               int64_t dim,
                               int64_t size,
                               bool negative,
                               ErrorKind error = ErrorKind::Index) {
  Tensor plain = contiguous_as(index, kLong);
  std::vector<int64_t> out(plain.const_data<int64_t>(),
                           plain.const_data<int64_t>() + plain.numel());
  for (int64_t& p : out) {
    if (p >= size || p < (negative ? -size : 0)) {
      throw_error(error,
                  str_cat(op,
                          ": index out of range in self: index ",
                          p,
                          " is out of bounds for dimension ",
                          dim,
                          " with size ",
                          size));
    }
    if (p < 0) p += size;
  }
  return out;
}

}  // namespace

// index_select ---------------------------------------------------------------

namespace {

// Neighbours that stay neighbours are copied as one block: most of what a frame
// around a tensor, a roll or a sorted choice takes. None where single elements
// are better copied one by one.
struct Block {
  int64_t from, to, count;  // positions before and after, how many
};
std::vector<Block> blocks_of(const std::vector<int64_t>& at, int64_t inner) {
  constexpr size_t kShort = 8;  // elements that memcpy does not pay for
  std::vector<Block> blocks;
  for (size_t k = 0; k < at.size(); ++k) {
    bool follows = k > 0 && at[k] == at[k - 1] + 1;
    if (!follows) blocks.push_back({at[k], static_cast<int64_t>(k), 0});
    ++blocks.back().count;
  }
  if (inner == 1 && at.size() < kShort * blocks.size()) blocks.clear();
  return blocks;
}

// Slices [begin, end) of those that `at` names.
template <class T>
void copy_picked(T* __restrict to,
                 const T* __restrict from,
                 int64_t inner,
                 const std::vector<int64_t>& at,
                 const std::vector<Block>& blocks,
                 int64_t begin,
                 int64_t end) {
  if (blocks.empty()) {
    const int64_t* __restrict places = at.data();
#pragma GCC unroll 8
    for (int64_t k = begin; k < end; ++k) to[k] = from[places[k]];
    return;
  }
  auto block = blocks.begin();
  if (begin > 0) {
    block = std::partition_point(block, blocks.end(), [begin](const Block& b) {
      return b.to + b.count <= begin;
    });
  }
  for (; block != blocks.end() && block->to < end; ++block) {
    int64_t skip = std::max<int64_t>(begin - block->to, 0);
    int64_t count = std::min(block->count, end - block->to) - skip;
    if (count * inner == 1) {
      to[block->to + skip] = from[block->from + skip];
      continue;
    }
    std::memcpy(to + (block->to + skip) * inner,
                from + (block->from + skip) * inner,
                static_cast<size_t>(count * inner) * sizeof(T));
  }
}

}  // namespace

void index_select_cpu(const Tensor& self,
                      int64_t dim,
                      const Tensor& index,
                      const Tensor& out) {
  dim = wrap_dim(dim, self.dim());
  auto at = positions("index_select", index, dim, dim_size(self, dim), false);
  if (out.numel() == 0) return;
  Tensor from = contiguous(self);
  AroundDim around(self.sizes(), dim);
  int64_t count = static_cast<int64_t>(at.size());
  std::vector<Block> blocks = blocks_of(at, around.inner);
  visit_size(self.itemsize(), [&](auto tag) {
    using T = decltype(tag);
    const T* in = static_cast<const T*>(from.const_raw_data());
    T* to = static_cast<T*>(out.mutable_raw_data());
    int64_t grain = kSliceGrain / around.inner + 1;
    parallel_for(0, around.outer * count, grain, [&](int64_t b, int64_t e) {
      int64_t outer = b / count, k = b % count;
      for (int64_t left = e - b; left > 0; ++outer, k = 0) {
        int64_t n = std::min(count - k, left);
        copy_picked(to + outer * count * around.inner,
                    in + outer * around.size * around.inner,
                    around.inner,
                    at,
                    blocks,
                    k,
                    k + n);
        left -= n;
      }
    });
  });
}

namespace {

// What becomes of a place that gets a value, of one and of rows of them.
template <class T>
struct AddTo {
  static void one(T& to, T value) { to = sum_of<T>(to, value); }
  static void row(T* to, const T* from, int64_t n) {
    constexpr int64_t kLong = 16;  // below, the call costs more than it saves
    if constexpr (std::is_floating_point_v<T>) {
      if (n >= kLong) return blas::axpy<T>(n, T(1), from, 1, to, 1);
    }
    for (int64_t i = 0; i < n; ++i) one(to[i], from[i]);
  }
};
template <class T>
struct CopyTo {
  static void one(T& to, T value) { to = value; }
  static void row(T* to, const T* from, int64_t n) { std::copy_n(from, n, to); }
};

// Writes every slice, in the order of index.
template <class Write, class T>
void write_slices(const Tensor& self,
                  int64_t dim,
                  const std::vector<int64_t>& at,
                  const Tensor& source) {
  WorkingCopy work(self);
  Tensor from = contiguous(source);
  AroundDim around(self.sizes(), dim);
  T* to = static_cast<T*>(work.tensor().mutable_raw_data());
  const T* in = static_cast<const T*>(from.const_raw_data());
  int64_t count = static_cast<int64_t>(at.size()), inner = around.inner;
  const int64_t* places = at.data();
  for (int64_t o = 0; o < around.outer; ++o, in += count * inner) {
    T* slices = to + o * around.size * inner;
    for (int64_t k = 0; inner == 1 && k < count; ++k) {
      Write::one(slices[places[k]], in[k]);
    }
    for (int64_t k = 0; inner > 1 && k < count; ++k) {
      Write::row(slices + places[k] * inner, in + k * inner, inner);
    }
  }
  work.finish();
}

}  // namespace

void index_add_cpu(const Tensor& self,
                   int64_t dim,
                   const Tensor& index,
                   const Tensor& source,
                   const Scalar& alpha,
                   const Tensor& out) {
  dim = wrap_dim(dim, self.dim());
  // PyTorch raises IndexError from its loop over one dim alone.
  ErrorKind outside = self.dim() <= 1 ? ErrorKind::Index : ErrorKind::Runtime;
  auto at =
      positions("index_add", index, dim, dim_size(self, dim), false, outside);
  if (source.numel() == 0) return;
  // A factor of integers is one: a float loses its fraction.
  bool whole = is_integral(self.dtype(), true) && alpha.is_floating();
  Scalar factor =
      whole ? Scalar(static_cast<int64_t>(alpha.to_double())) : alpha;
  Tensor scaled = factor.equal(1.0) ? source : ops::mul(source, factor);
  visit_type(self.dtype(), [&](auto tag) {
    using T = decltype(tag);
    write_slices<AddTo<T>, T>(out, dim, at, scaled);
  });
}

void index_copy_cpu(const Tensor& self,
                    int64_t dim,
                    const Tensor& index,
                    const Tensor& source,
                    const Tensor& out) {
  dim = wrap_dim(dim, self.dim());
  auto at = positions("index_copy_()", index, dim, dim_size(self, dim), false);
  if (source.numel() == 0) return;
  visit_size(self.itemsize(), [&](auto tag) {
    using T = decltype(tag);
    write_slices<CopyTo<T>, T>(out, dim, at, source);
  });
}

void index_fill_cpu(const Tensor& self,
                    int64_t dim,
                    const Tensor& index,
                    const Scalar& value,
                    const Tensor& out) {
  dim = wrap_dim(dim, self.dim());
  alignas(16) char element[16];
  value.store(self.dtype(), element);
  auto at = positions("index_fill_()", index, dim, dim_size(self, dim), true);
  if (repeated_dim(out) >= 0) {
    // No copy could be brought back: its elements would differ at one address.
    for (int64_t k : at) fill_with(one_slice(out, dim, k), value);
    return;
  }
  WorkingCopy work(out);
  AroundDim around(self.sizes(), dim);
  visit_size(self.itemsize(), [&](auto tag) {
    using T = decltype(tag);
    T fill;
    std::memcpy(&fill, element, sizeof(T));
    T* to = static_cast<T*>(work.tensor().mutable_raw_data());
    for (int64_t o = 0; o < around.outer; ++o) {
      for (int64_t k : at) {
        std::fill_n(
            to + (o * around.size + k) * around.inner, around.inner, fill);
      }
    }
  });
  work.finish();
}

void index_fill_tensor_cpu(const Tensor& self,
                           int64_t dim,
                           const Tensor& index,
                           const Tensor& value,
                           const Tensor& out) {
  Scalar number = Scalar::load(value.dtype(), value.const_raw_data());
  TAEDA_CHECK(self.is_complex() || !number.is_complex(),
              "index_fill_(): Converting complex Scalar to non-complex type is "
              "not supported");
  index_fill_cpu(self, dim, index, number, out);
}

void index_reduce_cpu(const Tensor& self,
                      int64_t dim,
                      const Tensor& index,
                      const Tensor& source,
                      std::string_view reduce,
                      bool include_self,
                      const Tensor& out) {
  dim = wrap_dim(dim, self.dim());
  positions("index_reduce_()", index, dim, dim_size(self, dim), false);
  // Every element of a slice goes to the same position along dim.
  Tensor at = make_tensor("index_reduce", source.sizes(), kLong);
  DimVector line(source.sizes().size(), 1);
  if (source.dim() > 0) line[dim] = index.numel();
  Tensor row = contiguous_as(index, kLong);
  copy_into(
      at, make_view(row, line, contiguous_strides(line), row.storage_offset()));
  scatter_reduced(out, dim, at, source, reduce, include_self);
}

}  // namespace taeda::native
