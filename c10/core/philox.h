// Philox4x32-10: J. Salmon, M. Moraes, R. Dror, D. Shaw, "Parallel random
// numbers: as easy as 1, 2, 3", SC 2011. No header is included, so that the
// same text serves the CPU and NVRTC.
#pragma once

#if defined(__CUDACC__)  // NVRTC defines it too
#define TAEDA_PHILOX_FN __host__ __device__ __forceinline__
#else
#define TAEDA_PHILOX_FN inline __attribute__((always_inline))
#endif

namespace taeda {

/// Four 32-bit words: a counter, or the random words made from it.
struct Philox4 {
  unsigned int word[4];
};

/// The bijection: ten rounds over `counter` under the 64-bit `key`.
TAEDA_PHILOX_FN Philox4 philox4x32(Philox4 counter, unsigned long long key) {
  unsigned int key0 = static_cast<unsigned int>(key);
  unsigned int key1 = static_cast<unsigned int>(key >> 32);
  Philox4 c = counter;
  for (int round = 0; round < 10; ++round) {
    const unsigned long long a = 0xD2511F53ull * c.word[0];
    const unsigned long long b = 0xCD9E8D57ull * c.word[2];
    const unsigned int a_high = static_cast<unsigned int>(a >> 32);
    const unsigned int b_high = static_cast<unsigned int>(b >> 32);
    c = Philox4{{b_high ^ c.word[1] ^ key0,
                 static_cast<unsigned int>(b),
                 a_high ^ c.word[3] ^ key1,
                 static_cast<unsigned int>(a)}};
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
  return c;
}

/// A stream of words: `subsequence` selects one of 2^64 independent streams
/// of a seed (a GPU thread each), `offset` counts blocks of four words in it.
class Philox4x32 {
 public:
  TAEDA_PHILOX_FN
  Philox4x32(unsigned long long seed,
             unsigned long long subsequence,
             unsigned long long offset)
      : seed_(seed), subsequence_(subsequence), offset_(offset) {}

  /// The four words of the current block; the stream moves to the next one.
  TAEDA_PHILOX_FN Philox4 next_block() {
    const Philox4 counter{{static_cast<unsigned int>(offset_),
                           static_cast<unsigned int>(offset_ >> 32),
                           static_cast<unsigned int>(subsequence_),
                           static_cast<unsigned int>(subsequence_ >> 32)}};
    ++offset_;
    return philox4x32(counter, seed_);
  }

  /// One word; blocks are used up in order.
  TAEDA_PHILOX_FN unsigned int random() {
    if (position_ == 4) {
      block_ = next_block();
      position_ = 0;
    }
    return block_.word[position_++];
  }

 private:
  unsigned long long seed_;
  unsigned long long subsequence_;
  unsigned long long offset_;
  Philox4 block_{};
  int position_ = 4;
};

}  // namespace taeda
