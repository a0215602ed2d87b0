// Order along a dim, and what follows from it.
#include <taeda/aten/core/promotion.h>
#include <taeda/aten/iter/copy.h>
#include <taeda/aten/native/cuda/given.h>
#include <taeda/aten/native/cuda/kernels.h>
#include <taeda/gen/ops/_to_copy.h>
#include <taeda/gen/ops/add.h>
#include <taeda/gen/ops/amax.h>
#include <taeda/gen/ops/argmax.h>
#include <taeda/gen/ops/clone.h>
#include <taeda/gen/ops/contiguous.h>
#include <taeda/gen/ops/empty_like.h>
#include <taeda/gen/ops/gather.h>
#include <taeda/gen/ops/isnan.h>
#include <taeda/gen/ops/mul.h>
#include <taeda/gen/ops/narrow.h>
#include <taeda/gen/ops/reshape.h>
#include <taeda/gen/ops/select.h>
#include <taeda/gen/ops/sort.h>
#include <taeda/gen/ops/squeeze.h>
#include <taeda/gen/ops/sub.h>
#include <taeda/gen/ops/sum.h>
#include <taeda/gen/ops/transpose.h>
#include <taeda/gen/ops/unsqueeze.h>

#include <algorithm>

namespace taeda::cuda {

TAEDA_INTERNAL_NAMES

namespace {

using Pair = std::tuple<Tensor, Tensor>;

int64_t wrapped(int64_t dim, const Tensor& t) {
  return dim < 0 ? dim + std::max<int64_t>(t.dim(), 1) : dim;
}

// A thread for each element that counts those before it: less work than three
// passes where rows are short, and all there is for other dtypes.
Pair sort_by_counting(const Tensor& self, int64_t dim, bool descending) {
  Tensor values = ops::empty_like(self);
  Tensor indices = ops::empty_like(self, kLong);
  DeviceCall("sort", "sorting", "sort_at(g, i);")
      .number("dim", wrapped(dim, self))
      .number("descending", descending ? 1 : 0)
      .tensor("self", self)
      .tensor("values", values)
      .tensor("indices", indices)
      .run(self.numel());
  return {values, indices};
}

constexpr int64_t kCountedRow = 32;

Pair sort_stable(const Tensor& self,
                 std::optional<bool>,
                 int64_t dim,
                 bool descending) {
  dim = wrapped(dim, self);
  int64_t count = self.dim() == 0 ? 1 : self.sizes()[static_cast<size_t>(dim)];
  if (count <= kCountedRow || self.numel() == 0) {
    return sort_by_counting(self, dim, descending);
  }
  Tensor rows = ops::contiguous(ops::transpose(self, dim, -1));
  auto [values, indices] = sort_rows(rows, descending);
  return {ops::transpose(values, dim, -1), ops::transpose(indices, dim, -1)};
}

Pair sort(const Tensor& self, int64_t dim, bool descending) {
  return sort_stable(self, true, dim, descending);
}

// What is selected stands in the order of the elements, so that a stable sort
// of it has equal ones in their order.
Pair topk_selected(const Tensor& self, int64_t k, int64_t dim, bool largest) {
  Tensor rows = ops::contiguous(ops::transpose(self, dim, -1));
  auto [values, indices] = select_rows(rows, k, largest);
  auto [sorted, order] = sort_stable(values, true, -1, largest);
  Tensor places = ops::gather(indices, -1, order);
  return {ops::contiguous(ops::transpose(sorted, dim, -1)),
          ops::contiguous(ops::transpose(places, dim, -1))};
}

Pair topk(const Tensor& self, int64_t k, int64_t dim, bool largest, bool) {
  if (self.dim() == 0) {
    Tensor place = ops::empty_like(self, kLong);
    fill_with(place, 0);
    return {ops::clone(self), place};
  }
  dim = wrapped(dim, self);
  if (self.numel() > 0 && selects_rows(ops::transpose(self, dim, -1), k)) {
    return topk_selected(self, k, dim, largest);
  }
  auto [values, indices] = sort_stable(self, true, dim, largest);
  return {ops::contiguous(ops::narrow(values, dim, 0, k)),
          ops::contiguous(ops::narrow(indices, dim, 0, k))};
}

Pair chosen(const Pair& sorted, int64_t place, int64_t dim, bool keepdim) {
  const auto& [values, indices] = sorted;
  if (values.dim() == 0) return sorted;
  Tensor value = ops::narrow(values, dim, place, 1);
  Tensor index = ops::narrow(indices, dim, place, 1);
  if (!keepdim) {
    value = ops::squeeze(value, dim);
    index = ops::squeeze(index, dim);
  }
  return {ops::contiguous(value), ops::contiguous(index)};
}

Pair kthvalue(const Tensor& self, int64_t k, int64_t dim, bool keepdim) {
  return chosen(sort_stable(self, true, dim, false), k - 1, dim, keepdim);
}

// The lower of the two in the middle. NaN stands last when sorted, so the place
// in the middle is of the last element where there is one, and of those that
// are no NaN where those alone count.
Pair median_of(const Tensor& self, int64_t dim, bool keepdim, bool skips_nan) {
  Pair sorted = sort_stable(self, true, dim, false);
  if (self.dim() == 0) return sorted;
  int64_t count = self.size(dim);
  int64_t lead[] = {wrapped(dim, self)};
  Tensor nans = ops::sum(ops::isnan(self), IntArrayRef(lead), true);
  Tensor place = ops::empty_like(nans, kLong);
  DeviceCall("median", "sorting", "median_place(g, i);")
      .number("count", count)
      .number("skips", skips_nan ? 1 : 0)
      .tensor("nans", nans)
      .tensor("result", place)
      .run(place.numel());
  Tensor value = ops::gather(std::get<0>(sorted), dim, place);
  Tensor index = ops::gather(std::get<1>(sorted), dim, place);
  if (keepdim) return {value, index};
  return {ops::squeeze(value, dim), ops::squeeze(index, dim)};
}

Pair median(const Tensor& self, int64_t dim, bool keepdim) {
  return median_of(self, dim, keepdim, false);
}
Pair nanmedian(const Tensor& self, int64_t dim, bool keepdim) {
  return median_of(self, dim, keepdim, true);
}

// The smallest of the most frequent values, at its last place.
Pair mode(const Tensor& self, int64_t dim, bool keepdim) {
  DimVector sizes(self.sizes().begin(), self.sizes().end());
  if (!sizes.empty()) sizes[static_cast<size_t>(wrapped(dim, self))] = 1;
  Tensor value = make_tensor("mode", sizes, self.dtype(), self.device());
  Tensor index = make_tensor("mode", sizes, kLong, self.device());
  DeviceCall("mode", "sorting", "mode_row(g, i);")
      .number("dim", wrapped(dim, self))
      .tensor("self", self)
      .tensor("values", value)
      .tensor("indices", index)
      .run(value.numel());
  if (keepdim || self.dim() == 0) return {value, index};
  return {ops::squeeze(value, dim), ops::squeeze(index, dim)};
}

Tensor searchsorted(const Tensor& given_sorted,
                    const Tensor& given_self,
                    bool out_int32,
                    bool right,
                    std::optional<std::string_view> side,
                    const OptionalTensor& sorter) {
  // Values of another dtype are compared in the common one.
  ScalarType common = result_type(given_self, given_sorted);
  auto in_common = [&](const Tensor& t) {
    return t.dtype() == common ? t : Tensor(ops::_to_copy(t, common));
  };
  Tensor sorted = in_common(given_sorted), self = in_common(given_self);
  bool behind = right || (side && *side == "right");
  Tensor out = make_tensor(
      "searchsorted", self.sizes(), out_int32 ? kInt : kLong, self.device());
  bool one = sorted.dim() == 1;
  DeviceCall("searchsorted", "sorting", "search_at(g, i);")
      .number("right", behind ? 1 : 0)
      .number("width", one || self.dim() == 0 ? 0 : self.size(-1))
      .tensor("self", self)
      .tensor("sorted", sorted)
      .tensor("order", sorter ? *sorter : Tensor())
      .tensor("result", out)
      .run(out.numel());
  return out;
}

Tensor bucketize(const Tensor& self,
                 const Tensor& boundaries,
                 bool out_int32,
                 bool right) {
  return searchsorted(
      boundaries, self, out_int32, right, std::nullopt, OptionalTensor());
}

}  // namespace

Definitions sorting_definitions() {
  static const Definition all[] = {
      defined_as("sort", sort),
      defined_as("sort.stable", sort_stable),
      defined_as("topk", topk),
      defined_as("kthvalue", kthvalue),
      defined_as("median.dim", median),
      defined_as("nanmedian.dim", nanmedian),
      defined_as("mode", mode),
      defined_as("searchsorted.Tensor", searchsorted),
      defined_as("bucketize.Tensor", bucketize),
  };
  return all;
}

}  // namespace taeda::cuda
