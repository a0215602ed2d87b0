// Parameters of kernels over lists of tensors, for the host too: a table in the
// parameter itself, so that one launch serves as many tensors as 4 KiB hold.
#pragma once

namespace taeda {

inline constexpr int kTableTensors = 48;
inline constexpr int kTableLists = 5;
// Elements of a block; a tensor has one or more.
inline constexpr int kTableChunk = 8192;
inline constexpr int kTableThreads = 256;

struct TensorTable {
  int tensors;
  int first[kTableTensors + 1];  // the first chunk of each
  int aligned;                   // all of it, to 16 bytes
  long long numel[kTableTensors];
  void* memory[kTableLists][kTableTensors];
};

// Of pointwise calls with so many numbers each, 16 bytes a number.
inline constexpr int kTableNumbers = 2;
template <int kNumbers>
struct PointwiseTable {
  TensorTable table;
  struct Row {
    alignas(16) unsigned char numbers[kNumbers > 0 ? kNumbers : 1][16];
  } rows[kTableTensors];
};
static_assert(sizeof(PointwiseTable<kTableNumbers>) <= 4096);

struct OptimizerCall {
  TensorTable table;
  const float* step[kTableTensors];  // counts on the device, or null
  float count[kTableTensors];        // else the count itself
  const void* rate;                  // on the device, or null
  const float* grad_scale;           // or null
  const float* found_inf;            // or null
  double lr, weight_decay, eps, momentum, dampening, beta1, beta2;
  int maximize, nesterov, first, decoupled;
};

struct ListCall {
  TensorTable table;
  void* parts;               // a number for each chunk
  void* out[kTableTensors];  // of the norms
  float* found_inf;
  const float* factor;
  double order;
};

struct ScaleCall {
  float* scale;
  int* tracker;
  const float* found_inf;
  double growth, backoff;
  long long interval;
};

}  // namespace taeda
