// The elements of a tensor in other places: flip, roll, repeat, triangles.
#include <taeda/aten/iter/copy.h>
#include <taeda/aten/iter/output.h>
#include <taeda/aten/iter/repeats.h>
#include <taeda/aten/native/creation.h>
#include <taeda/aten/native/rearranging.h>
#include <taeda/aten/parallel/parallel.h>
#include <taeda/gen/native/flip.h>
#include <taeda/gen/native/repeat.h>
#include <taeda/gen/native/repeat_interleave.h>
#include <taeda/gen/native/roll.h>
#include <taeda/gen/native/tril.h>
#include <taeda/gen/native/triu.h>
#include <taeda/gen/ops/clone.h>
#include <taeda/gen/ops/expand.h>
#include <taeda/gen/ops/index_select.h>
#include <taeda/gen/ops/repeat_interleave.h>
#include <taeda/gen/ops/reshape.h>
#include <taeda/gen/ops/slice.h>
#include <taeda/gen/ops/unsqueeze.h>
#include <taeda/gen/ops/view.h>

#include <cstring>

namespace taeda::native {

// Turning --------------------------------------------------------------------

void flip_cpu(const Tensor& self, ArrayRef<int64_t> dims, const Tensor& out) {
  uint64_t mask = flipped_dims(dims, self.dim());
  if (out.numel() == 0) return;
  if (self.dim() == 0) return copy_into(out, self);
  Tensor from = self.is_conj() || self.is_neg() ? contiguous(self) : self;
  DimVector strides(from.strides());
  int64_t start = 0;
  for (int64_t d = 0; d < self.dim(); ++d) {
    if ((mask >> d & 1) == 0) continue;
    start += (self.sizes()[d] - 1) * strides[d];
    strides[d] = -strides[d];
  }
  copy_strided(static_cast<char*>(out.mutable_raw_data()),
               out.strides(),
               static_cast<const char*>(from.const_raw_data()) +
                   start * static_cast<int64_t>(from.itemsize()),
               strides,
               self.sizes(),
               self.dtype());
}

namespace {

void roll_dim(const Tensor& self,
              int64_t shift,
              int64_t dim,
              const Tensor& out) {
  dim = wrap_dim(dim, self.dim());
  if (out.numel() == 0) return;
  int64_t size = self.sizes()[dim];
  int64_t start = ((shift % size) + size) % size;  // where element 0 goes
  copy_into(ops::slice(out, dim, start, size, 1),
            ops::slice(self, dim, 0, size - start, 1));
  copy_into(ops::slice(out, dim, 0, start, 1),
            ops::slice(self, dim, size - start, size, 1));
}

Tensor as_row(const Tensor& t) {
  return make_view(t, {t.numel()}, {1}, t.storage_offset());
}

}  // namespace

void roll_cpu(const Tensor& self,
              ArrayRef<int64_t> shifts,
              ArrayRef<int64_t> dims,
              const Tensor& out) {
  if (dims.empty()) {
    return roll_dim(as_row(contiguous(self)), shifts[0], 0, as_row(out));
  }
  Tensor from = self;
  for (size_t i = 0; i < dims.size(); ++i) {
    bool last = i + 1 == dims.size();
    Tensor to = last ? out : make_tensor("roll", self.sizes(), self.dtype());
    roll_dim(from, shifts[i], dims[i], to);
    from = to;
  }
}

// The result is written as a view of the repetitions of every dim followed by
// the dim itself, which self broadcasts to.
void repeat_cpu(const Tensor& self,
                ArrayRef<int64_t> repeats,
                const Tensor& out) {
  if (out.numel() == 0) return;
  int64_t rank = static_cast<int64_t>(repeats.size());
  int64_t extra = rank - self.dim();
  DimVector split, source;
  for (int64_t d = 0; d < rank; ++d) {
    split.push_back(repeats[d]);
    split.push_back(d < extra ? 1 : self.sizes()[d - extra]);
    source.push_back(0);
    source.push_back(d < extra ? 0 : self.strides()[d - extra]);
  }
  copy_into(
      make_view(out, split, contiguous_strides(split), out.storage_offset()),
      make_view(self, split, source, self.storage_offset()));
}

Tensor repeat_interleave(const Tensor& repeats, std::optional<int64_t> size) {
  check_repeats(repeats);
  if (repeats.is_meta() && size) {
    return make_tensor(
        "repeat_interleave", {*size}, repeats.dtype(), repeats.device());
  }
  TAEDA_CHECK_AS(NotImplemented,
                 repeats.is_cpu(),
                 "repeat_interleave: the number of results is data, which "
                 "cannot be read on ",
                 repeats.device(),
                 "; on meta, give output_size");
  Tensor counts = contiguous_as(repeats, kLong);
  const int64_t* count = counts.const_data<int64_t>();
  int64_t n = counts.numel(), total = 0;
  for (int64_t i = 0; i < n; ++i) {
    TAEDA_CHECK(count[i] >= 0,
                "repeat_interleave: repeats can not be negative, got ",
                count[i]);
    total += count[i];
  }
  TAEDA_CHECK(!size || *size == total,
              "repeat_interleave: Invalid output_size, expected ",
              total,
              " but got ",
              size.value_or(0));
  Tensor out = make_tensor("repeat_interleave", {total}, kLong);
  int64_t* to = out.mutable_data<int64_t>();
  for (int64_t i = 0; i < n; ++i) to = std::fill_n(to, count[i], i);
  return repeats.dtype() == kLong ? out : cast(out, repeats.dtype());
}

Tensor repeat_interleave(const Tensor& self,
                         const Tensor& repeats,
                         std::optional<int64_t> dim,
                         std::optional<int64_t> output_size) {
  Tensor input = dim ? self : ops::reshape(self, {-1});
  int64_t along = dim.value_or(0);
  TAEDA_CHECK(repeats.dim() <= 1,
              "repeat_interleave: repeats must be 0-dim or 1-dim tensor, got ",
              repeats);
  int64_t size = input.dim() == 0 ? 1 : input.size(along);
  Tensor counts = repeats;
  if (repeats.dim() == 0 || repeats.sizes()[0] == 1) {
    counts = ops::expand(ops::reshape(repeats, {1}), {size});
  } else {
    TAEDA_CHECK(repeats.sizes()[0] == size,
                "repeats must have the same size as input along dim, but got "
                "repeats.size(0) = ",
                repeats.sizes()[0],
                " and input.size(",
                along,
                ") = ",
                size);
  }
  return ops::index_select(
      input, along, ops::repeat_interleave(counts, output_size));
}

Tensor repeat_interleave(const Tensor& self,
                         int64_t repeats,
                         std::optional<int64_t> dim,
                         std::optional<int64_t> output_size) {
  TAEDA_CHECK(repeats >= 0, "repeats must be non-negative, got ", repeats);
  Tensor input = dim ? self : ops::reshape(self, {-1});
  int64_t along = wrap_dim(dim.value_or(0), input.dim());
  int64_t size = input.dim() == 0 ? 1 : input.sizes()[along];
  int64_t total = 0;
  TAEDA_CHECK(!__builtin_mul_overflow(repeats, size, &total),
              "repeat_interleave: integer multiplication overflow, ",
              size,
              " elements repeated ",
              repeats,
              " times");
  TAEDA_CHECK(!output_size || *output_size == total,
              "repeat_interleave: Invalid output_size, expected ",
              total,
              " but got ",
              output_size.value_or(0));
  if (input.dim() == 0) input = ops::reshape(input, {1});
  DimVector wide(input.sizes()), joined(input.sizes());
  wide.insert(wide.begin() + along + 1, repeats);
  joined[along] = total;
  Tensor spread = ops::expand(ops::unsqueeze(input, along + 1), wide);
  return ops::view(ops::clone(spread, MemoryFormat::Contiguous), joined);
}

namespace {

// Zeros outside of the triangle, where elements lie at one address: such a one
// is zero as soon as one of its places is outside.
void zero_outside(const Tensor& t, int64_t k, bool upper) {
  int64_t rows = t.size(-2), cols = t.size(-1);
  size_t item = t.itemsize();
  char* base = static_cast<char*>(t.mutable_raw_data());
  for (int64_t n = 0; n < t.numel(); ++n) {
    int64_t distance = n % cols - n / cols % rows;
    if (upper ? distance >= k : distance <= k) continue;
    int64_t rest = n, offset = 0;
    for (int64_t d = t.dim(); d-- > 0; rest /= t.sizes()[d]) {
      offset += rest % t.sizes()[d] * t.strides()[d];
    }
    std::memset(base + offset * static_cast<int64_t>(item), 0, item);
  }
}

// Rows hold `kept` elements at the front (lower) or at the back (upper).
void triangle(const Tensor& self, int64_t k, bool upper, const Tensor& out) {
  if (out.numel() == 0) return;
  if (repeated_dim(out) >= 0) return zero_outside(out, k, upper);
  Tensor from = contiguous(self);
  int64_t rows = self.size(-2), cols = self.size(-1);
  k = std::clamp(k, -rows, cols);  // r + k has to be a number, whatever k is
  size_t item = self.itemsize(), width = static_cast<size_t>(cols) * item;
  const char* src = static_cast<const char*>(from.const_raw_data());
  char* dst = static_cast<char*>(out.mutable_raw_data());
  int64_t grain = static_cast<int64_t>((1 << 17) / width) + 1;
  parallel_for(0, out.numel() / cols, grain, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      int64_t edge =
          std::clamp<int64_t>(r % rows + k + (upper ? 0 : 1), 0, cols);
      size_t head = static_cast<size_t>(edge) * item;
      const char* in = src + static_cast<size_t>(r) * width;
      char* to = dst + static_cast<size_t>(r) * width;
      if (upper) {
        std::memset(to, 0, head);
        std::memcpy(to + head, in + head, width - head);
      } else {
        std::memcpy(to, in, head);
        std::memset(to + head, 0, width - head);
      }
    }
  });
}

}  // namespace

void tril_cpu(const Tensor& self, int64_t diagonal, const Tensor& out) {
  triangle(self, diagonal, false, out);
}
void triu_cpu(const Tensor& self, int64_t diagonal, const Tensor& out) {
  triangle(self, diagonal, true, out);
}

}  // namespace taeda::native
