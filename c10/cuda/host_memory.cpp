// Page-locked memory of the host, which devices read and write by themselves.
#include <taeda/c10/cuda/memory.h>

#include <bit>
#include <map>
#include <mutex>

namespace taeda::cuda {

namespace {

constexpr unsigned kPortable = 1;  // CU_MEMHOSTALLOC_PORTABLE

// Blocks have powers of two as sizes; freed ones are kept, since locking pages
// costs far more than using them.
struct HostBlocks {
  std::mutex mutex;
  std::map<const char*, size_t> used;
  std::multimap<size_t, void*> free;
};
HostBlocks& blocks() {
  static auto& all = *new HostBlocks;
  return all;
}

}  // namespace

void* allocate_host(size_t bytes) {
  size_t size = std::bit_ceil(std::max<size_t>(bytes, 4096));
  HostBlocks& all = blocks();
  std::lock_guard guard(all.mutex);
  void* data = nullptr;
  if (auto found = all.free.find(size); found != all.free.end()) {
    data = found->second;
    all.free.erase(found);
  } else {
    use_context();
    check(driver().host_allocate(&data, size, kPortable), "cuMemHostAlloc");
  }
  all.used.emplace(static_cast<char*>(data), size);
  return data;
}

void free_host(void* data) {
  if (data == nullptr) return;
  // A copy may still read it.
  // What kernels found wrong is for other calls to raise.
  for (int i = 0; i < device_count(); ++i) {
    use_context(i);
    check(driver().context_wait(), "cuCtxSynchronize");
  }
  HostBlocks& all = blocks();
  std::lock_guard guard(all.mutex);
  auto found = all.used.find(static_cast<char*>(data));
  TAEDA_INTERNAL_ASSERT(found != all.used.end(), "free_host: unknown block");
  all.free.emplace(found->second, data);
  all.used.erase(found);
}

bool is_pinned(const void* data) {
  HostBlocks& all = blocks();
  std::lock_guard guard(all.mutex);
  auto at = all.used.upper_bound(static_cast<const char*>(data));
  if (at == all.used.begin()) return false;
  --at;
  return static_cast<const char*>(data) < at->first + at->second;
}

}  // namespace taeda::cuda
