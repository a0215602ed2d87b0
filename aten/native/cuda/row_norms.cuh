// Layer, RMS and group norms over rows in registers: mean and variance are two
// folds of what is held, so that the variance has no cancellation, and shares
// of a long row are joined as Chan, Golub and LeVeque do (1979).
#pragma once

#include <taeda/aten/native/cuda/rows.cuh>

namespace taeda {

// The factor that an element has: one for each column, or for each channel of
// `width` elements.
template <class T, class W, bool kChannels>
struct Factors {
  const W* factors;
  const W* summands;
  Long begin;
  unsigned width;

  __device__ inline Factors(const RowCall& call, Long row, Long first)
      : factors(static_cast<const W*>(call.factors)),
        summands(static_cast<const W*>(call.summands)),
        begin(first),
        width(static_cast<unsigned>(call.width)) {
    if constexpr (kChannels) {
      const Long channels = (call.count + call.width - 1) / call.width;
      const Long offset = row % call.groups * channels;
      if (factors != nullptr) factors += offset;
      if (summands != nullptr) summands += offset;
    }
  }
  __device__ inline Long place(int column) const {
    if constexpr (!kChannels) return begin + column;
    return static_cast<unsigned>(begin + column) / width;
  }
  __device__ inline T factor(Long place) const {
    return factors == nullptr ? T(1) : converted<T>(factors[place]);
  }
  __device__ inline T summand(Long place) const {
    return summands == nullptr ? T(0) : converted<T>(summands[place]);
  }
};

// {elements, mean, sum of squared distances from it}; without a centre the mean
// is 0.
template <class S, class W, bool kCentred, bool kChannels>
struct NormRow {
  using T = Accumulated<S>;
  using Folded = State<T, 3>;
  static constexpr int kInputs = 1;
  static constexpr bool kFolds = true, kWrites = true;

  __device__ inline NormRow(const RowCall& c, Long r, Long begin)
      : call(c), row(r), factors(c, r, begin) {}
  static __device__ inline Folded none() { return {{T(0), T(0), T(0)}}; }
  static __device__ inline Folded both(Folded a, Folded b) {
    const T count = a.at[0] + b.at[0];
    if (!kCentred || count == T(0)) {
      return {{count, T(0), a.at[2] + b.at[2]}};
    }
    const T apart = b.at[1] - a.at[1], share = b.at[0] / count;
    return {{count,
             a.at[1] + apart * share,
             a.at[2] + b.at[2] + apart * apart * a.at[0] * share}};
  }
  template <class Shape, class Packs, class F>
  __device__ inline Folded fold(const Shape& shape,
                                const Packs& packs,
                                F meet) const {
    // The sum of a share by all its threads, then the distances from its mean.
    T mean = T(0);
    if constexpr (kCentred) {
      T sum = T(0);
      shape.each(
          [&](int h, int k, int) { sum += converted<T>(packs[0][h].at[k]); });
      // As means of no elements, whose third numbers are added.
      mean = meet({{T(0), T(0), sum}}).at[2] / static_cast<T>(shape.count);
    }
    T squares = T(0);
    shape.each([&](int h, int k, int) {
      const T v = converted<T>(packs[0][h].at[k]) - mean;
      squares += v * v;
    });
    Folded all = meet({{T(0), T(0), squares}});
    return {{static_cast<T>(shape.count), mean, all.at[2]}};
  }
  __device__ inline void ready(Folded s) {
    mean = s.at[1];
    const T variance = s.at[2] / s.at[0];
    rstd = T(1) / math::sqrt(variance + static_cast<T>(call.eps));
  }
  __device__ inline T result(T v, T, int column) const {
    const Long at = factors.place(column);
    return (v - mean) * rstd * factors.factor(at) + factors.summand(at);
  }
  __device__ inline void speak() const {
    if constexpr (kCentred) static_cast<T*>(call.first)[row] = mean;
    static_cast<T*>(call.second)[row] = rstd;
  }

  const RowCall& call;
  Long row;
  Factors<T, W, kChannels> factors;
  T mean, rstd;
};

// in: gradient, input. With h = gradient * factor and x the normalised input,
// the gradient is rstd (h - mean(h) - x mean(h x)).
template <class S, class W, bool kCentred, bool kChannels>
struct NormBackRow {
  using T = Accumulated<S>;
  using Folded = State<T, 2>;
  static constexpr int kInputs = 2;
  static constexpr bool kFolds = true, kWrites = true;

  __device__ inline NormBackRow(const RowCall& call, Long row, Long begin)
      : count(static_cast<T>(call.count)), factors(call, row, begin) {
    mean = kCentred ? static_cast<const T*>(call.first)[row] : T(0);
    rstd = static_cast<const T*>(call.second)[row];
  }
  static __device__ inline Folded none() { return {{T(0), T(0)}}; }
  static __device__ inline Folded both(Folded a, Folded b) {
    return {{a.at[0] + b.at[0], a.at[1] + b.at[1]}};
  }
  template <class Shape, class Packs, class F>
  __device__ inline Folded fold(const Shape& shape,
                                const Packs& packs,
                                F meet) const {
    Folded sums = none();
    shape.each([&](int h, int k, int column) {
      const T g = converted<T>(packs[0][h].at[k]) *
                  factors.factor(factors.place(column));
      sums.at[0] += g;
      sums.at[1] += g * (converted<T>(packs[1][h].at[k]) - mean) * rstd;
    });
    return meet(sums);
  }
  __device__ inline void ready(Folded s) {
    of_gradient = kCentred ? s.at[0] / count : T(0);
    of_product = s.at[1] / count;
  }
  __device__ inline T result(T grad, T v, int column) const {
    const T g = grad * factors.factor(factors.place(column));
    return rstd * (g - of_gradient - (v - mean) * rstd * of_product);
  }
  __device__ inline void speak() const {}

  T count;
  Factors<T, W, kChannels> factors;
  T mean, rstd, of_gradient, of_product;
};

// in: gradient, input; leaves sum(g) and sum(g x) of each row.
template <class S, class>
struct PlaneSums {
  using T = Accumulated<S>;
  using Folded = State<T, 2>;
  static constexpr int kInputs = 2;
  static constexpr bool kFolds = true, kWrites = false;

  __device__ inline PlaneSums(const RowCall& call, Long row, Long) {
    const T* means = static_cast<const T*>(call.first);
    mean = means == nullptr ? T(0) : means[row % call.groups];
  }
  static __device__ inline Folded none() { return {{T(0), T(0)}}; }
  static __device__ inline Folded both(Folded a, Folded b) {
    return {{a.at[0] + b.at[0], a.at[1] + b.at[1]}};
  }
  template <class Shape, class Packs, class F>
  __device__ inline Folded fold(const Shape& shape,
                                const Packs& packs,
                                F meet) const {
    Folded sums = none();
    shape.each([&](int h, int k, int) {
      const T g = converted<T>(packs[0][h].at[k]);
      sums.at[0] += g;
      sums.at[1] += g * (converted<T>(packs[1][h].at[k]) - mean);
    });
    return meet(sums);
  }
  __device__ inline void ready(Folded) {}
  __device__ inline T result(T, T, int) const { return T(0); }
  __device__ inline void speak() const {}

  T mean;
};

template <class S, class W>
using LayerNorm = NormRow<S, W, true, false>;
template <class S, class W>
using RmsNorm = NormRow<S, W, false, false>;
template <class S, class W>
using GroupNorm = NormRow<S, W, true, true>;
template <class S, class W>
using LayerNormBack = NormBackRow<S, W, true, false>;
template <class S, class W>
using RmsNormBack = NormBackRow<S, W, false, false>;
template <class S, class W>
using GroupNormBack = NormBackRow<S, W, true, true>;

// Gradients of factors and summands: columns of g (x - mean) rstd and of g,
// added over the rows. 32 packs of columns and kLanes rows for a block, which
// leaves its sums; column_totals adds those of all blocks in their order.
template <class S, int kLanes, int kPack>
__device__ inline void column_sums(const ColumnCall& call) {
  using T = Accumulated<S>;
  __shared__ T memory[2][kLanes][32 * kPack + 1];
  const int id = static_cast<int>(threadIdx.x);
  const int lane = id / 32, local = id % 32;
  const Long column = (static_cast<Long>(blockIdx.x) * 32 + local) * kPack;
  const Long share = (call.rows + call.splits - 1) / call.splits;
  const Long begin = share * blockIdx.y;
  const Long end = begin + share < call.rows ? begin + share : call.rows;
  T of_product[kPack], of_gradient[kPack];
  TAEDA_MATH_UNROLL
  for (int k = 0; k < kPack; ++k) of_product[k] = of_gradient[k] = T(0);
  if (column < call.count) {
    const T* means = static_cast<const T*>(call.first);
    const T* rstds = static_cast<const T*>(call.second);
#pragma unroll 4
    for (Long r = begin + lane; r < end; r += kLanes) {
      Pack<S, kPack> g, x;
      read_pack(g, row_at<S>(call.in[0], r * call.count + column));
      read_pack(x, row_at<S>(call.in[1], r * call.count + column));
      const T mean = means == nullptr ? T(0) : means[r], rstd = rstds[r];
      TAEDA_MATH_UNROLL
      for (int k = 0; k < kPack; ++k) {
        const T grad = converted<T>(g.at[k]);
        of_gradient[k] += grad;
        of_product[k] += grad * (converted<T>(x.at[k]) - mean) * rstd;
      }
    }
  }
  TAEDA_MATH_UNROLL
  for (int k = 0; k < kPack; ++k) {
    memory[0][lane][local * kPack + k] = of_product[k];
    memory[1][lane][local * kPack + k] = of_gradient[k];
  }
  __syncthreads();
  T* parts = static_cast<T*>(call.parts) + blockIdx.y * call.count * 2;
  const Long first = static_cast<Long>(blockIdx.x) * 32 * kPack;
  for (int c = id; c < 32 * kPack && first + c < call.count; c += kLanes * 32) {
    for (int i = 0; i < 2; ++i) {
      T sum = memory[i][0][c];
      for (int l = 1; l < kLanes; ++l) sum += memory[i][l][c];
      parts[i * call.count + first + c] = sum;
    }
  }
}

template <class T, class W>
__device__ inline void column_totals(const ColumnCall& call) {
  const Long column = static_cast<Long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (column >= call.count) return;
  const T* parts = static_cast<const T*>(call.parts) + column;
  for (int i = 0; i < 2; ++i) {
    if (call.out[i] == nullptr) continue;
    T sum = T(0);
    for (int s = 0; s < call.splits; ++s) {
      sum += parts[(s * 2 + i) * call.count];
    }
    static_cast<W*>(call.out[i])[column] = converted<W>(sum);
  }
}

}  // namespace taeda
