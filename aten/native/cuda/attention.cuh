// Attention by tiles of keys, without the matrix of all scores: each warp owns
// sixteen queries, and keeps for each the largest score so far, the sum of
// weights and the weighted sum of values, all of which it scales when a larger
// score comes (T. Dao et al., "FlashAttention", 2022; M. Milakov and N.
// Gimelshein, "Online normalizer calculation for softmax", 2018).
#pragma once

#include <taeda/c10/core/philox.h>
#include <taeda/aten/native/cuda/attention_calls.cuh>
#include <taeda/aten/native/cuda/attention_tiles.cuh>

namespace taeda {

inline constexpr float kBitsOfE = 1.4426950408889634f;       // log2(e)
inline constexpr float kNaturalOfTwo = 0.6931471805599453f;  // ln(2)

__device__ inline float power_of_two(float v) {
#ifdef __CUDA_ARCH__
  float result;
  asm("ex2.approx.f32 %0, %1;" : "=f"(result) : "f"(v));
  return result;
#else
  return math::exp2(v);
#endif
}

// Nothing is added to scores.
struct NoMask {};

// The part of a call that one block has: a query's or a key's head, and which
// of its rows.
struct HeadPlace {
  int batch, head, key_head;
  int first;  // of the block's rows

  // The last rows come first: with a causal mask these see most keys.
  __device__ inline HeadPlace(const AttentionCall& call, int heads, int rows) {
    const int block = static_cast<int>(blockIdx.x);
    const int number = block / call.blocks;
    batch = number / heads;
    head = number % heads;
    key_head = heads == call.heads ? head / call.shared : head;
    first = (call.blocks - 1 - block % call.blocks) * rows;
  }
};

template <class S>
__device__ inline HeadRows rows_of(const AttentionRows& t, int b, int h) {
  const S* data = static_cast<const S*>(t.data) + b * t.batch + h * t.head;
  return {data, t.row, t.column, t.width, t.packed};
}

// Scores of a head, as logarithms to base 2: products scaled, masks added, and
// -infinity for what is not seen.
template <class M>
struct Scores {
  const M* mask;
  Long row, column;
  int diagonal, queries, keys;
  float scale;

  __device__ inline Scores(const AttentionCall& call, int b, int h)
      : mask(nullptr),
        row(call.mask_strides[2]),
        column(call.mask_strides[3]),
        diagonal(call.diagonal),
        queries(call.queries),
        keys(call.keys),
        scale(call.scale * kBitsOfE) {
    if constexpr (!math::kIsSame<M, NoMask>) {
      mask = static_cast<const M*>(call.mask) + b * call.mask_strides[0] +
             h * call.mask_strides[1];
    }
  }
  __device__ inline float at(float product, int query, int key) const {
    if (query >= queries || key >= keys || key - query > diagonal) {
      return -math::kInfinity<float>;
    }
    if constexpr (math::kIsSame<M, NoMask>) {
      return product * scale;
    } else {
      const Long place = query * row + key * column;
      if constexpr (math::kIsSame<M, bool>) {
        return element(mask, place) ? product * scale : -math::kInfinity<float>;
      } else {
        return product * scale + loaded<float>(mask, place) * kBitsOfE;
      }
    }
  }
  // Whether all of these queries see all of these keys.
  __device__ inline bool all_seen(int query, int rows, int key, int n) const {
    return math::kIsSame<M, NoMask> && query + rows <= queries &&
           key + n <= keys && key + n - 1 - query <= diagonal;
  }
  // How many keys any query before `end` sees, and the first query that sees
  // any key from `key` on.
  __device__ inline int keys_before(int end) const {
    const Long seen = Long(end < queries ? end : queries) + diagonal;
    return seen < 0 ? 0 : seen < keys ? static_cast<int>(seen) : keys;
  }
  __device__ inline int first_query(int key) const {
    const Long first = Long(key) - diagonal;
    return first < 0 ? 0 : first < queries ? static_cast<int>(first) : queries;
  }
};

// Note [Attention's dropout]
// Whether a weight is kept is told by a word of the generator's subsequence 0:
// by that whose number, counted from the call's offset, is the weight's number
// in [batch, heads, queries, keys]. It is kept where the word, as a number in
// (0, 1], is above the rate. So the pass backward draws the same again, in any
// order; PyTorch's memory-efficient kernel draws so too.
struct Dropout {
  unsigned long long seed, offset;
  float dropped;

  __device__ inline Dropout(const AttentionCall& call, int b, int h)
      : seed(call.seed), offset(call.offset), dropped(call.dropped) {
    if (call.state != nullptr) {  // see Note [Graphs]
      seed = static_cast<unsigned long long>(call.state[0]);
      offset += static_cast<unsigned long long>(call.state[1]);
    }
    if (call.drawn[0] != nullptr) {
      seed = static_cast<unsigned long long>(*call.drawn[0]);
      offset = static_cast<unsigned long long>(*call.drawn[1]);
    }
    if (call.written[0] != nullptr && blockIdx.x == 0 && threadIdx.x == 0) {
      *call.written[0] = static_cast<Long>(seed);
      *call.written[1] = static_cast<Long>(offset);
    }
    offset += static_cast<unsigned long long>(b * call.heads + h) *
              static_cast<unsigned long long>(call.queries) *
              static_cast<unsigned long long>(call.keys);
  }
  __device__ inline bool keeps(int query, int keys, int key) const {
    const unsigned long long at =
        offset + static_cast<unsigned long long>(Long(query) * keys + key);
    const Philox4 words = Philox4x32(seed, 0, at / 4).next_block();
    const unsigned part = static_cast<unsigned>(at % 4);
    const unsigned low = part % 2 == 0 ? words.word[0] : words.word[1];
    const unsigned high = part % 2 == 0 ? words.word[2] : words.word[3];
    const unsigned word = part < 2 ? low : high;
    return static_cast<float>(word) * 0x1p-32f + 0x1p-33f > dropped;
  }
};

// Of a query in what is dense for each.
__device__ inline Long query_place(const AttentionCall& call,
                                   int b,
                                   int h,
                                   int query) {
  return Long(b * call.heads + h) * call.queries + query;
}

// Of the four lanes that share a row.
__device__ inline float sum_of_row(float v) {
  v += exchange(v, 1);
  return v + exchange(v, 2);
}
__device__ inline float largest_of_row(float v) {
  for (int step = 1; step < 4; step *= 2) {
    const float other = exchange(v, step);
    v = other > v ? other : v;
  }
  return v;
}

// Writes the warp's sixteen rows of 8 N columns, each times its row's factor.
template <class S, int N>
__device__ inline void write_rows(const Fragment (&sums)[N],
                                  const AttentionRows& to,
                                  int b,
                                  int h,
                                  int first,
                                  int rows,
                                  float upper,
                                  float lower) {
  S* data = static_cast<S*>(to.data) + b * to.batch + h * to.head;
  const int lane = lane_id();
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int row = first + lane / 4 + 8 * half;
    if (row >= rows) continue;
    const float factor = half == 0 ? upper : lower;
#pragma unroll
    for (int n = 0; n < N; ++n) {
      const int column = n * 8 + lane % 4 * 2;
      if (column >= to.width) continue;
      const S one = narrowed<S>(sums[n][2 * half] * factor);
      const S next = narrowed<S>(sums[n][2 * half + 1] * factor);
      S* at = data + row * to.row + column * to.column;
      if (to.packed != 0) {
        write_pack(Pack<S, 2>{{one, next}}, at);
      } else {
        at[0] = one;
        if (column + 1 < to.width) at[to.column] = next;
      }
    }
  }
}

// A query's weights while its keys come, of the two rows of each lane.
struct Online {
  float largest[2] = {-math::kInfinity<float>, -math::kInfinity<float>};
  float sum[2] = {0, 0};

  // Scores become weights; `sums` are scaled to the new largest scores.
  template <int N, int W>
  __device__ inline void weigh(Fragment (&scores)[N], Fragment (&sums)[W]) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float most = largest[half];
#pragma unroll
      for (int n = 0; n < N; ++n) {
#pragma unroll
        for (int i = 2 * half; i < 2 * half + 2; ++i) {
          most = scores[n][i] > most ? scores[n][i] : most;
        }
      }
      most = largest_of_row(most);
      const float base = most == -math::kInfinity<float> ? 0 : most;
      const float shrink = power_of_two(largest[half] - base);
      largest[half] = most;
      sum[half] *= shrink;
#pragma unroll
      for (int n = 0; n < N; ++n) {
#pragma unroll
        for (int i = 2 * half; i < 2 * half + 2; ++i) {
          scores[n][i] = power_of_two(scores[n][i] - base);
          sum[half] += scores[n][i];
        }
      }
#pragma unroll
      for (int w = 0; w < W; ++w) {
        sums[w][2 * half] *= shrink;
        sums[w][2 * half + 1] *= shrink;
      }
    }
  }
};

// D: columns, those of the tensors and zeros behind; kOwn: queries of a block;
// kTile: keys at a time; M: what a mask is stored as.
template <class S, int D, int kOwn, int kTile, class M, bool kDrops>
__device__ inline void attention_forward(const AttentionCall& call) {
  alignas(16)
      __shared__ unsigned char memory[(kOwn + 2 * kTile) * D * sizeof(S)];
  S* own = reinterpret_cast<S*>(memory);
  S* keys = own + kOwn * D;
  S* values = keys + kTile * D;
  const HeadPlace place(call, call.heads, kOwn);
  const int b = place.batch, h = place.head, first = place.first;
  const Scores<M> score(call, b, h);
  const Dropout dropout(call, b, h);
  const HeadRows key_rows = rows_of<S>(call.key, b, place.key_head);
  const HeadRows value_rows = rows_of<S>(call.value, b, place.key_head);
  const int seen = score.keys_before(first + kOwn);
  const int query = first + warp_id() * kWarpRows;

  load_tile<S, D, kOwn>(own, rows_of<S>(call.query, b, h), first, call.queries);
  load_tile<S, D, kTile>(keys, key_rows, 0, call.keys);
  Online online;
  Fragment sums[D / 8];
  clear(sums);
  for (int key = 0; key < seen; key += kTile) {
    wait_for_copies();
    __syncthreads();
    load_tile<S, D, kTile>(values, value_rows, key, call.keys);
    Fragment weights[kTile / 8];
    clear(weights);
    dot_rows<S, D>(weights, own, warp_id() * kWarpRows, keys);
    wait_for_copies();
    __syncthreads();
    if (key + kTile < seen) {
      load_tile<S, D, kTile>(keys, key_rows, key + kTile, call.keys);
    }
    if (score.all_seen(query, kWarpRows, key, kTile)) {
      each_element<kTile / 8>(
          [&](int n, int i, int, int) { weights[n][i] *= score.scale; });
    } else {
      each_element<kTile / 8>([&](int n, int i, int row, int column) {
        weights[n][i] = score.at(weights[n][i], query + row, key + column);
      });
    }
    online.weigh(weights, sums);
    if constexpr (kDrops) {
      each_element<kTile / 8>([&](int n, int i, int row, int column) {
        const bool kept = dropout.keeps(query + row, call.keys, key + column);
        if (!kept) weights[n][i] = 0;
      });
    }
    add_rows<S, D>(sums, weights, values);
  }
  wait_for_copies();

  float factors[2];
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const float sum = sum_of_row(online.sum[half]);
    const int row = query + lane_id() / 4 + 8 * half;
    factors[half] = sum == 0 ? 0 : call.kept_scale / sum;
    if (call.log_sums != nullptr && lane_id() % 4 == 0 && row < call.queries) {
      call.log_sums[query_place(call, b, h, row)] =
          sum == 0 ? -math::kInfinity<float>
                   : online.largest[half] * kNaturalOfTwo + math::log(sum);
    }
  }
  write_rows<S>(
      sums, call.out, b, h, query, call.queries, factors[0], factors[1]);
}

}  // namespace taeda
