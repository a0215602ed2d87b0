#include <taeda/c10/cuda/graph.h>
#include <taeda/c10/cuda/mem_pool.h>
#include <taeda/c10/cuda/memory.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <random>
#include <thread>

#include "../in_child.h"

namespace taeda::cuda {
namespace {

constexpr int kThreads = 6;
constexpr int kRounds = 24;
constexpr size_t kMiB = size_t{1} << 20;

// The body in a process whose driver is the emulator's; it has two devices.
template <class Body>
::testing::AssertionResult on_emulated_devices(const Body& body) {
  return in_child([&] {
    setenv("TAEDA_CUDA_DRIVER", EMULATED_CUDA, /*overwrite=*/1);
    return body();
  });
}

// Device memory, of the thread's current device and stream.
struct FreeMemory {
  DataPtr given;
  void operator()(void*) const { given.deleter(given.context, 0); }
};
using Memory = std::unique_ptr<void, FreeMemory>;
Memory take(size_t bytes) {
  DataPtr given = device_allocator().allocate(bytes);
  return {given.data, FreeMemory{given}};
}
Address address_of(const Memory& memory) {
  return reinterpret_cast<Address>(memory.get());
}

void in_threads(const std::function<void(int)>& f) {
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) threads.emplace_back(f, i);
  for (std::thread& t : threads) t.join();
}

// A stream of its own on a device, current for the thread.
GpuStream own_stream(int device) {
  set_device(device);
  GpuStream stream = new_stream(device, 0);
  set_stream(stream);
  return stream;
}

void fill(const Memory& memory, size_t bytes, int value, GpuStream stream) {
  use_context(stream.device);
  check(driver().set_bytes(address_of(memory),
                           static_cast<unsigned char>(value),
                           bytes,
                           handle_of(stream)),
        "cuMemsetD8Async");
}

bool all_are(const Memory& memory, size_t bytes, int value, GpuStream stream) {
  std::vector<unsigned char> host(bytes);
  use_context(stream.device);
  check(driver().to_host(
            host.data(), address_of(memory), bytes, handle_of(stream)),
        "cuMemcpyDtoHAsync");
  wait_for(stream);
  return std::all_of(
      host.begin(), host.end(), [&](int v) { return v == value; });
}

bool nothing_is_left() {
  empty_cache();
  for (int device = 0; device < device_count(); ++device) {
    GpuMemoryStats stats = memory_stats(device);
    for (const auto* pools : {&stats.allocated_bytes,
                              &stats.active_bytes,
                              &stats.requested_bytes,
                              &stats.reserved_bytes,
                              &stats.segments}) {
      for (const GpuCount& count : *pools) {
        if (count.current != 0) return false;
      }
    }
  }
  return memory_segments().empty();
}

// What one thread hands to the next: memory that its stream still writes.
struct Parcel {
  Memory memory;
  size_t bytes = 0;
  int value = 0;
  std::unique_ptr<Event> written;
};
class Mailbox {
 public:
  void put(Parcel parcel) {
    std::lock_guard guard(mutex_);
    waiting_.push_back(std::move(parcel));
  }
  bool take(Parcel* out) {
    std::lock_guard guard(mutex_);
    if (waiting_.empty()) return false;
    *out = std::move(waiting_.front());
    waiting_.pop_front();
    return true;
  }

 private:
  std::mutex mutex_;
  std::deque<Parcel> waiting_;
};

Parcel make_parcel(std::mt19937& draw, int me, GpuStream stream) {
  constexpr size_t kMost[] = {600, 70'000, 3 * kMiB};
  Parcel made;
  made.bytes = 1 + draw() % kMost[draw() % 3];
  made.value = 1 + static_cast<int>(draw() % 100) + me;
  made.memory = take(made.bytes);
  fill(made.memory, made.bytes, made.value, stream);
  made.written = std::make_unique<Event>(stream.device, false, false);
  made.written->record(stream);
  return made;
}

// The next thread's stream waits for the event alone, and the block is freed
// while that stream still reads it, on the thread that does not own it.
bool read_parcel(Parcel parcel, GpuStream stream) {
  parcel.written->block(stream);
  record_stream(parcel.memory.get(), stream);
  Memory copy = take(parcel.bytes);
  check(driver().within(address_of(copy),
                        address_of(parcel.memory),
                        parcel.bytes,
                        handle_of(stream)),
        "cuMemcpyDtoDAsync");
  parcel.memory.reset();
  return all_are(copy, parcel.bytes, parcel.value, stream);
}

TEST(CudaMemory, BlocksGoFromThreadToThread) {
  EXPECT_TRUE(on_emulated_devices([] {
    std::array<Mailbox, kThreads> boxes;
    std::atomic<bool> right{true};
    std::atomic<int> read{0};
    std::atomic<bool> done{false};
    std::thread watcher([&] {  // counts and caches, from outside
      while (!done) {
        memory_segments();
        if (memory_stats(0).allocated_bytes[0].current < 0) right = false;
        reset_peak(1);
        empty_cache();
      }
    });
    in_threads([&](int me) {
      // Threads 2n and 2n + 1 share a device.
      GpuStream stream = own_stream(me / 2 % 2);
      std::mt19937 draw(static_cast<unsigned>(me));
      auto& next = boxes[static_cast<size_t>(me ^ 1)];
      int wanted = kRounds;
      for (int round = 0; round < kRounds || wanted > 0;) {
        if (round < kRounds) {
          next.put(make_parcel(draw, me, stream));
          ++round;
        }
        Parcel parcel;
        if (!boxes[static_cast<size_t>(me)].take(&parcel)) continue;
        --wanted;
        ++read;
        if (!read_parcel(std::move(parcel), stream)) right = false;
      }
    });
    done = true;
    watcher.join();
    return right && read == kThreads * kRounds && nothing_is_left();
  }));
}

TEST(CudaMemory, RunningOutLeavesTheRestUsable) {
  EXPECT_TRUE(on_emulated_devices([] {
    setenv("TAEDA_EMULATOR_MEMORY", "67108864", 1);
    std::atomic<int> refused{0};
    std::atomic<bool> right{true};
    in_threads([&](int me) {
      GpuStream stream = own_stream(0);
      for (int round = 0; round < 6; ++round) {
        std::vector<Memory> taken;
        try {
          for (;;) taken.push_back(take(5 * kMiB));
        } catch (const Error& error) {
          if (error.kind() != ErrorKind::OutOfMemory) right = false;
          ++refused;
        }
        for (const Memory& memory : taken) {
          fill(memory, 5 * kMiB, me + 1, stream);
        }
        for (const Memory& memory : taken) {
          if (!all_are(memory, 5 * kMiB, me + 1, stream)) right = false;
        }
      }
    });
    GpuMemoryStats stats = memory_stats(0);
    return right && refused == 6 * kThreads &&
           stats.out_of_memory == 6 * kThreads && nothing_is_left();
  }));
}

TEST(CudaStreams, ManyThreadsShareThePool) {
  EXPECT_TRUE(on_emulated_devices([] {
    std::mutex mutex;
    std::vector<int64_t> seen;
    std::atomic<bool> right{true};
    in_threads([&](int me) {
      for (int i = 0; i < 32; ++i) {
        GpuStream stream = new_stream(me % 2, -(i % 2));
        set_stream(stream);
        if (!(current_stream(me % 2) == stream)) right = false;
        if (priority_of(stream) != -(i % 2)) right = false;
        std::lock_guard guard(mutex);
        if (me % 2 == 0) seen.push_back(stream.id);
      }
    });
    std::sort(seen.begin(), seen.end());
    auto distinct = std::unique(seen.begin(), seen.end()) - seen.begin();
    return right && distinct == 64 && handle_of({0, seen[0]}) != nullptr;
  }));
}

TEST(CudaStreams, AnEventIsWaitedForByManyThreads) {
  EXPECT_TRUE(on_emulated_devices([] {
    constexpr size_t kBytes = 1000;
    GpuStream writer = own_stream(0);
    Memory memory = take(kBytes);
    for (int round = 1; round < 20; ++round) {
      for (int i = 0; i < 5; ++i) fill(memory, kBytes, 200 + i, writer);
      fill(memory, kBytes, round, writer);
      Event written(0, /*timing=*/true, /*blocking=*/false);
      written.record(writer);
      std::atomic<bool> right{true};
      in_threads([&](int me) {
        GpuStream stream = own_stream(0);
        if (me % 3 == 0) written.wait();
        if (me % 3 == 1) written.block(stream);
        while (me % 3 == 2 && !written.is_done()) std::this_thread::yield();
        if (!all_are(memory, kBytes, round, stream)) right = false;
      });
      if (!right) return false;
    }
    return true;
  }));
}

// Memory is kept until the thread's own stream has read it, whoever empties
// the cache meanwhile.
bool copy_from_locked(std::mt19937& draw, int me, GpuStream stream) {
  size_t bytes = 1 + draw() % 20'000;
  auto* data = static_cast<unsigned char*>(allocate_host(bytes));
  std::fill_n(data, bytes, static_cast<unsigned char>(me));
  bool right = is_pinned(data + bytes - 1);
  Memory there = take(bytes);
  check(driver().to_device(address_of(there), data, bytes, handle_of(stream)),
        "cuMemcpyHtoDAsync");
  record_host(data, stream);
  free_host(data);
  // What takes the block next writes another value.
  auto* next = static_cast<unsigned char*>(allocate_host(bytes));
  std::fill_n(next, bytes, static_cast<unsigned char>(200));
  right = all_are(there, bytes, me, stream) && right;
  free_host(next);
  return right;
}

TEST(CudaMemory, LockedPagesOfManyThreads) {
  EXPECT_TRUE(on_emulated_devices([] {
    std::atomic<bool> right{true};
    std::atomic<bool> done{false};
    std::thread watcher([&] {
      while (!done) {
        empty_host_cache();
        if (host_stats().used_bytes.current < 0) right = false;
      }
    });
    in_threads([&](int me) {
      GpuStream stream = own_stream(me % 2);
      std::mt19937 draw(static_cast<unsigned>(me));
      for (int round = 0; round < kRounds; ++round) {
        if (!copy_from_locked(draw, me, stream)) right = false;
      }
    });
    done = true;
    watcher.join();
    for (int device = 0; device < device_count(); ++device) {
      wait_for_device(device);
    }
    empty_host_cache();
    return right && host_stats().bytes.current == 0;
  }));
}

TEST(CudaMemory, PoolsOfManyThreads) {
  EXPECT_TRUE(on_emulated_devices([] {
    std::atomic<bool> right{true};
    record_history(1000, /*origins=*/false);
    std::thread watcher([] {
      for (int i = 0; i < 50; ++i) memory_history();
    });
    in_threads([&](int me) {
      GpuStream stream = own_stream(0);
      PoolId pool = new_pool({});
      for (int round = 0; round < kRounds; ++round) {
        PoolId before = use_pool(0, pool);
        size_t bytes = (1 + static_cast<size_t>(round) % 3) * kMiB;
        Memory memory = take(bytes);
        use_pool(0, before);
        fill(memory, bytes, me + round, stream);
        if (!all_are(memory, bytes, me + round, stream)) right = false;
        if (round % 8 == 7) empty_cache(pool);
      }
      release_pool(pool);
    });
    watcher.join();
    return right && nothing_is_left();
  }));
}

TEST(CudaGraphs, ThreadsRecordBesideEachOther) {
  EXPECT_TRUE(on_emulated_devices([] {
    std::atomic<bool> right{true};
    in_threads([&](int me) {
      constexpr size_t kBytes = 5000;
      GpuStream stream = own_stream(0);
      Memory from = take(kBytes), to = take(kBytes);
      fill(to, kBytes, 250, stream);
      wait_for(stream);
      Graph graph(/*keep_graph=*/false);
      graph.begin(0, "relaxed");
      Memory inside = take(kBytes);
      for (auto [a, b] : {std::pair(&inside, &from), std::pair(&to, &inside)}) {
        check(driver().within(
                  address_of(*a), address_of(*b), kBytes, handle_of(stream)),
              "cuMemcpyDtoDAsync");
      }
      if (graph.end() != 2) right = false;
      for (int round = 0; round < 5; ++round) {
        fill(from, kBytes, me * 10 + round, stream);
        graph.replay();
        if (!all_are(to, kBytes, me * 10 + round, stream)) right = false;
      }
    });
    return right.load();
  }));
}

}  // namespace
}  // namespace taeda::cuda
