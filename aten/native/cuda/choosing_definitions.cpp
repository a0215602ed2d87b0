// Results whose size depends on data, lists of tensors, and pairs.
#include <taeda/aten/iter/copy.h>
#include <taeda/aten/iter/output.h>
#include <taeda/aten/native/cuda/given.h>
#include <taeda/aten/native/cuda/kernels.h>
#include <taeda/gen/ops/all.h>
#include <taeda/gen/ops/amax.h>
#include <taeda/gen/ops/amin.h>
#include <taeda/gen/ops/any.h>
#include <taeda/gen/ops/arange.h>
#include <taeda/gen/ops/clone.h>
#include <taeda/gen/ops/contiguous.h>
#include <taeda/gen/ops/cumsum.h>
#include <taeda/gen/ops/eq.h>
#include <taeda/gen/ops/expand.h>
#include <taeda/gen/ops/index_select.h>
#include <taeda/gen/ops/isnan.h>
#include <taeda/gen/ops/item.h>
#include <taeda/gen/ops/logical_and.h>
#include <taeda/gen/ops/logical_not.h>
#include <taeda/gen/ops/masked_select.h>
#include <taeda/gen/ops/narrow.h>
#include <taeda/gen/ops/ne.h>
#include <taeda/gen/ops/nonzero.h>
#include <taeda/gen/ops/reshape.h>
#include <taeda/gen/ops/scatter.h>
#include <taeda/gen/ops/scatter_add.h>
#include <taeda/gen/ops/sort.h>
#include <taeda/gen/ops/sub.h>
#include <taeda/gen/ops/sum.h>
#include <taeda/gen/ops/transpose.h>
#include <taeda/gen/ops/unsqueeze.h>
#include <taeda/gen/ops/where.h>
#include <taeda/gen/ops/zeros.h>

#include <algorithm>

namespace taeda::cuda {

TAEDA_INTERNAL_NAMES

namespace {

using Three = std::tuple<Tensor, Tensor, Tensor>;

Tensor flat(const Tensor& t) { return ops::reshape(t, {t.numel()}); }

Tensor empty(IntArrayRef sizes, ScalarType dtype, const Tensor& like) {
  return make_tensor("empty", sizes, dtype, like.device());
}

// The numbers of the elements that are true, in order. Waits for the device.
Tensor chosen(const Tensor& mask) {
  if (mask.numel() == 0) return empty({0}, kLong, mask);
  Tensor row = flat(mask);
  Tensor places = ops::cumsum(row, 0, kLong);
  int64_t count =
      ops::item(ops::narrow(places, 0, mask.numel() - 1, 1)).to_int();
  Tensor out = empty({count}, kLong, mask);
  DeviceCall("nonzero", "indexing", "pick_at(g, i);")
      .tensor("mask", row)
      .tensor("places", places)
      .tensor("result", out)
      .run(count == 0 ? 0 : mask.numel());
  return out;
}

Tensor nonzero(const Tensor& self) {
  Tensor mask = self.dtype() == kBool ? self : ops::ne(self, Scalar(0));
  Tensor numbers = chosen(mask);
  int64_t count = numbers.numel(), rank = self.dim();
  Tensor out = make_tensor_strided("nonzero",
                                   {count, rank},
                                   {1, std::max<int64_t>(count, 1)},
                                   kLong,
                                   self.device());
  DeviceCall("nonzero", "indexing", "unravel_at(g, i);")
      .list("sizes", self.sizes())
      .tensor("numbers", numbers)
      .tensor("result", out)
      .run(out.numel());
  return out;
}

void nonzero_out(const Tensor& self, const Tensor& out) {
  TAEDA_CHECK(out.dtype() == kLong,
              "nonzero: Expected out tensor to have scalar type Long but got "
              "scalar type ",
              out.dtype());
  Tensor found = nonzero(self);
  Plan<int64_t> plan("nonzero");
  plan.set(0, found.sizes(), found.strides(), kLong);
  OutputTarget target = OutputTarget::for_out(plan, 0, out, self);
  copy_into(target.tensor(), found);
  target.finish();
  out.impl()->bump_version();
}

DimVector common(IntArrayRef a, IntArrayRef b) {
  size_t rank = std::max(a.size(), b.size());
  DimVector all(rank, 1);
  for (IntArrayRef side : {a, b}) {
    for (size_t d = 0; d < side.size(); ++d) {
      int64_t& size = all[rank - side.size() + d];
      if (side[d] != 1) size = side[d];
    }
  }
  return all;
}

Tensor masked_select(const Tensor& self, const Tensor& mask) {
  TAEDA_CHECK(mask.dtype() == kBool,
              "masked_select: expected BoolTensor for mask");
  DimVector sizes = common(self.sizes(), mask.sizes());
  Tensor there = mask;
  if (mask.device() != self.device()) {
    TAEDA_CHECK(mask.dim() == 0,
                "masked_select: the mask is on ",
                mask.device(),
                ", the tensor on ",
                self.device());
    there = empty({}, kBool, self);
    copy_into(there, mask);
  }
  Tensor numbers = chosen(ops::expand(there, sizes));
  return ops::index_select(flat(ops::expand(self, sizes)), 0, numbers);
}

Tensor nonzero_static(const Tensor& self, int64_t size, int64_t fill_value) {
  Tensor found = nonzero(self);
  Tensor out = empty({size, self.dim()}, kLong, self);
  fill_with(out, fill_value);
  int64_t rows = std::min(size, found.size(0));
  copy_into(ops::narrow(out, 0, 0, rows), ops::narrow(found, 0, 0, rows));
  return out;
}

Tensor masked_scatter(const Tensor& self,
                      const Tensor& mask,
                      const Tensor& source) {
  DimVector sizes = common(self.sizes(), mask.sizes());
  Tensor wide = ops::contiguous(ops::expand(mask, sizes));
  Tensor numbers = chosen(wide);
  TAEDA_CHECK(numbers.numel() <= source.numel(),
              "masked_scatter: expected at least ",
              numbers.numel(),
              " elements in the source, got ",
              source.numel());
  Tensor out =
      flat(ops::clone(ops::expand(self, sizes), MemoryFormat::Contiguous));
  Tensor values = ops::narrow(flat(source), 0, 0, numbers.numel());
  return ops::reshape(ops::scatter(out, 0, numbers, values), sizes);
}

bool equal(const Tensor& self, const Tensor& other) {
  if (self.sizes() != other.sizes()) return false;
  if (self.numel() == 0) return true;
  return ops::item(ops::all(ops::eq(self, other))).to_bool();
}

// Runs -----------------------------------------------------------------------

// Where each run of equal neighbours begins, as a mask.
Tensor run_starts(const Tensor& row) {
  Tensor starts = empty({row.numel()}, kBool, row);
  DeviceCall("unique_consecutive", "indexing", "start_at(g, i);")
      .tensor("self", row)
      .tensor("result", starts)
      .run(row.numel());
  return starts;
}

struct Runs {
  Tensor first;    // numbers of the elements that begin one
  Tensor of_each;  // the number of each element's run
  Tensor counts;
};

Runs runs_of(const Tensor& starts) {
  Runs out;
  out.first = chosen(starts);
  int64_t n = starts.numel(), count = out.first.numel();
  out.of_each = ops::sub(ops::cumsum(starts, 0, kLong), Scalar(1));
  Tensor ends = empty({count}, kLong, starts);
  if (count > 0) {
    copy_into(ops::narrow(ends, 0, 0, count - 1),
              ops::narrow(out.first, 0, 1, count - 1));
    fill_with(ops::narrow(ends, 0, count - 1, 1), n);
  }
  out.counts = ops::sub(ends, out.first);
  return out;
}

Tensor none(const Tensor& like) { return empty({0}, kLong, like); }

Three unique2(const Tensor& self, bool, bool inverse, bool counts) {
  auto [values, order] = ops::sort(flat(self), true, 0, false);
  Runs runs = runs_of(run_starts(values));
  Tensor back = none(self);
  if (inverse || counts) {
    // `order` names each place once, so that nothing of what is scattered into
    // stays.
    back =
        ops::reshape(ops::scatter(order, 0, order, runs.of_each), self.sizes());
  }
  return {ops::index_select(values, 0, runs.first),
          inverse ? back : none(self),
          counts ? runs.counts : none(self)};
}

std::tuple<Tensor, Tensor> unique(const Tensor& self, bool, bool inverse) {
  auto [values, places, counts] = unique2(self, true, inverse, false);
  return {values, places};
}

// Rows of slices along a dim.
Tensor slices(const Tensor& self, int64_t dim) {
  Tensor first = ops::contiguous(ops::transpose(self, 0, dim));
  return ops::reshape(
      first,
      {first.size(0), first.numel() / std::max<int64_t>(first.size(0), 1)});
}

Three unique_runs(const Tensor& self,
                  int64_t dim,
                  const Tensor& order,
                  bool inverse,
                  bool counts) {
  Tensor sorted = ops::index_select(self, dim, order);
  Tensor rows = slices(sorted, dim);
  Tensor starts = empty({rows.size(0)}, kBool, self);
  DeviceCall("unique_dim", "indexing", "start_row(g, i);")
      .tensor("self", rows)
      .tensor("result", starts)
      .run(rows.size(0));
  Runs runs = runs_of(starts);
  Tensor back = none(self);
  if (inverse) {
    back = ops::scatter(order, 0, order, runs.of_each);
  }
  return {ops::index_select(sorted, dim, runs.first),
          back,
          counts ? runs.counts : none(self)};
}

Three unique_dim(
    const Tensor& self, int64_t dim, bool, bool inverse, bool counts) {
  Tensor rows = slices(self, dim);
  Tensor order = empty({rows.size(0)}, kLong, self);
  DeviceCall("unique_dim", "indexing", "order_row(g, i);")
      .tensor("self", rows)
      .tensor("result", order)
      .run(rows.size(0));
  return unique_runs(self, dim, order, inverse, counts);
}

Three unique_dim_consecutive(const Tensor& self,
                             int64_t dim,
                             bool inverse,
                             bool counts) {
  Tensor order = ops::arange(
      self.size(dim), kLong, std::nullopt, self.device(), std::nullopt);
  return unique_runs(self, dim, order, inverse, counts);
}

Three unique_consecutive(const Tensor& self,
                         bool inverse,
                         bool counts,
                         std::optional<int64_t> dim) {
  if (dim) return unique_dim_consecutive(self, *dim, inverse, counts);
  Tensor row = flat(self);
  Runs runs = runs_of(run_starts(row));
  return {ops::index_select(row, 0, runs.first),
          inverse ? ops::reshape(runs.of_each, self.sizes()) : none(self),
          counts ? runs.counts : none(self)};
}

Tensor bincount(const Tensor& self,
                const OptionalTensor& weights,
                int64_t minlength) {
  TAEDA_CHECK(
      minlength >= 0, "bincount: minlength should be >= 0, got ", minlength);
  TAEDA_CHECK(self.dim() == 1,
              "bincount only supports 1-d non-negative ",
              "integral inputs, got ",
              self.dim(),
              " dims");
  bool weighs = weights && weights->defined();
  TAEDA_CHECK(!weighs || weights->sizes() == self.sizes(),
              "bincount: weights should have the same length as input");
  int64_t count = minlength;
  if (self.numel() > 0) {
    TAEDA_CHECK(ops::item(ops::amin(self, IntArrayRef{})).to_int() >= 0,
                "bincount only supports 1-d non-negative integral inputs.");
    count =
        std::max(count, ops::item(ops::amax(self, IntArrayRef{})).to_int() + 1);
  }
  ScalarType dtype = kLong;
  if (weighs) dtype = weights->dtype() == kFloat ? kFloat : kDouble;
  Tensor values = empty({self.numel()}, dtype, self);
  if (weighs) {
    copy_into(values, *weights);
  } else {
    fill_with(values, 1);
  }
  Tensor places = empty({self.numel()}, kLong, self);
  copy_into(places, self);
  Tensor out = empty({count}, dtype, self);
  fill_with(out, 0);
  return ops::scatter_add(out, 0, places, values);
}

Tensor isin(const Tensor& elements,
            const Tensor& test_elements,
            bool,
            bool invert) {
  Tensor out = empty(elements.sizes(), kBool, elements);
  DeviceCall("isin", "indexing", "isin_at(g, i);")
      .number("invert", invert ? 1 : 0)
      .tensor("self", elements)
      .tensor("other", test_elements)
      .tensor("result", out)
      .run(out.numel());
  return out;
}

// Lists and pairs ------------------------------------------------------------

Tensor complex_of(const Tensor& real, const Tensor& imag, const char* body) {
  Tensor out = empty(common(real.sizes(), imag.sizes()),
                     real.dtype() == kDouble  ? kComplexDouble
                     : real.dtype() == kFloat ? kComplexFloat
                                              : kComplexHalf,
                     real);
  DeviceCall("complex", "indexing", body)
      .tensor("a", ops::expand(real, out.sizes()))
      .tensor("b", ops::expand(imag, out.sizes()))
      .tensor("result", out)
      .run(out.numel());
  return out;
}
Tensor make_complex(const Tensor& real, const Tensor& imag) {
  return complex_of(real, imag, "complex_at(g, i);");
}
Tensor polar(const Tensor& abs, const Tensor& angle) {
  return complex_of(abs, angle, "polar_at(g, i);");
}

}  // namespace

Definitions choosing_definitions() {
  static const Definition all[] = {
      defined_as("nonzero", nonzero),
      defined_as("nonzero.out", nonzero_out),
      defined_as("masked_select", masked_select),
      defined_as("nonzero_static", nonzero_static),
      defined_as("masked_scatter", masked_scatter),
      defined_as("equal", equal),
      defined_as("_unique2", unique2),
      defined_as("_unique", unique),
      defined_as("unique_dim", unique_dim),
      defined_as("unique_dim_consecutive", unique_dim_consecutive),
      defined_as("unique_consecutive", unique_consecutive),
      defined_as("bincount", bincount),
      defined_as("isin.Tensor_Tensor", isin),
      defined_as("complex", make_complex),
      defined_as("polar", polar),
  };
  return all;
}

}  // namespace taeda::cuda
