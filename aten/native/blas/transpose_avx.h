// 8 x 8 transposes with 256-bit shuffles, for the AVX2 and AVX-512 kernels.
#pragma once

#include <immintrin.h>

#include <cstdint>

namespace taeda::blas {
namespace {

inline void transpose8_avx(const float* in,
                           int64_t ld_in,
                           float* out,
                           int64_t ld_out) {
  __m256 row[8];
  __m256 pair[8];
  for (int i = 0; i < 8; ++i) {
    row[i] = _mm256_loadu_ps(in + i * ld_in);
  }
  for (int i = 0; i < 8; i += 2) {
    pair[i] = _mm256_unpacklo_ps(row[i], row[i + 1]);
    pair[i + 1] = _mm256_unpackhi_ps(row[i], row[i + 1]);
  }
  for (int i = 0; i < 8; i += 4) {
    row[i] = _mm256_shuffle_ps(pair[i], pair[i + 2], 0x44);
    row[i + 1] = _mm256_shuffle_ps(pair[i], pair[i + 2], 0xee);
    row[i + 2] = _mm256_shuffle_ps(pair[i + 1], pair[i + 3], 0x44);
    row[i + 3] = _mm256_shuffle_ps(pair[i + 1], pair[i + 3], 0xee);
  }
  for (int i = 0; i < 4; ++i) {
    const auto low = _mm256_permute2f128_ps(row[i], row[i + 4], 0x20);
    const auto high = _mm256_permute2f128_ps(row[i], row[i + 4], 0x31);
    _mm256_storeu_ps(out + i * ld_out, low);
    _mm256_storeu_ps(out + (i + 4) * ld_out, high);
  }
}

inline void transpose4_avx(const double* in,
                           int64_t ld_in,
                           double* out,
                           int64_t ld_out) {
  const __m256d r0 = _mm256_loadu_pd(in);
  const __m256d r1 = _mm256_loadu_pd(in + ld_in);
  const __m256d r2 = _mm256_loadu_pd(in + 2 * ld_in);
  const __m256d r3 = _mm256_loadu_pd(in + 3 * ld_in);
  const __m256d p0 = _mm256_unpacklo_pd(r0, r1);
  const __m256d p1 = _mm256_unpackhi_pd(r0, r1);
  const __m256d p2 = _mm256_unpacklo_pd(r2, r3);
  const __m256d p3 = _mm256_unpackhi_pd(r2, r3);
  _mm256_storeu_pd(out, _mm256_permute2f128_pd(p0, p2, 0x20));
  _mm256_storeu_pd(out + ld_out, _mm256_permute2f128_pd(p1, p3, 0x20));
  _mm256_storeu_pd(out + 2 * ld_out, _mm256_permute2f128_pd(p0, p2, 0x31));
  _mm256_storeu_pd(out + 3 * ld_out, _mm256_permute2f128_pd(p1, p3, 0x31));
}

inline void transpose8_avx(const double* in,
                           int64_t ld_in,
                           double* out,
                           int64_t ld_out) {
  for (int i = 0; i < 8; i += 4) {
    for (int j = 0; j < 8; j += 4) {
      transpose4_avx(in + i * ld_in + j, ld_in, out + j * ld_out + i, ld_out);
    }
  }
}

}  // namespace
}  // namespace taeda::blas
