// Nothing is moved: each step counts how many numbers are up to a pivot, which
// is a guess at the median from a straight line between two bounds. G.
// Beliakov, "Parallel calculation of the median and order statistics on GPUs
// with application to robust regression" (2011), finds pivots by cutting
// planes.
#include <taeda/aten/native/cpu/kernels/medians.h>

#include <taeda/aten/native/cpu/kernels/isa.h>

#include <cstring>

TAEDA_ISA_BEGIN

namespace {

// g++ 12 compares longer vectors than the level has lane by lane.
#if defined(__AVX512F__)
constexpr int kBytes = 64;
#elif defined(__AVX2__)
constexpr int kBytes = 32;
#else
constexpr int kBytes = 16;
#endif
typedef int32_t Keys __attribute__((vector_size(kBytes)));
constexpr int64_t kCount = kBytes / 4;
constexpr int64_t kWhole = 32;  // rows have a multiple of this many keys
constexpr int32_t kNan = INT32_MAX, kLowest = INT32_MIN;

// Keys have the order of numbers, after which NaN comes; -0 equals 0. No number
// has the lowest key.
[[gnu::always_inline]] inline int32_t key_of(float value) {
  int32_t bits = __builtin_bit_cast(int32_t, value + 0.0f);
  return value != value ? kNan : bits ^ ((bits >> 31) & INT32_MAX);
}
[[gnu::always_inline]] inline float value_of(int32_t key) {
  return __builtin_bit_cast(float, key ^ ((key >> 31) & INT32_MAX));
}

[[gnu::always_inline]] inline Keys load(const int32_t* keys) {
  Keys v;
  std::memcpy(&v, keys, sizeof(v));
  return v;
}

// All lanes in one, half by half.
template <int kLanes, class F>
[[gnu::always_inline]] inline int32_t fold(int32_t* lanes, F f) {
  if constexpr (kLanes == 1) {
    return lanes[0];
  } else {
    constexpr int half = kLanes / 2;
    for (int l = 0; l < half; ++l) lanes[l] = f(lanes[l], lanes[l + half]);
    return fold<half>(lanes, f);
  }
}
template <class F>
[[gnu::always_inline]] inline int32_t fold(Keys v, F f) {
  int32_t lanes[kCount];
  std::memcpy(lanes, &v, sizeof(lanes));
  return fold<kCount>(lanes, f);
}
inline int32_t smaller(int32_t a, int32_t b) { return a < b ? a : b; }
inline int32_t larger(int32_t a, int32_t b) { return a > b ? a : b; }

// A row's keys, and kNan up to whole vectors.
class Row {
 public:
  Row(const float* in, int64_t step, int64_t n, int32_t* keys)
      : keys_(keys), end_((n + kWhole - 1) / kWhole * kWhole) {
    if (step == 1) {
      for (int64_t i = 0; i < n; ++i) keys[i] = key_of(in[i]);
    } else {
      for (int64_t i = 0; i < n; ++i) keys[i] = key_of(in[i * step]);
    }
    for (int64_t i = n; i < end_; ++i) keys[i] = kNan;
  }

  // How many keys are at most `bound`, which is less than kNan.
  int64_t up_to(int32_t bound) const {
    constexpr int kVectors = kWhole / kCount;
    Keys sums[kVectors] = {};
    for (int64_t i = 0; i < end_; i += kWhole) {
      for (int v = 0; v < kVectors; ++v) {
        sums[v] -= at(i + v * kCount) <= bound;
      }
    }
    int64_t total = 0;
    for (int64_t l = 0; l < kCount; ++l) {
      for (const Keys& sum : sums) total += sum[l];
    }
    return total;
  }
  int32_t least_above(int32_t bound) const {
    Keys least = Keys{} + kNan;
    for (int64_t i = 0; i < end_; i += kCount) {
      Keys x = at(i);
      Keys fit = x > bound ? x : Keys{} + kNan;
      least = fit < least ? fit : least;
    }
    return fold(least, smaller);
  }
  int32_t most_up_to(int32_t bound) const {
    Keys most = Keys{} + kLowest;
    for (int64_t i = 0; i < end_; i += kCount) {
      Keys x = at(i);
      Keys fit = x <= bound ? x : Keys{} + kLowest;
      most = fit > most ? fit : most;
    }
    return fold(most, larger);
  }
  // The place of one of the keys that equal `key`, `skipped` of which come
  // before it.
  int64_t find(int32_t key, int64_t skipped) const {
    for (int64_t i = 0;; i += kCount) {
      int found = 0;
      for (int64_t l = 0; l < kCount; ++l) found += keys_[i + l] == key;
      if (found <= skipped) {
        skipped -= found;
        continue;
      }
      for (int64_t l = 0;; ++l) {
        if (keys_[i + l] == key && skipped-- == 0) return i + l;
      }
    }
  }

 private:
  Keys at(int64_t i) const { return load(keys_ + i); }

  const int32_t* keys_;
  int64_t end_;
};

// The place of the k-th smallest of n <= kRoom numbers: that of
// which as many numbers are smaller, or less where several equal it.
template <int64_t kRoom>
int64_t among_few(const int32_t* keys, int64_t n, int32_t k) {
  constexpr int kVectors = kRoom / kCount;
  Keys x[kVectors], smaller_ones[kVectors] = {}, most = Keys{} - 1;
  for (int v = 0; v < kVectors; ++v) x[v] = load(keys + v * kCount);
  for (int64_t i = 0; i < n; ++i) {
    for (int v = 0; v < kVectors; ++v) smaller_ones[v] -= keys[i] < x[v];
  }
  for (Keys& count : smaller_ones) {
    Keys fit = count <= k ? count : Keys{} - 1;
    most = fit > most ? fit : most;
  }
  int32_t before = fold(most, larger), counts[kRoom];
  std::memcpy(counts, smaller_ones, sizeof(counts));
  for (int64_t i = 0;; ++i) {
    if (counts[i] == before && k-- == before) return i;
  }
}

// Between low and high, where the k-th of n numbers would be if they were
// spread evenly; the middle of the keys where that is no number between them.
int32_t guess(int32_t low, int32_t high, double part, bool halve) {
  int64_t middle = (int64_t{low} + high) >> 1;
  double a = value_of(low), b = value_of(high);
  double value = a + (b - a) * part;
  if (halve || !(value > a && value < b)) return static_cast<int32_t>(middle);
  int32_t key = key_of(static_cast<float>(value));
  if (key >= high) key = high - 1;
  return key > low ? key : static_cast<int32_t>(middle);
}

// The k-th smallest of the row's numbers, of which `count` are no NaN.
int32_t kth(const Row& row, int64_t k, int64_t count) {
  int32_t low = row.least_above(kLowest), high = row.most_up_to(kNan - 1);
  int64_t below = row.up_to(low), upto = count;  // numbers up to low, and high
  if (k < below) return low;
  for (bool halve = false; upto > k + 1 && below < k && high - 1 > low;) {
    int64_t inside = upto - below;
    double part =
        (static_cast<double>(k - below) + 0.5) / static_cast<double>(inside);
    int32_t pivot = guess(low, high, part, halve);
    int64_t found = row.up_to(pivot);
    if (found > k) {
      high = pivot;
      upto = found;
    } else {
      low = pivot;
      below = found;
    }
    // Numbers that are spread unevenly: half of the keys go.
    halve = 2 * (upto - below) > inside;
  }
  if (upto == k + 1) return row.most_up_to(high);
  return below == k ? row.least_above(low) : high;
}

int64_t place(
    const float* in, int64_t step, int64_t n, bool skip_nan, int32_t* keys) {
  Row row(in, step, n, keys);
  int64_t numbers = row.up_to(kNan - 1);
  // As many numbers come before the first NaN as there are.
  if (numbers < n && (!skip_nan || numbers == 0)) return row.find(kNan, 0);
  int64_t k = (numbers - 1) / 2;
  if (n <= kWhole) return among_few<kWhole>(keys, n, static_cast<int32_t>(k));
  if (n <= 2 * kWhole) {
    return among_few<2 * kWhole>(keys, n, static_cast<int32_t>(k));
  }
  int32_t key = kth(row, k, numbers);
  return row.find(key, k - row.up_to(key - 1));
}

}  // namespace

extern const MedianTable kMedianTable = {place};

TAEDA_ISA_END
