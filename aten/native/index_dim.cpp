// Slices along one dim at positions that a vector names: index_select,
// index_add, index_copy, index_fill, index_reduce.
#include <taeda/aten/iter/copy.h>
#include <taeda/aten/iter/output.h>
#include <taeda/aten/native/creation.h>
#include <taeda/aten/native/indexing.h>
#include <taeda/aten/native/scatter.h>
#include <taeda/aten/parallel/parallel.h>
#include <taeda/gen/native/index_add.h>
#include <taeda/gen/native/index_copy.h>
#include <taeda/gen/native/index_fill.h>
#include <taeda/gen/native/index_reduce.h>
#include <taeda/gen/native/index_select.h>
#include <taeda/gen/ops/mul.h>

#include <cstring>

namespace taeda::native {

WorkingCopy::WorkingCopy(const Tensor& target) : target_(target) {
  work_ = contiguous(target);
}
void WorkingCopy::finish() const {
  if (!work_.is_same(target_)) copy_into(target_, work_);
}

namespace {

constexpr int64_t kGrain = 16384;

int64_t dim_size(const Tensor& t, int64_t dim) {
  return t.dim() == 0 ? 1 : t.sizes()[dim];
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

void check_index(const char* op, const Tensor& index) {
  TAEDA_CHECK_AS(
      Index, index.dim() <= 1, op, "(): Index is supposed to be a vector");
  TAEDA_CHECK(index.dtype() == kLong || index.dtype() == kInt,
              op,
              "(): Expected dtype int32/int64 for index");
}

}  // namespace

// index_select ---------------------------------------------------------------

namespace {

// The named slices of `inner` elements, one after the other.
template <class T>
void copy_picked(T* __restrict to,
                 const T* __restrict from,
                 int64_t inner,
                 const int64_t* at,
                 int64_t count) {
  if (inner == 1) {
    for (int64_t k = 0; k < count; ++k) to[k] = from[at[k]];
    return;
  }
  for (int64_t k = 0; k < count; ++k) {
    std::memcpy(to + k * inner,
                from + at[k] * inner,
                static_cast<size_t>(inner) * sizeof(T));
  }
}

}  // namespace

void index_select_shape(const Tensor& self,
                        int64_t dim,
                        const Tensor& index,
                        OutputPlan& plan) {
  check_index("index_select", index);
  dim = wrap_dim(dim, self.dim());
  DimVector sizes(self.sizes());
  if (self.dim() > 0) sizes[dim] = index.numel();
  TAEDA_CHECK(self.dim() > 0 || index.numel() == 1,
              "index_select(): Index to scalar can have only 1 value, got ",
              index.numel(),
              " value(s)");
  plan.set(0, sizes, self.dtype());
}

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
  visit_size(self.itemsize(), [&](auto tag) {
    using T = decltype(tag);
    const T* in = static_cast<const T*>(from.const_raw_data());
    T* to = static_cast<T*>(out.mutable_raw_data());
    int64_t grain = kGrain / around.inner + 1;
    parallel_for(0, around.outer * count, grain, [&](int64_t b, int64_t e) {
      for (int64_t r = b; r < e;) {
        int64_t outer = r / count, k = r % count;
        int64_t last = std::min(count, k + e - r);
        copy_picked(to + r * around.inner,
                    in + outer * around.size * around.inner,
                    around.inner,
                    at.data() + k,
                    last - k);
        r += last - k;
      }
    });
  });
}

// Writing slices -------------------------------------------------------------

namespace {

// `count`: the error of another number of indices than slices.
void check_source(const char* op,
                  ErrorKind count,
                  const Tensor& self,
                  int64_t dim,
                  const Tensor& index,
                  const Tensor& source) {
  TAEDA_CHECK_AS(Index,
                 index.dim() <= 1,
                 op,
                 "(): Index is supposed to be a vector, but got dim: ",
                 index.dim(),
                 " with type: ",
                 index.dtype());
  TAEDA_CHECK(index.dtype() == kLong || index.dtype() == kInt,
              op,
              "(): Expected dtype int32/int64 for index but got: ",
              index.dtype());
  TAEDA_CHECK(self.dtype() == source.dtype(),
              op,
              "(): self (",
              self.dtype(),
              ") and source (",
              source.dtype(),
              ") must have the same scalar type");
  if (source.dim() > 0 && dim >= source.dim()) {
    throw_error(count,
                str_cat(op,
                        "(): Indexing dim ",
                        dim,
                        " is out of bounds of the source tensor with dim ",
                        source.dim()));
  }
  if (index.numel() != dim_size(source, dim)) {
    throw_error(count,
                str_cat(op,
                        "(): Number of indices (",
                        index.numel(),
                        ") should be equal to source.size(dim): (",
                        dim_size(source, dim),
                        "), for dim: ",
                        dim));
  }
  DimVector own(self.sizes()), given(source.sizes());
  if (!own.empty()) own.erase(own.begin() + dim);
  if (!given.empty()) given.erase(given.begin() + dim);
  TAEDA_CHECK(own == given,
              op,
              "(): Source/destination tensor must have same slice shapes "
              "except at dimension ",
              dim,
              " Destination slice shape: ",
              IntArrayRef(own),
              " and source slice shape: ",
              IntArrayRef(given));
}

// write(place, value) for every element of the slices, in the order of index.
template <class T, class F>
void write_slices(const Tensor& self,
                  int64_t dim,
                  const std::vector<int64_t>& at,
                  const Tensor& source,
                  F&& write) {
  WorkingCopy work(self);
  Tensor from = contiguous(source);
  AroundDim around(self.sizes(), dim);
  T* to = static_cast<T*>(work.tensor().mutable_raw_data());
  const T* in = static_cast<const T*>(from.const_raw_data());
  int64_t count = static_cast<int64_t>(at.size());
  for (int64_t o = 0; o < around.outer; ++o) {
    for (int64_t k = 0; k < count; ++k) {
      T* row = to + (o * around.size + at[k]) * around.inner;
      const T* values = in + (o * count + k) * around.inner;
      for (int64_t i = 0; i < around.inner; ++i) write(row[i], values[i]);
    }
  }
  work.finish();
}

}  // namespace

void index_add_(const Tensor& self,
                int64_t dim,
                const Tensor& index,
                const Tensor& source,
                const Scalar& alpha) {
  dim = wrap_dim(dim, self.dim());
  check_source("index_add", ErrorKind::Runtime, self, dim, index, source);
  check_no_internal_overlap("index_add_", self);
  // PyTorch raises IndexError from its loop over one dim alone.
  ErrorKind outside = self.dim() <= 1 ? ErrorKind::Index : ErrorKind::Runtime;
  auto at =
      positions("index_add", index, dim, dim_size(self, dim), false, outside);
  if (source.numel() == 0) return;
  Tensor scaled = alpha.equal(1.0) ? source : ops::mul(source, alpha);
  visit_type(self.dtype(), [&](auto tag) {
    using T = decltype(tag);
    write_slices<T>(self, dim, at, scaled, [](T& place, T value) {
      place = sum_of<T>(place, value);
    });
  });
}

Tensor index_add(const Tensor& self,
                 int64_t dim,
                 const Tensor& index,
                 const Tensor& source,
                 const Scalar& alpha) {
  Tensor out = new_like("index_add", self, {}, {}, {});
  copy_into(out, self);
  index_add_(out, dim, index, source, alpha);
  return out;
}

void index_copy_(const Tensor& self,
                 int64_t dim,
                 const Tensor& index,
                 const Tensor& source) {
  dim = wrap_dim(dim, self.dim());
  TAEDA_CHECK_AS(Index,
                 index.dim() < 2,
                 "index_copy_(): Index should have dimension 1 or 0 (got ",
                 index.dim(),
                 ")");
  TAEDA_CHECK(index.dtype() == kLong,
              "index_copy_(): Expected a long tensor for index, but got ",
              index.dtype());
  check_source("index_copy", ErrorKind::Index, self, dim, index, source);
  check_no_internal_overlap("index_copy_", self);
  auto at = positions("index_copy_()", index, dim, dim_size(self, dim), false);
  if (source.numel() == 0) return;
  visit_size(self.itemsize(), [&](auto tag) {
    using T = decltype(tag);
    write_slices<T>(
        self, dim, at, source, [](T& place, T value) { place = value; });
  });
}

Tensor index_copy(const Tensor& self,
                  int64_t dim,
                  const Tensor& index,
                  const Tensor& source) {
  Tensor out = new_like("index_copy", self, {}, {}, {});
  copy_into(out, self);
  index_copy_(out, dim, index, source);
  return out;
}

void index_fill_(const Tensor& self,
                 int64_t dim,
                 const Tensor& index,
                 const Scalar& value) {
  TAEDA_CHECK_AS(Index,
                 index.dtype() == kLong || index.dtype() == kInt,
                 "index_fill_(): Expected dtype int32/int64 for index.");
  TAEDA_CHECK(index.dim() <= 1,
              "index_fill_(): Index has to be a vector/scalar, got ",
              index);
  TAEDA_CHECK(self.is_complex() || !value.is_complex(),
              "index_fill_(): Converting complex Scalar to non-complex type is "
              "not supported");
  dim = wrap_dim(dim, self.dim());
  check_no_internal_overlap("index_fill_", self);
  alignas(16) char element[16];
  value.store(self.dtype(), element);
  auto at = positions("index_fill_()", index, dim, dim_size(self, dim), true);
  WorkingCopy work(self);
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

namespace {
Scalar only_value(const Tensor& value) {
  TAEDA_CHECK(value.dim() == 0,
              "index_fill_(): Only supports 0-dimensional value tensor, but "
              "got value tensor "
              "with ",
              value.dim(),
              " dimension(s).");
  return Scalar::load(value.dtype(), value.const_raw_data());
}
}  // namespace

void index_fill_(const Tensor& self,
                 int64_t dim,
                 const Tensor& index,
                 const Tensor& value) {
  index_fill_(self, dim, index, only_value(value));
}
Tensor index_fill(const Tensor& self,
                  int64_t dim,
                  const Tensor& index,
                  const Scalar& value) {
  Tensor out = new_like("index_fill", self, {}, {}, {});
  copy_into(out, self);
  index_fill_(out, dim, index, value);
  return out;
}
Tensor index_fill(const Tensor& self,
                  int64_t dim,
                  const Tensor& index,
                  const Tensor& value) {
  return index_fill(self, dim, index, only_value(value));
}

Tensor index_reduce(const Tensor& self,
                    int64_t dim,
                    const Tensor& index,
                    const Tensor& source,
                    std::string_view reduce,
                    bool include_self) {
  TAEDA_CHECK(
      reduce == "prod" || reduce == "mean" || reduce == "amax" ||
          reduce == "amin",
      "index_reduce(): Expected reduce to be one of prod, mean, amax or "
      "amin but got ",
      reduce,
      ".");
  dim = wrap_dim(dim, self.dim());
  check_source("index_reduce", ErrorKind::Index, self, dim, index, source);
  Tensor out = new_like("index_reduce", self, {}, {}, {});
  copy_into(out, self);
  // Every element of a slice goes to the same position along dim.
  Tensor at = make_tensor("index_reduce", source.sizes(), kLong);
  DimVector line(source.sizes().size(), 1);
  if (source.dim() > 0) line[dim] = index.numel();
  Tensor row = contiguous_as(index, kLong);
  copy_into(
      at, make_view(row, line, contiguous_strides(line), row.storage_offset()));
  scatter_reduced(out, dim, at, source, reduce, include_self);
  return out;
}

}  // namespace taeda::native
