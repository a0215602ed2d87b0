#include <taeda/aten/native/cpu/transposed_copy.h>
#include <taeda/aten/parallel/parallel.h>

#include <algorithm>
#include <cstring>

namespace taeda {

namespace {

constexpr int64_t kLine = 64;  // bytes of a cache line
constexpr int64_t kSmallest = 8;
constexpr int64_t kBand = 128;
constexpr int64_t kGrain = 32768;

struct Block16 {
  uint64_t half[2];
};

// Note [Transposing by cache lines]
// A tile is a line of elements square. It is read line by line, turned in a
// buffer that stays in the first cache, and written line by line, so that each
// line of memory is touched once however far apart the rows lie (rows a power
// of two apart share a cache set).
template <class T>
void copy_tile(char* dst,
               int64_t dst_step,
               const char* src,
               int64_t src_step,
               int64_t rows,
               int64_t columns) {
  constexpr int64_t kSide = kLine / sizeof(T);
  alignas(kLine) T turned[kSide][kSide];
  for (int64_t i = 0; i < rows; ++i) {
    const T* line = reinterpret_cast<const T*>(src + i * src_step);
    for (int64_t k = 0; k < columns; ++k) turned[k][i] = line[k];
  }
  for (int64_t k = 0; k < columns; ++k) {
    std::memcpy(dst + k * dst_step, turned[k], rows * sizeof(T));
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
  constexpr int64_t kSide = kLine / sizeof(T);
  int64_t columns = space.size(across);
  int64_t dst_step = space.stride(0, across), src_step = space.stride(1, 0);
  for (int64_t k = 0; k < columns; k += kSide) {
    int64_t width = std::min(kSide, columns - k);
    for (int64_t i = first; i < last; i += kSide) {
      copy_tile<T>(dst + k * dst_step + i * static_cast<int64_t>(sizeof(T)),
                   dst_step,
                   src + k * static_cast<int64_t>(sizeof(T)) + i * src_step,
                   src_step,
                   std::min(kSide, last - i),
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
      space.stride(1, 0) == unit || space.size(0) < kSmallest) {
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
