// Rows of bytes. A call for each row, and what memcpy asks about its length,
// would keep the loads of the next row waiting.
#include <taeda/aten/native/cpu/kernels/copy_rows.h>

#include <cstring>

TAEDA_ISA_BEGIN

namespace {

template <int kBytes>
struct Piece {
  typedef char V __attribute__((vector_size(kBytes)));
};

template <int kBytes>
[[gnu::always_inline]] inline auto load(const char* from) {
  typename Piece<kBytes>::V v;
  std::memcpy(&v, from, kBytes);
  return v;
}
template <int kBytes>
[[gnu::always_inline]] inline void store(char* to,
                                         typename Piece<kBytes>::V v) {
  std::memcpy(to, &v, kBytes);
}

// Rows of kStep bytes or more, in steps; the last one may overlap the one
// before. It is read first: a load behind a store waits for its address.
template <int kStep>
void in_steps(char* to,
              int64_t to_stride,
              const char* from,
              int64_t from_stride,
              int64_t rows,
              int64_t bytes) {
  constexpr int64_t kFour = 4 * kStep;
  int64_t last = bytes - kStep;
  for (int64_t r = 0; r < rows; ++r, to += to_stride, from += from_stride) {
    auto end = load<kStep>(from + last);
    int64_t i = 0;
    for (; i + kFour <= last; i += kFour) {
      auto a = load<kStep>(from + i), b = load<kStep>(from + i + kStep);
      auto c = load<kStep>(from + i + 2 * kStep);
      auto d = load<kStep>(from + i + 3 * kStep);
      store<kStep>(to + i, a);
      store<kStep>(to + i + kStep, b);
      store<kStep>(to + i + 2 * kStep, c);
      store<kStep>(to + i + 3 * kStep, d);
    }
    for (; i < last; i += kStep) {
      store<kStep>(to + i, load<kStep>(from + i));
    }
    store<kStep>(to + last, end);
  }
}

void copy_rows(char* to,
               int64_t to_stride,
               const char* from,
               int64_t from_stride,
               int64_t rows,
               int64_t bytes) {
  auto by = [&](auto loop) {
    loop(to, to_stride, from, from_stride, rows, bytes);
  };
  if (bytes >= 64) return by(&in_steps<64>);
  if (bytes >= 32) return by(&in_steps<32>);
  if (bytes >= 16) return by(&in_steps<16>);
  if (bytes >= 8) return by(&in_steps<8>);
  if (bytes >= 4) return by(&in_steps<4>);
  by(&in_steps<1>);
}

}  // namespace

extern const CopyRowsFn kCopyRows = copy_rows;

TAEDA_ISA_END
