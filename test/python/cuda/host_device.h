// CUDA's language on the host, for the tests: the threads of a block are fibers
// of one thread, which change places where they wait for each other. Included
// before the device text.
#pragma once

#include <ucontext.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <type_traits>
#include <utility>
#include <vector>

#define __global__ inline
#define __device__
#define __launch_bounds__(threads)
#define __grid_constant__
#define __shared__ static thread_local

struct TaedaDim {
  unsigned x = 0, y = 0;
};
inline thread_local TaedaDim blockIdx, threadIdx, blockDim{1, 1}, gridDim{1, 1};

namespace host_device {

constexpr unsigned kWarp = 32;
constexpr size_t kStack = 64 * 1024;

// Thrown by a thread that ends itself.
struct Ended {};

enum class Waits { kForNone, kForWarp, kForBlock, kDone };

// A context brings it to its stack; from then on the compiler's own jumps do,
// which are neither system calls, as changes of contexts are, nor functions
// that a sanitizer replaces.
using Place = void* [5];
struct Fiber {
  ucontext_t context;
  Place place;
  std::vector<char> stack = std::vector<char>(kStack);
  Waits waits = Waits::kDone;
  bool began = false;
};

// One block at a time. Between two barriers the threads run one by one: from
// the first to the last, or from the last to the first, which is where a
// barrier that is missing shows.
class Block {
 public:
  template <class F>
  void run(unsigned threads, bool backwards, F f) {
    body_ = [](void* call) { (*static_cast<F*>(call))(); };
    call_ = &f;
    if (fibers_.size() < threads) fibers_.resize(threads);
    count_ = threads;
    for (unsigned i = 0; i < threads; ++i) start(fibers_[i]);
    do {
      for (unsigned i = 0; i < threads; ++i) {
        current_ = backwards ? threads - 1 - i : i;
        if (fibers_[current_].waits == Waits::kForNone) step();
      }
    } while (release());
  }

  [[gnu::noinline]] void wait(Waits what) {
    Fiber& mine = fibers_[current_];
    mine.waits = what;
    if (__builtin_setjmp(mine.place) == 0) leave();
  }

  // What another thread of the warp gave; all of it have called when it comes.
  // Slots are used in turn, so that the next call does not overwrite them.
  template <class T>
  T exchange(T value, unsigned partner) {
    unsigned turn = turns_[current_]++ % 2;
    std::memcpy(slots_[turn][current_], &value, sizeof(T));
    wait(Waits::kForWarp);
    if (partner >= count_) fail("a shuffle with a thread that is not there");
    T other;
    std::memcpy(&other, slots_[turn][partner], sizeof(T));
    return other;
  }
  // What all threads of the warp gave: `kSlot` bytes for each, until its
  // second call from here on.
  template <class T>
  const unsigned char* gather(const T& value) {
    static_assert(sizeof(T) <= kSlot);
    unsigned turn = turns_[current_]++ % 2;
    std::memcpy(slots_[turn][current_], &value, sizeof(T));
    wait(Waits::kForWarp);
    unsigned first = current_ / kWarp * kWarp;
    if (first + kWarp > count_) fail("a warp is not whole");
    return slots_[turn][first];
  }
  static constexpr size_t kSlot = 32;
  unsigned current() const { return current_; }

  static Block& get() {
    static thread_local Block block;
    return block;
  }

 private:
  [[noreturn]] static void fail(const char* what) {
    std::fprintf(stderr, "host_device: %s\n", what);
    std::abort();
  }

  static void begin() {
    Block& block = get();
    block.body_(block.call_);
    block.fibers_[block.current_].waits = Waits::kDone;
    block.leave();
  }

  void start(Fiber& fiber) {
    getcontext(&fiber.context);
    fiber.context.uc_stack.ss_sp = fiber.stack.data();
    fiber.context.uc_stack.ss_size = kStack;
    fiber.context.uc_link = nullptr;
    fiber.began = false;
    makecontext(&fiber.context, begin, 0);
    fiber.waits = Waits::kForNone;
    turns_[&fiber - fibers_.data()] = 0;
  }

  // Neither returns.
  [[gnu::noinline]] void leave() { __builtin_longjmp(scheduler_, 1); }
  [[gnu::noinline]] void enter(Fiber& next) {
    if (next.began) __builtin_longjmp(next.place, 1);
    next.began = true;
    setcontext(&next.context);
  }

  [[gnu::noinline]] void step() {
    threadIdx.x = current_;
    Fiber& next = fibers_[current_];
    if (__builtin_setjmp(scheduler_) == 0) enter(next);
  }

  bool all(unsigned from, unsigned to, Waits what) const {
    for (unsigned i = from; i < to; ++i) {
      if (fibers_[i].waits != what) return false;
    }
    return true;
  }
  void free(unsigned from, unsigned to) {
    for (unsigned i = from; i < to; ++i) fibers_[i].waits = Waits::kForNone;
  }

  // Lets those go on who wait for each other; false where all are done.
  bool release() {
    if (all(0, count_, Waits::kDone)) return false;
    bool found = all(0, count_, Waits::kForBlock);
    if (found) free(0, count_);
    for (unsigned w = 0; w < count_ && !found; w += kWarp) {
      unsigned end = w + kWarp < count_ ? w + kWarp : count_;
      if (!all(w, end, Waits::kForWarp)) continue;
      for (unsigned v = w; v < count_; v += kWarp) {
        unsigned last = v + kWarp < count_ ? v + kWarp : count_;
        if (all(v, last, Waits::kForWarp)) free(v, last);
      }
      found = true;
    }
    if (!found) fail("threads of a block wait at different barriers");
    return true;
  }

  static constexpr unsigned kMostThreads = 1024;
  std::vector<Fiber> fibers_;
  unsigned count_ = 0, current_ = 0;
  Place scheduler_;
  void (*body_)(void*) = nullptr;
  void* call_ = nullptr;
  unsigned turns_[kMostThreads];
  alignas(16) unsigned char slots_[2][kMostThreads][kSlot];
};

// All threads of all blocks of a grid.
template <class F>
void launch(TaedaDim grid, unsigned threads, bool backwards, F f) {
  gridDim = grid;
  blockDim.x = threads;
  for (blockIdx.y = 0; blockIdx.y < grid.y; ++blockIdx.y) {
    for (blockIdx.x = 0; blockIdx.x < grid.x; ++blockIdx.x) {
      Block::get().run(threads, backwards, f);
    }
  }
}

template <class... P, size_t... I>
void call(void (*kernel)(P...),
          void* const* arguments,
          std::index_sequence<I...>) {
  kernel(static_cast<P>(arguments[I])...);
}
// A kernel whose parameters are all addresses.
template <class... P>
void launch_kernel(void (*kernel)(P...),
                   TaedaDim grid,
                   unsigned threads,
                   bool backwards,
                   void* const* arguments) {
  launch(grid, threads, backwards, [&] {
    call(kernel, arguments, std::index_sequence_for<P...>());
  });
}

template <class... P, size_t... I>
void call_values(void (*kernel)(P...),
                 void** parameters,
                 std::index_sequence<I...>) {
  try {
    kernel(*static_cast<P*>(parameters[I])...);
  } catch (Ended) {  // the others go on
  }
}
// A kernel with any parameters, of which `parameters` has the addresses.
template <class... P>
void launch_values(void (*kernel)(P...),
                   TaedaDim grid,
                   unsigned threads,
                   bool backwards,
                   void** parameters) {
  launch(grid, threads, backwards, [&] {
    call_values(kernel, parameters, std::index_sequence_for<P...>());
  });
}
// The same for one whose threads never wait for each other.
template <class... P>
void launch_plain(void (*kernel)(P...),
                  TaedaDim grid,
                  unsigned threads,
                  bool backwards,
                  void** parameters) {
  gridDim = grid;
  blockDim.x = threads;
  for (blockIdx.y = 0; blockIdx.y < grid.y; ++blockIdx.y) {
    for (blockIdx.x = 0; blockIdx.x < grid.x; ++blockIdx.x) {
      for (unsigned i = 0; i < threads; ++i) {
        threadIdx.x = backwards ? threads - 1 - i : i;
        call_values(kernel, parameters, std::index_sequence_for<P...>());
      }
    }
  }
}
template <class... P>
const size_t* parameter_sizes(void (*)(P...), size_t* count) {
  static constexpr size_t kSizes[] = {sizeof(P)...};
  *count = sizeof...(P);
  return kSizes;
}

}  // namespace host_device

// Atomic operations are of whole words, of which a value may be a part; so they
// have a check of their own where accesses are checked.
#define TAEDA_UNCHECKED __attribute__((no_sanitize("kernel-address")))
namespace host_device {
inline void (*check_word)(const void* word, size_t bytes) = nullptr;
template <class T>
TAEDA_UNCHECKED T word_at(const volatile T* at) {
  if (check_word != nullptr) check_word(const_cast<const T*>(at), sizeof(T));
  return *at;
}
}  // namespace host_device

// Blocks run one after the other, so each operation is whole by itself.
template <class T>
TAEDA_UNCHECKED T atomicAdd(T* at, T value) {
  T before = host_device::word_at(at);
  *at = before + value;
  return before;
}
template <class T>
TAEDA_UNCHECKED T atomicCAS(T* at, T expected, T value) {
  T before = host_device::word_at(at);
  if (before == expected) *at = value;
  return before;
}
template <class T>
TAEDA_UNCHECKED T read_word(const T* at) {
  return host_device::word_at(at);
}
// The thread does no more.
[[noreturn]] inline void end_thread() { throw host_device::Ended(); }
inline void __threadfence() {}
inline void __threadfence_system() {}
inline void __syncthreads() {
  host_device::Block::get().wait(host_device::Waits::kForBlock);
}
template <class T>
T __shfl_xor_sync(unsigned, T value, int step) {
  auto& block = host_device::Block::get();
  unsigned partner = block.current() ^ static_cast<unsigned>(step);
  return block.exchange(value, partner);
}
template <class T>
T __shfl_sync(unsigned, T value, int lane) {
  auto& block = host_device::Block::get();
  unsigned first = block.current() / host_device::kWarp * host_device::kWarp;
  return block.exchange(value, first + static_cast<unsigned>(lane));
}

// What the hardware does with registers of a whole warp, by what the PTX ISA
// says which lane holds. Their loops are not checked access by access.
namespace host_device {

// Of elements of 16 bits: 10 bits behind the point (half) or 7 (bfloat16).
TAEDA_UNCHECKED inline float widened_bits(unsigned bits, bool is_half) {
  unsigned sign = (bits & 0x8000u) << 16, rest = (bits & 0x7fffu);
  unsigned wide = is_half ? rest << 13 : rest << 16;
  float value;
  if (is_half && rest >= 0x7c00u) wide = rest << 13 | 0x7f800000u;
  std::memcpy(&value, &wide, sizeof(value));
  if (is_half && rest < 0x7c00u) value *= 0x1p112f;
  std::memcpy(&wide, &value, sizeof(value));
  wide |= sign;
  std::memcpy(&value, &wide, sizeof(value));
  return value;
}

struct Sides {
  unsigned a[4], b[2];
};

// mma.sync.m16n8k16: sum += a b of the warp's matrices of 16 by 16 and 8.
TAEDA_UNCHECKED inline void multiply_add(float* sum,
                                         const Sides& mine,
                                         bool is_half) {
  const unsigned char* all = Block::get().gather(mine);
  auto part = [&](unsigned lane,
                  unsigned number,
                  unsigned which) TAEDA_UNCHECKED {
    unsigned word;
    std::memcpy(
        &word, all + lane * Block::kSlot + number * sizeof(word), sizeof(word));
    return widened_bits(word >> 16 * which & 0xffffu, is_half);
  };
  const unsigned lane = threadIdx.x % kWarp;
  float a[2][16], b[2][16];
  for (unsigned k = 0; k < 16; ++k) {
    for (unsigned i = 0; i < 2; ++i) {
      const unsigned column = 2 * (lane % 4) + i;
      a[i][k] = part(lane / 4 * 4 + k % 8 / 2, i + k / 8 * 2, k % 2);
      b[i][k] = part(column * 4 + k % 8 / 2, 4 + k / 8, k % 2);
    }
  }
  for (unsigned i = 0; i < 4; ++i) {
    for (unsigned k = 0; k < 16; ++k) sum[i] += a[i / 2][k] * b[i % 2][k];
  }
}

// ldmatrix.x4: of four matrices of 8 by 8 elements of 16 bits, of which lane l
// names row l % 8 of matrix l / 8, each lane gets a pair; of the turned ones
// with kTurned.
TAEDA_UNCHECKED inline void load_matrices(unsigned* out,
                                          const unsigned short* row,
                                          bool turned) {
  const unsigned char* all = Block::get().gather(row);
  const unsigned lane = threadIdx.x % kWarp;
  for (unsigned m = 0; m < 4; ++m) {
    unsigned pair[2];
    for (unsigned i = 0; i < 2; ++i) {
      const unsigned one = lane / 4, other = 2 * (lane % 4) + i;
      const unsigned short* from;
      std::memcpy(&from,
                  all + (8 * m + (turned ? other : one)) * Block::kSlot,
                  sizeof(from));
      pair[i] = from[turned ? one : other];
    }
    out[m] = pair[0] | pair[1] << 16;
  }
}

}  // namespace host_device
