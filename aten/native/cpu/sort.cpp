// sort, argsort, topk, kthvalue, median, nanmedian, mode.
#include <taeda/aten/native/cpu/along_dim.h>
#include <taeda/aten/native/cpu/isa_table.h>
#include <taeda/aten/native/cpu/kernels/extrema.h>
#include <taeda/aten/native/cpu/kernels/medians.h>
#include <taeda/aten/native/cpu/kth_key.h>
#include <taeda/aten/native/cpu/radix_sort.h>
#include <taeda/aten/native/dim_rules.h>
#include <taeda/aten/parallel/parallel.h>
#include <taeda/gen/native/kthvalue.h>
#include <taeda/gen/native/median.h>
#include <taeda/gen/native/mode.h>
#include <taeda/gen/native/nanmedian.h>
#include <taeda/gen/native/sort.h>
#include <taeda/gen/native/topk.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <optional>
#include <vector>

namespace taeda::native {

namespace {

constexpr int64_t kSortGrain = 4096;

template <class T>
struct Item {
  T value;
  int64_t index;
};

// NaN is larger than everything.
template <class T>
bool less(T a, T b) {
  return a < b || (b != b && a == a);
}
template <class T>
struct Ascending {
  bool operator()(const Item<T>& a, const Item<T>& b) const {
    return less(a.value, b.value);
  }
};
template <class T>
struct Descending {
  bool operator()(const Item<T>& a, const Item<T>& b) const {
    return less(b.value, a.value);
  }
};

template <class F>
void visit_sortable(ScalarType type, F&& f) {
  if (type == kFloat) return f(float{});
  return type == kDouble ? f(double{}) : f(int64_t{});
}

// f(items, row) for every row of the frame, items filled.
template <class T, class F>
void sort_rows(const AlongDim& frame, F&& f) {
  const T* in = frame.in<T>();
  int64_t grain =
      std::max<int64_t>(1, kSortGrain / std::max<int64_t>(frame.n, 1));
  parallel_for(0, frame.rows(), grain, [&](int64_t begin, int64_t end) {
    std::vector<Item<T>> items(static_cast<size_t>(frame.n));
    for (int64_t r = begin; r < end; ++r) {
      int64_t at = r / frame.inner * frame.n * frame.inner + r % frame.inner;
      for (int64_t i = 0; i < frame.n; ++i) {
        items[static_cast<size_t>(i)] = {in[at + i * frame.inner], i};
      }
      f(items, r);
    }
  });
}

struct Picked {
  Tensor values, indices;
};

// Room for k picks a row, in the type that is computed in.
Picked room(std::string_view op, const Tensor& self, int64_t dim, int64_t k) {
  DimVector shape(self.sizes());
  if (!shape.empty()) shape[static_cast<size_t>(dim)] = k;
  return {make_tensor(op, shape, wide_type(self.dtype()), self.device()),
          make_tensor(op, shape, kLong, self.device())};
}

template <class T>
void put(const Picked& out,
         const AlongDim& frame,
         int64_t k,
         int64_t row,
         const Item<T>* items) {
  T* values = out.values.mutable_data<T>();
  int64_t* indices = out.indices.mutable_data<int64_t>();
  int64_t at = row / frame.inner * k * frame.inner + row % frame.inner;
  for (int64_t i = 0; i < k; ++i, at += frame.inner) {
    values[at] = items[i].value;
    indices[at] = items[i].index;
  }
}

// Sorts rows by keys; one for each thread.
template <class T, class Key>
class RowSorter {
 public:
  // put(i, item) for the i-th of a row whose elements lie `step` apart.
  template <class KeyOf, class Put>
  void run(const T* row, int64_t n, int64_t step, KeyOf&& key_of, Put&& put) {
    items_.resize(static_cast<size_t>(n));
    for (int64_t i = 0; i < n; ++i) {
      items_[static_cast<size_t>(i)] = {key_of(row[i * step]),
                                        static_cast<uint32_t>(i)};
    }
    radix_sort(items_, spare_);
    for (int64_t i = 0; i < n; ++i) put(i, items_[static_cast<size_t>(i)]);
  }

 private:
  std::vector<Keyed<Key>> items_, spare_;
};

// The least of a row whose elements are less than 2^32 apart, if it is such.
std::optional<int64_t> narrow_base(const int64_t* row,
                                   int64_t n,
                                   int64_t step) {
  int64_t low = row[0], high = row[0];
  for (int64_t i = 1; i < n; ++i) {
    low = std::min(low, row[i * step]);
    high = std::max(high, row[i * step]);
  }
  uint64_t range = static_cast<uint64_t>(high) - static_cast<uint64_t>(low);
  bool narrow = range <= std::numeric_limits<uint32_t>::max();
  return narrow ? std::optional(low) : std::nullopt;
}

template <class T>
void sort_long_rows(const Picked& out, const AlongDim& frame, bool descending) {
  using Key = decltype(order_key(T{}));
  const T* in = frame.in<T>();
  T* values = out.values.mutable_data<T>();
  int64_t* indices = out.indices.mutable_data<int64_t>();
  const int64_t n = frame.n, step = frame.inner;
  const uint32_t turn = descending ? ~uint32_t{0} : 0;
  parallel_for(0, frame.rows(), 1, [&](int64_t begin, int64_t end) {
    RowSorter<T, Key> sorter;
    RowSorter<T, uint32_t> narrow_sorter;
    for (int64_t r = begin; r < end; ++r) {
      int64_t at = r / step * n * step + r % step;
      const T* row = in + at;
      if constexpr (std::is_same_v<T, int64_t>) {
        if (std::optional<int64_t> base = narrow_base(row, n, step)) {
          auto low = static_cast<uint64_t>(*base);
          narrow_sorter.run(
              row,
              n,
              step,
              [&](T v) {
                return static_cast<uint32_t>(static_cast<uint64_t>(v) - low) ^
                       turn;
              },
              [&](int64_t i, Keyed<uint32_t> item) {
                values[at + i * step] =
                    static_cast<int64_t>(low + (item.key ^ turn));
                indices[at + i * step] = item.place;
              });
          continue;
        }
      }
      sorter.run(
          row,
          n,
          step,
          [&](T v) { return order_key(v) ^ (descending ? ~Key{0} : Key{0}); },
          [&](int64_t i, Keyed<Key> item) {
            values[at + i * step] = row[item.place * step];
            indices[at + i * step] = item.place;
          });
    }
  });
}

// The unstable order of ties is std::sort's, which is PyTorch's, too.
template <class T, class Before>
void sort_items(std::vector<Item<T>>& items, bool stable) {
  if (stable) {
    std::stable_sort(items.begin(), items.end(), Before());
  } else {
    std::sort(items.begin(), items.end(), Before());
  }
}

Picked sorted(const Tensor& self, int64_t dim, bool descending, bool stable) {
  refuse_unordered("sort", self.dtype());
  int64_t at = wrap_dim(dim, self.dim());
  int64_t n = self.dim() == 0 ? 1 : self.sizes()[at];
  Picked out = room("sort", self, at, n);
  if (self.is_meta() || self.numel() == 0) return out;
  AlongDim frame = along_dim(self, at, out.values.dtype());
  // Long rows of narrow types consist of ties, so their order is kept as
  // PyTorch's; those of wide types are sorted quickly, and stably.
  bool by_bits = n >= kRadixLength &&
                 n <= std::numeric_limits<uint32_t>::max() &&
                 (stable || self.itemsize() > 2);
  visit_sortable(out.values.dtype(), [&](auto tag) {
    using T = decltype(tag);
    if (by_bits) {
      sort_long_rows<T>(out, frame, descending);
      return;
    }
    sort_rows<T>(frame, [&](std::vector<Item<T>>& items, int64_t row) {
      if (descending) {
        sort_items<T, Descending<T>>(items, stable);
      } else {
        sort_items<T, Ascending<T>>(items, stable);
      }
      put(out, frame, n, row, items.data());
    });
  });
  return out;
}

void give(const Picked& found, const Tensor& values, const Tensor& indices) {
  copy_into(values, found.values);
  copy_into(indices, found.indices);
}

}  // namespace

void sort_cpu(const Tensor& self,
              int64_t dim,
              bool descending,
              const Tensor& values,
              const Tensor& indices) {
  give(sorted(self, dim, descending, /*stable=*/false), values, indices);
}
void sort_cpu(const Tensor& self,
              std::optional<bool> stable,
              int64_t dim,
              bool descending,
              const Tensor& values,
              const Tensor& indices) {
  bool keeps_ties = stable.value_or(false);
  give(sorted(self, dim, descending, keeps_ties), values, indices);
}

namespace {

template <class T>
const ExtremumKernels<T>& extremum_kernels() {
  const ExtremumTable& table = TAEDA_ISA_TABLE(kExtremumTable);
  if constexpr (std::is_same_v<T, float>) return table.f32;
  if constexpr (std::is_same_v<T, double>) return table.f64;
  if constexpr (std::is_same_v<T, int64_t>) return table.i64;
}

// Of a row only the items that may be among the best k, in their order: those
// that are better than the worst of the best k before them. Others change
// nothing in the heap of a partial sort, ties included.
template <class T, class Before>
void find_candidates(const T* row,
                     int64_t n,
                     int64_t k,
                     std::vector<Item<T>>& items) {
  constexpr int64_t kFewLeft = 64;  // a loop over them is over sooner
  const bool largest = std::is_same_v<Before, Descending<T>>;
  const auto beyond = extremum_kernels<T>().beyond;
  items.clear();
  for (int64_t i = 0; i < k; ++i) items.push_back({row[i], i});
  std::vector<Item<T>> best = items;  // a heap, the worst in front
  std::make_heap(best.begin(), best.end(), Before());
  for (int64_t i = k; i < n; ++i) {
    const T bound = best.front().value;
    if (bound == bound && n - i > kFewLeft && i >= kFewLeft) {
      i += beyond(row + i, n - i, bound, largest);
      if (i == n) return;
    }
    const Item<T> item{row[i], i};
    if (!Before()(item, best.front())) continue;
    items.push_back(item);
    std::pop_heap(best.begin(), best.end(), Before());
    best.back() = item;
    std::push_heap(best.begin(), best.end(), Before());
  }
}

template <class T, class Before>
void pick_top(std::vector<Item<T>>& items, int64_t k, bool in_order) {
  auto end = items.begin() + k;
  // The last of the picks is in place already; ties fall as in PyTorch.
  std::nth_element(items.begin(), end - 1, items.end(), Before());
  if (in_order) std::sort(items.begin(), end - 1, Before());
}

template <class T, class Before>
void top_rows(const Picked& out,
              const AlongDim& frame,
              int64_t k,
              bool in_order) {
  if (k * 64 > frame.n) {
    sort_rows<T>(frame, [&](std::vector<Item<T>>& items, int64_t row) {
      pick_top<T, Before>(items, k, in_order);
      put(out, frame, k, row, items.data());
    });
    return;
  }
  int64_t grain = std::max<int64_t>(1, kSortGrain / frame.n);
  parallel_for(0, frame.rows(), grain, [&](int64_t begin, int64_t end) {
    std::vector<Item<T>> items;
    std::vector<T> gathered(static_cast<size_t>(frame.inner > 1 ? frame.n : 0));
    for (int64_t r = begin; r < end; ++r) {
      const T* row = frame.in<T>() + r / frame.inner * frame.n * frame.inner +
                     r % frame.inner;
      if (frame.inner > 1) {
        for (size_t i = 0; i < gathered.size(); ++i) {
          gathered[i] = row[static_cast<int64_t>(i) * frame.inner];
        }
        row = gathered.data();
      }
      find_candidates<T, Before>(row, frame.n, k, items);
      std::partial_sort(
          items.begin(), items.begin() + k, items.end(), Before());
      put(out, frame, k, r, items.data());
    }
  });
}

}  // namespace

void topk_cpu(const Tensor& self,
              int64_t k,
              int64_t dim,
              bool largest,
              bool in_order,
              const Tensor& values,
              const Tensor& indices) {
  if (values.numel() == 0) return;
  if (self.dim() == 0) k = 1;  // a result of one element, also where k is 0
  int64_t at = wrap_dim(dim, self.dim());
  Picked out = room("topk", self, at, k);
  AlongDim frame = along_dim(self, at, out.values.dtype());
  visit_sortable(out.values.dtype(), [&](auto tag) {
    using T = decltype(tag);
    if (largest) {
      top_rows<T, Descending<T>>(out, frame, k, in_order);
    } else {
      top_rows<T, Ascending<T>>(out, frame, k, in_order);
    }
  });
  give(out, values, indices);
}

namespace {

// f(tag, frame, picked) in the type that is computed in, one pick a row.
template <class F>
void in_wide_type(const Tensor& self,
                  int64_t dim,
                  const Tensor& values,
                  const Tensor& indices,
                  F&& f) {
  if (indices.numel() == 0) return;
  int64_t at = wrap_dim(dim, self.dim());
  ScalarType type = wide_type(self.dtype());
  bool direct = type == values.dtype();
  Picked out{direct ? values : make_tensor("choose", values.sizes(), type),
             indices};
  AlongDim frame = along_dim(self, at, type);
  visit_sortable(type, [&](auto tag) { f(tag, frame, out); });
  if (!direct) copy_into(values, out.values);
}

// Which item of a row is taken.
template <class Choose>
void choose(const Tensor& self,
            int64_t dim,
            const Tensor& values,
            const Tensor& indices,
            Choose&& pick) {
  in_wide_type(self,
               dim,
               values,
               indices,
               [&](auto tag, const AlongDim& frame, const Picked& out) {
                 using T = decltype(tag);
                 sort_rows<T>(frame,
                              [&](std::vector<Item<T>>& items, int64_t row) {
                                Item<T> found = pick(items);
                                put(out, frame, 1, row, &found);
                              });
               });
}

// The k-th item in ascending order. Which of several equal ones it is follows
// from the exchanges of Hoare's selection with the median of three as pivot
// (Press et al., "Numerical Recipes", section 8.5), so that it is PyTorch's.
template <class T>
Item<T> kth_by_exchanges(std::vector<Item<T>>& items, int64_t k) {
  Item<T>* x = items.data();
  auto above = [x](int64_t a, int64_t b) {
    return less(x[b].value, x[a].value);
  };
  auto in_order = [&](int64_t low, int64_t high) {
    if (above(low, high)) std::swap(x[low], x[high]);
  };
  int64_t first = 0, last = static_cast<int64_t>(items.size()) - 1;
  while (last - first > 1) {
    std::swap(x[(first + last) / 2], x[first + 1]);
    in_order(first + 1, last);
    in_order(first, last);
    in_order(first + 1, first);
    // The pivot lies first, with guards on both sides of what is parted.
    int64_t i = first + 1, j = last;
    for (;;) {
      while (above(first, ++i)) {
      }
      while (above(--j, first)) {
      }
      if (j < i) break;
      std::swap(x[i], x[j]);
    }
    std::swap(x[first], x[j]);
    if (j <= k) first = i;
    if (j >= k) last = j - 1;
  }
  if (last - first == 1) in_order(first, last);
  return x[k];
}

// Finds the medians of rows; equal values are told apart by their places, of
// which the first counts.
template <class T>
class Medians {
  using Key = unsigned __int128;
  static constexpr int kPlace = 64;  // bits of a place

 public:
  explicit Medians(int64_t n)
      : n_(n),
        keys_(std::make_unique_for_overwrite<Key[]>(static_cast<size_t>(n))),
        spare_(std::make_unique_for_overwrite<Key[]>(static_cast<size_t>(n))) {}

  int64_t of(const T* row, int64_t step, bool skip_nan) {
    int64_t numbers = 0;
    for (int64_t i = 0; i < n_; ++i) {
      T value = row[i * step];
      keys_[static_cast<size_t>(i)] =
          static_cast<Key>(order_key(value)) << kPlace | static_cast<Key>(i);
      numbers += value == value;
    }
    int64_t k = (numbers - 1) / 2;
    // NaN follows every number, so that the first one has as many before it.
    if (numbers < n_ && (!skip_nan || numbers == 0)) k = numbers;
    Key found = kth_key(keys_.get(),
                        spare_.get(),
                        static_cast<size_t>(n_),
                        static_cast<size_t>(k));
    return static_cast<int64_t>(found & ((Key{1} << kPlace) - 1));
  }

 private:
  int64_t n_;
  std::unique_ptr<Key[]> keys_, spare_;
};

// The same without moving keys, which have 32 bits.
template <>
class Medians<float> {
 public:
  explicit Medians(int64_t n)
      : n_(n),
        keys_(std::make_unique_for_overwrite<int32_t[]>(static_cast<size_t>(n) +
                                                        31)) {}

  int64_t of(const float* row, int64_t step, bool skip_nan) {
    return TAEDA_ISA_TABLE(kMedianTable)
        .place(row, step, n_, skip_nan, keys_.get());
  }

 private:
  int64_t n_;
  std::unique_ptr<int32_t[]> keys_;
};

template <class T>
void find_medians(const AlongDim& frame, bool skip_nan, const Picked& out) {
  int64_t n = frame.n, inner = frame.inner;
  // A number takes a tenth of what sorting it takes.
  int64_t grain = std::max<int64_t>(1, 8 * kSortGrain / n);
  parallel_for(0, frame.rows(), grain, [&](int64_t begin, int64_t end) {
    Medians<T> medians(n);
    for (int64_t r = begin; r < end; ++r) {
      const T* row = frame.in<T>() + r / inner * n * inner + r % inner;
      int64_t place = medians.of(row, inner, skip_nan);
      Item<T> found{row[place * inner], place};
      put(out, frame, 1, r, &found);
    }
  });
}

void median_rows(const Tensor& self,
                 int64_t dim,
                 bool skip_nan,
                 const Tensor& values,
                 const Tensor& indices) {
  in_wide_type(self,
               dim,
               values,
               indices,
               [&](auto tag, const AlongDim& frame, const Picked& out) {
                 find_medians<decltype(tag)>(frame, skip_nan, out);
               });
}

// The most frequent value, the smallest of several; one of its places,
// PyTorch's as long as both sort with the standard library.
template <class T>
Item<T> mode_of(std::vector<Item<T>>& items) {
  std::sort(items.begin(), items.end(), Ascending<T>());
  Item<T> best = items[0];
  int64_t most = 0, run = 0;
  for (size_t i = 0; i < items.size(); ++i) {
    bool same = i > 0 && items[i].value == items[i - 1].value;
    run = same ? run + 1 : 1;
    if (run > most) {
      most = run;
      best = items[i];
    }
  }
  return best;
}

}  // namespace

void kthvalue_cpu(const Tensor& self,
                  int64_t k,
                  int64_t dim,
                  bool,
                  const Tensor& values,
                  const Tensor& indices) {
  choose(self, dim, values, indices, [&](auto& items) {
    return kth_by_exchanges(items, k - 1);
  });
}
void median_dim_cpu(const Tensor& self,
                    int64_t dim,
                    bool,
                    const Tensor& values,
                    const Tensor& indices) {
  median_rows(self, dim, /*skip_nan=*/false, values, indices);
}
void nanmedian_dim_cpu(const Tensor& self,
                       int64_t dim,
                       bool,
                       const Tensor& values,
                       const Tensor& indices) {
  median_rows(self, dim, /*skip_nan=*/true, values, indices);
}
void mode_cpu(const Tensor& self,
              int64_t dim,
              bool,
              const Tensor& values,
              const Tensor& indices) {
  choose(
      self, dim, values, indices, [](auto& items) { return mode_of(items); });
}

}  // namespace taeda::native
