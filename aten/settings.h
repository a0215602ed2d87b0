// Process-wide switches that programs set and kernels read.
//
// Thread rule: each switch is an atomic of its own, which any thread may set at
// any time. A call reads each switch that it heeds once.
#pragma once

#include <taeda/c10/util/macros.h>

#include <array>
#include <atomic>
#include <cstdint>

namespace taeda::settings {

// The ways of scaled_dot_product_attention, with PyTorch's numbers. Of these
// the CPU has Math (composed of products and softmax) and Flash (fused).
enum class Attention : uint8_t {
  Math,
  Flash,
  MemoryEfficient,
  Cudnn,
  Override
};
constexpr size_t kAttentionWays = 5;
using AttentionOrder = std::array<Attention, kAttentionWays>;

TAEDA_API bool attention_enabled(Attention way);
TAEDA_API void enable_attention(Attention way, bool on);
// The enabled ways are tried in this order.
TAEDA_API AttentionOrder attention_order();
TAEDA_API void set_attention_order(const AttentionOrder& order);

// Off: products and convolutions do not use oneDNN.
extern TAEDA_API std::atomic<bool> dnn_enabled;

// What products on a GPU may give up: float32 its last 13 bits (TF32); sums of
// half and bfloat16 that are added up in parts, those parts in float.
extern TAEDA_API std::atomic<bool> product_tf32;
extern TAEDA_API std::atomic<bool> half_sums, bfloat16_sums;

// Of cuDNN's convolutions: whether they are used; tried, up to so many ways for
// each problem (0: all that there are), of which the quickest is kept;
// deterministic ones alone; and whether float32 may be TF32.
extern TAEDA_API std::atomic<bool> cudnn_enabled, cudnn_benchmark;
extern TAEDA_API std::atomic<int64_t> cudnn_benchmark_limit;
extern TAEDA_API std::atomic<bool> cudnn_deterministic, convolution_tf32;

// Who factors matrices on a GPU, PyTorch's numbers: 0 as it suits, 1 cuSOLVER
// wherever it can.
extern TAEDA_API std::atomic<uint8_t> linalg_library;

// On: what has a deterministic way and others goes that.
extern TAEDA_API std::atomic<bool> deterministic;

// On: what programs get uninitialised (`empty`, `resize_`) is filled with NaN
// or the dtype's largest number, so that reading it gives the same every time.
extern TAEDA_API std::atomic<bool> fill_uninitialized;

// On: what is warned of once per process is warned of every time.
extern TAEDA_API std::atomic<bool> warn_always;

// Whether this thread takes denormal numbers for zeros; helpers of its parallel
// regions follow it. False where the processor cannot.
TAEDA_API bool set_flush_denormal(bool on);

}  // namespace taeda::settings
