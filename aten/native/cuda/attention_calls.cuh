// Parameters of the kernels of attention.cuh, for the host too: no device code.
#pragma once

namespace taeda {

// [batch, heads, length, width] anywhere in memory; strides in elements.
struct AttentionRows {
  void* data;
  long long batch, head, row, column;
  int width;
  int packed;  // rows begin at multiples of 16 bytes, columns lie side by side
};

struct AttentionCall {
  AttentionRows query, key, value, out;
  AttentionRows grad_out, grad_query, grad_key, grad_value;
  const void* mask;           // or null
  void* grad_mask;            // or null; [batch, heads, queries, keys], dense
  long long mask_strides[4];  // 0 along what it lacks
  float* log_sums;            // [batch, heads, queries], or null
  float* deltas;              // likewise; rows' sums of grad_out * out
  int heads, shared;          // of the query; of which so many share a key's
  int queries, keys;
  int blocks;    // which share the rows of a head
  int diagonal;  // query i sees key j where j - i is at most this
  float scale;
  // Note [Attention's dropout]
  float dropped, kept_scale;
  unsigned long long seed, offset;
  const long long* state;  // seed and what is added to offset, or null
  long long* written[2];   // seed and offset, for the pass backward, or null
  // There: what was written.
  const long long* drawn[2];
};

}  // namespace taeda
