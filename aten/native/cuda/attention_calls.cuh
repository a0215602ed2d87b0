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

// What only calls have that are not one sequence of one length for each batch,
// or whose keys are shared by several blocks.
struct AttentionParts {
  // Sequences lie behind one another: where each begins, and the last ends; of
  // which as many keys count. Null: batches of equal lengths.
  const int *query_starts, *key_starts, *keys_used;
  // Rows for each place and query of query_starts: of one query's heads that
  // are rows there are so many in all, and in a tile.
  int rows_of_place, rows_of_query;
  // Numbers of pages of `page` keys, of which each sequence has a row; or null.
  const int* pages;
  long long pages_row;
  int page;
  int lowest;       // query i sees key j where j - i is at least this
  int lower_right;  // whether both bounds count from the last query and key
  // So many shares of the keys, each with results of its own in float.
  int splits;
  AttentionRows out;
  float* log_sums;
  long long out_split, sums_split;
};

struct AttentionCall {
  AttentionRows query, key, value, out;
  AttentionRows grad_out, grad_query, grad_key, grad_value;
  const void* mask;           // or null
  void* grad_mask;            // or null; [batch, heads, queries, keys], dense
  long long mask_strides[4];  // 0 along what it lacks
  float* log_sums;            // [batch, heads, queries], or null
  float* deltas;              // likewise; rows' sums of grad_out * out
  // Of a query's in log_sums and deltas: beside one another within a head.
  long long sums_batch, sums_head;
  int heads, shared;  // of the query; of which so many share a key's
  int queries, keys;  // of the longest sequence
  int blocks;         // which share the rows of a head
  int diagonal;       // query i sees key j where j - i is at most this
  AttentionParts parts;
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
