// Memory of one device: the caching allocator behind memory.h.
#pragma once

#include <taeda/c10/cuda/mem_pool.h>
#include <taeda/c10/cuda/memory.h>
#include <taeda/c10/cuda/segment.h>

#include <atomic>
#include <deque>
#include <list>
#include <map>
#include <mutex>
#include <set>
#include <tuple>

namespace taeda::cuda {

constexpr size_t kUnit = 512;               // of blocks' sizes
constexpr size_t kSmall = size_t{1} << 20;  // the largest small block
constexpr size_t kSmallPage = size_t{2} << 20;
constexpr size_t kLargePage = size_t{20} << 20;
constexpr size_t kFixedFrom = size_t{10} << 20;  // segments of one block

inline size_t rounded_up(size_t n, size_t unit) {
  return (n + unit - 1) / unit * unit;
}

struct BySize {
  bool operator()(const Block* a, const Block* b) const {
    return a->size != b->size ? a->size < b->size : a->address < b->address;
  }
};
using BlockSet = std::set<Block*, BySize>;

// Free blocks and segments of one pool, stream and kind.
struct Pool {
  PoolId id = 0;
  GpuStream stream;
  bool large = false;
  PoolTraits traits;
  bool tried_growing = false;
  BlockSet free;
  BlockSet holes;  // ranges amid segments without memory
  std::list<std::unique_ptr<Segment>> segments;
};

// What one place of the program holds.
struct Holding {
  uint32_t origin = 0;
  size_t bytes = 0, blocks = 0;
};

class MemoryOfDevice {
 public:
  explicit MemoryOfDevice(int device);

  Block* allocate(size_t nbytes, GpuStream stream);
  void free(Block* block);
  void record(Block* block, GpuStream stream);
  // Of the common pool and those without users, or of one pool.
  void empty_cache(PoolId pool);
  void limit(double fraction);

  GpuMemoryStats stats() const;
  double fraction() const;
  void reset_peak();
  void reset_totals();
  void list_segments(std::vector<GpuSegment>* out) const;
  std::vector<AllocationHandle> pages_of(const Block& block) const;

  // The history keeps up to `most` entries; 0 ends it.
  void record_history(size_t most, bool origins);
  std::vector<GpuMemoryAction> history() const;

 private:
  struct Waiting {
    std::unique_ptr<Event> event;
    Block* block;
  };
  using Key = std::tuple<PoolId, int64_t, bool>;

  // device_memory.cpp
  Pool& pool_of(PoolId id, GpuStream stream, bool large);
  Block* find_room(Pool& pool, size_t size);
  Block* take(Pool& pool, size_t size);
  Block* take_elsewhere(const Pool& pool, size_t size);
  void hand_out(Block* block, size_t size, size_t nbytes, uint32_t origin);
  void split(Block* block, size_t size);
  void give_back(Block* block);
  void wait_for_streams_of(Block* block);
  void collect(bool all);
  void add_free(Block* block);
  void remove_free(Block* block);
  Block* merged(Block* block);

  // device_segments.cpp
  bool within_limit(size_t more) const;
  Block* extend(Pool& pool, size_t size);
  Block* extended(Segment& segment, size_t bytes);
  Block* filled(Pool& pool, size_t size);
  Block* new_segment(Pool& pool, size_t size);
  bool may_release(const Pool& pool, PoolId only) const;
  void release_cached(PoolId only);
  void release_pages(Pool& pool);
  void release_segments(Pool& pool);
  void make_hole(Block* block);
  size_t unmap_within(Block* block);
  void trim(Segment& segment);
  void collect_garbage(size_t wanted);

  // device_report.cpp
  [[noreturn]] void run_out(std::unique_lock<std::mutex>& lock,
                            size_t size,
                            const Pool& pool);
  std::string out_of_memory(size_t size, const Pool& pool);
  size_t largest_that_fits(const Pool& pool) const;
  std::vector<Holding> holdings() const;
  void count(GpuMemoryStats::Pools& pools, const Pool& pool, int64_t n);
  void note(GpuMemoryAction::Kind kind,
            const Pool& pool,
            Address address,
            size_t size,
            uint32_t origin = 0);

  mutable std::mutex mutex_;
  int device_;
  size_t limit_ = SIZE_MAX;
  double fraction_ = 1;  // that the limit was made of
  size_t red_zone_ = 0;  // bytes behind each block that nobody may touch
  uint64_t turn_ = 0;    // allocations so far: the age of free blocks
  // Pools stay where they are: segments and blocks refer to them.
  std::map<Key, Pool> pools_;
  std::list<Waiting> waiting_;
  std::vector<Block*> later_;  // freed while something was recorded
  GpuMemoryStats stats_;
  size_t history_most_ = 0;
  std::atomic<bool> history_origins_{false};
  mutable std::deque<GpuMemoryAction> history_;
};

}  // namespace taeda::cuda
