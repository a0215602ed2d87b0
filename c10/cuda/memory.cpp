#include <taeda/c10/cuda/memory.h>
#include <taeda/c10/cuda/segment.h>

#include <algorithm>
#include <list>
#include <map>
#include <mutex>
#include <set>
#include <unordered_map>

namespace taeda::cuda {

namespace {

constexpr size_t kUnit = 512;               // of blocks' sizes
constexpr size_t kSmall = size_t{1} << 20;  // the largest small block
constexpr size_t kSmallPage = size_t{2} << 20;
constexpr size_t kLargePage = size_t{20} << 20;
constexpr size_t kFixedFrom = size_t{10} << 20;  // segments of one block

struct BySize {
  bool operator()(const Block* a, const Block* b) const {
    return a->size != b->size ? a->size < b->size : a->address < b->address;
  }
};

size_t rounded_up(size_t n, size_t unit) {
  return (n + unit - 1) / unit * unit;
}

Block* make_block(Segment* segment, Address address, size_t size) {
  auto* block = new Block;
  block->segment = segment;
  block->address = address;
  block->size = size;
  return block;
}

}  // namespace

// Free blocks and segments of one stream and kind.
struct Pool {
  GpuStream stream;
  bool large = false;
  bool tried_growing = false;
  std::set<Block*, BySize> free;
  std::list<std::unique_ptr<Segment>> segments;
};

// What one place of the program holds.
struct Holding {
  uint32_t origin = 0;
  size_t bytes = 0, blocks = 0;
};

class MemoryOfDevice {
 public:
  explicit MemoryOfDevice(int device) : device_(device) {
    if (driver().red_zone == nullptr) return;
    check(driver().red_zone(&red_zone_), "taedaRedZone");
  }

  Block* allocate(size_t nbytes, GpuStream stream);
  void free(Block* block);
  void record(Block* block, GpuStream stream);
  void empty_cache();
  void limit(double fraction);

  GpuMemoryStats stats() const {
    std::lock_guard guard(mutex_);
    return stats_;
  }
  double fraction() const;
  void reset_peak();
  void reset_totals();
  void list_segments(std::vector<GpuSegment>* out) const;

 private:
  struct Waiting {
    std::unique_ptr<Event> event;
    Block* block;
  };

  Block* take(Pool& pool, size_t size);
  Block* extend(Pool& pool, size_t size);
  Block* extended(Segment& segment, size_t bytes);
  void split(Block* block, size_t size);
  void give_back(Block* block);
  Block* joined(Block* left, Block* right);
  void collect(bool all);
  void release_cached();
  bool within_limit(size_t more) const;
  std::string out_of_memory(size_t size, const Pool& pool);
  size_t largest_that_fits(const Pool& pool) const;
  std::vector<Holding> holdings() const;
  void count(GpuMemoryStats::Pools& pools, const Pool& pool, int64_t n);
  Pool& pool_of(GpuStream stream, bool large);

  mutable std::mutex mutex_;
  int device_;
  size_t limit_ = SIZE_MAX;
  double fraction_ = 1;  // that the limit was made of
  size_t red_zone_ = 0;  // bytes behind each block that nobody may touch
  // Pools stay where they are: segments and blocks refer to them.
  std::map<std::pair<int64_t, bool>, Pool> pools_;
  std::list<Waiting> waiting_;
  GpuMemoryStats stats_;
};

void MemoryOfDevice::count(GpuMemoryStats::Pools& pools,
                           const Pool& pool,
                           int64_t n) {
  pools[0].add(n);
  pools[pool.large ? 2 : 1].add(n);
}

Pool& MemoryOfDevice::pool_of(GpuStream stream, bool large) {
  auto [found, made] = pools_.try_emplace({stream.id, large});
  if (made) {  // read without the lock by who holds a block of it
    found->second.stream = stream;
    found->second.large = large;
  }
  return found->second;
}

bool MemoryOfDevice::within_limit(size_t more) const {
  return static_cast<size_t>(stats_.reserved_bytes[0].current) + more <= limit_;
}

// A free block of at least that size, out of its set.
Block* MemoryOfDevice::take(Pool& pool, size_t size) {
  Block wanted;
  wanted.size = size;
  auto found = pool.free.lower_bound(&wanted);
  if (found == pool.free.end()) return nullptr;
  Block* block = *found;
  pool.free.erase(found);
  return block;
}

// `bytes` more at the end of a segment, as a free block out of its set.
Block* MemoryOfDevice::extended(Segment& segment, size_t bytes) {
  Pool& pool = segment.pool();
  Block* end = segment.last;
  bool ends_free = end != nullptr && !end->used && end->waits == 0;
  size_t missing = ends_free ? bytes - std::min(bytes, end->size) : bytes;
  if (!within_limit(missing)) return nullptr;
  Address at = segment.base() + segment.size();
  size_t got = segment.grow(missing);
  if (got == 0) return nullptr;
  if (end == nullptr) count(stats_.segments, pool, 1);
  count(stats_.reserved_bytes, pool, static_cast<int64_t>(got));
  ++stats_.device_allocations;
  if (ends_free) {
    pool.free.erase(end);
    end->size += got;
    return end;
  }
  auto* block = make_block(&segment, at, got);
  block->before = end;
  (end != nullptr ? end->after : segment.first) = block;
  segment.last = block;
  return block;
}

Block* MemoryOfDevice::extend(Pool& pool, size_t size) {
  if (!pool.tried_growing) {
    pool.tried_growing = true;
    size_t all = properties_of(device_).total_memory;
    auto made = Segment::growing(
        pool, device_, all + all / 8, pool.large ? kLargePage : kSmallPage);
    if (made != nullptr) pool.segments.push_front(std::move(made));
  }
  for (auto& segment : pool.segments) {
    if (!segment->grows()) continue;
    if (Block* block = extended(*segment, size)) return block;
  }
  if (!pool.segments.empty() && pool.segments.front()->grows()) return nullptr;
  size_t bytes = !pool.large         ? kSmallPage
                 : size < kFixedFrom ? kLargePage
                                     : rounded_up(size, kSmallPage);
  if (!within_limit(bytes)) return nullptr;
  auto segment = Segment::fixed(pool, device_, bytes);
  if (segment == nullptr) return nullptr;
  ++stats_.device_allocations;
  count(stats_.segments, pool, 1);
  count(stats_.reserved_bytes, pool, static_cast<int64_t>(bytes));
  auto* block = make_block(segment.get(), segment->base(), bytes);
  segment->first = segment->last = block;
  pool.segments.push_back(std::move(segment));
  return block;
}

// Leaves `size` bytes in the block and what is behind them free.
void MemoryOfDevice::split(Block* block, size_t size) {
  Pool& pool = block->segment->pool();
  size_t rest = block->size - size;
  // A small rest of a fixed segment would fit no other large block.
  bool useless = pool.large && !block->segment->grows() && rest <= kSmall;
  if (rest < kUnit || useless) return;
  auto* behind = make_block(block->segment, block->address + size, rest);
  behind->before = block;
  behind->after = block->after;
  if (block->after != nullptr) block->after->before = behind;
  if (block->segment->last == block) block->segment->last = behind;
  block->after = behind;
  block->size = size;
  pool.free.insert(behind);
}

namespace {

std::string bytes_text(size_t n) {
  constexpr std::pair<size_t, const char*> kUnits[] = {
      {size_t{1} << 30, " GiB"}, {size_t{1} << 20, " MiB"}};
  for (auto [unit, name] : kUnits) {
    if (n < unit) continue;
    size_t hundredths = (n * 100 + unit / 2) / unit;
    size_t rest = hundredths % 100;
    return str_cat(hundredths / 100, rest < 10 ? ".0" : ".", rest, name);
  }
  return str_cat(n, " bytes");
}

// The places that hold most, a line each; without bindings there are none.
std::string text_of(const std::vector<Holding>& held) {
  constexpr size_t kMost = 8;
  if (gpu_origins.describe == nullptr) return "";
  std::string text;
  for (size_t i = 0; i < std::min(held.size(), kMost); ++i) {
    const Holding& h = held[i];
    text += str_cat("\n  ",
                    bytes_text(h.bytes),
                    h.blocks == 1 ? " in 1 block: "
                                  : str_cat(" in ", h.blocks, " blocks: "),
                    h.origin == 0 ? "small tensors, and what no line of Python "
                                    "took"
                                  : gpu_origins.describe(h.origin));
  }
  if (held.size() > kMost) {
    text += str_cat("\n  ... and ", held.size() - kMost, " more places");
  }
  return text.empty() ? "" : "\nMemory is held by what was made at" + text;
}

}  // namespace

Block* MemoryOfDevice::allocate(size_t nbytes, GpuStream stream) {
  size_t size = rounded_up(std::max<size_t>(nbytes, 1) + red_zone_, kUnit);
  use_context(device_);
  // Before the lock: this may wait for the GIL.
  uint32_t origin = nbytes > kSmall && gpu_origins.capture != nullptr
                        ? gpu_origins.capture()
                        : 0;
  std::unique_lock guard(mutex_);
  collect(/*all=*/false);
  Pool& pool = pool_of(stream, size > kSmall);
  Block* block = take(pool, size);
  if (block == nullptr) block = extend(pool, size);
  if (block == nullptr) {
    ++stats_.retries;
    release_cached();
    block = extend(pool, size);
    if (block == nullptr) block = take(pool, size);
  }
  if (block == nullptr) {
    std::string text = out_of_memory(nbytes, pool);
    std::vector<Holding> held = holdings();
    guard.unlock();
    throw_error(ErrorKind::OutOfMemory, text + text_of(held));
  }
  split(block, size);
  block->used = true;
  block->origin = origin;
  block->requested = nbytes;
  auto bytes = static_cast<int64_t>(block->size);
  count(stats_.allocated_bytes, pool, bytes);
  count(stats_.active_bytes, pool, bytes);
  count(stats_.requested_bytes, pool, static_cast<int64_t>(nbytes));
  count(stats_.allocations, pool, 1);
  count(stats_.active_blocks, pool, 1);
  if (driver().block_taken != nullptr) {
    driver().block_taken(block->address, nbytes, handle_of(pool.stream));
  }
  return block;
}

void MemoryOfDevice::free(Block* block) {
  std::lock_guard guard(mutex_);
  Pool& pool = block->segment->pool();
  auto bytes = static_cast<int64_t>(block->size);
  count(stats_.allocated_bytes, pool, -bytes);
  count(stats_.requested_bytes, pool, -static_cast<int64_t>(block->requested));
  count(stats_.allocations, pool, -1);
  block->used = false;
  for (GpuStream stream : block->streams) {
    auto event = std::make_unique<Event>(stream.device, false, false);
    event->record(stream);
    waiting_.push_back({std::move(event), block});
    ++block->waits;
  }
  block->streams.clear();
  if (block->waits == 0) give_back(block);
}

Block* MemoryOfDevice::joined(Block* left, Block* right) {
  left->size += right->size;
  left->after = right->after;
  if (right->after != nullptr) right->after->before = left;
  if (left->segment->last == right) left->segment->last = left;
  delete right;
  return left;
}

void MemoryOfDevice::give_back(Block* block) {
  Pool& pool = block->segment->pool();
  count(stats_.active_bytes, pool, -static_cast<int64_t>(block->size));
  count(stats_.active_blocks, pool, -1);
  if (driver().block_freed != nullptr) {
    use_context(device_);
    driver().block_freed(block->address, block->size, handle_of(pool.stream));
  }
  auto is_free = [](Block* b) {
    return b != nullptr && !b->used && b->waits == 0;
  };
  if (is_free(block->after)) {
    pool.free.erase(block->after);
    block = joined(block, block->after);
  }
  if (is_free(block->before)) {
    pool.free.erase(block->before);
    block = joined(block->before, block);
  }
  pool.free.insert(block);
}

// Takes back blocks whose streams have passed, or waits for all of them.
void MemoryOfDevice::collect(bool all) {
  for (auto at = waiting_.begin(); at != waiting_.end();) {
    if (all) at->event->wait();
    if (!at->event->is_done()) {
      ++at;
      continue;
    }
    Block* block = at->block;
    at = waiting_.erase(at);
    if (--block->waits == 0) give_back(block);
  }
}

void MemoryOfDevice::record(Block* block, GpuStream stream) {
  std::lock_guard guard(mutex_);
  if (stream == block->segment->pool().stream) return;
  auto& known = block->streams;
  if (std::find(known.begin(), known.end(), stream) == known.end()) {
    known.push_back(stream);
  }
}

void MemoryOfDevice::release_cached() {
  collect(/*all=*/true);
  for (auto& [key, pool] : pools_) {
    for (auto at = pool.segments.begin(); at != pool.segments.end();) {
      Segment& segment = **at;
      Block* end = segment.last;
      bool free = end != nullptr && !end->used && end->waits == 0;
      bool whole = free && end == segment.first;
      if (!free || (!whole && !segment.grows())) {
        ++at;
        continue;
      }
      pool.free.erase(end);
      // A stream may still work on memory that its next user may have at once.
      wait_for(pool.stream);
      size_t freed = segment.grows()
                         ? segment.shrink(end->address - segment.base())
                         : segment.size();
      count(stats_.reserved_bytes, pool, -static_cast<int64_t>(freed));
      stats_.device_frees += freed > 0 ? 1 : 0;
      end->size -= freed;
      if (end->size > 0) {
        pool.free.insert(end);
        ++at;
        continue;
      }
      segment.last = end->before;
      (end->before != nullptr ? end->before->after : segment.first) = nullptr;
      delete end;
      if (segment.first == nullptr) count(stats_.segments, pool, -1);
      at = segment.grows() ? std::next(at) : pool.segments.erase(at);
    }
  }
}

void MemoryOfDevice::empty_cache() {
  use_context(device_);
  std::lock_guard guard(mutex_);
  release_cached();
}

void MemoryOfDevice::limit(double fraction) {
  auto total = static_cast<double>(properties_of(device_).total_memory);
  std::lock_guard guard(mutex_);
  limit_ = static_cast<size_t>(total * fraction);
  fraction_ = fraction;
}

double MemoryOfDevice::fraction() const {
  std::lock_guard guard(mutex_);
  return fraction_;
}

namespace {

template <class F>
void for_each_count(GpuMemoryStats& stats, F f) {
  for (auto* pools : {&stats.allocated_bytes,
                      &stats.reserved_bytes,
                      &stats.active_bytes,
                      &stats.requested_bytes,
                      &stats.allocations,
                      &stats.segments,
                      &stats.active_blocks}) {
    for (GpuCount& count : *pools) f(count);
  }
}

}  // namespace

void MemoryOfDevice::reset_peak() {
  std::lock_guard guard(mutex_);
  for_each_count(stats_, [](GpuCount& c) { c.peak = c.current; });
}

void MemoryOfDevice::reset_totals() {
  std::lock_guard guard(mutex_);
  for_each_count(stats_, [](GpuCount& c) { c.taken = c.freed = 0; });
  stats_.retries = stats_.out_of_memory = 0;
}

// By the place that took it, the most first.
std::vector<Holding> MemoryOfDevice::holdings() const {
  std::map<uint32_t, Holding> by_origin;
  for (const auto& [key, pool] : pools_) {
    for (const auto& segment : pool.segments) {
      for (Block* b = segment->first; b != nullptr; b = b->after) {
        if (!b->used) continue;
        Holding& held = by_origin[b->origin];
        held.origin = b->origin;
        held.bytes += b->size;
        ++held.blocks;
      }
    }
  }
  std::vector<Holding> all;
  for (const auto& [origin, held] : by_origin) all.push_back(held);
  std::sort(all.begin(), all.end(), [](const Holding& a, const Holding& b) {
    return a.bytes > b.bytes;
  });
  return all;
}

// The most bytes that the pool could have given: of its free blocks, or by
// growing behind the last one.
size_t MemoryOfDevice::largest_that_fits(const Pool& pool) const {
  size_t most = pool.free.empty() ? 0 : (*pool.free.rbegin())->size;
  size_t free = 0, total = 0;
  driver().memory_info(&free, &total);
  auto reserved = static_cast<size_t>(stats_.reserved_bytes[0].current);
  free = std::min(free, limit_ - std::min(limit_, reserved));
  size_t page = pool.large ? kLargePage : kSmallPage;
  for (const auto& segment : pool.segments) {
    const Block* end = segment->last;
    bool ends_free = end != nullptr && !end->used && end->waits == 0;
    size_t more = free / page * page + (ends_free ? end->size : 0);
    if (segment->grows()) most = std::max(most, more);
  }
  return most - std::min(most, red_zone_);
}

std::string MemoryOfDevice::out_of_memory(size_t size, const Pool& pool) {
  ++stats_.out_of_memory;
  size_t free = 0, total = 0;
  driver().memory_info(&free, &total);
  auto now = [](const GpuMemoryStats::Pools& pools) {
    return static_cast<size_t>(pools[0].current);
  };
  size_t used = now(stats_.allocated_bytes);
  std::string text = str_cat("CUDA out of memory. Tried to allocate ",
                             bytes_text(size),
                             ". GPU ",
                             device_,
                             " has a total capacity of ",
                             bytes_text(total),
                             " of which ",
                             bytes_text(free),
                             " is free. Of the allocated memory ",
                             bytes_text(used),
                             " is allocated by Taeda, and ",
                             bytes_text(now(stats_.reserved_bytes) - used),
                             " is reserved by Taeda but unallocated. ",
                             bytes_text(largest_that_fits(pool)),
                             " would have fitted.");
  if (limit_ != SIZE_MAX) {
    text += str_cat(" ", bytes_text(limit_), " allowed.");
  }
  return text;
}

void MemoryOfDevice::list_segments(std::vector<GpuSegment>* out) const {
  std::lock_guard guard(mutex_);
  for (const auto& [key, pool] : pools_) {
    for (const auto& segment : pool.segments) {
      if (segment->first == nullptr) continue;
      GpuSegment shown{pool.stream,
                       segment->base(),
                       segment->size(),
                       pool.large,
                       segment->grows(),
                       {}};
      for (Block* b = segment->first; b != nullptr; b = b->after) {
        shown.blocks.push_back({b->size,
                                b->requested,
                                b->address,
                                b->used,
                                b->waits > 0,
                                b->used ? b->origin : 0});
      }
      out->push_back(std::move(shown));
    }
  }
}

namespace {

// Never destroyed: tensors of static storage are freed while the process ends.
MemoryOfDevice& memory_of(int device) {
  static auto& all = *new std::vector<std::unique_ptr<MemoryOfDevice>>([] {
    std::vector<std::unique_ptr<MemoryOfDevice>> made;
    for (int i = 0; i < device_count(); ++i) {
      made.push_back(std::make_unique<MemoryOfDevice>(i));
    }
    return made;
  }());
  check_device("CUDA", device);
  return *all[static_cast<size_t>(device)];
}

// By address, for record_stream().
struct UsedBlocks {
  std::mutex mutex;
  std::unordered_map<const void*, Block*> by_address;
};
UsedBlocks& used_blocks() {
  static auto& blocks = *new UsedBlocks;
  return blocks;
}

void free_block(void* context, size_t) {
  auto* block = static_cast<Block*>(context);
  {
    UsedBlocks& used = used_blocks();
    std::lock_guard guard(used.mutex);
    used.by_address.erase(reinterpret_cast<void*>(block->address));
  }
  memory_of(block->segment->pool().stream.device).free(block);
}

class DeviceAllocator final : public Allocator {
 public:
  DataPtr allocate(size_t nbytes) override {
    if (nbytes == 0) return {};
    int device = current_device();
    Block* block = memory_of(device).allocate(nbytes, current_stream(device));
    auto* data = reinterpret_cast<void*>(block->address);
    UsedBlocks& used = used_blocks();
    std::lock_guard guard(used.mutex);
    used.by_address.emplace(data, block);
    return {data, block, &free_block};
  }
  AllocatorStats stats() const override {
    GpuMemoryStats s = memory_stats(current_device());
    return {s.allocated_bytes[0].current,
            s.allocated_bytes[0].peak,
            s.reserved_bytes[0].current - s.allocated_bytes[0].current,
            s.allocations[0].taken};
  }
  void reset_peak() override { cuda::reset_peak(current_device()); }
  void empty_cache() override { cuda::empty_cache(); }
};

}  // namespace

Allocator& device_allocator() {
  static auto& allocator = *new DeviceAllocator;
  return allocator;
}

GpuMemoryStats memory_stats(int device) { return memory_of(device).stats(); }

std::vector<GpuSegment> memory_segments() {
  std::vector<GpuSegment> out;
  for (int i = 0; i < device_count(); ++i) memory_of(i).list_segments(&out);
  return out;
}

void reset_peak(int device) { memory_of(device).reset_peak(); }
void reset_totals(int device) { memory_of(device).reset_totals(); }
double memory_fraction(int device) { return memory_of(device).fraction(); }

void empty_cache() {
  for (int i = 0; i < device_count(); ++i) memory_of(i).empty_cache();
}

void set_memory_fraction(double fraction, int device) {
  TAEDA_CHECK_AS(Value,
                 fraction >= 0 && fraction <= 1,
                 "Invalid fraction value: ",
                 fraction,
                 ". Allowed range: 0~1");
  memory_of(device).limit(fraction);
}

void record_stream(const void* data, GpuStream stream) {
  Block* block = nullptr;
  {
    UsedBlocks& used = used_blocks();
    std::lock_guard guard(used.mutex);
    auto found = used.by_address.find(data);
    if (found == used.by_address.end()) return;  // another library's memory
    block = found->second;
  }
  memory_of(block->segment->pool().stream.device).record(block, stream);
}

}  // namespace taeda::cuda
