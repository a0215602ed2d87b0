// Which threads of a CUDA device compute what of a loop program.
#pragma once

#include <taeda/csrc/compiler/loops/schedule.h>

namespace taeda::compiler::loops {

// What a schedule asks about a device.
struct CudaDevice {
  int64_t processors = 132;          // each runs some blocks at once
  int64_t shared_bytes = 48 * 1024;  // that a block may have
  int64_t threads = 2048;            // that a processor keeps
};

// Note [Kernels for CUDA]
// The kept axes are one range of points, the reduced ones one range of elements
// of each point. `lanes` threads share a point; blocks go through the points in
// steps of the grid. Who neighbours are is decided by who reads neighbouring
// memory:
//   elements  nothing is reduced: each thread has points of its own
//   rows      the lanes of a point are neighbours: within a warp values meet by
//             shuffles, within a block in shared memory too
//   columns   neighbours have neighbouring points; lanes meet in shared memory
// Passes follow each other as on the CPU (Note [Passes]). What several of them
// need stays in registers where each thread's part of the row is short, else it
// is loaded and computed again. Where there are too few points to occupy the
// device, several blocks share each one, and each pass is a kernel: it leaves a
// partial sum for each block and point in scratch memory, which the next kernel
// folds first. Nothing is atomic, so results do not depend on who comes first.
//
// Launches and texts follow from the sizes, which are plain integers: programs
// over symbols have neither yet.
struct CudaSchedule {
  enum Layout : uint8_t { kElements, kRows, kColumns };
  Layout layout = kElements;
  Schedule nest;               // stages and what is kept, for BodyPrinter
  std::vector<size_t> points;  // kept axes, outermost first
  std::vector<size_t> folded;  // reduced axes, outermost first
  int64_t block = 256;         // threads of a block
  int64_t lanes = 1;           // of them, for one point
  int64_t width = 1;           // neighbouring elements of one access
  int64_t turns = 0;      // times `width` of a thread in registers; 0: a loop
  int64_t splits = 1;     // blocks for one point
  int64_t part = 0;       // elements of a point for each of them
  bool wide = false;      // places need 64 bits
  int64_t alignment = 1;  // bytes, of the memory of all buffers

  int64_t points_of_block() const { return block / lanes; }
  // The axis that packs lie along; Schedule::kNone where there is none.
  size_t pack_axis() const;
  // Whether a load or store is one of `width` neighbouring elements.
  bool is_packed(const Program& program, Var v) const;
};

// Where `aligned` is false, nothing is asked of the buffers' memory, and no
// access has more than one element.
CudaSchedule cuda_schedule(const Program& program,
                           const CudaDevice& device,
                           bool aligned);

}  // namespace taeda::compiler::loops
