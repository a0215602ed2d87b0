#include <taeda/c10/util/crc32.h>

#include <array>
#include <bit>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace taeda {

namespace {

// The polynomial of ISO 3309 with its bits reversed, as are all remainders
// here: bit 0 is the coefficient of the highest power.
constexpr uint32_t kPolynomial = 0xEDB88320;
constexpr size_t kSlices = 8;
using Slices = std::array<std::array<uint32_t, 256>, kSlices>;

// slices[k][byte]: what the byte adds to the remainder when k bytes follow it.
constexpr Slices make_slices() {
  Slices s{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t r = byte;
    for (int bit = 0; bit < 8; ++bit) r = r >> 1 ^ (r & 1 ? kPolynomial : 0);
    s[0][byte] = r;
  }
  for (size_t k = 1; k < kSlices; ++k) {
    for (size_t byte = 0; byte < 256; ++byte) {
      s[k][byte] = s[k - 1][byte] >> 8 ^ s[0][s[k - 1][byte] & 255];
    }
  }
  return s;
}
constexpr Slices kTable = make_slices();

// Eight bytes a step, by as many look-ups that do not wait for each other.
uint32_t by_table(uint32_t r, const unsigned char* p, size_t n) {
  for (; std::endian::native == std::endian::little && n >= 8; p += 8, n -= 8) {
    uint64_t word;
    std::memcpy(&word, p, 8);
    word ^= r;
    r = 0;
    for (size_t k = 0; k < kSlices; ++k) {
      r ^= kTable[kSlices - 1 - k][word >> (8 * k) & 255];
    }
  }
  for (; n > 0; ++p, --n) r = r >> 8 ^ kTable[0][(r ^ *p) & 255];
  return r;
}

#if defined(__x86_64__)

// Note [Folding]
// Multiplying the 128 bits x of a message by x^(8 d) modulo the polynomial lets
// them be added to those d bytes on without changing the remainder. So four
// registers pass over 64 bytes a step. What is left after all, 16 bytes, has
// the remainder of the message, and the table finishes it. The factors are x^(8
// d + 32) and x^(8 d - 32) modulo the polynomial (V. Gopal and others, Fast CRC
// Computation for Generic Polynomials Using PCLMULQDQ Instruction, 2009).
constexpr size_t kStep = 64;

[[gnu::target("pclmul,sse4.1")]] inline __m128i fold(__m128i x,
                                                     __m128i factors,
                                                     __m128i onto) {
  __m128i low = _mm_clmulepi64_si128(x, factors, 0x00);
  __m128i high = _mm_clmulepi64_si128(x, factors, 0x11);
  return _mm_xor_si128(_mm_xor_si128(low, high), onto);
}

[[gnu::target("pclmul,sse4.1")]] uint32_t by_folding(uint32_t r,
                                                     const unsigned char* p,
                                                     size_t n) {
  const __m128i by_64 = _mm_set_epi64x(0x1c6e41596, 0x154442bd4);
  const __m128i by_16 = _mm_set_epi64x(0x0ccaa009e, 0x1751997d0);
  auto at = [&](size_t i) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p + i));
  };
  __m128i a = _mm_xor_si128(at(0), _mm_cvtsi32_si128(static_cast<int>(r)));
  __m128i b = at(16), c = at(32), d = at(48);
  for (p += kStep, n -= kStep; n >= kStep; p += kStep, n -= kStep) {
    a = fold(a, by_64, at(0));
    b = fold(b, by_64, at(16));
    c = fold(c, by_64, at(32));
    d = fold(d, by_64, at(48));
  }
  a = fold(fold(fold(a, by_16, b), by_16, c), by_16, d);
  for (; n >= 16; p += 16, n -= 16) a = fold(a, by_16, at(0));
  unsigned char rest[16];
  _mm_storeu_si128(reinterpret_cast<__m128i*>(rest), a);
  return by_table(by_table(0, rest, sizeof(rest)), p, n);
}

bool can_fold() {
  static const bool can =
      __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("sse4.1");
  return can;
}

#endif

}  // namespace

uint32_t crc32(uint32_t crc, const void* data, size_t size) {
  const auto* p = static_cast<const unsigned char*>(data);
#if defined(__x86_64__)
  if (size >= kStep && can_fold()) return ~by_folding(~crc, p, size);
#endif
  return ~by_table(~crc, p, size);
}

}  // namespace taeda
