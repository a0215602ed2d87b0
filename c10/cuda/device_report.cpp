// What is said of a device's memory: counts, snapshots, history, errors.
#include <taeda/c10/cuda/device_memory.h>
#include <taeda/c10/cuda/memory_options.h>

#include <algorithm>
#include <chrono>

namespace taeda::cuda {

void MemoryOfDevice::count(GpuMemoryStats::Pools& pools,
                           const Pool& pool,
                           int64_t n) {
  pools[0].add(n);
  pools[pool.large ? 2 : 1].add(n);
}

namespace {

template <class F>
void for_each_count(GpuMemoryStats& stats, F f) {
  for (auto* pools : {&stats.allocated_bytes,
                      &stats.reserved_bytes,
                      &stats.active_bytes,
                      &stats.requested_bytes,
                      &stats.inactive_split_bytes,
                      &stats.allocations,
                      &stats.segments,
                      &stats.active_blocks,
                      &stats.inactive_split}) {
    for (GpuCount& count : *pools) f(count);
  }
  f(stats.oversize_allocations);
  f(stats.oversize_segments);
}

}  // namespace

GpuMemoryStats MemoryOfDevice::stats() const {
  std::lock_guard guard(mutex_);
  GpuMemoryStats out = stats_;
  size_t most = memory_options().max_split_size;
  out.max_split_size = most == SIZE_MAX ? -1 : static_cast<int64_t>(most);
  return out;
}

void MemoryOfDevice::reset_peak() {
  std::lock_guard guard(mutex_);
  for_each_count(stats_, [](GpuCount& c) { c.peak = c.current; });
}

void MemoryOfDevice::reset_totals() {
  std::lock_guard guard(mutex_);
  for_each_count(stats_, [](GpuCount& c) { c.taken = c.freed = 0; });
  stats_.retries = stats_.out_of_memory = stats_.synchronizations = 0;
  stats_.device_allocations = stats_.device_frees = 0;
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

// History
// -----------------------------------------------------------------------

void MemoryOfDevice::record_history(size_t most, bool origins) {
  std::lock_guard guard(mutex_);
  history_most_ = most;
  history_origins_ = origins;
  history_.clear();
}

std::vector<GpuMemoryAction> MemoryOfDevice::history() const {
  std::lock_guard guard(mutex_);
  return {history_.begin(), history_.end()};
}

void MemoryOfDevice::note(GpuMemoryAction::Kind kind,
                          const Pool& pool,
                          Address address,
                          size_t size,
                          uint32_t origin) {
  if (TAEDA_LIKELY(history_most_ == 0)) return;
  if (history_.size() == history_most_) history_.pop_front();
  auto now = std::chrono::system_clock::now().time_since_epoch();
  history_.push_back(
      {kind,
       address,
       size,
       pool.stream,
       pool.id,
       origin,
       std::chrono::duration_cast<std::chrono::microseconds>(now).count()});
}

// Running out
// -------------------------------------------------------------------

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

void MemoryOfDevice::run_out(std::unique_lock<std::mutex>& lock,
                             size_t size,
                             const Pool& pool) {
  note(GpuMemoryAction::OutOfMemory, pool, 0, size);
  std::string text = out_of_memory(size, pool);
  std::vector<Holding> held = holdings();
  lock.unlock();
  throw_error(ErrorKind::OutOfMemory, text + text_of(held));
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
    bool ends_free = end != nullptr && end->is_free();
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
  size_t elsewhere = free + now(stats_.reserved_bytes);
  if (elsewhere < total) {
    text += str_cat(" ",
                    bytes_text(total - elsewhere),
                    " is in use by other processes and libraries.");
  }
  if (limit_ != SIZE_MAX) {
    text += str_cat(" ", bytes_text(limit_), " allowed.");
  }
  return text;
}

// Snapshots
// ---------------------------------------------------------------------

void MemoryOfDevice::list_segments(std::vector<GpuSegment>* out) const {
  std::lock_guard guard(mutex_);
  for (const auto& [key, pool] : pools_) {
    for (const auto& segment : pool.segments) {
      if (segment->first == nullptr) continue;
      GpuSegment shown{pool.stream,
                       segment->base(),
                       0,
                       pool.large,
                       segment->grows(),
                       pool.id,
                       {}};
      for (Block* b = segment->first; b != nullptr; b = b->after) {
        if (!b->mapped) continue;
        shown.size += b->size;
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

std::vector<AllocationHandle> MemoryOfDevice::pages_of(
    const Block& block) const {
  std::lock_guard guard(mutex_);
  return block.segment->pages_of(block);
}

}  // namespace taeda::cuda
