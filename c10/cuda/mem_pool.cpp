#include <taeda/c10/cuda/mem_pool.h>

#include <taeda/c10/cuda/memory.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <unordered_map>
#include <utility>

namespace taeda::cuda {

namespace {

struct Known {
  PoolTraits traits;
  int users = 0;
};

struct Pools {
  std::mutex mutex;
  std::unordered_map<PoolId, Known> known;
  PoolId last = 0;
  std::vector<std::pair<uint64_t, PoolId>> recordings;
};
Pools& pools() {
  static auto& all = *new Pools;
  return all;
}

// How many recordings go on: streams are asked only while there are some.
std::atomic<int> recording{0};

thread_local std::unordered_map<int, PoolId> used;

std::atomic<const PlugIn*> plug_in{nullptr};

}  // namespace

PoolId new_pool(PoolTraits traits) {
  std::lock_guard guard(pools().mutex);
  PoolId made = ++pools().last;
  pools().known[made] = {traits, 1};
  return made;
}

PoolTraits traits_of(PoolId pool) {
  if (pool == 0) return {};
  std::lock_guard guard(pools().mutex);
  auto found = pools().known.find(pool);
  return found == pools().known.end() ? PoolTraits() : found->second.traits;
}

void retain_pool(PoolId pool) {
  if (pool == 0) return;
  std::lock_guard guard(pools().mutex);
  TAEDA_CHECK(pool > 0 && pool <= pools().last,
              "CUDA: there is no memory pool (0, ",
              pool,
              ")");
  ++pools().known[pool].users;
}

void release_pool(PoolId pool) {
  if (pool == 0) return;
  {
    std::lock_guard guard(pools().mutex);
    auto found = pools().known.find(pool);
    if (found == pools().known.end() || --found->second.users > 0) return;
    pools().known.erase(found);
  }
  empty_cache(pool);
}

int users_of(PoolId pool) {
  std::lock_guard guard(pools().mutex);
  auto found = pools().known.find(pool);
  return found == pools().known.end() ? 0 : found->second.users;
}

PoolId use_pool(int device, PoolId pool) {
  check_device("use_mem_pool", device);
  PoolId before = std::exchange(used[device], pool);
  return before;
}

PoolId pool_for(GpuStream stream) {
  if (recording_goes_on()) {
    if (uint64_t number = recording_of(stream); number != 0) {
      std::lock_guard guard(pools().mutex);
      for (auto [known, pool] : pools().recordings) {
        if (known == number) return pool;
      }
    }
  }
  if (used.empty()) return 0;
  auto found = used.find(stream.device);
  return found == used.end() ? 0 : found->second;
}

void begin_recording(uint64_t number, PoolId pool) {
  std::lock_guard guard(pools().mutex);
  pools().recordings.emplace_back(number, pool);
  ++recording;
}

void end_recording(uint64_t number) {
  std::lock_guard guard(pools().mutex);
  recording -= static_cast<int>(std::erase_if(
      pools().recordings, [&](const auto& r) { return r.first == number; }));
}

bool recording_goes_on() {
  return recording.load(std::memory_order_relaxed) > 0;
}

const PlugIn* current_plug_in() { return plug_in.load(); }
void set_plug_in(const PlugIn* given) { plug_in.store(given); }

}  // namespace taeda::cuda
