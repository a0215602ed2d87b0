// The Mersenne Twister MT19937 of M. Matsumoto and T. Nishimura, "Mersenne
// Twister: a 623-dimensionally equidistributed uniform pseudo-random number
// generator", ACM TOMACS 8(1), 1998, with the seeding of their 2002 version.
#pragma once

#include <cstdint>

namespace taeda {

/// The engine of the CPU generator: 32 random bits a call.
class Mt19937 {
 public:
  static constexpr int kWords = 624;

  explicit Mt19937(uint64_t seed = 5489) { reseed(seed); }

  /// Only the lower 32 bits of `seed` reach the state.
  void reseed(uint64_t seed) {
    words_[0] = static_cast<uint32_t>(seed);
    for (int i = 1; i < kWords; ++i) {
      const uint32_t last = words_[i - 1];
      words_[i] = 1812433253u * (last ^ (last >> 30)) + i;
    }
    used_ = kWords;
    fresh_ = true;
  }

  uint32_t random() {
    if (used_ == kWords) advance();
    return temper(words_[used_++]);
  }

  /// The first word of the stream is the upper half.
  uint64_t random64() {
    const uint64_t high = random();
    return high << 32 | random();
  }

  /// The words not yet handed out, untempered; `count` becomes how many there
  /// are (at least one, at most what it was), and those count as used.
  const uint32_t* take(int64_t& count) {
    if (used_ == kWords) advance();
    const int64_t left = kWords - used_;
    count = count < left ? count : left;
    const uint32_t* result = words_ + used_;
    used_ += static_cast<int32_t>(count);
    return result;
  }

  /// Section 2.1 of the paper: the output transformation.
  __attribute__((always_inline)) static uint32_t temper(uint32_t y) {
    y ^= y >> 11;
    y ^= (y << 7) & 0x9d2c5680u;
    y ^= (y << 15) & 0xefc60000u;
    return y ^ (y >> 18);
  }

  /// State access for saving: `used` words of `words` are consumed, and
  /// `fresh` says that no block was generated since seeding.
  const uint32_t* words() const { return words_; }
  int32_t used() const { return used_; }
  bool fresh() const { return fresh_; }

  void restore(const uint32_t* words, int32_t used, bool fresh) {
    for (int i = 0; i < kWords; ++i) words_[i] = words[i];
    used_ = used;
    fresh_ = fresh;
  }

 private:
  static constexpr int kShift = 397;

  __attribute__((always_inline)) static uint32_t twist(uint32_t upper,
                                                       uint32_t lower,
                                                       uint32_t far) {
    const uint32_t mixed = (upper & 0x80000000u) | (lower & 0x7fffffffu);
    return far ^ (mixed >> 1) ^ (-(lower & 1u) & 0x9908b0dfu);
  }

  // The next block. Two loops without a modulo, each free of dependences
  // closer than 227 words, so both vectorise.
  [[gnu::optimize("O3")]] void advance() {
    uint32_t* w = words_;
    constexpr int kFront = kWords - kShift;
    for (int i = 0; i < kFront; ++i) {
      w[i] = twist(w[i], w[i + 1], w[i + kShift]);
    }
    for (int i = kFront; i < kWords - 1; ++i) {
      w[i] = twist(w[i], w[i + 1], w[i - kFront]);
    }
    w[kWords - 1] = twist(w[kWords - 1], w[0], w[kShift - 1]);
    used_ = 0;
    fresh_ = false;
  }

  uint32_t words_[kWords];
  int32_t used_ = kWords;
  bool fresh_ = true;
};

}  // namespace taeda
