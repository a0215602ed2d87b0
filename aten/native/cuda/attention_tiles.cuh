// Tiles of rows in shared memory, and products of a warp's sixteen rows with
// them. Elements of 16 bits are multiplied by tensor cores (mma.sync, from
// sm_80 on), floats by plain arithmetic that is laid out alike.
#pragma once

#include <taeda/aten/native/cuda/loops.cuh>

namespace taeda {

// Loops are unrolled by a pragma that only NVRTC knows: what indexes registers
// must be unrolled there, and would take g++ long in the tests.

// Note [Fragments]
// What a warp holds of a matrix of 16 rows and 8 columns, as the PTX ISA
// defines it for mma.m16n8k16: lane l has row l / 4 and columns 2 (l % 4) and
// the next one (numbers 0 and 1), and the same of row l / 4 + 8 (2 and 3). Two
// such matrices beside each other, rounded to 16 bits, are what mma.sync takes
// as its first side; so weights go from the product that makes them to the one
// that reads them without leaving their registers (T. Dao, "FlashAttention-2",
// 2023).
using Fragment = float[4];
inline constexpr int kWarpRows = 16;

__device__ inline int lane_id() { return static_cast<int>(threadIdx.x) % 32; }
__device__ inline int warp_id() { return static_cast<int>(threadIdx.x) / 32; }

// A tile has kRows rows of D elements in chunks of 16 bytes. Chunks of a row
// stand in an order that depends on the row, so that eight rows' chunks of one
// column lie in different banks.
template <class S, int D>
struct TileShape {
  static constexpr int kChunk = 16 / static_cast<int>(sizeof(S));
  static constexpr int kChunks = D / kChunk;
  static_assert(D % 32 == 0, "whole groups of four chunks");

  // The same for rows that are a multiple of eight apart.
  static __device__ inline int turn(int row) {
    return kChunks % 8 == 0 ? row & 7 : row >> 1 & 3;
  }
  static __device__ inline int place(int row, int column) {
    return row * D + ((column / kChunk) ^ turn(row)) * kChunk + column % kChunk;
  }
};

// 16 bytes to shared memory while the thread goes on; those behind the first
// `bytes` are zeros.
template <class S>
__device__ inline void copy_async(S* to, const S* from, int bytes) {
#ifdef __CUDA_ARCH__
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(
                   static_cast<unsigned>(__cvta_generic_to_shared(to))),
               "l"(__cvta_generic_to_global(from)),
               "r"(bytes)
               : "memory");
#else
  for (int i = 0; i < 16 / static_cast<int>(sizeof(S)); ++i) {
    to[i] = i * static_cast<int>(sizeof(S)) < bytes ? from[i] : S(0.0f);
  }
#endif
}
// All copies of this thread are there; those of others after a barrier.
__device__ inline void wait_for_copies() {
#ifdef __CUDA_ARCH__
  asm volatile("cp.async.wait_all;" ::: "memory");
#endif
}

// Rows of a head. Of a tile those behind `rows` and columns behind the width
// are zeros.
struct HeadRows {
  const void* data;
  Long row, column;
  int width, packed;

  __device__ inline Long place(int number) const { return number * row; }
};
// The same of rows that lie in pages, in no order.
struct PagedRows {
  const void* data;
  Long row, column;
  int width, packed;
  const int* pages;  // or null
  int page;
  Long page_stride;

  __device__ inline Long place(int number) const {
    if (pages == nullptr) return number * row;
    return pages[number / page] * page_stride + number % page * row;
  }
};
template <class S, int D, int kRows, class Rows>
__device__ inline void load_tile(S* tile,
                                 const Rows& from,
                                 int first,
                                 int rows) {
  using Shape = TileShape<S, D>;
  constexpr int kChunk = Shape::kChunk;
  const S* data = static_cast<const S*>(from.data);
  const int threads = static_cast<int>(blockDim.x);
  for (int i = static_cast<int>(threadIdx.x); i < kRows * Shape::kChunks;
       i += threads) {
    const int row = i / Shape::kChunks, column = i % Shape::kChunks * kChunk;
    const int left = first + row < rows ? from.width - column : 0;
    const int count = left < 0 ? 0 : left < kChunk ? left : kChunk;
    S* to = tile + Shape::place(row, column);
    const S* begin = data;
    if (count > 0) begin += from.place(first + row) + column * from.column;
    if (from.packed != 0) {
      copy_async(
          to, count > 0 ? begin : data, count * static_cast<int>(sizeof(S)));
    } else {
      for (int k = 0; k < kChunk; ++k) {
        to[k] = k < count ? begin[k * from.column] : S(0.0f);
      }
    }
  }
}

#ifdef __CUDA_ARCH__
// Four matrices of 8 by 8 elements of 16 bits, of which lane l names row l % 8
// of matrix l / 8; turned, if asked for.
template <bool kTurned, class S>
__device__ inline void load_matrices(unsigned (&out)[4], const S* row) {
  const unsigned at = static_cast<unsigned>(__cvta_generic_to_shared(row));
  if constexpr (kTurned) {
    asm volatile(
        "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, "
        "[%4];"
        : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
        : "r"(at)
        : "memory");
  } else {
    asm volatile(
        "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
        : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
        : "r"(at)
        : "memory");
  }
}

// sum += a b, of 16 rows, 16 columns of a, and 8 columns of b.
template <class S>
__device__ inline void multiply_add(Fragment& sum,
                                    const unsigned (&a)[4],
                                    unsigned b0,
                                    unsigned b1) {
  if constexpr (math::kIsSame<S, Half>) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, "
        "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  } else {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, "
        "%3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  }
}
#else
template <bool kTurned, class S>
inline void load_matrices(unsigned (&out)[4], const S* row) {
  host_device::load_matrices(
      out, reinterpret_cast<const unsigned short*>(row), kTurned);
}
template <class S>
inline void multiply_add(Fragment& sum,
                         const unsigned (&a)[4],
                         unsigned b0,
                         unsigned b1) {
  host_device::multiply_add(
      sum, {{a[0], a[1], a[2], a[3]}, {b0, b1}}, math::kIsSame<S, Half>);
}
#endif

template <class S>
__device__ inline unsigned packed_pair(float low, float high) {
#ifdef __CUDA_ARCH__
  unsigned pair;
  if constexpr (math::kIsSame<S, Half>) {
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  } else {
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  }
  return pair;
#else
  const S a = narrowed<S>(low), b = narrowed<S>(high);
  return static_cast<unsigned>(a.bits) | static_cast<unsigned>(b.bits) << 16;
#endif
}

// sums += A B^T, of the 16 rows of A from `first` on and 8 N rows of B, each of
// D elements in a tile.
template <class S, int D, int N>
__device__ inline void dot_rows(Fragment (&sums)[N],
                                const S* a,
                                int first,
                                const S* b) {
  using Shape = TileShape<S, D>;
  const int lane = lane_id();
  if constexpr (sizeof(S) == 2) {
    static_assert(N % 2 == 0, "two matrices at a time");
#pragma unroll
    for (int k = 0; k < D; k += 16) {
      unsigned left[4];
      load_matrices<false>(
          left, a + Shape::place(first + lane % 16, k + lane / 16 * 8));
      const S* rows =
          b + lane / 16 * 8 * D + Shape::place(lane % 8, k + lane / 8 % 2 * 8);
#pragma unroll
      for (int n = 0; n < N; n += 2) {
        unsigned right[4];
        load_matrices<false>(right, rows + n * 8 * D);
        multiply_add<S>(sums[n], left, right[0], right[1]);
        multiply_add<S>(sums[n + 1], left, right[2], right[3]);
      }
    }
  } else {
    const int row = first + lane / 4, column = lane % 4 * 2;
#pragma unroll 2  // more would only make it longer to compile
    for (int k = 0; k < D; k += 4) {
      Pack<S, 4> left[2], right[2];
      const S* rows = a + Shape::place(row, k);
      read_pack(left[0], rows);
      read_pack(left[1], rows + 8 * D);
      const S* one = b + Shape::place(column, k);
      const S* next = b + Shape::place(column + 1, k);
#pragma unroll
      for (int n = 0; n < N; ++n) {
        read_pack(right[0], one + n * 8 * D);
        read_pack(right[1], next + n * 8 * D);
#pragma unroll
        for (int i = 0; i < 4; ++i) {
#pragma unroll
          for (int j = 0; j < 4; ++j) {
            sums[n][i] += left[i / 2].at[j] * right[i % 2].at[j];
          }
        }
      }
    }
  }
}

// sums += W B, of the weights of 16 rows by 8 N and 8 N rows of B in a tile.
template <class S, int D, int N>
__device__ inline void add_rows(Fragment (&sums)[D / 8],
                                const Fragment (&weights)[N],
                                const S* b) {
  using Shape = TileShape<S, D>;
  const int lane = lane_id();
  if constexpr (sizeof(S) == 2) {
#pragma unroll
    for (int n = 0; n < N; n += 2) {
      const S* rows = b + n * 8 * D;
      const Fragment &one = weights[n], &next = weights[n + 1];
      const unsigned left[4] = {packed_pair<S>(one[0], one[1]),
                                packed_pair<S>(one[2], one[3]),
                                packed_pair<S>(next[0], next[1]),
                                packed_pair<S>(next[2], next[3])};
#pragma unroll
      for (int d = 0; d < D / 8; d += 2) {
        unsigned right[4];
        load_matrices<true>(
            right, rows + Shape::place(lane % 16, d * 8 + lane / 16 * 8));
        multiply_add<S>(sums[d], left, right[0], right[1]);
        multiply_add<S>(sums[d + 1], left, right[2], right[3]);
      }
    }
  } else {
#pragma unroll
    for (int n = 0; n < N; ++n) {
#pragma unroll
      for (int k = 0; k < 8; ++k) {
        const int holder = lane / 4 * 4 + k / 2;
        const float upper = __shfl_sync(0xffffffffu, weights[n][k % 2], holder);
        const float lower =
            __shfl_sync(0xffffffffu, weights[n][2 + k % 2], holder);
#pragma unroll
        for (int d = 0; d < D / 8; ++d) {
          Pack<S, 2> right;
          read_pack(right,
                    b + n * 8 * D + Shape::place(k, d * 8 + lane % 4 * 2));
          sums[d][0] += upper * right.at[0];
          sums[d][1] += upper * right.at[1];
          sums[d][2] += lower * right.at[0];
          sums[d][3] += lower * right.at[1];
        }
      }
    }
  }
}

// f(number, row, column) for what a lane holds of a matrix of 16 by 8 N.
template <int N, class F>
__device__ inline void each_element(F f) {
  const int lane = lane_id();
#pragma unroll
  for (int n = 0; n < N; ++n) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      f(n, i, lane / 4 + i / 2 * 8, n * 8 + lane % 4 * 2 + i % 2);
    }
  }
}

template <int N>
__device__ inline void clear(Fragment (&sums)[N]) {
#pragma unroll
  for (int n = 0; n < N; ++n) {
#pragma unroll
    for (int i = 0; i < 4; ++i) sums[n][i] = 0;
  }
}

}  // namespace taeda
