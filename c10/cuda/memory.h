// The caching allocator of device memory, and page-locked memory of the host.
#pragma once

#include <taeda/c10/core/allocator.h>
#include <taeda/c10/core/gpu_parts.h>
#include <taeda/c10/cuda/stream.h>

namespace taeda::cuda {

// Note [Device memory]
// A block belongs to the stream that was current when it was taken. It may be
// taken again at once when it is freed, although the stream has not come so
// far, because what the next user does comes later in the same stream. Other
// streams that use it are told by record_stream(); a block that has some waits
// for events of theirs before it is free.
//
// Blocks lie in segments. A segment is a range of addresses, reserved for all
// of the device's memory once for each stream and kind of block (small ones of
// at most 1 MiB, large ones), of which the beginning is mapped: it grows by
// mapping more pages at its end. So what lies side by side is one range, and
// blocks of sizes that change from step to step leave no holes that nothing
// fits into. Where the driver cannot map memory, segments are what it
// allocates, and do not grow.
//
// Neighbouring free blocks are one. The smallest free block that is large
// enough is taken, and its rest split off. Pages that only free memory lies in
// go back to the driver when caches are emptied and before memory runs out;
// amid a segment they leave a hole, which is filled before the segment grows.
class MemoryOfDevice;

Allocator& device_allocator();

GpuMemoryStats memory_stats(int device);
std::vector<GpuSegment> memory_segments();
void reset_peak(int device);
void reset_totals(int device);
// Gives the driver back what is cached, of pools without users (Note [Pools])
// or of one pool: whole segments, and free pages of those that grow.
void empty_cache(PoolId pool = kAllPools);
// Of each device.
void record_history(size_t most, bool origins);
std::vector<std::vector<GpuMemoryAction>> memory_history();
// Whether some was taken.
bool memory_is_used();
// What is known of the block that begins there; null for other libraries'.
struct Block;
Block* block_at(const void* data);
// The driver's handles of the pages that it lies in.
std::vector<AllocationHandle> pages_of(const Block& block);
void set_memory_fraction(double fraction, int device);
double memory_fraction(int device);
void record_stream(const void* data, GpuStream stream);

// Page-locked, from and for all devices; freed blocks are kept by size. A
// stream that works on one is told by record_host(): the block waits for it
// when it is freed.
void* allocate_host(size_t bytes);
void free_host(void* data);
bool is_pinned(const void* data);
void record_host(const void* data, GpuStream stream);
void empty_host_cache();
GpuHostStats host_stats();
void reset_host_peak();
void reset_host_totals();

}  // namespace taeda::cuda
