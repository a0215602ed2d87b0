// Parts of what a GPU's library offers that few programs ask for.
#pragma once

#include <taeda/c10/core/allocator.h>
#include <taeda/c10/core/gpu.h>

namespace taeda {

// One thing that the allocator of device memory did.
struct GpuMemoryAction {
  enum Kind : uint8_t {
    Alloc,
    FreeRequested,
    FreeCompleted,
    SegmentAlloc,
    SegmentFree,
    SegmentMap,
    SegmentUnmap,
    OutOfMemory
  };
  Kind kind = Alloc;
  uint64_t address = 0;
  size_t size = 0;
  GpuStream stream;
  PoolId pool = 0;
  uint32_t origin = 0;       // see GpuOrigins
  int64_t microseconds = 0;  // since 1970
};

// Page-locked memory: all blocks, and those that somebody has.
struct GpuHostStats {
  GpuCount blocks, bytes, used_blocks, used_bytes;
  struct Time {
    int64_t total = 0, most = 0, least = 0, calls = 0;  // microseconds
  };
  Time locking, unlocking;
};

// Pools, allocators and settings; see Note [Pools].
class TAEDA_API GpuPools {
 public:
  virtual ~GpuPools() = default;
  // Functions of another library, which stay: void* allocate(ssize_t, int
  // device, stream), void free(void*, ssize_t, int device, stream).
  virtual const void* new_plug_in(void* allocate, void* free) = 0;
  // Instead of our own. RuntimeError once memory was taken.
  virtual void change_allocator(const void* plug_in) = 0;
  virtual const void* changed_allocator() = 0;

  // `plug_in` may be null. The maker is a user, who releases it.
  virtual PoolId new_pool(const void* plug_in,
                          bool use_on_oom,
                          bool no_split) = 0;
  virtual void retain(PoolId pool) = 0;
  virtual void release(PoolId pool) = 0;
  virtual int users(PoolId pool) = 0;
  // What this thread takes from on a device; the one before.
  virtual PoolId use(int device, PoolId pool) = 0;

  virtual void set_options(const std::string& text) = 0;
  virtual std::string options() = 0;
  // Up to `most` actions of each device; 0 ends it.
  virtual void record_history(size_t most, bool origins) = 0;
  virtual std::vector<std::vector<GpuMemoryAction>> history() = 0;

  // For other libraries: a block of the stream's device, by address.
  virtual uint64_t allocate(size_t bytes, GpuStream stream) = 0;
  virtual void free(uint64_t address) = 0;

  virtual GpuHostStats host_stats() = 0;
  virtual void reset_host_peak() = 0;
  virtual void reset_host_totals() = 0;
  virtual void empty_host_cache() = 0;
};

// Recorded work; see Note [Graphs].
class TAEDA_API GpuGraphs {
 public:
  virtual ~GpuGraphs() = default;
  virtual bool is_capturing(GpuStream stream) = 0;
  virtual void* make(bool keep_graph) = 0;
  virtual void destroy(void* graph) = 0;
  // On the current stream. `mode` is "global", "thread_local" or "relaxed".
  virtual void begin(void* graph, PoolId pool, const std::string& mode) = 0;
  // How many pieces of work were recorded.
  virtual size_t end(void* graph) = 0;
  virtual void instantiate(void* graph) = 0;
  virtual void replay(void* graph) = 0;
  virtual void reset(void* graph) = 0;
  virtual PoolId pool(void* graph) = 0;
  // A generator that draws in it besides the device's own.
  virtual void add_generator(void* graph, const Generator& generator) = 0;
  virtual void dump(void* graph, const std::string& path) = 0;
  virtual uint64_t raw_graph(void* graph) = 0;
  virtual uint64_t raw_executable(void* graph) = 0;
};

// Memory of a block as another process can open it: descriptors of its pages,
// or a handle of the segment that it lies in.
struct GpuShared {
  int device = 0;
  size_t page = 0;    // bytes of each descriptor; 0 where there is a handle
  size_t offset = 0;  // of the block in the first page, or in the segment
  std::string handle;
  std::vector<int> descriptors;  // owned by who has this
};

class TAEDA_API GpuSharing {
 public:
  virtual ~GpuSharing() = default;
  virtual std::string event_handle(void* event) = 0;
  virtual void* open_event(int device, const std::string& handle) = 0;
  // Of the block that begins there. RuntimeError for other libraries' memory.
  virtual GpuShared share(const void* data) = 0;
  // Descriptors are not needed any more when it returns.
  virtual DataPtr open(const GpuShared& shared) = 0;
};

}  // namespace taeda
