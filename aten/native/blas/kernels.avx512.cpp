// g++ 12 takes its own _mm512_reduce_add for a use of an unset variable.
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#include <immintrin.h>

#include <taeda/aten/native/blas/kernels_impl.h>
#include <taeda/aten/native/blas/transpose_avx.h>

namespace taeda::blas::isa_avx512 {
namespace {

struct F32 {
  using T = float;
  using Reg = __m512;
  static constexpr int kWidth = 16;
  static constexpr int kRows = 8;
  static __mmask16 mask(int64_t n) {
    return static_cast<__mmask16>((1u << n) - 1);
  }
  static Reg zero() { return _mm512_setzero_ps(); }
  static Reg set1(T x) { return _mm512_set1_ps(x); }
  static Reg load(const T* p) { return _mm512_loadu_ps(p); }
  static Reg load_n(const T* p, int64_t n) {
    return _mm512_maskz_loadu_ps(mask(n), p);
  }
  static void store(T* p, Reg x) { _mm512_storeu_ps(p, x); }
  static void store_n(T* p, Reg x, int64_t n) {
    _mm512_mask_storeu_ps(p, mask(n), x);
  }
  static Reg fma(Reg a, Reg b, Reg c) { return _mm512_fmadd_ps(a, b, c); }
  static Reg mul(Reg a, Reg b) { return _mm512_mul_ps(a, b); }
  static Reg add(Reg a, Reg b) { return _mm512_add_ps(a, b); }
  static T sum(Reg x) { return _mm512_reduce_add_ps(x); }
  static void transpose8(const T* in, int64_t ld, T* out, int64_t ld_out) {
    transpose8_avx(in, ld, out, ld_out);
  }
};

struct F64 {
  using T = double;
  using Reg = __m512d;
  static constexpr int kWidth = 8;
  static constexpr int kRows = 8;
  static __mmask8 mask(int64_t n) {
    return static_cast<__mmask8>((1u << n) - 1);
  }
  static Reg zero() { return _mm512_setzero_pd(); }
  static Reg set1(T x) { return _mm512_set1_pd(x); }
  static Reg load(const T* p) { return _mm512_loadu_pd(p); }
  static Reg load_n(const T* p, int64_t n) {
    return _mm512_maskz_loadu_pd(mask(n), p);
  }
  static void store(T* p, Reg x) { _mm512_storeu_pd(p, x); }
  static void store_n(T* p, Reg x, int64_t n) {
    _mm512_mask_storeu_pd(p, mask(n), x);
  }
  static Reg fma(Reg a, Reg b, Reg c) { return _mm512_fmadd_pd(a, b, c); }
  static Reg mul(Reg a, Reg b) { return _mm512_mul_pd(a, b); }
  static Reg add(Reg a, Reg b) { return _mm512_add_pd(a, b); }
  static T sum(Reg x) { return _mm512_reduce_add_pd(x); }
  static void transpose8(const T* in, int64_t ld, T* out, int64_t ld_out) {
    transpose8_avx(in, ld, out, ld_out);
  }
};

}  // namespace

const KernelSet kernel_set = kSetOf<F32, F64, 64, 8>;

}  // namespace taeda::blas::isa_avx512
