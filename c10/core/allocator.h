#pragma once

#include <taeda/c10/core/device.h>

#include <cstddef>
#include <cstdint>

namespace taeda {

// Memory with the way to give it back. `context` is what the deleter gets.
struct DataPtr {
  void* data = nullptr;
  void* context = nullptr;
  void (*deleter)(void* context, size_t nbytes) = nullptr;
};

struct AllocatorStats {
  int64_t allocated = 0;       // bytes in use now
  int64_t peak_allocated = 0;  // largest value of `allocated`
  int64_t cached = 0;          // bytes kept for reuse
  int64_t allocations = 0;     // calls since the start
};

class TAEDA_API Allocator {
 public:
  virtual ~Allocator() = default;
  virtual DataPtr allocate(size_t nbytes) = 0;
  virtual AllocatorStats stats() const { return {}; }
  virtual void reset_peak() {}
  virtual void empty_cache() {}
};

// Note [CPU caching]
// Blocks from 4 KiB on are aligned to 64 bytes. Sizes from 64 KiB on are
// rounded up to a power of two or three quarters of one and freed blocks kept
// per size class up to a limit, because the kernel's zeroing of fresh pages
// costs more than most operators on such sizes. Smaller blocks are malloc's
// business.
TAEDA_API Allocator& cpu_allocator();
TAEDA_API void set_allocator(DeviceType type, Allocator* allocator);
// NotImplementedError-like RuntimeError when the device has no backend.
TAEDA_API Allocator& allocator_for(DeviceType type);

}  // namespace taeda
