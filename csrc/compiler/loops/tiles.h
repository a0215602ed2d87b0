// Loop programs without a compiler: tiles through the loops of the records.
#pragma once

#include <taeda/aten/expr/functions.h>
#include <taeda/aten/iter/copy.h>
#include <taeda/aten/iter/pointwise.h>
#include <taeda/csrc/compiler/loops/schedule.h>

#include <array>
#include <cstddef>
#include <memory>

namespace taeda::compiler::loops {

// Note [Tiles]
// Until the code of a kernel is there, and for good where the machine has no
// compiler, a program without reductions runs by tiles: some hundred elements
// along the vector axis of its schedule. The program is translated once into a
// list of steps; a step computes one tile from others by a loop that the
// library has anyhow, that of the pointwise record which means the same (`add`,
// `exp`, `where`), or by a conversion of copy.h, which also loads and stores.
// So the order of computing and its roundings are the kernel's, what lies
// between the steps stays in the first cache, and no machine code is made.
// Reductions run as calls, whose loops are tuned: as steps they took up to
// five times as long. So does what has many more steps than calls.
struct TileSlot {
  Compute type = Compute::F32;
  bool is_lasting = false;  // filled before the first step
  int64_t at = -1;          // byte of the thread's memory
  Var memory = -1;          // the access whose elements lie as loops want them
};

struct TileStep {
  enum Kind : uint8_t {
    kLoop,     // a record's loop
    kConvert,  // from slot to slot
    kLoad,     // from a buffer, converted from `dtype`
    kStore,    // to a buffer, converted to `dtype`
    kGather,   // elements of a buffer at the places that a slot says
    kIndex,    // the place along an axis
    kEach,     // a function of numbers, element by element
  };
  Kind kind = kLoop;
  int out = -1;
  std::array<int, expr::kMaxArity> in{-1, -1, -1};
  int operands = 0;
  ChunkFn loop = nullptr;
  ConvertFn convert = nullptr;
  const expr::Function* each = nullptr;
  Var var = -1;  // whose place or axis it is
  ScalarType dtype = ScalarType::Undefined;
};

class TileProgram {
 public:
  // Nothing where sizes are expressions, something is reduced, a part has no
  // loop, or there are more steps than `most`.
  static std::unique_ptr<const TileProgram> make(const Program& program,
                                                 size_t most);

  // Points of the outer loops, as a kernel's.
  void run(void* const* buffers, int64_t begin, int64_t end) const;

 private:
  friend class TileBuilder;
  friend class TileRun;

  struct Constant {
    int slot = -1;
    alignas(8) std::array<std::byte, 8> bytes{};
  };

  Program program_;
  Schedule schedule_;
  std::vector<TileSlot> slots_;
  std::vector<Constant> constants_;
  std::vector<TileStep> steps_;
  int64_t memory_ = 0;  // bytes that a thread needs
};

// Elements that a step computes: enough to be worth a call, and few enough
// that the slots of a program lie in the first cache.
inline constexpr int64_t kTile = 512;

}  // namespace taeda::compiler::loops
