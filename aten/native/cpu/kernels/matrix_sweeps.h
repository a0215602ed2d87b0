// What the iterations for eigenvalues and for singular values share: each lane
// works on a block of its own between `low` and `high`, and all lanes sweep
// over the union of their blocks together.
#pragma once

#include <taeda/aten/native/cpu/kernels/matrix_reflections.h>

TAEDA_ISA_BEGIN

namespace {

// The last block of each lane that negligible numbers beside the diagonal do
// not split further. In lanes that are done, high is 0.
template <class T>
struct Block {
  typename Lane<T>::M low{}, high{};
  int first = 0, last = 0;  // of the union
};

// d: the diagonal of n numbers, e: the n - 1 beside it, then a 0. Numbers whose
// size is a rounding error of their neighbours become 0.
template <class T>
TAEDA_MATRIX_FN Block<T> next_block(const typename Lane<T>::V* d,
                                    typename Lane<T>::V* e,
                                    int n) {
  using L = Lane<T>;
  Block<T> block;
  for (int i = 0; i + 1 < n; ++i) {
    typename L::V size = L::abs(e[i]);
    typename L::V least = L::kEps * (L::abs(d[i]) + L::abs(d[i + 1]));
    // Matrices are scaled to a largest number of at least 1.
    typename L::M gone = (size <= least) | (size <= L::kEps * L::kEps);
    e[i] = gone ? L::splat(0) : e[i];
    block.high = gone ? block.high : L::whole(i + 1);
  }
  for (int i = 0; i + 1 < n; ++i) {
    typename L::M split = (e[i] == 0) & (L::whole(i) < block.high);
    block.low = split ? L::whole(i + 1) : block.low;
  }
  block.first = n;
  for (int l = 0; l < L::kCount; ++l) {
    int low = static_cast<int>(block.low[l]);
    int high = static_cast<int>(block.high[l]);
    if (high > 0 && low < block.first) block.first = low;
    if (high > block.last) block.last = high;
  }
  return block;
}

// x[i + shift], i being each lane's own index; 0 where there is none.
template <class T>
TAEDA_MATRIX_FN typename Lane<T>::V at(const typename Lane<T>::V* x,
                                       int n,
                                       typename Lane<T>::M i,
                                       int shift) {
  using L = Lane<T>;
  typename L::V found{};
  for (int k = 0; k < n; ++k) {
    found = i == L::whole(k - shift) ? x[k] : found;
  }
  return found;
}

// The eigenvalue of [[a, b], [b, c]] that is closer to c: J. H. Wilkinson, "The
// algebraic eigenvalue problem" (1965). b is not 0.
template <class T>
TAEDA_MATRIX_FN typename Lane<T>::V wilkinson_shift(typename Lane<T>::V a,
                                                    typename Lane<T>::V b,
                                                    typename Lane<T>::V c) {
  using L = Lane<T>;
  typename L::V half = (a - c) * T(0.5);
  typename L::V root = L::sqrt(half * half + b * b);
  typename L::V below = half + L::signed_as(root, half);
  typename L::V safe = below == 0 ? L::splat(1) : below;
  return c - b * (b / safe);
}

// How many numbers come before number i of n: the place to sort it to.
template <class T>
TAEDA_MATRIX_FN void sorted_places(const typename Lane<T>::V* x,
                                   int n,
                                   typename Lane<T>::M* place) {
  using L = Lane<T>;
  for (int i = 0; i < n; ++i) {
    typename L::M before{};
    for (int j = 0; j < n; ++j) {
      // A mask counts as -1.
      before -= j < i ? x[j] <= x[i] : x[j] < x[i];
    }
    place[i] = before;
  }
}

// Number k of lane l goes to to[(first + l) * n + place[k][l]].
template <class T>
TAEDA_MATRIX_FN void store_sorted(T* to,
                                  const typename Lane<T>::V* x,
                                  const typename Lane<T>::M* place,
                                  int64_t first,
                                  int64_t count,
                                  int n) {
  for (int l = 0; l < kLaneCount<T> && first + l < count; ++l) {
    for (int k = 0; k < n; ++k) to[(first + l) * n + place[k][l]] = x[k][l];
  }
}

// Iterations for each eigenvalue or singular value, as LAPACK allows.
constexpr int kSweeps = 30;

}  // namespace

TAEDA_ISA_END
