// searchsorted, bucketize, histc, bincount.
#include <taeda/aten/iter/pointwise.h>
#include <taeda/aten/native/cpu/count_integers.h>
#include <taeda/aten/native/cpu/along_dim.h>
#include <taeda/aten/native/dim_rules.h>
#include <taeda/aten/parallel/parallel.h>
#include <taeda/gen/native/bincount.h>
#include <taeda/gen/native/bucketize.h>
#include <taeda/gen/native/histc.h>
#include <taeda/gen/native/searchsorted.h>
#include <taeda/gen/ops/bucketize.h>
#include <taeda/gen/ops/scalar_tensor.h>
#include <taeda/gen/ops/searchsorted.h>

#include <algorithm>

namespace taeda::native {

namespace {

using Side = std::optional<std::string_view>;

// How many of the row's elements come before v (with its equals if `right`).
template <class T>
int64_t place_of(
    const T* row, const int64_t* sorter, int64_t n, T v, bool right) {
  int64_t low = 0, high = n;
  while (low < high) {
    int64_t middle = low + (high - low) / 2;
    T x = row[sorter == nullptr ? middle : sorter[middle]];
    bool before = right ? !(x > v) : !(x >= v);
    if (before) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

bool is_right(bool right, Side side) {
  if (!side) return right;
  TAEDA_CHECK(*side == "left" || *side == "right",
              "torch.searchsorted(): side can only be 'left' or 'right' but "
              "got ",
              *side);
  TAEDA_CHECK(*side == "right" || !right,
              "torch.searchsorted(): side and right can't be set to opposites, "
              "got side of left while right was True");
  return *side == "right";
}

template <class I>
void plan_search(const Spec<I>& sequence,
                 const Spec<I>& self,
                 bool out_int32,
                 const Spec<I>& sorter,
                 Plan<I>& plan) {
  TAEDA_CHECK(sequence.dim() > 0,
              "torch.searchsorted(): boundaries tensor should have positive "
              "dimension, but got 0 dimension");
  bool fits = sequence.dim() == 1 || self.dim() == sequence.dim();
  for (int64_t d = 0; fits && sequence.dim() > 1 && d + 1 < self.dim(); ++d) {
    fits = self.sizes()[d] == sequence.sizes()[d];
  }
  TAEDA_CHECK(
      fits,
      "torch.searchsorted(): boundaries tensor should be 1 dimension or "
      "the first N-1 dimensions of boundaries tensor and input value "
      "tensor must match, but we got boundaries tensor ",
      sequence.sizes(),
      " and input value tensor ",
      self.sizes());
  TAEDA_CHECK(sequence.dtype() == self.dtype() || self.dim() == 0,
              "torch.searchsorted(): input value tensor and boundaries tensor "
              "should have same dtype, but got dtype ",
              self.dtype(),
              " for input and ",
              sequence.dtype(),
              " for boundaries");
  plan.set(0, self.sizes(), out_int32 ? kInt : kLong);
  if (!sorter.defined()) return;
  TAEDA_CHECK(sorter.sizes() == sequence.sizes(),
              "torch.searchsorted(): boundary and sorter must have the same "
              "size, but got boundary tensor ",
              sequence.sizes(),
              " and got sorter tensor ",
              sorter.sizes());
  TAEDA_CHECK(sorter.dtype() == kLong,
              "torch.searchsorted(): sorter must be a tensor of long dtype but "
              "got dtype ",
              sorter.dtype());
}

template <class F>
void visit_real(std::string_view op, ScalarType type, F&& f) {
  if (type == kFloat) return f(float{});
  if (type == kDouble) return f(double{});
  if (type == kLong) return f(int64_t{});
  not_implemented_for(op, type);
}

void find_places(const Tensor& sequence,
                 const Tensor& self,
                 bool right,
                 const OptionalTensor& sorter,
                 const Tensor& out) {
  int64_t n = sequence.sizes()[sequence.dim() - 1];
  ScalarType type = wide_type(sequence.dtype());
  Tensor rows = contiguous_as(sequence, type);
  Tensor values = contiguous_as(self, type);
  bool given = sorter && sorter->defined();
  Tensor order = given ? contiguous(*sorter) : Tensor();
  const int64_t* places = given ? order.const_data<int64_t>() : nullptr;
  for (int64_t i = 0; given && i < order.numel(); ++i) {
    TAEDA_CHECK(places[i] >= 0 && places[i] < n,
                "torch.searchsorted(): sorter index out of range: ",
                places[i],
                " for a dimension of size ",
                n);
  }
  int64_t width = sequence.dim() > 1 ? self.sizes()[self.dim() - 1] : 0;
  auto search = [&]<class Place>(Place* to) {
    visit_real("searchsorted", type, [&](auto tag) {
      using T = decltype(tag);
      const T* x = rows.const_data<T>();
      const T* v = values.const_data<T>();
      parallel_for(0, values.numel(), 1024, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          int64_t row = width > 0 ? i / width * n : 0;
          const int64_t* p = places == nullptr ? nullptr : places + row;
          to[i] = static_cast<Place>(place_of(x + row, p, n, v[i], right));
        }
      });
    });
  };
  if (out.dtype() == kInt) return search(out.mutable_data<int32_t>());
  search(out.mutable_data<int64_t>());
}

Tensor number(const Scalar& s, const Tensor& like) {
  return ops::scalar_tensor(s, like.dtype(), {}, like.device(), {});
}

}  // namespace

template <class I>
void searchsorted_shape(const Spec<I>& sorted_sequence,
                        const Spec<I>& self,
                        bool out_int32,
                        bool right,
                        Side side,
                        const Spec<I>& sorter,
                        Plan<I>& plan) {
  is_right(right, side);
  plan_search(sorted_sequence, self, out_int32, sorter, plan);
}
TAEDA_SHAPE(searchsorted_shape);
void searchsorted_cpu(const Tensor& sorted_sequence,
                      const Tensor& self,
                      bool,
                      bool right,
                      Side side,
                      const OptionalTensor& sorter,
                      const Tensor& out) {
  find_places(sorted_sequence, self, is_right(right, side), sorter, out);
}
Tensor searchsorted(const Tensor& sorted_sequence,
                    const Scalar& self,
                    bool out_int32,
                    bool right,
                    Side side,
                    const OptionalTensor& sorter) {
  Tensor value = number(self, sorted_sequence);
  return ops::searchsorted(
      sorted_sequence, value, out_int32, right, side, sorter);
}

template <class I>
void bucketize_shape(const Spec<I>& self,
                     const Spec<I>& boundaries,
                     bool out_int32,
                     bool,
                     Plan<I>& plan) {
  TAEDA_CHECK(boundaries.dim() == 1,
              "bucketize: boundaries tensor must be 1 dimension, but got dim(",
              boundaries.dim(),
              ")");
  plan_search(boundaries, self, out_int32, Spec<I>(), plan);
}
TAEDA_SHAPE(bucketize_shape);
void bucketize_cpu(const Tensor& self,
                   const Tensor& boundaries,
                   bool,
                   bool right,
                   const Tensor& out) {
  find_places(boundaries, self, right, std::nullopt, out);
}
Tensor bucketize(const Scalar& self,
                 const Tensor& boundaries,
                 bool out_int32,
                 bool right) {
  return ops::bucketize(number(self, boundaries), boundaries, out_int32, right);
}

template <class I>
void histc_shape(const Spec<I>& self,
                 int64_t bins,
                 const Scalar&,
                 const Scalar&,
                 Plan<I>& plan) {
  TAEDA_CHECK(bins > 0, "torch.histc(): bins must be > 0, but got ", bins);
  if (!self.is_floating_point()) not_implemented_for("histc", self.dtype());
  plan.set(0, {I(bins)}, self.dtype());
}
TAEDA_SHAPE(histc_shape);

void histc_cpu(const Tensor& self,
               int64_t bins,
               const Scalar& min,
               const Scalar& max,
               const Tensor& out) {
  Tensor plain = contiguous_as(self, kDouble);
  const double* x = plain.const_data<double>();
  int64_t n = plain.numel();
  double low = min.to_double(), high = max.to_double();
  if (low == high && n > 0) {
    low = *std::min_element(x, x + n);
    high = *std::max_element(x, x + n);
  }
  if (low == high) {
    low -= 1;
    high += 1;
  }
  TAEDA_CHECK(low - low == 0 && high - high == 0,
              "torch.histc: range of [",
              low,
              ", ",
              high,
              "] is not finite");
  TAEDA_CHECK(low < high,
              "torch.histc: max must be larger than min, got ",
              high,
              " and ",
              low);
  int64_t shape[] = {bins};
  Tensor counts = make_tensor("histc", shape, kDouble);
  double* c = counts.mutable_data<double>();
  std::fill_n(c, bins, 0.0);
  double scale = static_cast<double>(bins) / (high - low);
  for (int64_t i = 0; i < n; ++i) {
    if (!(x[i] >= low && x[i] <= high)) continue;
    int64_t at = static_cast<int64_t>((x[i] - low) * scale);
    c[std::min(at, bins - 1)] += 1;
  }
  copy_into(out, counts);
}

Tensor bincount(const Tensor& self,
                const OptionalTensor& weights,
                int64_t minlength) {
  TAEDA_CHECK(
      minlength >= 0, "bincount: minlength should be >= 0, got ", minlength);
  TAEDA_CHECK(self.dim() == 1,
              "bincount only supports 1-d non-negative integral inputs, got ",
              self);
  if (!is_integral(self.dtype(), false)) {
    not_implemented_for("bincount", self.dtype());
  }
  Tensor plain = contiguous_as(self, kLong);
  const int64_t* x = plain.const_data<int64_t>();
  int64_t n = plain.numel(), length = minlength;
  if (n > 0) {
    Extent found = extent_of(x, n);
    TAEDA_CHECK(found.lowest >= 0,
                "bincount only supports 1-d non-negative integral inputs. Got ",
                found.lowest);
    length = std::max(length, found.highest + 1);
  }
  bool weighted = weights && weights->defined();
  TAEDA_CHECK(!weighted || weights->sizes() == self.sizes(),
              "bincount: weights should be 1-d and have the same length as "
              "input");
  int64_t shape[] = {length};
  Tensor counts = make_tensor("bincount", shape, weighted ? kDouble : kLong);
  fill_with(counts, Scalar(0));
  if (!weighted) {
    count_integers(x, n, 0, counts.mutable_data<int64_t>());
    return counts;
  }
  Tensor w = contiguous_as(*weights, kDouble);
  double* c = counts.mutable_data<double>();
  for (int64_t i = 0; i < n; ++i) c[x[i]] += w.const_data<double>()[i];
  return cast(counts, weights->dtype() == kFloat ? kFloat : kDouble);
}

}  // namespace taeda::native
