// Loop programs as CUDA C++.
#pragma once

#include <taeda/csrc/compiler/loops/cuda_schedule.h>

namespace taeda::compiler::loops {

// One launch. The kernel's arguments are the addresses of all buffers of the
// program in their order, then that of the scratch memory where there is some.
struct CudaLaunch {
  std::string kernel;
  int64_t blocks = 1;  // along x
  int64_t splits = 1;  // along y
  int64_t threads = 1;
  int64_t shared_bytes = 0;  // that the kernel has by itself
};

struct CudaCode {
  std::string text;       // to follow the prelude
  int64_t alignment = 1;  // bytes; other memory is for other code
  int64_t scratch_bytes = 0;
  std::vector<CudaLaunch> launches;  // in this order, each after the one before
};

// The text that all kernels stand on.
std::string cuda_prelude();
CudaCode cuda_code(const Program& program,
                   const CudaSchedule& schedule,
                   const CudaDevice& device,
                   const std::string& name);
// Comments that say what is launched, for people.
std::string launches_of(const CudaCode& code);
// The best code first; the last one asks nothing of the memory. An error where
// the program has symbols: Note [Kernels for CUDA].
std::vector<CudaCode> cuda_codes(const Program& program,
                                 const CudaDevice& device,
                                 const std::string& name);

}  // namespace taeda::compiler::loops
