// What the emulator and the kernels that it compiles both know of memory.
#pragma once

#include <cstddef>
#include <cstdint>

namespace emulator {

// Of each byte of device memory. Only what lies in a block that the allocator
// has given away may be touched, and only what was written may be read.
enum ByteState : unsigned char { kNobodys = 0, kTaken = 1, kWritten = 2 };

struct BadAccess {
  uintptr_t at;
  size_t bytes;
  bool writes;
  unsigned block_x, block_y, thread;
};

struct CheckedMemory {
  uintptr_t begin = 0;
  size_t bytes = 0;
  unsigned char* states = nullptr;  // one for each byte from `begin` on
  void (*report)(void* machine, const BadAccess&) = nullptr;
  void* machine = nullptr;
};

}  // namespace emulator
