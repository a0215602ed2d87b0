// Operators that move elements to places which tensors name.
#include <taeda/aten/iter/copy.h>
#include <taeda/aten/native/cuda/kernels.h>
#include <taeda/aten/native/cuda/ordered.h>
#include <taeda/aten/native/indexing.h>
#include <taeda/gen/ops/clone.h>
#include <taeda/gen/ops/div.h>
#include <taeda/gen/ops/eq.h>
#include <taeda/gen/ops/expand.h>
#include <taeda/gen/ops/floor_divide.h>
#include <taeda/gen/ops/full_like.h>
#include <taeda/gen/ops/index_select.h>
#include <taeda/gen/ops/permute.h>
#include <taeda/gen/ops/reshape.h>
#include <taeda/gen/ops/unsqueeze.h>
#include <taeda/gen/ops/where.h>
#include <taeda/gen/ops/zeros.h>
#include <taeda/gen/ops/zeros_like.h>

#include <algorithm>
#include <limits>

namespace taeda::cuda {

TAEDA_INTERNAL_NAMES

namespace {

Combine combine_of(std::string_view reduce) {
  if (reduce == "prod" || reduce == "multiply") return Combine::Multiply;
  if (reduce == "amax") return Combine::Largest;
  if (reduce == "amin") return Combine::Smallest;
  return Combine::Add;
}

int64_t wrapped(int64_t dim, const Tensor& t) {
  return dim < 0 ? dim + std::max<int64_t>(t.dim(), 1) : dim;
}

// Scatter --------------------------------------------------------------------

Tensor scattered(NamedWrite call, const Tensor& self) {
  Tensor result = ops::clone(self);
  call.dim = wrapped(call.dim, result);
  write_elements(call, result);
  return result;
}

Tensor scatter_value(const Tensor& self,
                     int64_t dim,
                     const Tensor& index,
                     const Scalar& value) {
  return scattered({"scatter", dim, index, {}, value}, self);
}
Tensor scatter_source(const Tensor& self,
                      int64_t dim,
                      const Tensor& index,
                      const Tensor& src) {
  return scattered({"scatter", dim, index, src}, self);
}
Tensor scatter_source_by(const Tensor& self,
                         int64_t dim,
                         const Tensor& index,
                         const Tensor& src,
                         std::string_view reduce) {
  return scattered({"scatter", dim, index, src, 0, combine_of(reduce)}, self);
}
Tensor scatter_value_by(const Tensor& self,
                        int64_t dim,
                        const Tensor& index,
                        const Scalar& value,
                        std::string_view reduce) {
  return scattered({"scatter", dim, index, {}, value, combine_of(reduce)},
                   self);
}
Tensor scatter_add(const Tensor& self,
                   int64_t dim,
                   const Tensor& index,
                   const Tensor& src) {
  return scattered({"scatter_add", dim, index, src, 0, Combine::Add}, self);
}

// Also of sort and topk, which select more than one element: the record's
// formula speaks of one.
Tensor selecting_backward(const Tensor& grad,
                          int64_t dim,
                          const Tensor& indices,
                          IntArrayRef sizes,
                          bool keepdim) {
  bool gone = !keepdim && !sizes.empty();
  Tensor from = gone ? ops::unsqueeze(grad, dim) : grad;
  Tensor places = gone ? ops::unsqueeze(indices, dim) : indices;
  Tensor out = ops::zeros(sizes, grad.dtype(), std::nullopt, grad.device());
  // cummax names the same element several times.
  write_elements({"value_selecting_reduction_backward",
                  wrapped(dim, out),
                  places,
                  from,
                  0,
                  Combine::Add},
                 out);
  return out;
}

// What nothing has come to yet, where `self` does not count.
Scalar neutral(Combine how, ScalarType t) {
  if (how == Combine::Add) return 0;
  if (how == Combine::Multiply) return 1;
  bool lowest = how == Combine::Largest;
  if (t == kBool) return lowest ? 0 : 1;
  if (is_floating(t)) {
    double infinity = std::numeric_limits<double>::infinity();
    return lowest ? -infinity : infinity;
  }
  if (t == kByte) return lowest ? 0 : 255;
  int64_t highest = std::numeric_limits<int64_t>::max() >>
                    (64 - 8 * static_cast<int64_t>(element_size(t)));
  return lowest ? -highest - 1 : highest;
}

// Reduced elements: means are divided by how many came, and what nothing came
// to is as it was.
Tensor finished(const Tensor& self,
                const Tensor& result,
                const Tensor& seen,
                bool mean,
                bool include_self) {
  Tensor out = result;
  if (mean) {
    Tensor count = seen;
    count = ops::where(ops::eq(count, Scalar(0)), Scalar(1), count);
    out = is_floating(out.dtype()) || is_complex(out.dtype())
              ? ops::div(out, count)
              : ops::div(out, count, "floor");
  }
  if (include_self) return out;
  return ops::where(ops::eq(seen, Scalar(0)), self, out);
}

Tensor scatter_reduce(const Tensor& self,
                      int64_t dim,
                      const Tensor& index,
                      const Tensor& src,
                      std::string_view reduce,
                      bool include_self) {
  Combine how = combine_of(reduce);
  bool mean = reduce == "mean";
  Tensor result = include_self
                      ? ops::clone(self)
                      : ops::full_like(self, neutral(how, self.dtype()));
  Tensor seen = ops::zeros_like(self, kLong);
  if (include_self) seen = ops::full_like(seen, 1);
  write_elements(
      {"scatter_reduce", wrapped(dim, result), index, src, 0, how, seen},
      result);
  return finished(self, result, seen, mean, include_self);
}

// Rows of one dim ------------------------------------------------------------

Tensor index_add(const Tensor& self,
                 int64_t dim,
                 const Tensor& index,
                 const Tensor& source,
                 const Scalar& alpha) {
  Tensor out = ops::clone(self);
  write_rows(
      {"index_add", wrapped(dim, out), index, source, alpha, Combine::Add},
      out);
  return out;
}
Tensor index_copy(const Tensor& self,
                  int64_t dim,
                  const Tensor& index,
                  const Tensor& source) {
  Tensor out = ops::clone(self);
  write_rows({"index_copy", wrapped(dim, out), index, source}, out);
  return out;
}

Tensor index_fill_tensor(const Tensor& self,
                         int64_t dim,
                         const Tensor& index,
                         const Tensor& value) {
  Tensor out = ops::clone(self);
  DimVector sizes(self.sizes().begin(), self.sizes().end());
  if (!sizes.empty()) {
    sizes[static_cast<size_t>(wrapped(dim, self))] = index.numel();
  }
  Tensor source = make_tensor("index_fill", {}, self.dtype(), self.device());
  copy_into(source, value);
  source = ops::expand(source, sizes);
  write_rows({"index_fill", wrapped(dim, out), index, source}, out);
  return out;
}
Tensor index_fill_number(const Tensor& self,
                         int64_t dim,
                         const Tensor& index,
                         const Scalar& value) {
  Tensor filled = make_tensor("index_fill", {}, self.dtype(), self.device());
  fill_with(filled, value);
  return index_fill_tensor(self, dim, index, filled);
}

Tensor index_reduce(const Tensor& self,
                    int64_t dim,
                    const Tensor& index,
                    const Tensor& source,
                    std::string_view reduce,
                    bool include_self) {
  Combine how = combine_of(reduce);
  Tensor out = include_self ? ops::clone(self)
                            : ops::full_like(self, neutral(how, self.dtype()));
  size_t d = static_cast<size_t>(wrapped(dim, self));
  int64_t size = self.dim() == 0 ? 1 : self.sizes()[d];
  Tensor seen = ops::zeros({size}, kLong, std::nullopt, self.device());
  if (include_self) seen = ops::full_like(seen, 1);
  write_rows({"index_reduce", wrapped(dim, out), index, source, 1, how, seen},
             out);
  DimVector shape(self.sizes().size(), 1);
  if (!shape.empty()) shape[d] = size;
  return finished(
      self, out, ops::reshape(seen, shape), reduce == "mean", include_self);
}

// Any places -----------------------------------------------------------------

Tensor put(const Tensor& self,
           const Tensor& index,
           const Tensor& source,
           bool accumulate) {
  if (!accumulate) {
    Tensor out = ops::clone(self);
    DeviceCall("put", "indexing", "put_at(g, i);")
        .tensor("index", index)
        .tensor("source", source)
        .tensor("result", out)
        .run(index.numel());
    return out;
  }
  Tensor out = ops::clone(self, MemoryFormat::Contiguous);
  int64_t all[] = {-1};
  write_rows({"put",
              0,
              ops::reshape(index, all),
              ops::reshape(source, all),
              1,
              Combine::Add},
             ops::reshape(out, all));
  return out;
}

// The dims that indices name come first, as one; `lead` is where the shape of
// all indices together stands in the result.
struct Indexed {
  DimVector order;   // of self's dims
  DimVector index;   // the shape of all indices together
  DimVector others;  // the sizes of the dims that no index names
  size_t lead = 0;
  int64_t named = 1;  // elements of the dims that indices name
  Tensor places;      // among those, in the shape `index`
};

Indexed indexed(const Tensor& self, ArrayRef<OptionalTensor> indices) {
  Indexed out;
  std::vector<size_t> named;
  std::vector<Tensor> given;
  for (size_t d = 0; d < indices.size(); ++d) {
    if (!indices[d] || !indices[d]->defined()) continue;
    named.push_back(d);
    given.push_back(*indices[d]);
  }
  out.index = native::common_shape<int64_t, Tensor>(given);
  for (size_t d : named) out.order.push_back(static_cast<int64_t>(d));
  for (size_t d = 0; d < self.sizes().size(); ++d) {
    if (std::find(named.begin(), named.end(), d) != named.end()) continue;
    out.order.push_back(static_cast<int64_t>(d));
    out.others.push_back(self.sizes()[d]);
  }
  bool adjacent = named.back() - named.front() + 1 == named.size();
  out.lead = adjacent ? named.front() : 0;
  Device device = self.device();
  out.places = ops::zeros(out.index, kLong, std::nullopt, device);
  for (size_t k = named.size(); k-- > 0;) {
    Tensor here = given[k];
    if (here.device() != device) {
      Tensor moved = make_tensor("index", here.sizes(), here.dtype(), device);
      copy_into(moved, here);
      here = moved;
    }
    DeviceCall("index", "indexing", "add_places(g, i);")
        .number("size", self.sizes()[named[k]])
        .number("step", out.named)
        .tensor("index", here)
        .tensor("result", out.places)
        .run(out.places.numel());
    out.named *= self.sizes()[named[k]];
  }
  return out;
}

DimVector sizes_of(const Indexed& at) {
  DimVector sizes;
  for (size_t d = 0; d < at.lead; ++d) sizes.push_back(at.others[d]);
  for (int64_t size : at.index) sizes.push_back(size);
  for (size_t d = at.lead; d < at.others.size(); ++d) {
    sizes.push_back(at.others[d]);
  }
  return sizes;
}

// From [index..., others...] to the order of the result, or back.
DimVector index_order(const Indexed& at, bool back) {
  size_t rank = at.index.size(), total = rank + at.others.size();
  DimVector to(total, 0);
  for (size_t d = 0; d < total; ++d) {
    size_t from = d < at.lead ? rank + d : d < at.lead + rank ? d - at.lead : d;
    to[back ? from : d] = static_cast<int64_t>(back ? d : from);
  }
  return to;
}

int64_t count_of(IntArrayRef sizes) {
  int64_t count = 1;
  for (int64_t size : sizes) count *= size;
  return count;
}

Tensor unsafe_index(const Tensor& self, ArrayRef<OptionalTensor> indices) {
  Indexed at = indexed(self, indices);
  int64_t rest = count_of(at.others);
  Tensor rows = ops::reshape(ops::permute(self, at.order), {at.named, rest});
  Tensor picked =
      ops::index_select(rows, 0, ops::reshape(at.places, {at.places.numel()}));
  DimVector shape(at.index.begin(), at.index.end());
  for (int64_t size : at.others) shape.push_back(size);
  return ops::permute(ops::reshape(picked, shape), index_order(at, false));
}

Tensor index_put(const Tensor& self,
                 ArrayRef<OptionalTensor> given,
                 const Tensor& values,
                 bool accumulate) {
  SmallVector<OptionalTensor, 6> indices = native::with_positions(self, given);
  native::check_count(self, indices.size());
  Indexed at = indexed(self, indices);
  int64_t rest = count_of(at.others);
  Tensor source =
      ops::permute(ops::expand(values, sizes_of(at)), index_order(at, true));
  source = ops::reshape(source, {at.places.numel(), rest});
  Tensor out = ops::clone(self);
  Tensor rows = ops::reshape(ops::permute(out, at.order), {at.named, rest});
  if (accumulate) {
    Tensor places = ops::reshape(at.places, {at.places.numel()});
    write_rows({"index_put", 0, places, source, 1, Combine::Add}, rows);
  } else {
    DeviceCall("index_put", "indexing", "put_row(g, i);")
        .tensor("index", at.places)
        .tensor("source", source)
        .tensor("result", rows)
        .run(source.numel());
  }
  if (rows.const_raw_data() == out.const_raw_data()) return out;
  DimVector sizes, back(at.order.size(), 0);
  for (size_t d = 0; d < at.order.size(); ++d) {
    sizes.push_back(self.sizes()[static_cast<size_t>(at.order[d])]);
    back[static_cast<size_t>(at.order[d])] = static_cast<int64_t>(d);
  }
  return ops::permute(ops::reshape(rows, sizes), back);
}

}  // namespace

Definitions indexing_definitions() {
  static const Definition all[] = {
      defined_as("scatter.value", scatter_value),
      defined_as("scatter.src", scatter_source),
      defined_as("scatter.reduce", scatter_source_by),
      defined_as("scatter.value_reduce", scatter_value_by),
      defined_as("scatter_add", scatter_add),
      defined_as("value_selecting_reduction_backward", selecting_backward),
      defined_as("scatter_reduce.two", scatter_reduce),
      defined_as("index_add", index_add),
      defined_as("index_copy", index_copy),
      defined_as("index_fill.int_Scalar", index_fill_number),
      defined_as("index_fill.int_Tensor", index_fill_tensor),
      defined_as("index_reduce", index_reduce),
      defined_as("put", put),
      defined_as("_unsafe_index.Tensor", unsafe_index),
      defined_as("index_put", index_put),
  };
  return all;
}

}  // namespace taeda::cuda
