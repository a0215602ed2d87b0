// unique in its forms: of elements, of slices along a dim, of runs.
#include <taeda/aten/iter/output.h>
#include <taeda/aten/iter/pointwise.h>
#include <taeda/aten/native/cpu/along_dim.h>
#include <taeda/aten/native/cpu/count_integers.h>
#include <taeda/aten/native/dim_rules.h>
#include <taeda/gen/native/_unique.h>
#include <taeda/gen/native/_unique2.h>
#include <taeda/gen/native/unique_consecutive.h>
#include <taeda/gen/native/unique_dim.h>
#include <taeda/gen/native/unique_dim_consecutive.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <vector>

namespace taeda::native {

namespace {

using Three = std::tuple<Tensor, Tensor, Tensor>;

Tensor longs(const std::vector<int64_t>& values, IntArrayRef shape) {
  Tensor out = make_tensor("unique", shape, kLong);
  std::copy(values.begin(), values.end(), out.mutable_data<int64_t>());
  return out;
}
Tensor longs(const std::vector<int64_t>& values) {
  int64_t shape[] = {static_cast<int64_t>(values.size())};
  return longs(values, shape);
}
Tensor no_longs() { return longs({}); }

// Groups of equal items, given an order in which equal ones are neighbours.
struct Groups {
  std::vector<int64_t> first;    // an item of each group
  std::vector<int64_t> inverse;  // group of each item
  std::vector<int64_t> counts;

  template <class Same>
  Groups(const std::vector<int64_t>& order, Same&& same)
      : inverse(order.size()) {
    for (size_t i = 0; i < order.size(); ++i) {
      bool joins = i > 0 && same(order[i - 1], order[i]);
      if (!joins) {
        first.push_back(order[i]);
        counts.push_back(0);
      }
      ++counts.back();
      inverse[static_cast<size_t>(order[i])] =
          static_cast<int64_t>(first.size()) - 1;
    }
  }
};

std::vector<int64_t> counting(int64_t n) {
  std::vector<int64_t> order(static_cast<size_t>(n));
  std::iota(order.begin(), order.end(), int64_t{0});
  return order;
}

template <class F>
void visit_real(std::string_view op, ScalarType type, F&& f) {
  if (type == kFloat) return f(float{});
  if (type == kDouble) return f(double{});
  if (type == kLong) return f(int64_t{});
  not_implemented_for(op, type);
}

// NaN is larger than everything.
template <class T>
bool less(T a, T b) {
  return a < b || (b != b && a == a);
}

// An order that sorts the values; pairs are sorted, since looking values up by
// index at every comparison is slow.
template <class T>
std::vector<int64_t> order_of(const T* x, int64_t n) {
  std::vector<std::pair<T, int64_t>> pairs(static_cast<size_t>(n));
  for (int64_t i = 0; i < n; ++i) pairs[static_cast<size_t>(i)] = {x[i], i};
  std::sort(pairs.begin(), pairs.end(), [](const auto& a, const auto& b) {
    return less(a.first, b.first);
  });
  std::vector<int64_t> order(static_cast<size_t>(n));
  std::transform(pairs.begin(), pairs.end(), order.begin(), [](const auto& p) {
    return p.second;
  });
  return order;
}

template <class T>
struct Distinct {
  std::vector<T> values;
  std::vector<int64_t> counts, inverse;
};

// With places: an order, and what it groups.
template <class T>
Distinct<T> distinct_by_order(const T* x, const std::vector<int64_t>& order) {
  Groups groups(order, [&](int64_t a, int64_t b) { return x[a] == x[b]; });
  std::vector<T> values;
  values.reserve(groups.first.size());
  for (int64_t at : groups.first) values.push_back(x[at]);
  return {
      std::move(values), std::move(groups.counts), std::move(groups.inverse)};
}

// Without places: the values are sorted alone.
template <class T>
Distinct<T> distinct_by_value(const T* x, int64_t n) {
  std::vector<T> sorted(x, x + n);
  std::sort(sorted.begin(), sorted.end(), less<T>);
  Distinct<T> out;
  for (size_t i = 0; i < sorted.size(); ++i) {
    if (i == 0 || !(sorted[i] == sorted[i - 1])) {
      out.values.push_back(sorted[i]);
      out.counts.push_back(0);
    }
    ++out.counts.back();
  }
  return out;
}

// Integers whose range is not much wider than they are many are counted.
std::optional<Distinct<int64_t>> distinct_by_table(const int64_t* x,
                                                   int64_t n,
                                                   bool inverse) {
  if (n == 0) return std::nullopt;
  Extent e = extent_of(x, n);
  uint64_t width =
      static_cast<uint64_t>(e.highest) - static_cast<uint64_t>(e.lowest);
  if (width > static_cast<uint64_t>(4 * n)) return std::nullopt;
  std::vector<int64_t> table(static_cast<size_t>(width) + 1);
  count_integers(x, n, e.lowest, table.data());
  Distinct<int64_t> out;
  for (size_t i = 0; i < table.size(); ++i) {
    if (table[i] == 0) continue;
    out.counts.push_back(table[i]);
    table[i] = static_cast<int64_t>(out.values.size());
    out.values.push_back(e.lowest + static_cast<int64_t>(i));
  }
  if (inverse) {
    out.inverse.resize(static_cast<size_t>(n));
    std::transform(x, x + n, out.inverse.begin(), [&](int64_t v) {
      return table[static_cast<size_t>(v - e.lowest)];
    });
  }
  return out;
}

template <class T>
Distinct<T> distinct(const T* x, int64_t n, bool inverse) {
  if constexpr (std::is_same_v<T, int64_t>) {
    if (auto found = distinct_by_table(x, n, inverse)) return std::move(*found);
  }
  return inverse ? distinct_by_order(x, order_of(x, n))
                 : distinct_by_value(x, n);
}

Three unique_elements(std::string_view op,
                      const Tensor& self,
                      bool inverse,
                      bool counts) {
  ScalarType type = wide_type(self.dtype());
  Tensor flat = contiguous_as(self, type);
  Three out;
  visit_real(op, type, [&](auto tag) {
    using T = decltype(tag);
    Distinct<T> found = distinct(flat.const_data<T>(), flat.numel(), inverse);
    int64_t count[] = {static_cast<int64_t>(found.values.size())};
    Tensor values = make_tensor(op, count, type);
    std::copy(
        found.values.begin(), found.values.end(), values.mutable_data<T>());
    out = {cast(values, self.dtype()),
           inverse ? longs(found.inverse, self.sizes()) : no_longs(),
           counts ? longs(found.counts) : no_longs()};
  });
  return out;
}

// The first of each run of equal neighbours goes to values, its place to
// starts if that is wanted; how many there are. An element that begins no run
// is overwritten by the next: without branches.
template <class T>
int64_t find_runs(const T* x, int64_t n, T* values, int64_t* starts) {
  if (n == 0) return 0;
  values[0] = x[0];
  int64_t found = 1;
  if (starts == nullptr) {
    for (int64_t i = 1; i < n; ++i) {
      values[found] = x[i];
      found += !(x[i] == x[i - 1]);
    }
    return found;
  }
  starts[0] = 0;
  for (int64_t i = 1; i < n; ++i) {
    values[found] = x[i];
    starts[found] = i;
    found += !(x[i] == x[i - 1]);
  }
  return found;
}

Three unique_runs(std::string_view op,
                  const Tensor& self,
                  bool inverse,
                  bool counts) {
  ScalarType type = wide_type(self.dtype());
  Tensor flat = contiguous_as(self, type);
  int64_t n = flat.numel(), all[] = {n};
  Three out;
  visit_real(op, type, [&](auto tag) {
    using T = decltype(tag);
    Tensor firsts = make_tensor(op, all, type);
    std::vector<int64_t> starts(
        static_cast<size_t>(inverse || counts ? n + 1 : 0));
    int64_t* at = starts.empty() ? nullptr : starts.data();
    int64_t found =
        find_runs(flat.const_data<T>(), n, firsts.mutable_data<T>(), at);
    int64_t count[] = {found};
    // What is at least half full is kept, with its memory.
    Tensor values = firsts;
    if (found > n / 2) {
      resize_tensor(values, count);
    } else {
      values = make_tensor(op, count, type);
      std::copy_n(firsts.const_data<T>(), found, values.mutable_data<T>());
    }
    Tensor group = inverse ? make_tensor(op, self.sizes(), kLong) : no_longs();
    Tensor length = counts ? make_tensor(op, count, kLong) : no_longs();
    int64_t* groups = group.mutable_data<int64_t>();
    int64_t* lengths = length.mutable_data<int64_t>();
    if (at != nullptr) at[found] = n;
    for (int64_t k = 0; at != nullptr && k < found; ++k) {
      if (inverse) std::fill(groups + at[k], groups + at[k + 1], k);
      if (counts) lengths[k] = at[k + 1] - at[k];
    }
    out = {cast(values, self.dtype()), group, length};
  });
  return out;
}

// For `count` slices of self along dim, each slice in one piece of memory.
Tensor slices_tensor(std::string_view op,
                     const Tensor& self,
                     int64_t dim,
                     int64_t count,
                     ScalarType type) {
  if (self.dim() == 0) return make_tensor(op, {}, type);
  DimVector shape(self.sizes());
  shape.erase(shape.begin() + dim);
  shape.insert(shape.begin(), count);
  DimVector strides = contiguous_strides(shape);
  int64_t step = strides[0];
  strides.erase(strides.begin());
  strides.insert(strides.begin() + dim, step);
  shape = DimVector(self.sizes());
  shape[static_cast<size_t>(dim)] = count;
  return make_tensor_strided(op, shape, strides, type);
}

Three unique_slices(std::string_view op,
                    const Tensor& self,
                    int64_t dim,
                    bool in_order,
                    bool inverse,
                    bool counts) {
  int64_t at = wrap_dim(dim, self.dim());
  ScalarType type = wide_type(self.dtype());
  AlongDim f = along_dim(self, at, type);
  int64_t n = f.n;
  if (self.numel() == 0) {
    TAEDA_CHECK(n == 0,
                op,
                ": There are 0 sized dimensions, and they aren't selected, so "
                "unique cannot be applied");
  }
  Three out;
  visit_real(op, type, [&](auto tag) {
    using T = decltype(tag);
    const T* x = f.in<T>();
    // Compares slices element by element: -1, 0 or 1.
    auto compare = [&](int64_t a, int64_t b) {
      for (int64_t o = 0; o < f.outer; ++o) {
        for (int64_t i = 0; i < f.inner; ++i) {
          T p = x[(o * n + a) * f.inner + i], q = x[(o * n + b) * f.inner + i];
          if (less(p, q)) return -1;
          if (!(p == q)) return 1;
        }
      }
      return 0;
    };
    std::vector<int64_t> order = counting(n);
    if (in_order) {
      std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
        return compare(a, b) < 0;
      });
    }
    Groups groups(order,
                  [&](int64_t a, int64_t b) { return compare(a, b) == 0; });
    int64_t found = static_cast<int64_t>(groups.first.size());
    Tensor values = slices_tensor(op, self, at, found, type);
    T* v = values.mutable_data<T>();
    for (int64_t k : groups.first) {
      for (int64_t o = 0; o < f.outer; ++o) {
        v = std::copy_n(x + (o * n + k) * f.inner, f.inner, v);
      }
    }
    out = {cast(values, self.dtype()),
           inverse ? longs(groups.inverse) : no_longs(),
           counts ? longs(groups.counts) : no_longs()};
  });
  return out;
}

}  // namespace

Three _unique2(const Tensor& self,
               bool,
               bool return_inverse,
               bool return_counts) {
  return unique_elements("unique", self, return_inverse, return_counts);
}

std::tuple<Tensor, Tensor> _unique(const Tensor& self,
                                   bool,
                                   bool return_inverse) {
  auto [values, inverse, counts] =
      unique_elements("unique", self, return_inverse, false);
  return {values, inverse};
}

Three unique_dim(const Tensor& self,
                 int64_t dim,
                 bool,
                 bool return_inverse,
                 bool return_counts) {
  return unique_slices(
      "unique_dim", self, dim, true, return_inverse, return_counts);
}

Three unique_dim_consecutive(const Tensor& self,
                             int64_t dim,
                             bool return_inverse,
                             bool return_counts) {
  return unique_slices(
      "unique_consecutive", self, dim, false, return_inverse, return_counts);
}

Three unique_consecutive(const Tensor& self,
                         bool return_inverse,
                         bool return_counts,
                         std::optional<int64_t> dim) {
  if (dim) {
    return unique_dim_consecutive(self, *dim, return_inverse, return_counts);
  }
  return unique_runs("unique_consecutive", self, return_inverse, return_counts);
}

}  // namespace taeda::native
