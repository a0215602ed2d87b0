// Pools of memory that programs make, and allocators that they bring.
#pragma once

#include <taeda/c10/core/gpu_parts.h>
#include <taeda/c10/cuda/driver.h>

namespace taeda::cuda {

// Note [Pools]
// All memory belongs to a pool, of which 0 is the common one. A thread takes
// from a pool while use_pool() says so; what is taken for a stream whose work
// is recorded into a graph comes from that graph's pool, on whichever thread.
// A pool has users: the object that stands for it, those who take from it,
// graphs that were recorded over it. While it has some, its free blocks are
// kept, whoever empties caches; without any they go back to the driver.

// Functions of another library: `size` bytes for a device's stream.
struct PlugIn {
  void* (*allocate)(intptr_t size, int device, StreamHandle);
  void (*free)(void*, intptr_t size, int device, StreamHandle);
};

struct PoolTraits {
  const PlugIn* plug_in = nullptr;  // what segments come from
  bool use_on_oom = false;  // others may take from it when nothing else is left
  bool no_split = false;    // blocks stay whole
};

PoolId new_pool(PoolTraits traits);
PoolTraits traits_of(PoolId pool);
void retain_pool(PoolId pool);
// Without users its memory goes back.
void release_pool(PoolId pool);
int users_of(PoolId pool);

// What this thread takes from on a device from now on, and did before.
PoolId use_pool(int device, PoolId pool);
// Where memory for a stream is to come from now.
PoolId pool_for(GpuStream stream);

// While work of streams is recorded: memory of the recording with this number
// (cuStreamGetCaptureInfo) comes from the pool.
void begin_recording(uint64_t recording, PoolId pool);
void end_recording(uint64_t recording);
bool recording_goes_on();

// The allocator instead of our own, from before the first tensor on; null
// where there is none.
const PlugIn* current_plug_in();
void set_plug_in(const PlugIn* plug_in);

}  // namespace taeda::cuda
