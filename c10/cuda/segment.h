// Ranges of device memory that blocks are cut from.
#pragma once

#include <taeda/c10/cuda/stream.h>

#include <memory>
#include <vector>

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
  bool mapped = true;       // else a hole of a segment that grows
  bool is_rest = false;     // free beside others: not a whole segment
  uint64_t freed = 0;       // when, in allocations of its device
  int waits = 0;            // until it is free
  Block* before = nullptr;  // neighbours in the segment
  Block* after = nullptr;
  std::vector<GpuStream> streams;  // that use it besides the segment's

  bool is_free() const { return !used && waits == 0 && mapped; }
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
  size_t page() const { return page_; }
  // Maps whole pages at the end, for `bytes` more; how many bytes it got.
  size_t grow(size_t bytes);
  // Whole pages amid it: memory for a hole, all of it or none, and a hole.
  bool map(Address from, size_t bytes);
  void unmap(Address from, size_t bytes);
  // The end, behind which nothing is mapped.
  void cut(Address end) { size_ = end - base_; }

  // The driver's handles of the pages that a block lies in; those of one that
  // does not grow are none.
  std::vector<AllocationHandle> pages_of(const Block& block) const;

  Block* first = nullptr;
  Block* last = nullptr;

 private:
  Segment(Pool& pool, int device) : pool_(pool), device_(device) {}
  bool map_page(size_t number);

  Pool& pool_;
  int device_;
  Address base_ = 0;
  size_t size_ = 0, capacity_ = 0;
  size_t page_ = 0;                      // 0 where it does not grow
  std::vector<AllocationHandle> pages_;  // by number; 0 for holes
};

}  // namespace taeda::cuda
