// Page-locked memory of the host, which devices read and write by themselves.
#include <taeda/c10/cuda/mem_pool.h>
#include <taeda/c10/cuda/memory.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <list>
#include <map>
#include <memory>
#include <mutex>

namespace taeda::cuda {

namespace {

constexpr unsigned kPortable = 1;  // CU_MEMHOSTALLOC_PORTABLE

struct HostBlock {
  size_t size = 0;
  std::vector<GpuStream> streams;  // that work on it
};

// A freed block until the marks in its streams are passed.
struct Waiting {
  void* data;
  size_t size;
  std::vector<std::unique_ptr<Event>> events;
};

// Blocks have powers of two as sizes; freed ones are kept, since locking pages
// costs far more than using them.
struct HostBlocks {
  std::mutex mutex;
  std::map<const char*, HostBlock> used;
  std::list<Waiting> waiting;
  // Freed while something was recorded: their marks would be recorded too.
  std::vector<std::pair<void*, HostBlock>> later;
  std::multimap<size_t, void*> free;
  GpuHostStats stats;
};
HostBlocks& blocks() {
  static auto& all = *new HostBlocks;
  return all;
}

// Adds how long the call took.
template <class F>
void timed(GpuHostStats::Time& time, F call) {
  using Clock = std::chrono::steady_clock;
  auto before = Clock::now();
  call();
  int64_t took = std::chrono::duration_cast<std::chrono::microseconds>(
                     Clock::now() - before)
                     .count();
  time.least = time.calls == 0 ? took : std::min(time.least, took);
  time.most = std::max(time.most, took);
  time.total += took;
  ++time.calls;
}

void is_over(HostBlocks& all, void* data, size_t size) {
  all.stats.used_blocks.add(-1);
  all.stats.used_bytes.add(-static_cast<int64_t>(size));
  all.free.emplace(size, data);
}

void wait_for_streams(HostBlocks& all, void* data, const HostBlock& block) {
  Waiting made{data, block.size, {}};
  for (GpuStream stream : block.streams) {
    made.events.push_back(std::make_unique<Event>(stream.device, false, false));
    made.events.back()->record(stream);
  }
  all.waiting.push_back(std::move(made));
}

// Takes back blocks whose streams have passed; what kernels found wrong is for
// other calls to raise.
void collect(HostBlocks& all) {
  if (recording_goes_on()) return;
  for (auto& [data, block] : std::exchange(all.later, {})) {
    wait_for_streams(all, data, block);
  }
  std::erase_if(all.waiting, [&](Waiting& w) {
    std::erase_if(w.events, [](const auto& e) { return e->has_passed(); });
    if (w.events.empty()) is_over(all, w.data, w.size);
    return w.events.empty();
  });
}

// The block that an address lies in, or the end.
auto find(HostBlocks& all, const void* data) {
  auto at = all.used.upper_bound(static_cast<const char*>(data));
  if (at == all.used.begin()) return all.used.end();
  --at;
  bool inside = static_cast<const char*>(data) < at->first + at->second.size;
  return inside ? at : all.used.end();
}

}  // namespace

void* allocate_host(size_t bytes) {
  size_t size = std::bit_ceil(std::max<size_t>(bytes, 4096));
  HostBlocks& all = blocks();
  std::lock_guard guard(all.mutex);
  collect(all);
  void* data = nullptr;
  if (auto found = all.free.find(size); found != all.free.end()) {
    data = found->second;
    all.free.erase(found);
  } else {
    use_context();
    RecordingPause pause;
    timed(all.stats.locking, [&] {
      check(driver().host_allocate(&data, size, kPortable), "cuMemHostAlloc");
    });
    all.stats.blocks.add(1);
    all.stats.bytes.add(static_cast<int64_t>(size));
  }
  all.used[static_cast<char*>(data)].size = size;
  all.stats.used_blocks.add(1);
  all.stats.used_bytes.add(static_cast<int64_t>(size));
  return data;
}

void free_host(void* data) {
  if (data == nullptr) return;
  HostBlocks& all = blocks();
  std::lock_guard guard(all.mutex);
  auto found = all.used.find(static_cast<char*>(data));
  TAEDA_INTERNAL_ASSERT(found != all.used.end(), "free_host: unknown block");
  HostBlock block = std::move(found->second);
  all.used.erase(found);
  if (block.streams.empty()) {
    is_over(all, data, block.size);
  } else if (recording_goes_on()) {
    all.later.emplace_back(data, std::move(block));
  } else {
    try {
      wait_for_streams(all, data, block);
    } catch (const Error&) {  // a device is lost: nobody gets the block again
    }
  }
}

bool is_pinned(const void* data) {
  HostBlocks& all = blocks();
  std::lock_guard guard(all.mutex);
  return find(all, data) != all.used.end();
}

void record_host(const void* data, GpuStream stream) {
  HostBlocks& all = blocks();
  std::lock_guard guard(all.mutex);
  auto found = find(all, data);
  if (found == all.used.end()) return;
  auto& streams = found->second.streams;
  if (std::find(streams.begin(), streams.end(), stream) == streams.end()) {
    streams.push_back(stream);
  }
}

void empty_host_cache() {
  HostBlocks& all = blocks();
  std::lock_guard guard(all.mutex);
  collect(all);
  use_context();
  RecordingPause pause;
  for (auto [size, data] : std::exchange(all.free, {})) {
    timed(all.stats.unlocking, [&data = data] { driver().host_free(data); });
    all.stats.blocks.add(-1);
    all.stats.bytes.add(-static_cast<int64_t>(size));
  }
}

GpuHostStats host_stats() {
  HostBlocks& all = blocks();
  std::lock_guard guard(all.mutex);
  collect(all);
  return all.stats;
}

namespace {

template <class F>
void for_each_count(F f) {
  HostBlocks& all = blocks();
  std::lock_guard guard(all.mutex);
  GpuHostStats& s = all.stats;
  for (GpuCount* c : {&s.blocks, &s.bytes, &s.used_blocks, &s.used_bytes})
    f(*c);
}

}  // namespace

void reset_host_peak() {
  for_each_count([](GpuCount& c) { c.peak = c.current; });
}
void reset_host_totals() {
  for_each_count([](GpuCount& c) { c.taken = c.freed = 0; });
  HostBlocks& all = blocks();
  std::lock_guard guard(all.mutex);
  all.stats.locking = all.stats.unlocking = {};
}

}  // namespace taeda::cuda
