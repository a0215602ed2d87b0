// Which code computes a matrix product: the one place that decides.
// benchmarks/gemm_choice.py measures the alternatives on a machine; the figures
// behind the thresholds are in docs/design/blas.md.
#pragma once

#include <cstdint>

#include <taeda/aten/cpu_capability.h>

namespace taeda::blas {

enum class GemmRoute {
  kSmall,     // our register-tile kernel, no packing, one thread
  kDnn,       // oneDNN's gemm
  kOpenBlas,  // OpenBLAS's gemm
};

// What the caller knows about a product, for float and double.
struct GemmShape {
  int64_t m;
  int64_t n;
  int64_t k;
  bool trans_b;
};

// Most elements of op(B) that the small kernel turns around on the stack.
inline constexpr int64_t kSmallPackElements = 4096;

GemmRoute choose_gemm_f32(const GemmShape& shape);
GemmRoute choose_gemm_f64(const GemmShape& shape);

// bfloat16 products: oneDNN's kernel, else converted to float. oneDNN refuses
// where the processor lacks what it needs.
bool choose_dnn_bf16(int64_t m, int64_t n, int64_t k);

// Matrices of a batch that are worth a thread each instead of all threads for
// one after the other.
bool batch_over_threads(int64_t batch, const GemmShape& shape);

// For benchmarks and tests: overrides every choice; "small", "dnn", "openblas",
// or "" for none. Read from TAEDA_GEMM_ROUTE on first use.
TAEDA_API void force_gemm_route(const char* route);

}  // namespace taeda::blas
