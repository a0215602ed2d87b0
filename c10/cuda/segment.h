// Ranges of device memory that blocks are cut from.
#pragma once

#include <taeda/c10/cuda/stream.h>

#include <deque>
#include <memory>

namespace taeda::cuda {

struct Pool;
class Segment;

struct Block {
  Segment* segment = nullptr;
  Address address = 0;
  size_t size = 0;
  size_t requested = 0;
  uint32_t origin = 0;  // of who took it; see GpuOrigins
  bool used = false;
  int waits = 0;            // events until it is free
  Block* before = nullptr;  // neighbours in the segment
  Block* after = nullptr;
  std::vector<GpuStream> streams;  // that use it besides the segment's
};

// Of one device, stream and kind; see Note [Device memory].
class Segment {
 public:
  // One that grows up to `capacity`; null where the driver cannot.
  static std::unique_ptr<Segment> growing(Pool& pool,
                                          int device,
                                          size_t capacity,
                                          size_t page);
  // One of `size` bytes; null where there is no memory for it.
  static std::unique_ptr<Segment> fixed(Pool& pool, int device, size_t size);
  ~Segment();
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;

  Pool& pool() const { return pool_; }
  Address base() const { return base_; }
  size_t size() const { return size_; }
  bool grows() const { return page_ > 0; }
  // Maps whole pages at the end, for `bytes` more; how many bytes it got.
  size_t grow(size_t bytes);
  // Unmaps pages at the end, so that at least `kept` bytes stay; how many
  // bytes it gave back.
  size_t shrink(size_t kept);

  Block* first = nullptr;
  Block* last = nullptr;

 private:
  Segment(Pool& pool, int device) : pool_(pool), device_(device) {}
  bool map_page();

  Pool& pool_;
  int device_;
  Address base_ = 0;
  size_t size_ = 0, capacity_ = 0;
  size_t page_ = 0;  // 0 where it does not grow
  std::deque<AllocationHandle> pages_;
};

}  // namespace taeda::cuda
