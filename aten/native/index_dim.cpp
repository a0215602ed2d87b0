// Slices along one dim at positions that a vector names: what index_select,
// index_add, index_copy, index_fill and index_reduce accept.
#include <taeda/aten/iter/output.h>
#include <taeda/aten/native/creation.h>
#include <taeda/aten/native/index_dim.h>
#include <taeda/aten/native/indexing.h>
#include <taeda/gen/native/index_add.h>
#include <taeda/gen/native/index_copy.h>
#include <taeda/gen/native/index_fill.h>
#include <taeda/gen/native/index_reduce.h>
#include <taeda/gen/native/index_select.h>

namespace taeda::native {

namespace {

template <class T>
void check_index(const char* op, const T& index) {
  TAEDA_CHECK_AS(
      Index, index.dim() <= 1, op, "(): Index is supposed to be a vector");
  TAEDA_CHECK(index.dtype() == kLong || index.dtype() == kInt,
              op,
              "(): Expected dtype int32/int64 for index");
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
              "(): source tensor shape must match self tensor shape, excluding "
              "the specified dimension. Got self.shape = ",
              self.sizes(),
              " source.shape = ",
              source.sizes(),
              ", dimension ",
              dim);
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

}  // namespace taeda::native
