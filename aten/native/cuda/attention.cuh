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
// of its rows. kParts: the call has AttentionParts.
template <bool kParts>
struct HeadPlace {
  int batch, head, key_head;
  int first;          // of the block's rows
  int queries, keys;  // of the sequence
  // Rows before the sequence's, where sequences lie behind one another.
  Long query_start = 0, key_start = 0;

  // The last rows come first: with a causal mask these see most keys.
  __device__ inline HeadPlace(const AttentionCall& call, int heads, int rows) {
    const int block = static_cast<int>(blockIdx.x);
    const int number = block / call.blocks;
    batch = number / heads;
    head = number % heads;
    key_head = heads == call.heads ? head / call.shared : head;
    first = (call.blocks - 1 - block % call.blocks) * rows;
    queries = call.queries;
    keys = call.keys;
    if constexpr (kParts) {
      const AttentionParts& parts = call.parts;
      if (parts.query_starts != nullptr) {
        const int begin = parts.query_starts[batch];
        query_start = Long(begin) * parts.rows_of_place;
        queries = (parts.query_starts[batch + 1] - begin) * parts.rows_of_query;
      }
      if (parts.key_starts != nullptr) {
        key_start = parts.key_starts[batch];
        keys = parts.key_starts[batch + 1] - parts.key_starts[batch];
      }
      if (parts.keys_used != nullptr) keys = parts.keys_used[batch];
    }
  }
};

template <class S>
__device__ inline HeadRows rows_of(const AttentionRows& t,
                                   int b,
                                   int h,
                                   Long start = 0) {
  const S* data =
      static_cast<const S*>(t.data) + b * t.batch + h * t.head + start * t.row;
  return {data, t.row, t.column, t.width, t.packed};
}
// Of a sequence's keys or values.
template <class S, bool kParts>
__device__ inline auto key_rows_of(const AttentionCall& call,
                                   const AttentionRows& t,
                                   const HeadPlace<kParts>& place) {
  const int b = place.batch;
  const HeadRows rows = rows_of<S>(t, b, place.key_head, place.key_start);
  if constexpr (kParts) {
    const AttentionParts& parts = call.parts;
    PagedRows paged{rows.data,
                    rows.row,
                    rows.column,
                    rows.width,
                    rows.packed,
                    nullptr,
                    1,
                    0};
    if (parts.pages != nullptr) {
      paged.data = static_cast<const S*>(t.data) + place.key_head * t.head;
      paged.pages = parts.pages + b * parts.pages_row;
      paged.page = parts.page;
      paged.page_stride = t.batch;
    }
    return paged;
  } else {
    return rows;
  }
}

// Scores of a head, as logarithms to base 2: products scaled, masks added, and
// -infinity for what is not seen.
template <class M, bool kParts>
struct Scores {
  static constexpr int kMost = 0x7fffffff, kLeast = -kMost - 1;
  const M* mask;
  Long row, column;
  int diagonal, queries, keys;
  int lowest = kLeast;
  float scale;

  __device__ inline Scores(const AttentionCall& call,
                           const HeadPlace<kParts>& place,
                           int h)
      : mask(nullptr),
        row(call.mask_strides[2]),
        column(call.mask_strides[3]),
        diagonal(call.diagonal),
        queries(place.queries),
        keys(place.keys),
        scale(call.scale * kBitsOfE) {
    if constexpr (!math::kIsSame<M, NoMask>) {
      mask = static_cast<const M*>(call.mask) +
             place.batch * call.mask_strides[0] + h * call.mask_strides[1];
    }
    if constexpr (kParts) {
      const int shift = call.parts.lower_right != 0 ? keys - queries : 0;
      if (diagonal != kMost) diagonal += shift;
      lowest = call.parts.lowest;
      if (lowest != kLeast) lowest += shift;
    }
  }
  __device__ inline float at(float product, int query, int key) const {
    if (query >= queries || key >= keys || key - query > diagonal) {
      return -math::kInfinity<float>;
    }
    if constexpr (kParts) {
      if (key - query < lowest) return -math::kInfinity<float>;
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
           key + n <= keys && key + n - 1 - query <= diagonal &&
           (!kParts || key - (query + rows - 1) >= lowest);
  }
  // Of keys, those that any query from `first` on and before `end` sees lie
  // from the one to before the other; of queries, those that see any key.
  __device__ inline int keys_before(int end) const {
    const Long seen = Long(end < queries ? end : queries) + diagonal;
    return seen < 0 ? 0 : seen < keys ? static_cast<int>(seen) : keys;
  }
  __device__ inline int first_query(int key) const {
    const Long first = Long(key) - diagonal;
    return first < 0 ? 0 : first < queries ? static_cast<int>(first) : queries;
  }
  __device__ inline int first_key(int query) const {
    if (!kParts || lowest == kLeast) return 0;
    const Long first = Long(query) + lowest;
    return first < 0 ? 0 : first < keys ? static_cast<int>(first) : keys;
  }
  __device__ inline int queries_before(int end) const {
    if (!kParts || lowest == kLeast) return queries;
    const Long seen = Long(end < keys ? end : keys) - lowest;
    return seen < 0 ? 0 : seen < queries ? static_cast<int>(seen) : queries;
  }
};

// The keys of one share, from a multiple of `tile` to a multiple or the end.
struct KeyShare {
  int begin, end;

  __device__ inline KeyShare(int first, int seen, int splits, int tile) {
    const int share = static_cast<int>(blockIdx.y);
    begin = first / tile * tile;
    end = seen;
    if (splits == 1 || begin >= end) return;
    const int tiles = (end - begin + tile - 1) / tile;
    const int each = (tiles + splits - 1) / splits;
    const Long from = Long(begin) + Long(share) * each * tile;
    const Long to = from + Long(each) * tile;
    begin = from < end ? static_cast<int>(from) : end;
    if (to < end) end = static_cast<int>(to);
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
template <bool kParts>
__device__ inline Long query_place(const AttentionCall& call,
                                   const HeadPlace<kParts>& place,
                                   int h,
                                   int query) {
  return place.batch * call.sums_batch + h * call.sums_head +
         place.query_start + query;
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

// Writes the warp's sixteen rows of 8 N columns, each times its row's factor,
// of a sequence that begins at `start` and has so many rows.
template <class S, int N>
__device__ inline void write_rows(const Fragment (&sums)[N],
                                  const AttentionRows& to,
                                  int b,
                                  int h,
                                  Long start,
                                  int first,
                                  int rows,
                                  float upper,
                                  float lower) {
  S* data =
      static_cast<S*>(to.data) + b * to.batch + h * to.head + start * to.row;
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

// The warp's results and log sums, or those of its share of the keys.
template <class S, int N, bool kParts>
__device__ inline void write_results(const AttentionCall& call,
                                     const HeadPlace<kParts>& place,
                                     const Online& online,
                                     const Fragment (&sums)[N],
                                     int query) {
  const int b = place.batch, h = place.head;
  const Long start = place.query_start;
  float* log_sums = call.log_sums;
  if (kParts && call.parts.splits > 1) {
    log_sums = call.parts.log_sums + blockIdx.y * call.parts.sums_split;
  }
  float factors[2];
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const float sum = sum_of_row(online.sum[half]);
    const int row = query + lane_id() / 4 + 8 * half;
    factors[half] = sum == 0 ? 0 : call.kept_scale / sum;
    if (log_sums != nullptr && lane_id() % 4 == 0 && row < place.queries) {
      log_sums[query_place(call, place, h, row)] =
          sum == 0 ? -math::kInfinity<float>
                   : online.largest[half] * kNaturalOfTwo + math::log(sum);
    }
  }
  const float upper = factors[0], lower = factors[1];
  const int rows = place.queries;
  if constexpr (kParts) {
    if (call.parts.splits > 1) {
      AttentionRows to = call.parts.out;
      to.data =
          static_cast<float*>(to.data) + blockIdx.y * call.parts.out_split;
      write_rows<float>(sums, to, b, h, start, query, rows, upper, lower);
      return;
    }
  }
  write_rows<S>(sums, call.out, b, h, start, query, rows, upper, lower);
}

// D: columns, those of the tensors and zeros behind; kOwn: queries of a block;
// kTile: keys at a time; M: what a mask is stored as.
template <class S,
          int D,
          int kOwn,
          int kTile,
          class M,
          bool kDrops,
          bool kParts>
__device__ inline void attention_forward(const AttentionCall& call) {
  alignas(16)
      __shared__ unsigned char memory[(kOwn + 2 * kTile) * D * sizeof(S)];
  S* own = reinterpret_cast<S*>(memory);
  S* keys = own + kOwn * D;
  S* values = keys + kTile * D;
  const HeadPlace<kParts> place(call, call.heads, kOwn);
  const int b = place.batch, h = place.head, first = place.first;
  const Long start = place.query_start;
  if (kParts && first >= place.queries) return;
  const Scores<M, kParts> score(call, place, h);
  const Dropout dropout(call, b, h);
  const auto key_rows = key_rows_of<S>(call, call.key, place);
  const auto value_rows = key_rows_of<S>(call, call.value, place);
  const int splits = kParts ? call.parts.splits : 1;
  const KeyShare share(
      score.first_key(first), score.keys_before(first + kOwn), splits, kTile);
  const int seen = share.end;
  const int query = first + warp_id() * kWarpRows;

  load_tile<S, D, kOwn>(
      own, rows_of<S>(call.query, b, h, start), first, place.queries);
  load_tile<S, D, kTile>(keys, key_rows, share.begin, place.keys);
  Online online;
  Fragment sums[D / 8];
  clear(sums);
  for (int key = share.begin; key < seen; key += kTile) {
    wait_for_copies();
    __syncthreads();
    load_tile<S, D, kTile>(values, value_rows, key, place.keys);
    Fragment weights[kTile / 8];
    clear(weights);
    dot_rows<S, D>(weights, own, warp_id() * kWarpRows, keys);
    wait_for_copies();
    __syncthreads();
    if (key + kTile < seen) {
      load_tile<S, D, kTile>(keys, key_rows, key + kTile, place.keys);
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

  write_results<S>(call, place, online, sums, query);
}

// Joins the shares of each row, in their order: a warp has a row.
template <class S>
__device__ inline void attention_join(const AttentionCall& call) {
  const AttentionParts& parts = call.parts;
  const Long warps = static_cast<Long>(blockDim.x) / 32;
  const Long row = static_cast<Long>(blockIdx.x) * warps + warp_id();
  if (row >= parts.sums_split) return;
  const float* sums = parts.log_sums + row;
  float most = -math::kInfinity<float>;
  for (int i = 0; i < parts.splits; ++i) {
    const float other = sums[i * parts.sums_split];
    most = other > most ? other : most;
  }
  const float base = most == -math::kInfinity<float> ? 0 : most;
  float sum = 0;
  for (int i = 0; i < parts.splits; ++i) {
    sum += math::exp(sums[i * parts.sums_split] - base);
  }
  const Long head = row / call.sums_head, b = head / call.heads;
  S* to = static_cast<S*>(call.out.data) + b * call.out.batch +
          head % call.heads * call.out.head +
          row % call.sums_head * call.out.row;
  const int width = call.out.width;
  const float* from = static_cast<const float*>(parts.out.data) + row * width;
  const float factor = sum == 0 ? 0 : 1 / sum;
  for (int column = lane_id(); column < width; column += 32) {
    float value = 0;
    for (int i = 0; i < parts.splits; ++i) {
      value += math::exp(sums[i * parts.sums_split] - base) *
               from[i * parts.out_split + column];
    }
    to[column * call.out.column] = narrowed<S>(value * factor);
  }
  if (call.log_sums != nullptr && lane_id() == 0) {
    call.log_sums[row] =
        sum == 0 ? -math::kInfinity<float> : base + math::log(sum);
  }
}

}  // namespace taeda
