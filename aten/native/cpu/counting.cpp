// searchsorted, bucketize, histc, bincount.
#include <taeda/aten/core/dtype_rule.h>
#include <taeda/aten/core/promotion.h>
#include <taeda/aten/native/counting.h>
#include <taeda/aten/native/cpu/along_dim.h>
#include <taeda/aten/native/cpu/count_integers.h>
#include <taeda/aten/native/cpu/halving.h>
#include <taeda/aten/native/dim_rules.h>
#include <taeda/aten/parallel/parallel.h>
#include <taeda/gen/native/bincount.h>
#include <taeda/gen/native/bucketize.h>
#include <taeda/gen/native/histc.h>
#include <taeda/gen/native/searchsorted.h>

#include <algorithm>

namespace taeda::native {

namespace {

// Rows that are searched, and the orders that sort them (null: they are).
template <class T>
struct Searched {
  const T* rows;
  const int64_t* orders;
  int64_t n;
  int64_t width;   // values a row is searched for; 0: one row for all
  bool right;      // equals come before
  bool is_sorted;  // known to be, without orders
};

// Whether rows are known to be sorted: looking pays where values are many.
template <class T>
bool are_sorted(const T* rows, int64_t count, int64_t n, int64_t values) {
  if (count * n > values / 4) return false;
  for (int64_t r = 0; r < count; ++r) {
    const T* row = rows + r * n;
    for (int64_t i = 1; i < n; ++i) {
      if (!(row[i - 1] <= row[i])) return false;
    }
  }
  return true;
}

// How many elements come before each of kLanes values, from v[begin] on.
template <int kLanes, class T>
void find_some(const Searched<T>& in,
               const T* v,
               int64_t begin,
               int64_t (&places)[kLanes]) {
  int64_t first[kLanes];
  T value[kLanes];
  for (int l = 0; l < kLanes; ++l) {
    first[l] = in.width > 0 ? (begin + l) / in.width * in.n : 0;
    value[l] = v[begin + l];
  }
  auto at = [&](int l, int64_t i) {
    return in
        .rows[first[l] + (in.orders == nullptr ? i : in.orders[first[l] + i])];
  };
  auto count = [&](auto&& before) {
    if (in.is_sorted) {
      count_before(in.n, places, before);
    } else {
      count_before_by_middles(in.n, places, before);
    }
  };
  if (in.right) {
    count([&](int l, int64_t i) { return !(at(l, i) > value[l]); });
  } else {
    count([&](int l, int64_t i) { return !(at(l, i) >= value[l]); });
  }
}

template <class T, class Place>
void find_range(
    const Searched<T>& in, const T* v, int64_t begin, int64_t end, Place* to) {
  constexpr int kLanes = 8;
  int64_t places[kLanes], last[1];
  for (; begin + kLanes <= end; begin += kLanes) {
    find_some(in, v, begin, places);
    for (int l = 0; l < kLanes; ++l) {
      to[begin + l] = static_cast<Place>(places[l]);
    }
  }
  for (; begin < end; ++begin) {
    find_some(in, v, begin, last);
    to[begin] = static_cast<Place>(last[0]);
  }
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
  // Values of another dtype are compared in the common one.
  ScalarType common = result_type(self, sequence);
  ScalarType type = wide_type(common);
  Tensor rows = contiguous_as(contiguous_as(sequence, common), type);
  Tensor values = contiguous_as(contiguous_as(self, common), type);
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
      const T* v = values.const_data<T>();
      const T* row = rows.const_data<T>();
      int64_t count = n == 0 ? 0 : rows.numel() / n;
      bool is_sorted = !given && are_sorted(row, count, n, values.numel());
      Searched<T> in{row, places, n, width, right, is_sorted};
      parallel_for(0, values.numel(), 1024, [&](int64_t begin, int64_t end) {
        find_range(in, v, begin, end, to);
      });
    });
  };
  if (out.dtype() == kInt) return search(out.mutable_data<int32_t>());
  search(out.mutable_data<int64_t>());
}

}  // namespace

void searchsorted_cpu(const Tensor& sorted_sequence,
                      const Tensor& self,
                      bool,
                      bool right,
                      Side side,
                      const OptionalTensor& sorter,
                      const Tensor& out) {
  find_places(sorted_sequence, self, is_right(right, side), sorter, out);
}
void bucketize_cpu(const Tensor& self,
                   const Tensor& boundaries,
                   bool,
                   bool right,
                   const Tensor& out) {
  find_places(boundaries, self, right, std::nullopt, out);
}

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
  settle_histc_range(self.dtype(), low, high);
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
