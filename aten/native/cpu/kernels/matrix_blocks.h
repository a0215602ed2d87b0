// Between the matrices of a batch and lanes, as many matrices as there are
// lanes at a time. In lanes a matrix is column-major without gaps.
#pragma once

#include <taeda/aten/native/cpu/kernels/matrix_lanes.h>
#include <taeda/aten/native/cpu/kernels/small_matrices.h>

TAEDA_ISA_BEGIN

namespace {

template <class T>
constexpr int kLaneCount = Lane<T>::kCount;

template <class T>
using LaneNumber = typename Lane<T>::S;

// Room for the elements of a matrix; N rows, or up to kMostRows for N = 0.
template <int N>
constexpr int kRoom = N == 0 ? kMostRows : N;

// The lines (columns or rows) of a matrix whose elements are neighbours in
// memory, `step` elements from each other; in lanes they begin `begin` elements
// from each other and their elements are `gap` apart.
struct Lines {
  int count = 0, length = 0;
  int64_t step = 0;
  int begin = 0, gap = 0;
};

inline Lines lines_of(int64_t row, int64_t column, int rows, int columns) {
  if (row == 1) return {columns, rows, column, rows, 1};
  if (column == 1) return {rows, columns, row, 1, rows};
  return {};
}

// Moves as many real numbers of line `i` as fill registers, kCount at a time;
// gives the elements that were moved. move(block, offset) loads or stores the
// neighbours at `offset` real numbers of all lanes.
template <class T, class Before, class After>
TAEDA_MATRIX_FN int move_line(LaneNumber<T>* lanes,
                              const Lines& lines,
                              int i,
                              Before&& before,
                              After&& after) {
  using L = Lane<T>;
  using V = typename L::V;
  int done = 0;
  V block[L::kCount];
  for (; done + L::kCount <= lines.length * L::kParts; done += L::kCount) {
    auto place = [&](int r) {
      int element = lines.begin * i + (done + r) / L::kParts * lines.gap;
      return reinterpret_cast<V*>(lanes) + element * L::kParts +
             (done + r) % L::kParts;
    };
    before(block, place, done);
    L::Base::transpose(block);
    after(block, place, done);
  }
  return done / L::kParts;
}

// Matrices first, first + 1, ... of `from`; lanes beyond the last of the batch
// repeat it.
template <class T>
void load(LaneNumber<T>* to,
          const MatrixItems<T>& from,
          int64_t first,
          int64_t count,
          int rows,
          int columns) {
  using L = Lane<T>;
  using R = typename L::Real;
  if (from.items == nullptr) {
    for (int j = 0; j < columns; ++j) {
      for (int i = 0; i < rows; ++i) {
        to[j * rows + i] = L::from(L::splat(i == j ? 1 : 0));
      }
    }
    return;
  }
  const T* items[kLaneCount<T>];
  for (int l = 0; l < kLaneCount<T>; ++l) {
    items[l] = from.items[first + l < count ? first + l : count - 1];
  }
  Lines lines = lines_of(from.row, from.column, rows, columns);
  if (lines.length * L::kParts < kLaneCount<T>) {
    lines = {columns, rows, from.column, rows, 1};
  }
  int64_t next = lines.begin == 1 ? from.column : from.row;
  for (int i = 0; i < lines.count; ++i) {
    int done = 0;
    if (next == 1) {
      done = move_line<T>(
          to,
          lines,
          i,
          [&](auto* block, auto&&, int offset) {
            for (int l = 0; l < kLaneCount<T>; ++l) {
              const T* line = items[l] + i * lines.step;
              std::memcpy(&block[l],
                          reinterpret_cast<const R*>(line) + offset,
                          sizeof(block[l]));
            }
          },
          [&](auto* block, auto&& place, int) {
            for (int r = 0; r < kLaneCount<T>; ++r) *place(r) = block[r];
          });
    }
    for (int l = 0; l < kLaneCount<T>; ++l) {
      const T* line = items[l] + i * lines.step;
      for (int e = done; e < lines.length; ++e) {
        L::put(to + i * lines.begin + e * lines.gap, l, line[e * next]);
      }
    }
  }
  if constexpr (L::kComplex) {
    if (!from.conj) return;
    for (int i = 0; i < rows * columns; ++i) to[i] = L::conj(to[i]);
  }
}

// Lanes of whose matrix a number is infinite or NaN.
template <class T>
typename Lane<T>::M not_finite(const LaneNumber<T>* a, int elements) {
  using L = Lane<T>;
  typename L::V zeros{};
  for (int i = 0; i < elements; ++i) zeros += L::size(a[i]) * 0;
  return zeros != zeros;
}

// Lane l's column j goes to column order[j][l] where an order is given.
template <class T>
void store(const MatrixResults<T>& to,
           LaneNumber<T>* from,
           int64_t first,
           int64_t count,
           int rows,
           int columns,
           const typename Lane<T>::M* order = nullptr) {
  using L = Lane<T>;
  if constexpr (L::kComplex) {
    for (int i = 0; to.conj && i < rows * columns; ++i) {
      from[i] = L::conj(from[i]);
    }
  }
  using R = typename L::Real;
  T* items[kLaneCount<T>];
  int lanes = 0;
  for (; lanes < kLaneCount<T> && first + lanes < count; ++lanes) {
    items[lanes] = to.data + (first + lanes) * to.step;
  }
  const Lines lines = {columns, rows, to.column, rows, 1};
  for (int j = 0; j < columns; ++j) {
    auto line = [&](int l) {
      return items[l] + (order == nullptr ? j : order[j][l]) * to.column;
    };
    int done = 0;
    if (to.row == 1) {
      done = move_line<T>(
          from,
          lines,
          j,
          [&](auto* block, auto&& place, int) {
            for (int r = 0; r < kLaneCount<T>; ++r) block[r] = *place(r);
          },
          [&](auto* block, auto&&, int offset) {
            for (int l = 0; l < lanes; ++l) {
              std::memcpy(reinterpret_cast<R*>(line(l)) + offset,
                          &block[l],
                          sizeof(block[l]));
            }
          });
    }
    for (int l = 0; l < lanes; ++l) {
      T* p = line(l);
      for (int i = done; i < rows; ++i) {
        p[i * to.row] = L::get(from + j * rows + i, l);
      }
    }
  }
}

// One value for each matrix, every `step` elements.
template <class T>
void store_values(T* to,
                  const LaneNumber<T>& from,
                  int64_t first,
                  int64_t count,
                  int64_t step = 1) {
  for (int l = 0; l < kLaneCount<T> && first + l < count; ++l) {
    to[(first + l) * step] = Lane<T>::get(&from, l);
  }
}

template <class T>
void store_report(int* to,
                  typename Lane<T>::M info,
                  typename Lane<T>::M undecided,
                  int64_t first,
                  int64_t count) {
  info = undecided ? Lane<T>::whole(kUndecided) : info;
  for (int l = 0; l < kLaneCount<T> && first + l < count; ++l) {
    to[first + l] = static_cast<int>(info[l]);
  }
}

// Calls K::run<T, N> with N = batch.rows where a size that the compiler knows
// pays: square matrices up to Largest, and not at the baseline level, which
// keeps the library small.
template <class K, int Largest, class T>
void by_size(const SmallBatch<T>& batch) {
#if defined(__AVX2__)
  if (batch.rows == batch.columns) {
    if constexpr (Largest >= 2) {
      if (batch.rows == 2) return K::template run<T, 2>(batch);
    }
    if constexpr (Largest >= 3) {
      if (batch.rows == 3) return K::template run<T, 3>(batch);
    }
    if constexpr (Largest >= 4) {
      if (batch.rows == 4) return K::template run<T, 4>(batch);
    }
  }
#endif
  K::template run<T, 0>(batch);
}

}  // namespace

TAEDA_ISA_END
