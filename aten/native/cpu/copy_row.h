// Short rows of bytes.
#pragma once

#include <cstdint>
#include <cstring>

namespace taeda {

// memcpy whose call would cost more than a short row.
inline void copy_row(char* to, const char* from, int64_t bytes) {
  constexpr int64_t kStep = 16, kShort = 512;
  if (bytes < kStep || bytes > kShort) {
    std::memcpy(to, from, static_cast<size_t>(bytes));
    return;
  }
  for (int64_t i = 0; i + kStep <= bytes; i += kStep) {
    std::memcpy(to + i, from + i, kStep);
  }
  std::memcpy(to + bytes - kStep, from + bytes - kStep, kStep);
}

}  // namespace taeda
