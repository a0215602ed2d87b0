// segment_reduce: shapes, and what it means.
#include <taeda/aten/core/dtype_rule.h>
#include <taeda/aten/native/segment_reduce.h>
#include <taeda/gen/native/_segment_reduce_backward.h>
#include <taeda/gen/native/segment_reduce.h>
#include <taeda/gen/ops/add.h>
#include <taeda/gen/ops/amax.h>
#include <taeda/gen/ops/amin.h>
#include <taeda/gen/ops/arange.h>
#include <taeda/gen/ops/bitwise_and.h>
#include <taeda/gen/ops/bitwise_or.h>
#include <taeda/gen/ops/clamp_min.h>
#include <taeda/gen/ops/cumsum.h>
#include <taeda/gen/ops/div.h>
#include <taeda/gen/ops/eq.h>
#include <taeda/gen/ops/full_like.h>
#include <taeda/gen/ops/ge.h>
#include <taeda/gen/ops/gt.h>
#include <taeda/gen/ops/isnan.h>
#include <taeda/gen/ops/lt.h>
#include <taeda/gen/ops/maximum.h>
#include <taeda/gen/ops/minimum.h>
#include <taeda/gen/ops/mul.h>
#include <taeda/gen/ops/narrow.h>
#include <taeda/gen/ops/ne.h>
#include <taeda/gen/ops/prod.h>
#include <taeda/gen/ops/sub.h>
#include <taeda/gen/ops/sum.h>
#include <taeda/gen/ops/unsqueeze.h>
#include <taeda/gen/ops/where.h>

#include <limits>

namespace taeda::native {

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

template <class I>
void plan_segments(const Spec<I>& data,
                   const Spec<I>& lengths,
                   const Spec<I>& offsets,
                   int64_t axis,
                   Plan<I>& plan) {
  int64_t at = wrap_dim(axis, data.dim());
  TAEDA_CHECK(lengths.defined() || offsets.defined(),
              "segment_reduce(): Either lengths or offsets must be defined.");
  const Spec<I>& given = offsets.defined() ? offsets : lengths;
  TAEDA_CHECK(data.dim() >= given.dim(),
              "segment_reduce(): Expected data to have at least as many dims "
              "as its segments, got ",
              data.dim(),
              " and ",
              given.dim());
  TAEDA_CHECK(at == given.dim() - 1,
              "segment_reduce(): Expected axis to be the last dimension of ",
              offsets.defined() ? "offsets" : "lengths",
              " but got ",
              at,
              ".");
  TAEDA_CHECK(given.sizes().slice(0, at) == data.sizes().slice(0, at),
              "segment_reduce(): Expected segments for each row of data, got "
              "data of ",
              data.sizes(),
              " and segments of ",
              given.sizes());
  if (given.dtype() != kInt && given.dtype() != kLong) {
    not_implemented_for("_segment_reduce_cpu", given.dtype());
  }
  TAEDA_CHECK(!offsets.defined() || offsets.size(-1) > 0,
              "segment_reduce(): offsets has no element along axis");
  Dims<I> sizes(data.sizes());
  sizes[at] = offsets.defined() ? offsets.size(-1) - 1 : lengths.size(-1);
  plan.set(0, sizes, data.dtype());
}

}  // namespace

Reduce segment_reduce_of(std::string_view text) {
  if (text == "max") return Reduce::Max;
  if (text == "min") return Reduce::Min;
  return reduce_of(text);
}

template <class I>
void segment_reduce_shape(const Spec<I>& data,
                          std::string_view reduce,
                          const Spec<I>& lengths,
                          const Spec<I>& indices,
                          const Spec<I>& offsets,
                          int64_t axis,
                          bool,
                          const std::optional<Scalar>&,
                          Plan<I>& plan) {
  segment_reduce_of(reduce);
  TAEDA_CHECK(
      !indices.defined(),
      "segment_reduce(): indices based reduction is not supported yet.");
  plan_segments(data, lengths, offsets, axis, plan);
}
TAEDA_SHAPE(segment_reduce_shape);

template <class I>
void segment_reduce_backward_shape(const Spec<I>&,
                                   const Spec<I>&,
                                   const Spec<I>& data,
                                   std::string_view reduce,
                                   const Spec<I>&,
                                   const Spec<I>&,
                                   int64_t,
                                   const std::optional<Scalar>&,
                                   Plan<I>& plan) {
  segment_reduce_of(reduce);
  plan.set(0, data.sizes(), data.dtype());
}
TAEDA_SHAPE(segment_reduce_backward_shape);

namespace {

// Data with a dim of segments before axis, and which elements of it each
// segment has. `dim` is then that of the elements.
struct SpreadSegments {
  Tensor data, inside;
  // Elements of each segment, shaped as the result is with its dims of 1.
  Tensor count;
  int64_t dim;

  SpreadSegments(const Tensor& given,
                 const OptionalTensor& lengths,
                 const OptionalTensor& offsets,
                 int64_t axis)
      : data(ops::unsqueeze(given, wrap_dim(axis, given.dim()))),
        dim(wrap_dim(axis, given.dim()) + 1) {
    Tensor begin, end;
    if (offsets) {
      int64_t n = offsets->size(-1) - 1;
      begin = ops::narrow(*offsets, -1, int64_t{0}, n);
      end = ops::narrow(*offsets, -1, int64_t{1}, n);
    } else {
      end = ops::cumsum(*lengths, -1, std::nullopt);
      begin = ops::sub(end, *lengths, Scalar(1));
    }
    count = ops::sub(end, begin, Scalar(1));
    Tensor place = ops::arange(Scalar(data.size(dim)),
                               kLong,
                               std::nullopt,
                               data.device(),
                               std::nullopt);
    inside = ops::bitwise_and(ops::ge(place, ops::unsqueeze(begin, -1)),
                              ops::lt(place, ops::unsqueeze(end, -1)));
    for (int64_t d = dim + 1; d < data.dim(); ++d) {
      inside = ops::unsqueeze(inside, -1);
      count = ops::unsqueeze(count, -1);
    }
  }

  // Elements of other segments replaced.
  Tensor only(const Tensor& values, double other) const {
    return ops::where(inside, values, Scalar(other));
  }
  Tensor sum(const Tensor& values) const {
    return ops::sum(values, IntArrayRef(&dim, 1), /*keepdim=*/false);
  }
};

Tensor extreme(const SpreadSegments& s,
               const Tensor& none,
               bool largest,
               const std::optional<Scalar>& initial) {
  double least = largest ? -kInf : kInf;
  if (initial) least = initial->to_double();
  if (s.data.size(s.dim) == 0) return ops::full_like(none, Scalar(least));
  Tensor all = s.only(s.data, largest ? -kInf : kInf);
  IntArrayRef along(&s.dim, 1);
  Tensor found = largest ? ops::amax(all, along) : ops::amin(all, along);
  Tensor start = ops::full_like(found, Scalar(least));
  return largest ? ops::maximum(found, start) : ops::minimum(found, start);
}

// In each segment, for each element, the product of the others.
Tensor products_of_others(const SpreadSegments& s) {
  int64_t n = s.data.size(s.dim);
  Tensor place = ops::arange(
      Scalar(n), kLong, std::nullopt, s.data.device(), std::nullopt);
  Tensor other = ops::ne(ops::unsqueeze(place, -1), place);
  for (int64_t d = s.dim + 1; d < s.data.dim(); ++d) {
    other = ops::unsqueeze(other, -1);
  }
  Tensor counts = ops::bitwise_and(ops::unsqueeze(s.inside, s.dim), other);
  Tensor factors =
      ops::where(counts, ops::unsqueeze(s.data, s.dim), Scalar(1.0));
  return ops::prod(factors, s.dim + 1, /*keepdim=*/false);
}

}  // namespace

Tensor segment_reduce_means(const Tensor& data,
                            std::string_view reduce,
                            const OptionalTensor& lengths,
                            const OptionalTensor&,
                            const OptionalTensor& offsets,
                            int64_t axis,
                            bool,
                            const std::optional<Scalar>& initial) {
  SpreadSegments s(data, lengths, offsets, axis);
  Scalar start = initial.value_or(Scalar(0.0));
  Tensor sum = s.sum(s.only(s.data, 0));
  switch (segment_reduce_of(reduce)) {
    case Reduce::Sum:
      return ops::add(sum, start, Scalar(1));
    case Reduce::Mean: {
      Tensor mean = ops::div(ops::add(sum, start, Scalar(1)), s.count);
      if (!initial) return mean;
      return ops::where(ops::gt(s.count, Scalar(0)), mean, start);
    }
    case Reduce::Prod:
      return ops::mul(ops::prod(s.only(s.data, 1), s.dim, /*keepdim=*/false),
                      initial.value_or(Scalar(1.0)));
    case Reduce::Max:
      return extreme(s, sum, /*largest=*/true, initial);
    case Reduce::Min:
      return extreme(s, sum, /*largest=*/false, initial);
  }
  return {};
}

Tensor segment_reduce_backward_means(const Tensor& grad,
                                     const Tensor& output,
                                     const Tensor& data,
                                     std::string_view reduce,
                                     const OptionalTensor& lengths,
                                     const OptionalTensor& offsets,
                                     int64_t axis,
                                     const std::optional<Scalar>& initial) {
  SpreadSegments s(data, lengths, offsets, axis);
  Reduce how = segment_reduce_of(reduce);
  Tensor g = ops::unsqueeze(grad, s.dim), share = g;
  // No segment is divided by nothing, for its elements have slopes here too.
  Scalar one(int64_t{1});
  if (how == Reduce::Mean) {
    share = ops::div(g, ops::clamp_min(ops::unsqueeze(s.count, s.dim), one));
  } else if (how == Reduce::Prod) {
    share = ops::mul(ops::mul(g, products_of_others(s)),
                     initial.value_or(Scalar(1.0)));
  } else if (how != Reduce::Sum) {
    Tensor chosen = ops::bitwise_or(
        ops::eq(s.data, ops::unsqueeze(output, s.dim)), ops::isnan(s.data));
    chosen = ops::bitwise_and(chosen, s.inside);
    Tensor many = ops::clamp_min(ops::unsqueeze(s.sum(chosen), s.dim), one);
    share = ops::where(chosen, ops::div(g, many), Scalar(0.0));
  }
  // Each element is in one segment at most.
  int64_t segments[] = {s.dim - 1};
  return ops::sum(s.only(share, 0), IntArrayRef(segments), /*keepdim=*/false);
}

}  // namespace taeda::native
