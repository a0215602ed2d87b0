// What libtaeda and the bindings ask of a GPU's library, which is loaded when
// something is first asked of it.
#pragma once

#include <taeda/c10/core/generator.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace taeda {

struct GpuProperties {
  std::string name;
  int major = 0, minor = 0;
  size_t total_memory = 0;
  int multiprocessors = 0;
  int warp_size = 32;
  int max_threads_per_multiprocessor = 0;
  int max_threads_per_block = 0;
  int registers_per_multiprocessor = 0;
  size_t shared_per_block = 0;
  size_t shared_per_block_optin = 0;
  size_t shared_per_multiprocessor = 0;
  size_t l2_cache = 0;
  int clock_rate = 0, memory_clock_rate = 0, memory_bus_width = 0;
  int pci_domain = 0, pci_bus = 0, pci_device = 0;
  bool integrated = false, multi_gpu_board = false;
  std::array<unsigned char, 16> uuid{};
};

// A queue of work: 0 is the device's default one.
struct GpuStream {
  int device = 0;
  int64_t id = 0;
  bool operator==(const GpuStream&) const = default;
};

// Bytes and counts: now, the largest, and all ever taken and given back.
struct GpuCount {
  int64_t current = 0, peak = 0, taken = 0, freed = 0;
  void add(int64_t n) {
    current += n;
    (n > 0 ? taken : freed) += n > 0 ? n : -n;
    if (current > peak) peak = current;
  }
};
struct GpuMemoryStats {
  // [0] all, [1] small blocks, [2] large ones
  using Pools = std::array<GpuCount, 3>;
  Pools allocated_bytes, reserved_bytes, active_bytes, requested_bytes;
  // Free blocks beside others: bytes that no segment is given back with.
  Pools inactive_split_bytes;
  Pools allocations, segments, active_blocks, inactive_split;
  GpuCount oversize_allocations, oversize_segments;
  int64_t retries = 0, out_of_memory = 0, device_allocations = 0;
  int64_t device_frees = 0, synchronizations = 0, max_split_size = -1;
};
struct GpuBlock {
  size_t size = 0, requested = 0;
  uint64_t address = 0;
  bool used = false, waits = false;  // waits: freed, in use by a stream
  uint32_t origin = 0;               // of a large block; see GpuOrigins
};
// Pools of memory; 0 is the common one.
using PoolId = int64_t;
inline constexpr PoolId kAllPools = -1;
struct GpuSegment {
  GpuStream stream;
  uint64_t address = 0;
  size_t size = 0;
  bool large = false, expandable = false;
  PoolId pool = 0;
  std::vector<GpuBlock> blocks;
};

// Where the program took its large blocks, for errors and snapshots. Set when
// Python loads taeda.cuda, null before; both take the GIL, so that who calls
// them holds no lock.
struct GpuOrigins {
  // A number for where this thread's program is, 0 for nowhere.
  uint32_t (*capture)() = nullptr;
  std::string (*describe)(uint32_t origin) = nullptr;
};
extern TAEDA_API GpuOrigins gpu_origins;

// Parts of the interface: gpu_parts.h.
class GpuPools;
class GpuGraphs;
class GpuSharing;

class TAEDA_API Gpu {
 public:
  virtual ~Gpu() = default;

  virtual int driver_version() = 0;
  virtual int device_count() = 0;
  virtual int current_device() = 0;
  virtual void set_device(int device) = 0;
  virtual void synchronize(int device) = 0;
  virtual GpuProperties properties(int device) = 0;
  virtual bool can_access_peer(int device, int peer) = 0;

  virtual GpuStream current_stream(int device) = 0;
  virtual void set_stream(GpuStream stream) = 0;
  virtual GpuStream new_stream(int device, int priority) = 0;
  virtual bool query(GpuStream stream) = 0;
  virtual void wait(GpuStream stream) = 0;
  virtual int priority(GpuStream stream) = 0;
  virtual uint64_t handle(GpuStream stream) = 0;

  virtual void* new_event(int device,
                          bool timing,
                          bool blocking,
                          bool interprocess) = 0;
  virtual void free_event(void* event) = 0;
  virtual void record(void* event, GpuStream stream) = 0;
  virtual void wait(GpuStream stream, void* event) = 0;
  virtual bool query_event(void* event) = 0;
  virtual void wait_event(void* event) = 0;
  virtual float milliseconds(void* from, void* to) = 0;

  virtual GpuMemoryStats memory_stats(int device) = 0;
  virtual std::vector<GpuSegment> segments() = 0;
  virtual void reset_peak(int device) = 0;
  virtual void reset_totals(int device) = 0;
  virtual void empty_cache() = 0;
  // Free and total bytes of the device.
  virtual std::array<size_t, 2> memory_info(int device) = 0;
  virtual void set_memory_fraction(double fraction, int device) = 0;
  virtual double memory_fraction(int device) = 0;
  // A block that `stream` uses too: when freed, it waits for that stream.
  virtual void record_stream(const void* data, GpuStream stream) = 0;
  // On the current stream; memory of one device.
  virtual void copy_bytes(void* to, const void* from, size_t bytes) = 0;
  // Where NVIDIA's libraries may lie besides the system's folders.
  virtual void add_library_folder(std::string folder) = 0;
  // 90100 of 9.1; 0 where there is none.
  virtual int64_t cudnn_version() = 0;
  // Plans of Fourier transforms that a device keeps: how many there are and may
  // be.
  virtual int64_t fourier_plans(int device) = 0;
  virtual int64_t most_fourier_plans(int device) = 0;
  virtual void set_most_fourier_plans(int device, int64_t most) = 0;
  virtual void clear_fourier_plans(int device) = 0;
  virtual void* allocate_host(size_t bytes) = 0;
  virtual void free_host(void* data) = 0;
  virtual bool is_pinned(const void* data) = 0;

  // The device's own, and a new one.
  virtual Generator default_generator(int device) = 0;
  virtual Generator new_generator(int device) = 0;

  virtual GpuPools& pools() = 0;
  virtual GpuGraphs& graphs() = 0;
  virtual GpuSharing& sharing() = 0;
};

// Loads libtaeda_cuda.so where that was not done. AssertionError "Taeda not
// compiled with CUDA enabled" saying what is missing: the library, a driver, a
// device.
TAEDA_API Gpu& gpu();
// Whether it was loaded.
TAEDA_API bool gpu_is_loaded();
// Whether that was in a process from which this one was forked: a driver cannot
// be used on both sides.
TAEDA_API bool gpu_is_lost_in_fork();

// Makes a GPU the thread's current device for a while; nothing for others.
class GpuGuard {
 public:
  explicit GpuGuard(Device device) {
    if (!device.is_cuda() || !device.has_index()) return;
    before_ = gpu().current_device();
    if (before_ == device.index) before_ = -1;
    if (before_ >= 0) gpu().set_device(device.index);
  }
  ~GpuGuard() {
    if (before_ >= 0) gpu().set_device(before_);
  }
  GpuGuard(const GpuGuard&) = delete;
  GpuGuard& operator=(const GpuGuard&) = delete;

 private:
  int before_ = -1;
};

// The library's one symbol: registers what a device registers and returns the
// interface, or throws.
using LoadGpu = Gpu*();
inline constexpr const char* kLoadGpu = "taeda_load_gpu";

}  // namespace taeda
