// Blocks: taken, split, joined and given back.
#include <taeda/c10/cuda/device_memory.h>
#include <taeda/c10/cuda/memory_options.h>

#include <algorithm>

namespace taeda::cuda {

MemoryOfDevice::MemoryOfDevice(int device) : device_(device) {
  if (auto share = memory_options().per_process_memory_fraction) limit(*share);
  if (driver().red_zone == nullptr) return;
  check(driver().red_zone(&red_zone_), "taedaRedZone");
}

Pool& MemoryOfDevice::pool_of(PoolId id, GpuStream stream, bool large) {
  auto [found, made] = pools_.try_emplace({id, stream.id, large});
  if (made) {  // read without the lock by who holds a block of it
    Pool& pool = found->second;
    pool.id = id;
    pool.stream = stream;
    pool.large = large;
    pool.traits = traits_of(id);
  }
  return found->second;
}

void MemoryOfDevice::add_free(Block* block) {
  Pool& pool = block->segment->pool();
  block->freed = turn_;
  block->is_rest = block->before != nullptr || block->after != nullptr;
  if (block->is_rest) {
    count(stats_.inactive_split, pool, 1);
    count(stats_.inactive_split_bytes, pool, static_cast<int64_t>(block->size));
  }
  pool.free.insert(block);
}

void MemoryOfDevice::remove_free(Block* block) {
  Pool& pool = block->segment->pool();
  pool.free.erase(block);
  if (!block->is_rest) return;
  count(stats_.inactive_split, pool, -1);
  count(stats_.inactive_split_bytes, pool, -static_cast<int64_t>(block->size));
}

// A free block of at least that size, out of its set.
Block* MemoryOfDevice::take(Pool& pool, size_t size) {
  Block wanted;
  wanted.size = size;
  auto found = pool.free.lower_bound(&wanted);
  if (found == pool.free.end()) return nullptr;
  Block* block = *found;
  size_t most = memory_options().max_split_size;
  if (!block->segment->grows() && size < most && block->size >= most) {
    return nullptr;  // it would have to be split
  }
  remove_free(block);
  return block;
}

// From pools that their owners lend when nothing else is left.
Block* MemoryOfDevice::take_elsewhere(const Pool& pool, size_t size) {
  for (auto& [key, other] : pools_) {
    bool lent = other.traits.use_on_oom && other.id != pool.id;
    if (!lent || other.large != pool.large || !(other.stream == pool.stream)) {
      continue;
    }
    if (Block* block = take(other, size)) return block;
  }
  return nullptr;
}

Block* MemoryOfDevice::find_room(Pool& pool, size_t size) {
  if (Block* block = take(pool, size)) return block;
  collect_garbage(size);
  if (Block* block = extend(pool, size)) return block;
  ++stats_.retries;
  release_cached(kAllPools);
  if (Block* block = extend(pool, size)) return block;
  if (Block* block = take(pool, size)) return block;
  return take_elsewhere(pool, size);
}

// Leaves `size` bytes in the block and what is behind them free.
void MemoryOfDevice::split(Block* block, size_t size) {
  Pool& pool = block->segment->pool();
  size_t rest = block->size - size;
  // A small rest of a fixed segment would fit no other large block.
  bool fixed = pool.large && !block->segment->grows();
  bool useless =
      fixed && (rest <= kSmall || size > memory_options().max_split_size);
  if (rest < kUnit || useless || pool.traits.no_split) return;
  auto* behind = new Block;
  behind->segment = block->segment;
  behind->address = block->address + size;
  behind->size = rest;
  behind->before = block;
  behind->after = block->after;
  if (block->after != nullptr) block->after->before = behind;
  if (block->segment->last == block) block->segment->last = behind;
  block->after = behind;
  block->size = size;
  add_free(behind);
}

namespace {

// The stream in whose order a memory checker hears of a block: what is taken
// or freed while the stream records is recorded too, but for blocks of other
// pools than the recording's.
StreamHandle checked_stream(const Pool& pool) {
  bool foreign = recording_goes_on() && recording_of(pool.stream) != 0 &&
                 pool_for(pool.stream) != pool.id;
  return foreign ? nullptr : bare_handle(pool.stream);
}

}  // namespace

void MemoryOfDevice::hand_out(Block* block,
                              size_t size,
                              size_t nbytes,
                              uint32_t origin) {
  split(block, size);
  Pool& pool = block->segment->pool();
  block->used = true;
  block->origin = origin;
  block->requested = nbytes;
  auto bytes = static_cast<int64_t>(block->size);
  count(stats_.allocated_bytes, pool, bytes);
  count(stats_.active_bytes, pool, bytes);
  count(stats_.requested_bytes, pool, static_cast<int64_t>(nbytes));
  count(stats_.allocations, pool, 1);
  count(stats_.active_blocks, pool, 1);
  if (block->size >= memory_options().max_split_size) {
    stats_.oversize_allocations.add(1);
  }
  note(GpuMemoryAction::Alloc, pool, block->address, block->size, origin);
  if (driver().block_taken != nullptr) {
    driver().block_taken(block->address, nbytes, checked_stream(pool));
  }
}

Block* MemoryOfDevice::allocate(size_t nbytes, GpuStream stream) {
  size_t size =
      memory_options().rounded(std::max<size_t>(nbytes, 1) + red_zone_, kUnit);
  use_context(device_);
  // Before the lock: this may wait for the GIL.
  bool wanted = nbytes > kSmall || history_origins_.load();
  uint32_t origin =
      wanted && gpu_origins.capture != nullptr ? gpu_origins.capture() : 0;
  PoolId id = pool_for(stream);
  // Taking memory is no work of a stream, and may be done while one records.
  RecordingPause pause;
  std::unique_lock guard(mutex_);
  ++turn_;
  collect(/*all=*/false);
  Pool& pool = pool_of(id, stream, size > kSmall);
  Block* block = find_room(pool, size);
  if (block == nullptr) run_out(guard, nbytes, pool);
  hand_out(block, size, nbytes, origin);
  return block;
}

void MemoryOfDevice::free(Block* block) {
  std::lock_guard guard(mutex_);
  Pool& pool = block->segment->pool();
  auto bytes = static_cast<int64_t>(block->size);
  count(stats_.allocated_bytes, pool, -bytes);
  count(stats_.requested_bytes, pool, -static_cast<int64_t>(block->requested));
  count(stats_.allocations, pool, -1);
  if (block->size >= memory_options().max_split_size) {
    stats_.oversize_allocations.add(-1);
  }
  note(GpuMemoryAction::FreeRequested,
       pool,
       block->address,
       block->size,
       block->origin);
  block->used = false;
  if (block->streams.empty()) return give_back(block);
  // An event of a stream that records would be part of what is recorded.
  ++block->waits;
  if (recording_goes_on()) {
    later_.push_back(block);
  } else {
    try {
      wait_for_streams_of(block);
    } catch (const Error&) {  // a device is lost: nobody gets the block again
    }
  }
}

// Makes what counts as one wait so many as there are streams.
void MemoryOfDevice::wait_for_streams_of(Block* block) {
  for (GpuStream stream : block->streams) {
    auto event = std::make_unique<Event>(stream.device, false, false);
    event->record(stream);
    waiting_.push_back({std::move(event), block});
    ++block->waits;
  }
  --block->waits;
  block->streams.clear();
}

namespace {

Block* joined(Block* left, Block* right) {
  left->size += right->size;
  left->after = right->after;
  if (right->after != nullptr) right->after->before = left;
  if (left->segment->last == right) left->segment->last = left;
  delete right;
  return left;
}

}  // namespace

// With its free neighbours, which leave their set.
Block* MemoryOfDevice::merged(Block* block) {
  if (block->after != nullptr && block->after->is_free()) {
    remove_free(block->after);
    block = joined(block, block->after);
  }
  if (block->before != nullptr && block->before->is_free()) {
    remove_free(block->before);
    block = joined(block->before, block);
  }
  return block;
}

void MemoryOfDevice::give_back(Block* block) {
  Pool& pool = block->segment->pool();
  count(stats_.active_bytes, pool, -static_cast<int64_t>(block->size));
  count(stats_.active_blocks, pool, -1);
  note(GpuMemoryAction::FreeCompleted,
       pool,
       block->address,
       block->size,
       block->origin);
  if (driver().block_freed != nullptr) {
    use_context(device_);
    driver().block_freed(block->address, block->size, checked_stream(pool));
  }
  add_free(merged(block));
}

// Takes back blocks whose streams have passed, or waits for all of them. While
// a stream records nobody may wait.
void MemoryOfDevice::collect(bool all) {
  if (recording_goes_on()) return;
  for (Block* block : std::exchange(later_, {})) wait_for_streams_of(block);
  if (all && !waiting_.empty()) ++stats_.synchronizations;
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

}  // namespace taeda::cuda
