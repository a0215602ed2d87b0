// The memory checker's part within each kernel: the compiler puts a call before
// every access (-fsanitize=kernel-address), and these are the functions that it
// calls. Included before the device text, after host_device.h.
#pragma once

#include "checked_memory.h"

#include <cstdint>
#include <cstring>

namespace kernel_check {

using emulator::ByteState;
using emulator::CheckedMemory;

// Kernels run one at a time. Before the first, nothing is checked.
inline CheckedMemory nothing;
inline CheckedMemory* memory = &nothing;

TAEDA_UNCHECKED inline bool all_are(const unsigned char* states,
                                    size_t bytes,
                                    ByteState wanted) {
  for (size_t i = 0; i < bytes; ++i) {
    if (states[i] != wanted) return false;
  }
  return true;
}

TAEDA_UNCHECKED __attribute__((noinline)) inline void report(uintptr_t at,
                                                             size_t bytes,
                                                             bool writes) {
  memory->report(memory->machine,
                 {at, bytes, writes, blockIdx.x, blockIdx.y, threadIdx.x});
}

TAEDA_UNCHECKED inline void read(uintptr_t at, size_t bytes) {
  uintptr_t place = at - memory->begin;
  if (place >= memory->bytes) return;  // not a device's memory
  if (!all_are(memory->states + place, bytes, ByteState::kWritten)) {
    report(at, bytes, /*writes=*/false);
  }
}

TAEDA_UNCHECKED inline void write(uintptr_t at, size_t bytes) {
  uintptr_t place = at - memory->begin;
  if (place >= memory->bytes) return;
  unsigned char* states = memory->states + place;
  for (size_t i = 0; i < bytes; ++i) {
    if (states[i] == ByteState::kNobodys) {
      report(at, bytes, /*writes=*/true);
      return;
    }
    states[i] = ByteState::kWritten;
  }
}

// An atomic operation's word, of which a part is enough.
TAEDA_UNCHECKED inline void word(const void* word, size_t bytes) {
  auto at = reinterpret_cast<uintptr_t>(word);
  uintptr_t place = at - memory->begin;
  if (place >= memory->bytes) return;
  const unsigned char* states = memory->states + place;
  for (size_t i = 0; i < bytes; ++i) {
    if (states[i] == ByteState::kWritten) return;
  }
  report(at, bytes, /*writes=*/false);
}

// Before each launch of the library's kernels.
inline void begin(CheckedMemory* checked) {
  memory = checked;
  host_device::check_word = &word;
}

}  // namespace kernel_check

#define TAEDA_CHECKS(bytes)                                            \
  extern "C" TAEDA_UNCHECKED __attribute__((                           \
      used)) inline void __asan_load##bytes##_noabort(uintptr_t at) {  \
    kernel_check::read(at, bytes);                                     \
  }                                                                    \
  extern "C" TAEDA_UNCHECKED __attribute__((                           \
      used)) inline void __asan_store##bytes##_noabort(uintptr_t at) { \
    kernel_check::write(at, bytes);                                    \
  }
TAEDA_CHECKS(1)
TAEDA_CHECKS(2)
TAEDA_CHECKS(4)
TAEDA_CHECKS(8)
TAEDA_CHECKS(16)
#undef TAEDA_CHECKS
extern "C" TAEDA_UNCHECKED __attribute__((used)) inline void
__asan_loadN_noabort(uintptr_t at, size_t bytes) {
  kernel_check::read(at, bytes);
}
extern "C" TAEDA_UNCHECKED __attribute__((used)) inline void
__asan_storeN_noabort(uintptr_t at, size_t bytes) {
  kernel_check::write(at, bytes);
}
extern "C" __attribute__((used)) inline void __asan_handle_no_return() {}
