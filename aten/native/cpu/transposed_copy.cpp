#include <taeda/aten/native/cpu/transposed_copy.h>
#include <taeda/aten/parallel/parallel.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace taeda {

namespace {

constexpr int64_t kLine = 64;  // bytes of a cache line
constexpr int64_t kSmallest = 8;
constexpr int64_t kBand = 128;
constexpr int64_t kGrain = 32768;
constexpr int64_t kAhead = 2;  // tiles

struct Block16 {
  uint64_t half[2];
};

// Note [Transposing by cache lines]
// A tile is a line of elements square. It is read line by line, turned in a
// buffer that stays in the first cache, and written line by line, so that each
// line of memory is touched once however far apart the rows lie (rows a power
// of two apart share a cache set).
template <class T>
constexpr int64_t kSide = kLine / static_cast<int64_t>(sizeof(T));

template <class T>
struct Lanes {
  static constexpr int kCount = 16 / sizeof(T);
  typedef T Vector __attribute__((vector_size(16)));
  typedef T Loose __attribute__((vector_size(16), aligned(1), may_alias));

  // Elements of a and of b in turn, from element `first` on.
  template <int first, size_t... i>
  static Vector in_turn(Vector a, Vector b, std::index_sequence<i...>) {
    constexpr Vector kOrder = {
        static_cast<T>(first + i / 2 + i % 2 * kCount)...};
    return __builtin_shuffle(a, b, kOrder);
  }
};

// A square of as many elements a side as 16 bytes hold, in registers: taking
// elements of row i and of row i + n/2 in turn, log2(n) times, turns it.
template <class T>
void turn_square(T* to, const char* from, int64_t step) {
  using L = Lanes<T>;
  constexpr int kHalf = L::kCount / 2;
  constexpr std::make_index_sequence<L::kCount> kAll;
  typename L::Vector row[L::kCount], next[L::kCount];
#pragma GCC unroll 16
  for (int i = 0; i < L::kCount; ++i) {
    row[i] = *reinterpret_cast<const L::Loose*>(from + i * step);
  }
#pragma GCC unroll 4
  for (int done = 1; done < L::kCount; done *= 2) {
#pragma GCC unroll 8
    for (int i = 0; i < kHalf; ++i) {
      next[2 * i] = L::template in_turn<0>(row[i], row[i + kHalf], kAll);
      next[2 * i + 1] =
          L::template in_turn<kHalf>(row[i], row[i + kHalf], kAll);
    }
#pragma GCC unroll 16
    for (int i = 0; i < L::kCount; ++i) row[i] = next[i];
  }
#pragma GCC unroll 16
  for (int i = 0; i < L::kCount; ++i) {
    *reinterpret_cast<L::Loose*>(to + i * kSide<T>) = row[i];
  }
}

// The lines of the tile that comes next: nothing in the processor foresees so
// many rows at once.
void fetch_lines(const char* src, int64_t src_step, int64_t rows) {
  for (int64_t i = 0; i < rows; ++i) __builtin_prefetch(src + i * src_step);
}

template <class T>
void copy_tile(char* dst,
               int64_t dst_step,
               const char* src,
               int64_t src_step,
               int64_t rows,
               int64_t columns) {
  constexpr int64_t kSquare = std::max<int64_t>(16 / sizeof(T), 1);
  alignas(kLine) T turned[kSide<T>][kSide<T>];
  int64_t whole_rows = 0, whole_columns = 0;
  if constexpr (kSquare > 1) {
    whole_rows = rows / kSquare * kSquare;
    whole_columns = columns / kSquare * kSquare;
    for (int64_t i = 0; i < whole_rows; i += kSquare) {
      for (int64_t k = 0; k < whole_columns; k += kSquare) {
        const char* from = src + k * static_cast<int64_t>(sizeof(T));
        turn_square<T>(&turned[k][i], from + i * src_step, src_step);
      }
    }
  }
  for (int64_t i = 0; i < rows; ++i) {
    const T* line = reinterpret_cast<const T*>(src + i * src_step);
    int64_t k = i < whole_rows ? whole_columns : 0;
    for (; k < columns; ++k) turned[k][i] = line[k];
  }
  for (int64_t k = 0; k < columns; ++k) {
    if (rows == kSide<T>) {
      std::memcpy(dst + k * dst_step, turned[k], kLine);
    } else {
      std::memcpy(dst + k * dst_step, turned[k], rows * sizeof(T));
    }
  }
}

// Dim 0 is contiguous in dst, dim `across` in src.
template <class T>
void copy_band(const IterationSpace& space,
               int across,
               char* dst,
               const char* src,
               int64_t first,
               int64_t last) {
  constexpr auto unit = static_cast<int64_t>(sizeof(T));
  int64_t columns = space.size(across);
  int64_t dst_step = space.stride(0, across), src_step = space.stride(1, 0);
  for (int64_t k = 0; k < columns; k += kSide<T>) {
    int64_t width = std::min(kSide<T>, columns - k);
    for (int64_t i = first; i < last; i += kSide<T>) {
      int64_t rows = std::min(kSide<T>, last - i);
      // Prefetching past the end is harmless.
      fetch_lines(
          src + (k + kAhead * kSide<T>)*unit + i * src_step, src_step, rows);
      copy_tile<T>(dst + k * dst_step + i * unit,
                   dst_step,
                   src + k * unit + i * src_step,
                   src_step,
                   rows,
                   width);
    }
  }
}

template <class T>
void copy_planes(const IterationSpace& space,
                 int across,
                 char* dst,
                 const char* src) {
  int64_t rows = space.size(0), bands = (rows + kBand - 1) / kBand;
  int64_t planes = space.numel() / (rows * space.size(across));
  int64_t grain =
      kGrain / std::max<int64_t>(std::min(rows, kBand) * space.size(across), 1);
  parallel_for(0,
               planes * bands,
               std::max<int64_t>(grain, 1),
               [&](int64_t b, int64_t e) {
                 for (int64_t at = b; at < e; ++at) {
                   int64_t plane = at / bands, to = 0, from = 0;
                   for (int d = 1; d < space.dim(); ++d) {
                     if (d == across) continue;
                     int64_t index = plane % space.size(d);
                     plane /= space.size(d);
                     to += index * space.stride(0, d);
                     from += index * space.stride(1, d);
                   }
                   int64_t first = at % bands * kBand;
                   copy_band<T>(space,
                                across,
                                dst + to,
                                src + from,
                                first,
                                std::min(first + kBand, rows));
                 }
               });
}

}  // namespace

bool copy_transposed(const IterationSpace& space,
                     char* dst,
                     const char* src,
                     size_t itemsize) {
  int64_t unit = static_cast<int64_t>(itemsize);
  if (space.dim() < 2 || space.stride(0, 0) != unit ||
      space.stride(1, 0) == unit || space.stride(1, 0) == 0 ||
      space.size(0) < kSmallest) {
    return false;
  }
  int across = 1;
  while (across < space.dim() && space.stride(1, across) != unit) ++across;
  if (across == space.dim() || space.size(across) < kSmallest) return false;
  switch (itemsize) {
    case 1:
      copy_planes<uint8_t>(space, across, dst, src);
      return true;
    case 2:
      copy_planes<uint16_t>(space, across, dst, src);
      return true;
    case 4:
      copy_planes<uint32_t>(space, across, dst, src);
      return true;
    case 8:
      copy_planes<uint64_t>(space, across, dst, src);
      return true;
    case 16:
      copy_planes<Block16>(space, across, dst, src);
      return true;
    default:
      return false;
  }
}

}  // namespace taeda
