#include <taeda/c10/core/allocator.h>
#include <taeda/c10/core/gpu.h>
#include <taeda/c10/util/check.h>

#include <array>
#include <atomic>
#include <bit>
#include <cstdlib>
#include <mutex>
#include <vector>

#include <sys/mman.h>

namespace taeda {

namespace {

constexpr size_t kAlignment = 64;
// aligned_alloc costs several times what malloc does, and vector loads of a few
// lines do not feel the alignment.
constexpr size_t kAlignFrom = 4096;
constexpr size_t kCacheFrom = size_t{1} << 16;
// Blocks of several huge pages (2 MiB on x86-64 and arm64) begin on one:
// madvise takes whole pages alone, and a page that is cut stays a small one.
constexpr size_t kHugePage = size_t{1} << 21;
constexpr size_t kHugePageFrom = 2 * kHugePage;
constexpr size_t kMaxCached = size_t{1} << 30;
constexpr int kClasses = 2 * 48;

// The class index of a cached size, and the size its blocks have.
int class_of(size_t nbytes) {
  int log = std::bit_width(nbytes - 1);  // nbytes <= 2^log
  size_t three_quarters = (size_t{3} << log) >> 2;
  return 2 * log + (nbytes > three_quarters ? 1 : 0);
}
size_t class_size(int index) {
  size_t power = size_t{1} << (index / 2);
  return index % 2 == 1 ? power : power / 4 * 3;
}

class CpuAllocator final : public Allocator {
 public:
  DataPtr allocate(size_t nbytes) override {
    if (nbytes == 0) return {};
    void* p = nbytes < kCacheFrom ? fresh(nbytes) : cached(nbytes);
    allocations_.fetch_add(1, std::memory_order_relaxed);
    int64_t now = allocated_.fetch_add(static_cast<int64_t>(nbytes),
                                       std::memory_order_relaxed) +
                  static_cast<int64_t>(nbytes);
    int64_t peak = peak_.load(std::memory_order_relaxed);
    while (now > peak && !peak_.compare_exchange_weak(peak, now)) {
    }
    return {p, p, &free_block};
  }
  AllocatorStats stats() const override {
    std::lock_guard guard(mutex_);
    return {allocated_.load(),
            peak_.load(),
            static_cast<int64_t>(cached_bytes_),
            allocations_.load()};
  }
  void reset_peak() override { peak_ = allocated_.load(); }
  void empty_cache() override {
    std::lock_guard guard(mutex_);
    for (auto& list : free_) {
      for (void* p : list) std::free(p);
      list.clear();
    }
    cached_bytes_ = 0;
  }

 private:
  static void* fresh(size_t nbytes) {
    size_t alignment = nbytes < kHugePageFrom ? kAlignment : kHugePage;
    size_t rounded = (nbytes + alignment - 1) / alignment * alignment;
    void* p = nbytes < kAlignFrom ? std::malloc(nbytes)
              : rounded < nbytes  ? nullptr
                                  : std::aligned_alloc(alignment, rounded);
    TAEDA_CHECK_AS(OutOfMemory,
                   p != nullptr,
                   "CPU allocator: can't allocate memory: you tried to "
                   "allocate ",
                   nbytes,
                   " bytes");
    if (rounded >= kHugePageFrom) madvise(p, rounded, MADV_HUGEPAGE);
    return p;
  }
  void* cached(size_t nbytes) {
    if (nbytes > (size_t{1} << 46)) return fresh(nbytes);
    int index = class_of(nbytes);
    {
      std::lock_guard guard(mutex_);
      auto& list = free_[index];
      if (!list.empty()) {
        void* p = list.back();
        list.pop_back();
        cached_bytes_ -= class_size(index);
        return p;
      }
    }
    return fresh(class_size(index));
  }
  void give_back(void* p, size_t nbytes) {
    allocated_.fetch_sub(static_cast<int64_t>(nbytes),
                         std::memory_order_relaxed);
    if (nbytes >= kCacheFrom && nbytes <= (size_t{1} << 46)) {
      int index = class_of(nbytes);
      std::lock_guard guard(mutex_);
      if (cached_bytes_ + class_size(index) <= kMaxCached) {
        free_[index].push_back(p);
        cached_bytes_ += class_size(index);
        return;
      }
    }
    std::free(p);
  }
  static void free_block(void* p, size_t nbytes);

  mutable std::mutex mutex_;
  std::array<std::vector<void*>, kClasses> free_;
  size_t cached_bytes_ = 0;
  std::atomic<int64_t> allocated_{0};
  std::atomic<int64_t> peak_{0};
  std::atomic<int64_t> allocations_{0};
};

// Never destroyed: tensors in static storage outlive every static object.
CpuAllocator& the_cpu_allocator() {
  static CpuAllocator* allocator = new CpuAllocator;
  return *allocator;
}

void CpuAllocator::free_block(void* p, size_t nbytes) {
  the_cpu_allocator().give_back(p, nbytes);
}

// The meta device has sizes without memory.
class MetaAllocator final : public Allocator {
 public:
  DataPtr allocate(size_t) override { return {}; }
};

// Threads that make their first tensors at once read while another sets.
struct Table {
  std::array<std::atomic<Allocator*>, 32> allocators{};
  Table() {
    at(DeviceType::CPU) = &the_cpu_allocator();
    at(DeviceType::Meta) = new MetaAllocator;
  }
  std::atomic<Allocator*>& at(DeviceType type) {
    return allocators[static_cast<size_t>(type)];
  }
};

Table& table() {
  static Table allocators;
  return allocators;
}

}  // namespace

Allocator& cpu_allocator() { return the_cpu_allocator(); }

void set_allocator(DeviceType type, Allocator* allocator) {
  table().at(type).store(allocator, std::memory_order_release);
}

Allocator& allocator_for(DeviceType type) {
  std::atomic<Allocator*>& slot = table().at(type);
  Allocator* a = slot.load(std::memory_order_acquire);
  if (a == nullptr && type == DeviceType::CUDA) {
    gpu();  // sets it, or says why it cannot be used
    a = slot.load(std::memory_order_acquire);
  }
  TAEDA_CHECK(a != nullptr,
              "no allocator for device type ",
              device_type_name(type),
              ": this build has no such backend");
  return *a;
}

}  // namespace taeda
