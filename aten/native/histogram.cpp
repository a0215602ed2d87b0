// Histograms of one and several dims.
#include <taeda/aten/iter/spec.h>
#include <taeda/aten/native/dim_rules.h>
#include <taeda/gen/native/_histogramdd_bin_edges.h>
#include <taeda/gen/native/_histogramdd_from_bin_tensors.h>
#include <taeda/gen/native/histogram.h>
#include <taeda/gen/native/histogramdd.h>
#include <taeda/gen/ops/_histogramdd_bin_edges.h>
#include <taeda/gen/ops/_histogramdd_from_bin_tensors.h>
#include <taeda/gen/ops/add.h>
#include <taeda/gen/ops/amax.h>
#include <taeda/gen/ops/amin.h>
#include <taeda/gen/ops/clamp.h>
#include <taeda/gen/ops/clone.h>
#include <taeda/gen/ops/contiguous.h>
#include <taeda/gen/ops/diff.h>
#include <taeda/gen/ops/div.h>
#include <taeda/gen/ops/flatten.h>
#include <taeda/gen/ops/ge.h>
#include <taeda/gen/ops/index_add.h>
#include <taeda/gen/ops/item.h>
#include <taeda/gen/ops/le.h>
#include <taeda/gen/ops/linspace.h>
#include <taeda/gen/ops/logical_and.h>
#include <taeda/gen/ops/logical_not.h>
#include <taeda/gen/ops/masked_fill.h>
#include <taeda/gen/ops/mul.h>
#include <taeda/gen/ops/ones.h>
#include <taeda/gen/ops/reshape.h>
#include <taeda/gen/ops/searchsorted.h>
#include <taeda/gen/ops/select.h>
#include <taeda/gen/ops/sub.h>
#include <taeda/gen/ops/sum.h>
#include <taeda/gen/ops/to.h>
#include <taeda/gen/ops/unsqueeze.h>
#include <taeda/gen/ops/zeros.h>

#include <cmath>

namespace taeda::native {

namespace {

constexpr std::string_view kName = "torch.histogramdd";

void check_points(const Tensor& self) {
  TAEDA_CHECK(self.dim() >= 2,
              kName,
              ": input tensor should have at least 2 dimensions");
  TAEDA_CHECK_AS(NotImplemented,
                 self.dtype() == kFloat || self.dtype() == kDouble,
                 "\"histogramdd\" not implemented for '",
                 self.dtype(),
                 "'");
}

void check_bins(const Tensor& self, size_t count) {
  TAEDA_CHECK(static_cast<int64_t>(count) == self.size(-1),
              "histogramdd: The size of bins must be equal to the innermost "
              "dimension of the input.");
}

struct Ends {
  double low, high;
};

Ends ends_of(const Tensor& column,
             std::optional<ArrayRef<double>> range,
             size_t d) {
  Ends ends{0, 1};
  if (range) {
    ends = {(*range)[2 * d], (*range)[2 * d + 1]};
  } else if (column.numel() > 0) {
    ends = {ops::item(ops::amin(column)).to<double>(),
            ops::item(ops::amax(column)).to<double>()};
  }
  TAEDA_CHECK(std::isfinite(ends.low) && std::isfinite(ends.high),
              kName,
              ": dimension ",
              d,
              "'s range [",
              ends.low,
              ", ",
              ends.high,
              "] is not finite");
  TAEDA_CHECK(ends.low <= ends.high,
              kName,
              ": min should not exceed max, but got min ",
              ends.low,
              " max ",
              ends.high,
              " for dimension ",
              d);
  if (ends.low == ends.high) return {ends.low - 0.5, ends.high + 0.5};
  return ends;
}

}  // namespace

std::vector<Tensor> _histogramdd_bin_edges(
    const Tensor& self,
    IntArrayRef bins,
    std::optional<ArrayRef<double>> range,
    const OptionalTensor&,
    bool) {
  check_points(self);
  check_bins(self, bins.size());
  TAEDA_CHECK(!range || range->size() == 2 * bins.size(),
              kName,
              ": for a ",
              bins.size(),
              "-dimensional histogram range should have ",
              2 * bins.size(),
              " elements, but got ",
              range ? range->size() : 0);
  std::vector<Tensor> edges;
  for (size_t d = 0; d < bins.size(); ++d) {
    TAEDA_CHECK(bins[d] > 0,
                "torch.histogram(): bins must be > 0, but got ",
                bins[d],
                " for dimension ",
                d);
    Tensor column = ops::select(self, -1, static_cast<int64_t>(d));
    Ends ends = ends_of(column, range, d);
    edges.push_back(ops::linspace(Scalar(ends.low),
                                  Scalar(ends.high),
                                  bins[d] + 1,
                                  self.dtype(),
                                  std::nullopt,
                                  self.device(),
                                  std::nullopt));
  }
  return edges;
}

namespace {

void check_edges(const Tensor& self, const Tensor& edges, size_t d) {
  TAEDA_CHECK(edges.dtype() == self.dtype(),
              kName,
              ": input tensor and bins tensors should have the same dtype, but "
              "got input with dtype ",
              self.dtype(),
              " and bins for dimension ",
              d,
              " with dtype ",
              edges.dtype());
  TAEDA_CHECK(edges.dim() == 1,
              kName,
              ": bins tensor should have one dimension, but got ",
              edges.dim(),
              " dimensions in the bins tensor for dimension ",
              d);
  TAEDA_CHECK(
      edges.numel() > 0,
      kName,
      ": bins tensor should have at least 1 element, but got 0 elements "
      "in the bins tensor for dimension ",
      d);
  TAEDA_CHECK(edges.numel() > 1,
              "torch.histogram(): bins must be > 0, but got ",
              edges.numel() - 1,
              " for dimension ",
              d);
}

void check_weight(const Tensor& self, const Tensor& weight) {
  IntArrayRef wanted = self.sizes().slice(0, self.sizes().size() - 1);
  TAEDA_CHECK(weight.sizes() == wanted,
              kName,
              ": if weight tensor is provided it should have the same shape as "
              "the input tensor excluding its innermost dimension, but got "
              "input with shape ",
              self.sizes(),
              " and weight with shape ",
              weight.sizes());
  TAEDA_CHECK(weight.dtype() == self.dtype(),
              kName,
              ": if weight tensor is provided, input tensor and weight tensor "
              "should have the same dtype, but got input(",
              self.dtype(),
              "), and weight(",
              weight.dtype(),
              ")");
}

}  // namespace

// Counted in double: a float stops counting at 2^24.
Tensor _histogramdd_from_bin_tensors(const Tensor& self,
                                     TensorList bins,
                                     const OptionalTensor& weight,
                                     bool density) {
  check_points(self);
  check_bins(self, bins.size());
  if (weight && weight->defined()) check_weight(self, *weight);
  if (self.size(-1) == 0) {  // one bin without sides, in which nothing lies
    Tensor hist = ops::zeros({}, self.dtype(), std::nullopt, self.device());
    return density ? ops::div(hist, hist) : hist;
  }
  Tensor points = ops::flatten(self, 0, -2);
  Tensor place, inside, volume;
  DimVector sizes;
  int64_t all = 1;
  for (size_t d = 0; d < bins.size(); ++d) {
    const Tensor& edges = bins[d];
    check_edges(self, edges, d);
    int64_t count = edges.numel() - 1;
    Tensor x =
        ops::contiguous(ops::select(points, -1, static_cast<int64_t>(d)));
    Tensor fits = ops::logical_and(ops::ge(x, ops::select(edges, 0, 0)),
                                   ops::le(x, ops::select(edges, 0, -1)));
    Tensor bin = ops::searchsorted(ops::contiguous(edges), x, false, true);
    bin = ops::clamp(ops::sub(bin, Scalar(1), 1), Scalar(0), Scalar(count - 1));
    Tensor width = ops::to(ops::diff(edges), kDouble);
    place = d == 0 ? bin : ops::add(ops::mul(place, Scalar(count)), bin, 1);
    inside = d == 0 ? fits : ops::logical_and(inside, fits);
    volume = d == 0 ? width : ops::mul(ops::unsqueeze(volume, -1), width);
    sizes.push_back(count);
    all *= count;
  }
  Tensor counts =
      weight && weight->defined()
          ? ops::to(ops::reshape(*weight, {-1}), kDouble)
          : ops::ones({points.size(0)}, kDouble, std::nullopt, self.device());
  counts = ops::masked_fill(counts, ops::logical_not(inside), Scalar(0.0));
  Tensor hist =
      ops::index_add(ops::zeros({all}, kDouble, std::nullopt, self.device()),
                     0,
                     place,
                     counts);
  hist = ops::reshape(hist, sizes);
  if (density) hist = ops::div(ops::div(hist, ops::sum(hist)), volume);
  return ops::to(hist, self.dtype());
}

namespace {

OptionalTensor flat(const OptionalTensor& weight) {
  if (!weight || !weight->defined()) return weight;
  return ops::reshape(*weight, {-1});
}

}  // namespace

std::tuple<Tensor, Tensor> histogram(const Tensor& self,
                                     const Tensor& bins,
                                     const OptionalTensor& weight,
                                     bool density) {
  Tensor points = ops::reshape(self, {-1, 1});
  Tensor list[] = {bins};
  return {ops::_histogramdd_from_bin_tensors(
              points, TensorList(list), flat(weight), density),
          ops::clone(bins, std::nullopt)};
}

std::tuple<Tensor, Tensor> histogram(const Tensor& self,
                                     int64_t bins,
                                     std::optional<ArrayRef<double>> range,
                                     const OptionalTensor& weight,
                                     bool density) {
  Tensor points = ops::reshape(self, {-1, 1});
  int64_t counts[] = {bins};
  std::vector<Tensor> edges = ops::_histogramdd_bin_edges(
      points, IntArrayRef(counts), range, std::nullopt, false);
  return {ops::_histogramdd_from_bin_tensors(
              points, TensorList(edges), flat(weight), density),
          edges[0]};
}

using Edges = std::vector<Tensor>;
using Range = std::optional<ArrayRef<double>>;

std::tuple<Tensor, Edges> histogramdd(const Tensor& self,
                                      TensorList bins,
                                      Range,
                                      const OptionalTensor& weight,
                                      bool density) {
  Tensor hist = ops::_histogramdd_from_bin_tensors(self, bins, weight, density);
  return {hist, Edges(bins.begin(), bins.end())};
}

std::tuple<Tensor, Edges> histogramdd(const Tensor& self,
                                      IntArrayRef bins,
                                      Range range,
                                      const OptionalTensor& weight,
                                      bool density) {
  Edges edges = ops::_histogramdd_bin_edges(self, bins, range, weight, density);
  Tensor hist = ops::_histogramdd_from_bin_tensors(
      self, TensorList(edges), weight, density);
  return {hist, edges};
}

std::tuple<Tensor, Edges> histogramdd(const Tensor& self,
                                      int64_t bins,
                                      Range range,
                                      const OptionalTensor& weight,
                                      bool density) {
  DimVector all(static_cast<size_t>(self.dim() > 0 ? self.size(-1) : 0), bins);
  return histogramdd(self, IntArrayRef(all), range, weight, density);
}

}  // namespace taeda::native
