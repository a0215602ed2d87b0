// An allocator of the CPU that tells the recorder of each block.
#pragma once

#include <cstdint>

namespace taeda::profiler {

// Whether tensors' memory comes from it. Blocks that it has handed out may be
// given back at any time after; those of before are not seen when they are.
void record_allocations(bool on);

// Where it tells: bytes, or minus the bytes given back, and those in use after.
void record_memory(const void* address, int64_t bytes, int64_t total) noexcept;

}  // namespace taeda::profiler
