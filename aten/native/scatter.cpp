// gather, scatter and its reductions, take and put: shapes.
#include <taeda/aten/iter/output.h>
#include <taeda/aten/native/creation.h>
#include <taeda/aten/native/indexing.h>
#include <taeda/aten/native/scatter.h>
#include <taeda/gen/native/gather.h>
#include <taeda/gen/native/scatter.h>
#include <taeda/gen/native/scatter_add.h>
#include <taeda/gen/native/scatter_reduce.h>

namespace taeda::native {

namespace {

void check_no_larger(const char* op,
                     const auto& index,
                     const auto& limit,
                     const char* what,
                     int64_t except) {
  for (size_t d = 0; d < index.size(); ++d) {
    TAEDA_CHECK(static_cast<int64_t>(d) == except || index[d] <= limit[d],
                op,
                ": Size does not match at dimension ",
                d,
                " expected index ",
                index,
                " to be no larger than ",
                what,
                " ",
                limit,
                except >= 0 ? " apart from dimension " : "",
                except >= 0 ? str_cat(except) : "");
  }
}

void check_ranks(const char* op,
                 const auto& index,
                 const auto& other,
                 const char* what) {
  auto rank = [](const auto& t) { return std::max<int64_t>(t.dim(), 1); };
  TAEDA_CHECK(rank(index) == rank(other),
              op,
              ": Index tensor must have the same number of dimensions as ",
              what,
              " tensor");
}

void check_dtype(const char* op, const auto& index) {
  TAEDA_CHECK(index.dtype() == kLong || index.dtype() == kInt,
              op,
              "(): Expected dtype int32/int64 for index");
}

}  // namespace

// gather
// ------------------------------------------------------------------------

template <class I>
void gather_shape(const Spec<I>& self,
                  int64_t dim,
                  const Spec<I>& index,
                  bool,
                  Plan<I>& plan) {
  dim = wrap_dim(dim, self.dim());
  if (index.numel() != 0) {
    check_dtype("gather", index);
    check_ranks("gather", index, self, "input");
    if (self.dim() > 0 && index.dim() > 0) {
      check_no_larger("gather", index.sizes(), self.sizes(), "self", dim);
    }
  }
  plan.set(0, index.sizes(), self.dtype());
  plan.refuse_overlap(1);
}
TAEDA_SHAPE(gather_shape);

// scatter ---------------------------------------------------------------------

namespace {

// Checks positions and plans a tensor like self; `src` may not be given.
template <class I>
void plan_scatter(const char* op,
                  const Spec<I>& self,
                  int64_t dim,
                  const Spec<I>& index,
                  const Spec<I>& src,
                  Plan<I>& plan) {
  dim = wrap_dim(dim, self.dim());
  TAEDA_CHECK(!src.defined() || self.dtype() == src.dtype(),
              op,
              "(): Expected self.dtype to be equal to src.dtype");
  plan.set(0, self.sizes(), self.dtype());
  if (index.numel() == 0) return;
  check_dtype(op, index);
  check_ranks(op, index, self, "self");
  if (self.dim() > 0 && index.dim() > 0) {
    check_no_larger(op, index.sizes(), self.sizes(), "self", dim);
  }
  if (!src.defined()) return;
  check_ranks(op, index, src, "src");
  if (src.dim() > 0 && index.dim() > 0) {
    check_no_larger(op, index.sizes(), src.sizes(), "src", -1);
  }
}

}  // namespace

Reduce reduce_of(std::string_view text) {
  if (text == "sum") return Reduce::Sum;
  if (text == "prod") return Reduce::Prod;
  if (text == "mean") return Reduce::Mean;
  if (text == "amax") return Reduce::Max;
  TAEDA_CHECK(text == "amin",
              "reduce argument must be either sum, prod, mean, amax or amin, "
              "got ",
              text);
  return Reduce::Min;
}

Reduce old_reduce_of(std::string_view text) {
  TAEDA_CHECK(text == "add" || text == "multiply",
              "reduce argument must be either add or multiply.");
  return text == "add" ? Reduce::Sum : Reduce::Prod;
}

template <class I>
void scatter_src_shape(const Spec<I>& self,
                       int64_t dim,
                       const Spec<I>& index,
                       const Spec<I>& src,
                       Plan<I>& plan) {
  plan_scatter("scatter", self, dim, index, src, plan);
}
TAEDA_SHAPE(scatter_src_shape);

template <class I>
void scatter_value_shape(const Spec<I>& self,
                         int64_t dim,
                         const Spec<I>& index,
                         const Scalar&,
                         Plan<I>& plan) {
  plan_scatter("scatter", self, dim, index, {}, plan);
}
TAEDA_SHAPE(scatter_value_shape);

template <class I>
void scatter_src_old_shape(const Spec<I>& self,
                           int64_t dim,
                           const Spec<I>& index,
                           const Spec<I>& src,
                           std::string_view reduce,
                           Plan<I>& plan) {
  old_reduce_of(reduce);
  plan_scatter("scatter", self, dim, index, src, plan);
}
TAEDA_SHAPE(scatter_src_old_shape);

template <class I>
void scatter_value_old_shape(const Spec<I>& self,
                             int64_t dim,
                             const Spec<I>& index,
                             const Scalar&,
                             std::string_view reduce,
                             Plan<I>& plan) {
  old_reduce_of(reduce);
  plan_scatter("scatter", self, dim, index, {}, plan);
}
TAEDA_SHAPE(scatter_value_old_shape);

template <class I>
void scatter_add_shape(const Spec<I>& self,
                       int64_t dim,
                       const Spec<I>& index,
                       const Spec<I>& src,
                       Plan<I>& plan) {
  plan_scatter("scatter_add", self, dim, index, src, plan);
}
TAEDA_SHAPE(scatter_add_shape);

template <class I>
void scatter_reduce_shape(const Spec<I>& self,
                          int64_t dim,
                          const Spec<I>& index,
                          const Spec<I>& src,
                          std::string_view reduce,
                          bool,
                          Plan<I>& plan) {
  reduce_of(reduce);
  plan_scatter("scatter_reduce", self, dim, index, src, plan);
}
TAEDA_SHAPE(scatter_reduce_shape);

}  // namespace taeda::native
