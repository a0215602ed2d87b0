// Errors of stores, connections and process groups. Each kind is an exception
// class in Python, so none of them is a plain taeda::Error.
#pragma once

#include <taeda/c10/util/check.h>

#include <chrono>
#include <stdexcept>
#include <string>

namespace taeda::distributed {

enum class Fault : uint8_t { Any, Store, QueueEmpty, Network, Backend };

class DistError : public std::runtime_error {
 public:
  DistError(Fault fault, const std::string& text)
      : std::runtime_error(text), fault_(fault) {}
  Fault fault() const { return fault_; }

 private:
  Fault fault_;
};

template <class... Args>
[[noreturn]] void fail(Fault fault, const Args&... args) {
  throw DistError(fault, str_cat(args...));
}

using Clock = std::chrono::steady_clock;
using Millis = std::chrono::milliseconds;
using TimePoint = Clock::time_point;

// No limit is written as a negative time; a year stands for it, which is far
// from the clock's overflow.
inline TimePoint after(Millis limit) {
  const auto longest = std::chrono::hours(24 * 365);
  return Clock::now() +
         (limit < Millis::zero() || limit > longest ? Millis(longest) : limit);
}
inline Millis left_until(TimePoint end) {
  const auto left = std::chrono::ceil<Millis>(end - Clock::now());
  return left < Millis::zero() ? Millis::zero() : left;
}

}  // namespace taeda::distributed
