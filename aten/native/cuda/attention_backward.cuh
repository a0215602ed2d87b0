// Gradients of attention, in two kernels that recompute the weights from the
// saved logarithms of their sums: one whose warps own queries, one whose warps
// own keys. So each gradient is added up by one warp in the order of the rows,
// without atomic operations (T. Dao, "FlashAttention-2", 2023, adds those of
// queries in memory).
#pragma once

#include <taeda/aten/native/cuda/attention.cuh>

namespace taeda {

// Of one query: the logarithm to base 2 of the sum of its weights, and the sum
// of grad_out * out.
struct QueryNumbers {
  float log_sum, delta;
};
template <bool kParts>
__device__ inline QueryNumbers numbers_of(const AttentionCall& call,
                                          const HeadPlace<kParts>& place,
                                          int h,
                                          int query) {
  if (query >= place.queries) return {0, 0};
  const Long at = query_place(call, place, h, query);
  return {call.log_sums[at] * kBitsOfE, call.deltas[at]};
}

// A weight as it was. A query without keys has none.
__device__ inline float weight_of(float score, float log_sum) {
  if (score == -math::kInfinity<float>) return 0;
  return power_of_two(score - log_sum);
}

// The sums of grad_out * out of the warp's rows.
template <class S, bool kParts>
__device__ inline void write_deltas(const AttentionCall& call,
                                    const HeadPlace<kParts>& place,
                                    int query,
                                    float (&deltas)[2]) {
  const int b = place.batch, h = place.head;
  const Long start = place.query_start;
  const HeadRows grad = rows_of<S>(call.grad_out, b, h, start);
  const HeadRows out = rows_of<S>(call.out, b, h, start);
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int row = query + lane_id() / 4 + 8 * half;
    float sum = 0;
    if (row < place.queries) {
      const S* one = static_cast<const S*>(grad.data) + row * grad.row;
      const S* other = static_cast<const S*>(out.data) + row * out.row;
      for (int c = lane_id() % 4; c < out.width; c += 4) {
        sum += loaded<float>(one, c * grad.column) *
               loaded<float>(other, c * out.column);
      }
    }
    deltas[half] = sum_of_row(sum);
    if (lane_id() % 4 == 0 && row < place.queries) {
      call.deltas[query_place(call, place, h, row)] = deltas[half];
    }
  }
}

// The logarithms to base 2 of the warp's rows.
template <bool kParts>
__device__ inline void read_log_sums(const AttentionCall& call,
                                     const HeadPlace<kParts>& place,
                                     int query,
                                     float (&log_sums)[2]) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int row = query + lane_id() / 4 + 8 * half;
    log_sums[half] =
        row < place.queries
            ? call.log_sums[query_place(call, place, place.head, row)] *
                  kBitsOfE
            : 0;
  }
}

template <class S, int N, bool kParts>
__device__ inline void write_scaled(const Fragment (&sums)[N],
                                    const AttentionRows& to,
                                    const HeadPlace<kParts>& place,
                                    Long start,
                                    int first,
                                    int rows,
                                    float scale) {
  const int b = place.batch, h = place.head;
  write_rows<S>(sums, to, b, h, start, first, rows, scale, scale);
}

// Gradients of queries, and of a mask; leaves the deltas.
template <class S,
          int D,
          int kOwn,
          int kTile,
          class M,
          bool kDrops,
          bool kParts>
__device__ inline void attention_back_queries(const AttentionCall& call) {
  alignas(16)
      __shared__ unsigned char memory[2 * (kOwn + kTile) * D * sizeof(S)];
  S* own = reinterpret_cast<S*>(memory);
  S* grads = own + kOwn * D;
  S* keys = grads + kOwn * D;
  S* values = keys + kTile * D;
  const HeadPlace<kParts> place(call, call.heads, kOwn);
  const int b = place.batch, h = place.head, first = place.first;
  const Long start = place.query_start;
  if (kParts && first >= place.queries) return;
  const Scores<M, kParts> score(call, place, h);
  const Dropout dropout(call, b, h);
  const auto key_rows = key_rows_of<S>(call, call.key, place);
  const auto value_rows = key_rows_of<S>(call, call.value, place);
  const int begin = score.first_key(first) / kTile * kTile;
  const int query = first + warp_id() * kWarpRows;
  // The gradient of a mask is written for all keys.
  const int seen =
      call.grad_mask != nullptr ? call.keys : score.keys_before(first + kOwn);

  load_tile<S, D, kOwn>(
      own, rows_of<S>(call.query, b, h, start), first, place.queries);
  load_tile<S, D, kOwn>(
      grads, rows_of<S>(call.grad_out, b, h, start), first, place.queries);
  load_tile<S, D, kTile>(keys, key_rows, begin, place.keys);
  load_tile<S, D, kTile>(values, value_rows, begin, place.keys);
  float deltas[2], log_sums[2];
  write_deltas<S>(call, place, query, deltas);
  read_log_sums(call, place, query, log_sums);
  Fragment sums[D / 8];
  clear(sums);
  for (int key = begin; key < seen; key += kTile) {
    wait_for_copies();
    __syncthreads();
    Fragment weights[kTile / 8], changes[kTile / 8];
    clear(weights);
    clear(changes);
    dot_rows<S, D>(weights, own, warp_id() * kWarpRows, keys);
    dot_rows<S, D>(changes, grads, warp_id() * kWarpRows, values);
    __syncthreads();
    if (key + kTile < seen) {
      load_tile<S, D, kTile>(values, value_rows, key + kTile, place.keys);
    }
    each_element<kTile / 8>([&](int n, int i, int row, int column) {
      const int q = query + row, k = key + column;
      const float weight =
          weight_of(score.at(weights[n][i], q, k), log_sums[i / 2]);
      float change = changes[n][i] * call.kept_scale;
      if constexpr (kDrops) {
        if (!dropout.keeps(q, call.keys, k)) change = 0;
      }
      change = weight * (change - deltas[i / 2]);
      if constexpr (!math::kIsSame<M, NoMask> && !math::kIsSame<M, bool>) {
        if (call.grad_mask != nullptr && q < call.queries && k < call.keys) {
          static_cast<M*>(
              call.grad_mask)[query_place(call, place, h, q) * call.keys + k] =
              converted<M>(change);
        }
      }
      weights[n][i] = change;
    });
    add_rows<S, D>(sums, weights, keys);
    __syncthreads();
    if (key + kTile < seen) {
      load_tile<S, D, kTile>(keys, key_rows, key + kTile, place.keys);
    }
  }
  wait_for_copies();
  if (call.grad_query.data != nullptr) {
    const int rows = place.queries;
    write_scaled<S>(
        sums, call.grad_query, place, start, query, rows, call.scale);
  }
}

struct WeightPlace {
  int h, query, key;
};

// Of the product of a key and a query, and that of a value and the gradient of
// the result: the weight that the value had, and the gradient of the score.
template <bool kDrops, class M, bool kParts>
__device__ inline void change_turned(const AttentionCall& call,
                                     const HeadPlace<kParts>& place,
                                     const Scores<M, kParts>& score,
                                     const Dropout& dropout,
                                     const WeightPlace& at,
                                     float& weight,
                                     float& change) {
  const QueryNumbers of_query = numbers_of(call, place, at.h, at.query);
  weight = weight_of(score.at(weight, at.query, at.key), of_query.log_sum);
  bool kept = true;
  if constexpr (kDrops) kept = dropout.keeps(at.query, call.keys, at.key);
  change = kept ? change * call.kept_scale : 0;
  change = weight * (change - of_query.delta);
  if (!kept) weight = 0;
}

// Gradients of keys, of values, or of both: columns of the matrices of weights
// are added up by the warps that own the keys. kWhich: 1 keys, 2 values, 3.
template <class S,
          int D,
          int kOwn,
          int kTile,
          class M,
          bool kDrops,
          bool kParts,
          int kWhich>
__device__ inline void attention_back_keys(const AttentionCall& call) {
  constexpr bool kKeys = (kWhich & 1) != 0, kValues = (kWhich & 2) != 0;
  alignas(16)
      __shared__ unsigned char memory[2 * (kOwn + kTile) * D * sizeof(S)];
  S* own = reinterpret_cast<S*>(memory);
  S* own_values = own + kOwn * D;
  S* queries = own_values + kOwn * D;
  S* grads = queries + kTile * D;
  const HeadPlace<kParts> place(call, call.heads / call.shared, kOwn);
  const int b = place.batch, first = place.first, rows = place.keys;
  if (kParts && first >= rows) return;
  const int key = first + warp_id() * kWarpRows;
  const Long at = place.key_start, start = place.query_start;
  const HeadRows key_rows = rows_of<S>(call.key, b, place.head, at);
  const HeadRows value_rows = rows_of<S>(call.value, b, place.head, at);

  load_tile<S, D, kOwn>(own, key_rows, first, rows);
  load_tile<S, D, kOwn>(own_values, value_rows, first, rows);
  Fragment of_keys[kKeys ? D / 8 : 1], of_values[kValues ? D / 8 : 1];
  clear(of_keys);
  clear(of_values);
  for (int i = 0; i < call.shared; ++i) {
    const int h = place.head * call.shared + i;
    const Scores<M, kParts> score(call, place, h);
    const Dropout dropout(call, b, h);
    const HeadRows query_rows = rows_of<S>(call.query, b, h, start);
    const HeadRows grad_rows = rows_of<S>(call.grad_out, b, h, start);
    const int begin = score.first_query(first) / kTile * kTile;
    const int end = score.queries_before(first + kOwn);
    __syncthreads();  // of the head before
    if (begin < end) {
      load_tile<S, D, kTile>(queries, query_rows, begin, place.queries);
      load_tile<S, D, kTile>(grads, grad_rows, begin, place.queries);
    }
    for (int query = begin; query < end; query += kTile) {
      wait_for_copies();
      __syncthreads();
      const bool more = query + kTile < end;
      Fragment weights[kTile / 8], changes[kTile / 8];
      clear(weights);
      clear(changes);
      dot_rows<S, D>(weights, own, warp_id() * kWarpRows, queries);
      if constexpr (kKeys) {
        dot_rows<S, D>(changes, own_values, warp_id() * kWarpRows, grads);
      }
      each_element<kTile / 8>([&](int n, int e, int row, int column) {
        const WeightPlace own_place{h, query + column, key + row};
        float &weight = weights[n][e], &change = changes[n][e];
        change_turned<kDrops>(
            call, place, score, dropout, own_place, weight, change);
      });
      if constexpr (kValues) add_rows<S, D>(of_values, weights, grads);
      __syncthreads();
      if (more) {
        load_tile<S, D, kTile>(grads, grad_rows, query + kTile, place.queries);
      }
      if constexpr (kKeys) add_rows<S, D>(of_keys, changes, queries);
      __syncthreads();
      if (more) {
        load_tile<S, D, kTile>(
            queries, query_rows, query + kTile, place.queries);
      }
    }
  }
  wait_for_copies();
  if constexpr (kKeys) {
    write_scaled<S>(of_keys, call.grad_key, place, at, key, rows, call.scale);
  }
  if constexpr (kValues) {
    const float scale = call.kept_scale;
    write_scaled<S>(of_values, call.grad_value, place, at, key, rows, scale);
  }
}

}  // namespace taeda
