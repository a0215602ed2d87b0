// What a kernel finds wrong about its data, for whoever waits for it.
#pragma once

#include <taeda/c10/cuda/device.h>

namespace taeda::cuda {

// Note [Faults of kernels]
// A kernel that meets an index outside of its tensor cannot raise. Its thread
// writes down what it met, if it is the first, and ends; the others go on. The
// next call of the host that waits for the device raises what stands there, as
// PyTorch does, but the device stays usable. Laid out as in formula.cuh.
struct Fault {
  uint32_t taken = 0;    // some thread writes
  uint32_t written = 0;  // and is done
  const char* op = nullptr;
  int64_t index = 0, size = 0;
};

// In page-locked memory of the host, which the device writes to.
Fault* fault_of(int device);
// RuntimeError "CUDA error: device-side assert triggered", once for a fault.
void check_fault(int device);

}  // namespace taeda::cuda
