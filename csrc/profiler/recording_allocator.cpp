#include <taeda/csrc/profiler/recording_allocator.h>

#include <taeda/c10/core/allocator.h>

#include <atomic>

namespace taeda::profiler {

namespace {

class RecordingAllocator final : public Allocator {
 public:
  DataPtr allocate(size_t nbytes) override {
    DataPtr block = cpu_allocator().allocate(nbytes);
    if (block.data == nullptr) return block;
    // The allocator's blocks are their own context, so that one deleter serves
    // all of them.
    give_back_.store(block.deleter, std::memory_order_relaxed);
    auto bytes = static_cast<int64_t>(nbytes);
    int64_t total = total_.fetch_add(bytes) + bytes;
    record_memory(block.data, bytes, total);
    return {block.data, block.context, &free_block};
  }
  AllocatorStats stats() const override { return cpu_allocator().stats(); }
  void reset_peak() override { cpu_allocator().reset_peak(); }
  void empty_cache() override { cpu_allocator().empty_cache(); }

 private:
  static void free_block(void* block, size_t nbytes) {
    auto bytes = static_cast<int64_t>(nbytes);
    int64_t total = total_.fetch_sub(bytes) - bytes;
    record_memory(block, -bytes, total);
    give_back_.load(std::memory_order_relaxed)(block, nbytes);
  }
  // Bytes of the blocks that it handed out and that were not given back.
  static inline std::atomic<int64_t> total_{0};
  static inline std::atomic<void (*)(void*, size_t)> give_back_{nullptr};
};

}  // namespace

void record_allocations(bool on) {
  static auto* recording = new RecordingAllocator;  // blocks outlive all else
  set_allocator(DeviceType::CPU, on ? recording : &cpu_allocator());
}

}  // namespace taeda::profiler
