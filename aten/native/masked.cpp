// Elements chosen by masks or by positions: shapes and compositions.
#include <taeda/aten/core/level.h>
#include <taeda/aten/iter/copy.h>
#include <taeda/aten/iter/output.h>
#include <taeda/aten/native/creation.h>
#include <taeda/aten/native/indexing.h>
#include <taeda/gen/native/masked_scatter.h>
#include <taeda/gen/native/masked_scatter_backward.h>
#include <taeda/gen/native/masked_select.h>
#include <taeda/gen/native/nonzero_numpy.h>
#include <taeda/gen/native/nonzero_static.h>
#include <taeda/gen/native/one_hot.h>
#include <taeda/gen/native/put.h>
#include <taeda/gen/native/take.h>
#include <taeda/gen/native/take_along_dim.h>
#include <taeda/gen/ops/_to_copy.h>
#include <taeda/gen/ops/add.h>
#include <taeda/gen/ops/amax.h>
#include <taeda/gen/ops/amin.h>
#include <taeda/gen/ops/arange.h>
#include <taeda/gen/ops/bincount.h>
#include <taeda/gen/ops/eq.h>
#include <taeda/gen/ops/expand.h>
#include <taeda/gen/ops/gather.h>
#include <taeda/gen/ops/item.h>
#include <taeda/gen/ops/lt.h>
#include <taeda/gen/ops/masked_select.h>
#include <taeda/gen/ops/new_zeros.h>
#include <taeda/gen/ops/nonzero.h>
#include <taeda/gen/ops/reshape.h>
#include <taeda/gen/ops/scatter.h>
#include <taeda/gen/ops/unbind.h>
#include <taeda/gen/ops/unsqueeze.h>
#include <taeda/gen/ops/where.h>

#include <algorithm>

namespace taeda::native {

std::vector<Tensor> nonzero_numpy(const Tensor& self) {
  if (self.dim() == 0) {
    return ops::unbind(ops::nonzero(ops::unsqueeze(self, 0)), 1);
  }
  return ops::unbind(ops::nonzero(self), 1);
}

template <class I>
void nonzero_static_shape(const Spec<I>& self, I size, int64_t, Plan<I>& plan) {
  TAEDA_CHECK(size >= 0,
              "nonzero_static: 'size' must be an non-negative integer");
  plan.set(0, {size, I(self.dim())}, kLong);
}
TAEDA_SHAPE(nonzero_static_shape);

template <class I>
void masked_scatter_shape(const Spec<I>& self,
                          const Spec<I>& mask,
                          const Spec<I>& source,
                          Plan<I>& plan) {
  TAEDA_CHECK(self.dtype() == source.dtype(),
              "masked_scatter_: expected self and source to have same dtypes "
              "but got ",
              self.dtype(),
              " and ",
              source.dtype());
  TAEDA_CHECK(mask.dtype() == kBool,
              "masked_scatter_ only supports boolean masks, but got mask with "
              "dtype ",
              mask.dtype());
  plan.set(0,
           broadcast_shapes<I>("masked_scatter", self.sizes(), mask.sizes()),
           self.dtype());
}
TAEDA_SHAPE(masked_scatter_shape);

template <class I>
void masked_scatter_backward_shape(const Spec<I>& grad,
                                   const Spec<I>&,
                                   ArrayRef<I> sizes,
                                   Plan<I>& plan) {
  plan.set(0, sizes, grad.dtype());
}
TAEDA_SHAPE(masked_scatter_backward_shape);

void masked_select_out(const Tensor& self,
                       const Tensor& mask,
                       const Tensor& out) {
  for (const Tensor& in : {self, mask}) {
    check_no_overlap("masked_select", out, in);
  }
  TAEDA_CHECK(out.dtype() == self.dtype(),
              "masked_select(): self and result must have the same scalar "
              "type, got ",
              self.dtype(),
              " and ",
              out.dtype());
  write_out("masked_select", ops::masked_select(self, mask), out);
}

template <class I>
void take_shape(const Spec<I>& self, const Spec<I>& index, Plan<I>& plan) {
  TAEDA_CHECK(index.dtype() == kLong,
              "take(): Expected a long tensor for index, but got ",
              index.dtype());
  TAEDA_CHECK_AS(Index,
                 self.numel() != 0 || index.numel() == 0,
                 "take(): tried to take from an empty tensor");
  plan.set(0, index.sizes(), self.dtype());
  plan.refuse_overlap(2);
}
TAEDA_SHAPE(take_shape);

template <class I>
void put_shape(const Spec<I>& self,
               const Spec<I>& index,
               const Spec<I>& source,
               bool,
               Plan<I>& plan) {
  TAEDA_CHECK(index.dtype() == kLong,
              "put_(): Expected a long tensor for index, but got ",
              index.dtype());
  TAEDA_CHECK(self.dtype() == source.dtype(),
              "put_(): self and source expected to have the same dtype, but "
              "got self.dtype = ",
              self.dtype(),
              " and source.dtype = ",
              source.dtype());
  TAEDA_CHECK_AS(Index,
                 index.numel() == source.numel(),
                 "put_(): Expected source and index to have the same number of "
                 "elements, but got source.numel() = ",
                 source.numel(),
                 ", index.numel() = ",
                 index.numel());
  TAEDA_CHECK_AS(Index,
                 self.numel() != 0 || index.numel() == 0,
                 "put_(): Tried to put elements into an empty tensor");
  plan.set_like(0, self, self.dtype());
}
TAEDA_SHAPE(put_shape);

// Composed -------------------------------------------------------------------

Tensor take_along_dim(const Tensor& self,
                      const Tensor& indices,
                      std::optional<int64_t> dim) {
  TAEDA_CHECK(
      indices.dtype() == kLong,
      "torch.take_along_dim(): dtype of indices should be Long but got ",
      indices.dtype());
  // Those below 0 count from the end, which gather does not know.
  auto from_start = [&](int64_t size) {
    Tensor behind = ops::add(indices, Scalar(size));
    return ops::where(ops::lt(indices, Scalar(0)), behind, indices);
  };
  if (!dim) {
    Tensor places = ops::reshape(from_start(self.numel()), {-1});
    return ops::gather(ops::reshape(self, {-1}), 0, places, false);
  }
  TAEDA_CHECK(self.dim() == indices.dim(),
              "torch.take_along_dim(): input and indices should have the same "
              "number of dimensions, but got ",
              self.dim(),
              " dimensions for input, and ",
              indices.dim(),
              " dimensions for indices");
  int64_t along = wrap_dim(*dim, self.dim());
  DimVector a(self.sizes()), b(indices.sizes());
  if (!a.empty()) a[along] = indices.sizes()[along];
  DimVector index_shape = broadcast_shapes<int64_t>("take_along_dim", a, b);
  DimVector self_shape = index_shape;
  if (!self_shape.empty()) self_shape[along] = self.sizes()[along];
  int64_t size = self_shape.empty() ? 1 : self_shape[along];
  return ops::gather(ops::expand(self, self_shape),
                     along,
                     ops::expand(from_start(size), index_shape),
                     false);
}

namespace {

// A row for each element, as far as it names one of so many classes.
Tensor compared_with_classes(const Tensor& self, int64_t count) {
  Tensor all = ops::arange(
      Scalar(count), kLong, std::nullopt, self.device(), std::nullopt);
  return ops::_to_copy(ops::eq(ops::unsqueeze(self, -1), all), kLong);
}

// By operators alone, for tensors that classes of Python answer for: the values
// at hand may be those of one rank.
Tensor scattered_ones(const Tensor& self, int64_t asked) {
  TAEDA_CHECK(asked == -1 || asked > 0,
              "one_hot: num_classes should be positive, got ",
              asked);
  DimVector shape(self.sizes());
  shape.push_back(asked > 0 ? asked
                            : ops::bincount(ops::reshape(self, {-1})).size(0));
  TAEDA_CHECK(
      shape.back() > 0,
      "one_hot: Can not infer total number of classes from empty tensor.");
  return ops::scatter(
      ops::new_zeros(self, shape), -1, ops::unsqueeze(self, -1), Scalar(1));
}

// How many classes there are: what was asked for, or up to the largest.
int64_t classes_of(int64_t elements,
                   int64_t least,
                   int64_t largest,
                   int64_t asked) {
  TAEDA_CHECK(
      elements > 0 || asked > 0,
      "one_hot: Can not infer total number of classes from empty tensor.");
  TAEDA_CHECK(
      least >= 0, "one_hot: Class values must be non-negative, got ", least);
  if (asked == -1) return largest + 1;
  TAEDA_CHECK(
      asked > 0, "one_hot: num_classes should be positive, got ", asked);
  TAEDA_CHECK(asked > largest,
              "one_hot: Class values must be smaller than num_classes, got ",
              largest,
              " for ",
              asked);
  return asked;
}

}  // namespace

Tensor one_hot(const Tensor& self, int64_t num_classes) {
  TAEDA_CHECK(
      self.dtype() == kLong,
      "one_hot is only applicable to index tensor of type LongTensor, got ",
      self.dtype());
  if (wrapped_or_null(self) != nullptr || self.is_meta()) {
    TAEDA_CHECK(
        num_classes > 0,
        "one_hot: num_classes must be given where the classes cannot be "
        "looked at, got ",
        num_classes);
    return compared_with_classes(self, num_classes);
  }
  if (meets_python(self)) return scattered_ones(self, num_classes);
  int64_t n = self.numel(), least = 0, largest = -1;
  if (!self.is_cpu()) {
    // Waits for the device.
    if (n > 0) {
      least = ops::item(ops::amin(self, IntArrayRef{})).to_int();
      largest = ops::item(ops::amax(self, IntArrayRef{})).to_int();
    }
    return compared_with_classes(self,
                                 classes_of(n, least, largest, num_classes));
  }
  Tensor classes = contiguous(self);
  const int64_t* c = classes.const_data<int64_t>();
  for (int64_t i = 0; i < n; ++i) {
    least = std::min(least, c[i]);
    largest = std::max(largest, c[i]);
  }
  num_classes = classes_of(n, least, largest, num_classes);
  DimVector shape(self.sizes());
  shape.push_back(num_classes);
  Tensor out = make_tensor("one_hot", shape, kLong);
  zero_fill(out);
  int64_t* to = out.mutable_data<int64_t>();
  for (int64_t i = 0; i < n; ++i) to[i * num_classes + c[i]] = 1;
  return out;
}

}  // namespace taeda::native
