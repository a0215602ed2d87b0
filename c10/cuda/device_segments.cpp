// Segments: more memory from the driver, and what goes back to it.
#include <taeda/c10/cuda/device_memory.h>
#include <taeda/c10/cuda/memory_options.h>

#include <algorithm>

namespace taeda::cuda {

namespace {

Block* make_block(Segment& segment, Address address, size_t size) {
  auto* block = new Block;
  block->segment = &segment;
  block->address = address;
  block->size = size;
  return block;
}

// Behind `before`, or first.
void insert_behind(Block* before, Block* block) {
  Segment& segment = *block->segment;
  block->before = before;
  block->after = before != nullptr ? before->after : segment.first;
  (before != nullptr ? before->after : segment.first) = block;
  (block->after != nullptr ? block->after->before : segment.last) = block;
}

void remove_from_list(Block* block) {
  Segment& segment = *block->segment;
  (block->before != nullptr ? block->before->after : segment.first) =
      block->after;
  (block->after != nullptr ? block->after->before : segment.last) =
      block->before;
  delete block;
}

}  // namespace

bool MemoryOfDevice::within_limit(size_t more) const {
  return static_cast<size_t>(stats_.reserved_bytes[0].current) + more <= limit_;
}

// `bytes` more at the end of a segment, as a free block out of its set.
Block* MemoryOfDevice::extended(Segment& segment, size_t bytes) {
  Pool& pool = segment.pool();
  Block* end = segment.last;
  bool ends_free = end != nullptr && end->is_free();
  size_t missing = ends_free ? bytes - std::min(bytes, end->size) : bytes;
  if (!within_limit(missing)) return nullptr;
  Address at = segment.base() + segment.size();
  size_t got = segment.grow(missing);
  if (got == 0) return nullptr;
  if (end == nullptr) count(stats_.segments, pool, 1);
  count(stats_.reserved_bytes, pool, static_cast<int64_t>(got));
  ++stats_.device_allocations;
  note(GpuMemoryAction::SegmentMap, pool, at, got);
  if (ends_free) {
    remove_free(end);
    end->size += got;
    return end;
  }
  Block* block = make_block(segment, at, got);
  insert_behind(end, block);
  return block;
}

// The smallest hole that is large enough, as far as it is wanted.
Block* MemoryOfDevice::filled(Pool& pool, size_t size) {
  Block wanted;
  wanted.size = size;
  auto found = pool.holes.lower_bound(&wanted);
  if (found == pool.holes.end()) return nullptr;
  Block* hole = *found;
  Segment& segment = *hole->segment;
  size_t bytes = rounded_up(size, segment.page());
  if (!within_limit(bytes) || !segment.map(hole->address, bytes)) {
    return nullptr;
  }
  pool.holes.erase(found);
  count(stats_.reserved_bytes, pool, static_cast<int64_t>(bytes));
  ++stats_.device_allocations;
  note(GpuMemoryAction::SegmentMap, pool, hole->address, bytes);
  if (hole->size > bytes) {
    Block* rest =
        make_block(segment, hole->address + bytes, hole->size - bytes);
    rest->mapped = false;
    insert_behind(hole, rest);
    pool.holes.insert(rest);
  }
  hole->size = bytes;
  hole->mapped = true;
  return merged(hole);
}

Block* MemoryOfDevice::new_segment(Pool& pool, size_t size) {
  size_t bytes = !pool.large         ? kSmallPage
                 : size < kFixedFrom ? kLargePage
                                     : rounded_up(size, kSmallPage);
  if (pool.traits.no_split) bytes = size;
  if (!within_limit(bytes)) return nullptr;
  auto segment = Segment::fixed(pool, device_, bytes);
  if (segment == nullptr) return nullptr;
  ++stats_.device_allocations;
  count(stats_.segments, pool, 1);
  count(stats_.reserved_bytes, pool, static_cast<int64_t>(bytes));
  if (bytes >= memory_options().max_split_size) stats_.oversize_segments.add(1);
  note(GpuMemoryAction::SegmentAlloc, pool, segment->base(), bytes);
  Block* block = make_block(*segment, segment->base(), bytes);
  segment->first = segment->last = block;
  pool.segments.push_back(std::move(segment));
  return block;
}

Block* MemoryOfDevice::extend(Pool& pool, size_t size) {
  bool grows = memory_options().expandable_segments &&
               pool.traits.plug_in == nullptr && !pool.traits.no_split;
  if (!grows) return new_segment(pool, size);
  if (!pool.tried_growing) {
    pool.tried_growing = true;
    // Twice the memory, since there may be holes.
    size_t all = properties_of(device_).total_memory;
    auto made = Segment::growing(
        pool, device_, 2 * all, pool.large ? kLargePage : kSmallPage);
    if (made != nullptr) pool.segments.push_front(std::move(made));
  }
  if (Block* block = filled(pool, size)) return block;
  bool any = false;
  for (auto& segment : pool.segments) {
    if (!segment->grows()) continue;
    any = true;
    if (Block* block = extended(*segment, size)) return block;
  }
  return any ? nullptr : new_segment(pool, size);
}

bool MemoryOfDevice::may_release(const Pool& pool, PoolId only) const {
  if (only != kAllPools) return pool.id == only;
  return pool.id == 0 || users_of(pool.id) == 0;
}

// A free block that is out of its set and begins and ends with a page.
void MemoryOfDevice::make_hole(Block* block) {
  Segment& segment = *block->segment;
  Pool& pool = segment.pool();
  segment.unmap(block->address, block->size);
  ++stats_.device_frees;
  count(stats_.reserved_bytes, pool, -static_cast<int64_t>(block->size));
  note(GpuMemoryAction::SegmentUnmap, pool, block->address, block->size);
  block->mapped = false;
  for (Block* beside : {block->before, block->after}) {
    if (beside == nullptr || beside->mapped) continue;
    pool.holes.erase(beside);
    block->address = std::min(block->address, beside->address);
    block->size += beside->size;
    remove_from_list(beside);
  }
  pool.holes.insert(block);
}

// Gives back the whole pages of a free block; how many bytes.
size_t MemoryOfDevice::unmap_within(Block* block) {
  Segment& segment = *block->segment;
  size_t page = segment.page();
  size_t begin = block->address - segment.base(), end = begin + block->size;
  size_t from = rounded_up(begin, page), to = end / page * page;
  if (to <= from) return 0;
  remove_free(block);
  if (to < end) {
    Block* rest = make_block(segment, segment.base() + to, end - to);
    insert_behind(block, rest);
    block->size -= rest->size;
    add_free(rest);
  }
  if (from > begin) {
    Block* hole = make_block(segment, segment.base() + from, to - from);
    insert_behind(block, hole);
    block->size = from - begin;
    add_free(block);
    block = hole;
  }
  make_hole(block);
  return to - from;
}

// A segment ends with memory.
void MemoryOfDevice::trim(Segment& segment) {
  Block* end = segment.last;
  if (end == nullptr || end->mapped) return;
  segment.pool().holes.erase(end);
  segment.cut(end->address);
  remove_from_list(end);
  if (segment.first == nullptr) count(stats_.segments, segment.pool(), -1);
}

void MemoryOfDevice::release_pages(Pool& pool) {
  bool waited = false;
  // Neighbours of a free block are none, so that the others stay.
  for (Block* block : std::vector<Block*>(pool.free.begin(), pool.free.end())) {
    if (!block->segment->grows()) continue;
    // A stream may still work on memory that its next user may have at once.
    if (!std::exchange(waited, true)) wait_for(pool.stream);
    unmap_within(block);
  }
  for (auto& segment : pool.segments) trim(*segment);
}

void MemoryOfDevice::release_segments(Pool& pool) {
  for (auto at = pool.segments.begin(); at != pool.segments.end();) {
    Segment& segment = **at;
    Block* only = segment.first;
    bool whole = only != nullptr && only == segment.last && only->is_free();
    if (segment.grows() || !whole) {
      ++at;
      continue;
    }
    remove_free(only);
    wait_for(pool.stream);
    ++stats_.device_frees;
    count(stats_.segments, pool, -1);
    count(stats_.reserved_bytes, pool, -static_cast<int64_t>(segment.size()));
    if (segment.size() >= memory_options().max_split_size) {
      stats_.oversize_segments.add(-1);
    }
    note(GpuMemoryAction::SegmentFree, pool, segment.base(), segment.size());
    delete only;
    at = pool.segments.erase(at);
  }
}

void MemoryOfDevice::release_cached(PoolId only) {
  if (recording_goes_on()) return;  // nobody may wait
  collect(/*all=*/true);
  for (auto& [key, pool] : pools_) {
    if (!may_release(pool, only)) continue;
    release_pages(pool);
    release_segments(pool);
  }
}

void MemoryOfDevice::empty_cache(PoolId only) {
  use_context(device_);
  std::lock_guard guard(mutex_);
  release_cached(only);
  // Pools that nobody can take from any more, with their addresses.
  std::erase_if(pools_, [](const auto& entry) {
    const Pool& pool = entry.second;
    return pool.id != 0 && users_of(pool.id) == 0 &&
           std::all_of(pool.segments.begin(),
                       pool.segments.end(),
                       [](const auto& s) { return s->first == nullptr; });
  });
}

// Before `wanted` more bytes are taken from the driver.
void MemoryOfDevice::collect_garbage(size_t wanted) {
  double threshold = memory_options().garbage_collection_threshold;
  if (threshold == 0 || recording_goes_on()) return;
  auto most = static_cast<size_t>(
      threshold * static_cast<double>(
                      std::min(limit_, properties_of(device_).total_memory)));
  auto over = [&] {
    auto reserved = static_cast<size_t>(stats_.reserved_bytes[0].current);
    return reserved + wanted > most;
  };
  if (!over()) return;
  std::vector<Block*> old;
  for (auto& [key, pool] : pools_) {
    if (!may_release(pool, kAllPools)) continue;
    release_segments(pool);
    for (Block* block : pool.free) {
      if (block->segment->grows()) old.push_back(block);
    }
  }
  std::sort(old.begin(), old.end(), [](const Block* a, const Block* b) {
    return a->freed < b->freed;
  });
  for (Block* block : old) {
    if (!over()) return;
    Segment& segment = *block->segment;
    wait_for(segment.pool().stream);
    unmap_within(block);
    trim(segment);
  }
}

}  // namespace taeda::cuda
