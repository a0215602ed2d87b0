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

// A 0-d tensor counts as a row of one.
template <class I>
I dim_size(const Spec<I>& t, int64_t dim) {
  return t.dim() == 0 ? I(1) : t.sizes()[dim];
}
int64_t dim_size(const Tensor& t, int64_t dim) {
  return dim_size<int64_t>(Spec<int64_t>(t), dim);
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

template <class T>
void check_index(const char* op, const T& index) {
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

template <class I>
void index_select_shape(const Spec<I>& self,
                        int64_t dim,
                        const Spec<I>& index,
                        Plan<I>& plan) {
  check_index("index_select", index);
  dim = wrap_dim(dim, self.dim());
  Dims<I> sizes(self.sizes());
  if (self.dim() > 0) sizes[dim] = index.numel();
  TAEDA_CHECK(self.dim() > 0 || index.numel() == 1,
              "index_select(): Index to scalar can have only 1 value, got ",
              index.numel(),
              " value(s)");
  plan.set(0, sizes, self.dtype());
}
TAEDA_SHAPE(index_select_shape);

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
template <class I>
void check_source(const char* op,
                  ErrorKind count,
                  const Spec<I>& self,
                  int64_t dim,
                  const Spec<I>& index,
                  const Spec<I>& source) {
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
  Dims<I> own(self.sizes()), given(source.sizes());
  if (!own.empty()) own.erase(own.begin() + dim);
  if (!given.empty()) given.erase(given.begin() + dim);
  TAEDA_CHECK(own == given,
              op,
              "(): Source/destination tensor must have same slice shapes "
              "except at dimension ",
              dim,
              " Destination slice shape: ",
              ArrayRef<I>(own),
              " and source slice shape: ",
              ArrayRef<I>(given));
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

template <class I>
void index_add_shape(const Spec<I>& self,
                     int64_t dim,
                     const Spec<I>& index,
                     const Spec<I>& source,
                     const Scalar&,
                     Plan<I>& plan) {
  dim = wrap_dim(dim, self.dim());
  check_source("index_add", ErrorKind::Runtime, self, dim, index, source);
  plan.set(0, self.sizes(), self.dtype());
}
TAEDA_SHAPE(index_add_shape);

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
  Tensor scaled = alpha.equal(1.0) ? source : ops::mul(source, alpha);
  visit_type(self.dtype(), [&](auto tag) {
    using T = decltype(tag);
    write_slices<T>(out, dim, at, scaled, [](T& place, T value) {
      place = sum_of<T>(place, value);
    });
  });
}

template <class I>
void index_copy_shape(const Spec<I>& self,
                      int64_t dim,
                      const Spec<I>& index,
                      const Spec<I>& source,
                      Plan<I>& plan) {
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
  plan.set(0, self.sizes(), self.dtype());
}
TAEDA_SHAPE(index_copy_shape);

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
    write_slices<T>(
        out, dim, at, source, [](T& place, T value) { place = value; });
  });
}

namespace {
template <class I>
void plan_index_fill(const Spec<I>& self,
                     int64_t dim,
                     const Spec<I>& index,
                     Plan<I>& plan) {
  TAEDA_CHECK_AS(Index,
                 index.dtype() == kLong || index.dtype() == kInt,
                 "index_fill_(): Expected dtype int32/int64 for index.");
  TAEDA_CHECK(index.dim() <= 1,
              "index_fill_(): Index has to be a vector/scalar, got ",
              index);
  wrap_dim(dim, self.dim());
  plan.set_like(0, self, self.dtype());
}
}  // namespace

template <class I>
void index_fill_shape(const Spec<I>& self,
                      int64_t dim,
                      const Spec<I>& index,
                      const Scalar& value,
                      Plan<I>& plan) {
  TAEDA_CHECK(self.is_complex() || !value.is_complex(),
              "index_fill_(): Converting complex Scalar to non-complex type is "
              "not supported");
  plan_index_fill(self, dim, index, plan);
}
TAEDA_SHAPE(index_fill_shape);

void index_fill_cpu(const Tensor& self,
                    int64_t dim,
                    const Tensor& index,
                    const Scalar& value,
                    const Tensor& out) {
  dim = wrap_dim(dim, self.dim());
  alignas(16) char element[16];
  value.store(self.dtype(), element);
  auto at = positions("index_fill_()", index, dim, dim_size(self, dim), true);
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

template <class I>
void index_fill_tensor_shape(const Spec<I>& self,
                             int64_t dim,
                             const Spec<I>& index,
                             const Spec<I>& value,
                             Plan<I>& plan) {
  TAEDA_CHECK(value.dim() == 0,
              "index_fill_(): Only supports 0-dimensional value tensor, but "
              "got value tensor with ",
              value.dim(),
              " dimension(s).");
  plan_index_fill(self, dim, index, plan);
}
TAEDA_SHAPE(index_fill_tensor_shape);

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

template <class I>
void index_reduce_shape(const Spec<I>& self,
                        int64_t dim,
                        const Spec<I>& index,
                        const Spec<I>& source,
                        std::string_view reduce,
                        bool,
                        Plan<I>& plan) {
  TAEDA_CHECK(
      reduce == "prod" || reduce == "mean" || reduce == "amax" ||
          reduce == "amin",
      "index_reduce(): Expected reduce to be one of prod, mean, amax or "
      "amin but got ",
      reduce,
      ".");
  dim = wrap_dim(dim, self.dim());
  check_source("index_reduce", ErrorKind::Index, self, dim, index, source);
  plan.set(0, self.sizes(), self.dtype());
}
TAEDA_SHAPE(index_reduce_shape);

void index_reduce_cpu(const Tensor& self,
                      int64_t dim,
                      const Tensor& index,
                      const Tensor& source,
                      std::string_view reduce,
                      bool include_self,
                      const Tensor& out) {
  dim = wrap_dim(dim, self.dim());
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
