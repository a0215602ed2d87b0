#include <immintrin.h>

#include <taeda/aten/native/blas/kernels_impl.h>
#include <taeda/aten/native/blas/transpose_avx.h>

namespace taeda::blas::isa_avx2 {
namespace {

// Lanes below n have their sign bit set.
inline __m256i mask32(int64_t n) {
  const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(n)), lane);
}
inline __m256i mask64(int64_t n) {
  const __m256i lane = _mm256_setr_epi64x(0, 1, 2, 3);
  return _mm256_cmpgt_epi64(_mm256_set1_epi64x(n), lane);
}

struct F32 {
  using T = float;
  using Reg = __m256;
  static constexpr int kWidth = 8;
  static constexpr int kRows = 4;
  static Reg zero() { return _mm256_setzero_ps(); }
  static Reg set1(T x) { return _mm256_set1_ps(x); }
  static Reg load(const T* p) { return _mm256_loadu_ps(p); }
  static Reg load_n(const T* p, int64_t n) {
    return _mm256_maskload_ps(p, mask32(n));
  }
  static void store(T* p, Reg x) { _mm256_storeu_ps(p, x); }
  static void store_n(T* p, Reg x, int64_t n) {
    _mm256_maskstore_ps(p, mask32(n), x);
  }
  static Reg fma(Reg a, Reg b, Reg c) { return _mm256_fmadd_ps(a, b, c); }
  static Reg mul(Reg a, Reg b) { return _mm256_mul_ps(a, b); }
  static Reg add(Reg a, Reg b) { return _mm256_add_ps(a, b); }
  static T sum(Reg x) {
    __m128 s =
        _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
    s = _mm_add_ps(s, _mm_movehl_ps(s, s));
    return _mm_cvtss_f32(_mm_add_ss(s, _mm_movehdup_ps(s)));
  }
  static void transpose8(const T* in, int64_t ld, T* out, int64_t ld_out) {
    transpose8_avx(in, ld, out, ld_out);
  }
};

struct F64 {
  using T = double;
  using Reg = __m256d;
  static constexpr int kWidth = 4;
  static constexpr int kRows = 4;
  static Reg zero() { return _mm256_setzero_pd(); }
  static Reg set1(T x) { return _mm256_set1_pd(x); }
  static Reg load(const T* p) { return _mm256_loadu_pd(p); }
  static Reg load_n(const T* p, int64_t n) {
    return _mm256_maskload_pd(p, mask64(n));
  }
  static void store(T* p, Reg x) { _mm256_storeu_pd(p, x); }
  static void store_n(T* p, Reg x, int64_t n) {
    _mm256_maskstore_pd(p, mask64(n), x);
  }
  static Reg fma(Reg a, Reg b, Reg c) { return _mm256_fmadd_pd(a, b, c); }
  static Reg mul(Reg a, Reg b) { return _mm256_mul_pd(a, b); }
  static Reg add(Reg a, Reg b) { return _mm256_add_pd(a, b); }
  static T sum(Reg x) {
    const __m128d s =
        _mm_add_pd(_mm256_castpd256_pd128(x), _mm256_extractf128_pd(x, 1));
    return _mm_cvtsd_f64(_mm_add_sd(s, _mm_unpackhi_pd(s, s)));
  }
  static void transpose8(const T* in, int64_t ld, T* out, int64_t ld_out) {
    transpose8_avx(in, ld, out, ld_out);
  }
};

}  // namespace

const KernelSet kernel_set = kSetOf<F32, F64, 32, 4>;

}  // namespace taeda::blas::isa_avx2
