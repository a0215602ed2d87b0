// Intervals of integers, whose ends may be infinite.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

namespace taeda::symbolic {

// Both ends belong to it. kLow and kHigh stand for the infinities; arithmetic
// saturates there.
struct Range {
  static constexpr int64_t kLow = std::numeric_limits<int64_t>::min();
  static constexpr int64_t kHigh = std::numeric_limits<int64_t>::max();

  int64_t low = kLow;
  int64_t high = kHigh;

  static Range of(int64_t v) { return {v, v}; }
  bool is_single() const { return low == high; }
  bool is_empty() const { return low > high; }
  bool contains(int64_t v) const { return low <= v && v <= high; }
  bool operator==(const Range&) const = default;

  Range meet(Range o) const {
    return {std::max(low, o.low), std::min(high, o.high)};
  }
  Range min(Range o) const {
    return {std::min(low, o.low), std::min(high, o.high)};
  }
  Range max(Range o) const {
    return {std::max(low, o.low), std::max(high, o.high)};
  }
};

inline bool is_finite(int64_t end) {
  return end != Range::kLow && end != Range::kHigh;
}

inline int64_t saturated_add(int64_t a, int64_t b) {
  if (!is_finite(a)) return a;
  if (!is_finite(b)) return b;
  int64_t sum;
  if (!__builtin_add_overflow(a, b, &sum)) return sum;
  return a > 0 ? Range::kHigh : Range::kLow;
}
inline int64_t saturated_mul(int64_t a, int64_t b) {
  if (a == 0 || b == 0) return 0;
  int64_t product;
  bool infinite = !is_finite(a) || !is_finite(b);
  if (!infinite && !__builtin_mul_overflow(a, b, &product)) return product;
  return (a > 0) == (b > 0) ? Range::kHigh : Range::kLow;
}

inline Range operator+(Range a, Range b) {
  return {saturated_add(a.low, b.low), saturated_add(a.high, b.high)};
}
inline Range operator*(Range a, Range b) {
  int64_t ends[] = {saturated_mul(a.low, b.low),
                    saturated_mul(a.low, b.high),
                    saturated_mul(a.high, b.low),
                    saturated_mul(a.high, b.high)};
  return {*std::min_element(ends, ends + 4), *std::max_element(ends, ends + 4)};
}

inline int64_t floor_div(int64_t a, int64_t b) {
  int64_t q = a / b;
  return q - ((a % b != 0) && ((a < 0) != (b < 0)));
}
// The remainder with the sign of b, as in Python.
inline int64_t floor_mod(int64_t a, int64_t b) {
  int64_t r = a % b;
  return r != 0 && ((r < 0) != (b < 0)) ? r + b : r;
}

// a // b for a positive divisor; everything where the divisor may be none.
inline Range floor_div(Range a, Range b) {
  if (b.low <= 0) return {};
  auto divide = [](int64_t x, int64_t y) {
    if (!is_finite(x)) return x;
    if (y == Range::kHigh) return x < 0 ? int64_t{-1} : int64_t{0};
    return floor_div(x, y);
  };
  int64_t ends[] = {divide(a.low, b.low),
                    divide(a.low, b.high),
                    divide(a.high, b.low),
                    divide(a.high, b.high)};
  return {*std::min_element(ends, ends + 4), *std::max_element(ends, ends + 4)};
}
inline Range floor_mod(Range a, Range b) {
  if (b.low <= 0) return {};
  int64_t top = b.high == Range::kHigh ? Range::kHigh : b.high - 1;
  // A value already below every divisor is its own remainder.
  if (a.low >= 0 && a.high < b.low) return a;
  return {0, a.low >= 0 ? std::min(top, a.high) : top};
}

}  // namespace taeda::symbolic
