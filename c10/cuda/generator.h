// Random numbers of a device.
#pragma once

#include <taeda/c10/core/generator.h>
#include <taeda/c10/cuda/device.h>

#include <utility>
#include <vector>

namespace taeda::cuda {

// What a graph that is recorded draws; see Note [Graphs].
struct RecordedDraws {
  Address state = 0;   // seed and offset, in device memory
  uint64_t words = 0;  // so far
};

// Note [Draws on a device]
// A generator is a seed and an offset: how many 32-bit words each thread has
// drawn from its own subsequence of Philox. An operator of n elements counts as
// many threads as PyTorch's kernels have on this device, gives thread t the
// elements t, t + threads, ... in turn, a block of four words for four of them
// (two of 64 bits), and moves the offset by the words that its busiest thread
// used. So a seed gives the numbers that it gives in PyTorch on the same
// device, whatever the grid of our kernels.
class CudaGeneratorImpl final : public GeneratorImpl {
 public:
  // Seed and offset, as two integers of 64 bits.
  static constexpr size_t kStateSize = 16;
  static constexpr uint64_t kBlock = 4;  // words

  CudaGeneratorImpl(int device, uint64_t seed)
      : GeneratorImpl(Device(DeviceType::CUDA, static_cast<int8_t>(device))),
        seed_(seed) {}

  void manual_seed(uint64_t seed) override;
  uint64_t initial_seed() const override { return seed_; }
  size_t state_size() const override { return kStateSize; }
  void get_state(uint8_t* bytes) const override;
  void set_state(const uint8_t* bytes, size_t size) override;
  IntrusivePtr<GeneratorImpl> clone() const override;

  // The offset as it was; words are counted in whole blocks.
  uint64_t take(uint64_t words);
  // What the graph with this number draws, null where it has not said where;
  // both under the mutex. Null ends it.
  void record(uint64_t number, RecordedDraws* draws);
  RecordedDraws* recorded(uint64_t number) const;

 private:
  uint64_t seed_, offset_ = 0;
  std::vector<std::pair<uint64_t, RecordedDraws*>> recorded_;
};

// Where the draws of one call begin.
struct Draws {
  uint64_t seed = 0, offset = 0;
  int64_t threads = 1;
  // Where both stand instead, to which `offset` is added; 0: nowhere.
  Address state = 0;
};
// For `count` elements, of which `blocks` blocks have `per_block`. `given` may
// be null; RuntimeError where it is not a generator of a GPU.
Draws take_draws(const Generator& given,
                 int device,
                 int64_t count,
                 int per_block,
                 int64_t blocks = 1);
// For a call that draws `words` words of subsequence 0; the next one's offset
// is a multiple of 4.
Draws take_words(const Generator& given, int device, uint64_t words);

// Which operators use when given none. Its seed is the CPU's when it is first
// asked for: that of manual_seed().
CudaGeneratorImpl& default_generator(int device);

}  // namespace taeda::cuda
