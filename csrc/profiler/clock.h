// The time stamp counter, which costs a third of asking the system; its rate
// and offset come from asking the system at both ends of a recording.
#pragma once

#include <chrono>
#include <cstdint>

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace taeda::profiler {

inline int64_t system_ns() {
  auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
}
inline int64_t ticks() {
#if defined(__x86_64__)
  return static_cast<int64_t>(__rdtsc());
#else
  return system_ns();
#endif
}

struct Moment {
  int64_t tick = ticks();
  int64_t ns = system_ns();
};

// Between two moments that are not the same.
inline int64_t to_ns(int64_t tick, const Moment& first, const Moment& last) {
  double rate = static_cast<double>(last.ns - first.ns) /
                static_cast<double>(last.tick - first.tick);
  return first.ns +
         static_cast<int64_t>(static_cast<double>(tick - first.tick) * rate);
}

}  // namespace taeda::profiler
