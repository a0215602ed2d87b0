// The caching allocator of device memory, and page-locked memory of the host.
#pragma once

#include <taeda/c10/core/allocator.h>
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
// enough is taken, and its rest split off.
class MemoryOfDevice;

Allocator& device_allocator();

GpuMemoryStats memory_stats(int device);
std::vector<GpuSegment> memory_segments();
void reset_peak(int device);
void reset_totals(int device);
// Gives the driver back what is cached: whole segments, and free pages at the
// end of those that grow.
void empty_cache();
void set_memory_fraction(double fraction, int device);
double memory_fraction(int device);
void record_stream(const void* data, GpuStream stream);

// Page-locked, from and for all devices; freed blocks are kept by size.
void* allocate_host(size_t bytes);
void free_host(void* data);
bool is_pinned(const void* data);

}  // namespace taeda::cuda
