// Programs: one kernel each, compiled when it is first wanted and kept, in this
// process and on disk.
#pragma once

#include <taeda/c10/cuda/stream.h>

#include <array>
#include <functional>
#include <string>

namespace taeda::cuda {

// What tells programs apart: whose formula it is, and everything else that the
// text is printed from, a byte each.
struct ProgramKey {
  const void* formula = nullptr;
  std::array<uint8_t, 24> bytes{};
  size_t used = 0;

  void add(int value) { bytes.at(used++) = static_cast<uint8_t>(value); }
  bool operator==(const ProgramKey&) const = default;
};

// The kernel named `kernel` of the text, on the current device, where it is
// named after the operator. Texts are made and compiled once.
FunctionHandle program(const char* op,
                       const ProgramKey& key,
                       const std::function<std::string()>& text);

struct Grid {
  unsigned x = 1, y = 1;
  unsigned threads = 256;
};
// On the current device and stream; `call` is the kernel's only parameter. The
// operator is named in errors.
void launch(const char* op, FunctionHandle function, Grid grid, void* call);
// Where launches wait (CUDA_LAUNCH_BLOCKING=1), waits for the current stream.
void finish_launch();

}  // namespace taeda::cuda
