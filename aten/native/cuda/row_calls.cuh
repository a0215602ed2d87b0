// Parameters of the kernels of rows.cuh, for the host too: no device code.
#pragma once

namespace taeda {

// Rows that lie behind each other in all tensors. A row is one share, or
// `splits` shares of `share` elements, each of which fits into the registers of
// a block.
struct RowCall {
  long long rows, count;
  long long share;
  int splits;
  int groups;       // rows after which factors of channels begin again
  long long width;  // elements of a row that have one factor; 1: each its own
  const void* in[2];
  void* out;
  const void* factors;   // of columns, or null
  const void* summands;  // likewise
  void* first;           // numbers of each row, which the operator names
  void* second;
  void* parts;          // states of the shares
  const void* targets;  // of cross entropy
  const void* scale;    // one number of the device, or null
  const void* divisor;  // likewise
  long long ignored;
  double eps;
  int flag;
  const void* sums;  // of channels, {g, g (x - mean)}; null in evaluation
  // Note [Faults of kernels]; laid out as Caller of formula.cuh.
  void* fault;
  const char* op;
};

// Columns of `rows` rows: `parts` has the sums of each of `splits` blocks.
struct ColumnCall {
  long long rows, count;
  int splits;
  const void* in[2];
  const void* first;  // of rows: means, or null
  const void* second;
  void* parts;
  void* out[2];
};

// Channels of [batch, channels, plane], from `outer` states of each (channels
// beside each other), or of columns [rows, channels].
struct ChannelCall {
  long long rows, channels;  // of columns
  long long outer, count;    // states of a channel, and its elements
  int splits;
  const void* in[2];
  void* states;
  void* mean;
  void* rstd;
  void* running_mean;  // or null
  void* running_var;
  void* sums;       // of all states of a channel
  void* of_factor;  // gradients, or null
  void* of_summand;
  double eps, momentum;
};

}  // namespace taeda
