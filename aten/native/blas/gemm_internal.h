// What the files of this folder share about one product.
#pragma once

#include <cstdint>
#include <type_traits>

#include <taeda/aten/native/blas/gemm.h>

namespace taeda::blas {

// The arguments of gemm, to be handed on as one.
template <typename T>
struct Product {
  Op trans_a;
  Op trans_b;
  int64_t m;
  int64_t n;
  int64_t k;
  scale_t<T> alpha;
  const T* a;
  int64_t lda;
  const T* b;
  int64_t ldb;
  scale_t<T> beta;
  T* c;
  int64_t ldc;

  // op(A)(i, p) at a[i * a_row() + p * a_step()], and B likewise.
  int64_t a_row() const { return trans_a == Op::kNone ? lda : 1; }
  int64_t a_step() const { return trans_a == Op::kNone ? 1 : lda; }
  int64_t b_row() const { return trans_b == Op::kNone ? ldb : 1; }
  int64_t b_step() const { return trans_b == Op::kNone ? 1 : ldb; }
};

template <typename T>
inline constexpr bool kIsComplex = false;
template <typename T>
inline constexpr bool kIsComplex<complex<T>> = true;

// The product on an m, n, k that are not empty and an alpha that is not zero:
// float, double and complex through a library or the small kernel.
template <typename T>
void gemm_library(const Product<T>& p);

// Blocked loops for any element type, sums in scale_t<T>: integers, and what
// the libraries' 32-bit sizes cannot express.
template <typename T>
void gemm_loops(const Product<T>& p);

// BFloat16 and Half.
template <typename T>
void gemm_sixteen(const Product<T>& p);

// The general entry: trivial cases, then one of those above.
template <typename T>
void run_product(const Product<T>& p);

}  // namespace taeda::blas
