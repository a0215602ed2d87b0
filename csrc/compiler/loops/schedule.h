// How the loops of a program are nested.
#pragma once

#include <taeda/csrc/compiler/loops/program.h>

namespace taeda::compiler::loops {

// Note [Passes]
// Outer loops run over the points of the axes that are kept; they are one range
// that threads share. For each of them passes run over the inner axes. A
// reduction is known after its pass, so what counts on it belongs to the next
// one; a softmax is three passes over a row that stays in the cache. In a pass
// the innermost loop is the one that g++ turns into vector code:
//   rows     it runs along a reduced axis; accumulators are lanes, which are
//            combined at the end
//   columns  it runs along a kept axis, by blocks; an accumulator for each
//            column
//   woven    it runs along a kept axis whose results lie a few elements apart,
//            and what lies between them is an axis of just that size, which is
//            written out in the loop: pixels of a finer grid
// What a later pass needs of an earlier one is computed again where that is
// cheap, and kept in an array beside the row where it is not. Where sizes are
// expressions, those that the trace has seen decide.
struct Schedule {
  static constexpr size_t kNone = ~size_t{0};
  std::vector<size_t> outer;  // axes, outermost first
  std::vector<size_t> inner;  // axes around the vector loop, in a pass
  size_t vector = kNone;      // the axis of the innermost loop; none: one point
  size_t woven = kNone;       // the axis that is written out in it
  int64_t block = 0;          // steps of the vector loop at a time; 0: all
  bool columns = false;       // the vector axis is kept, others are reduced
  int passes = 1;
  // For each variable: whether it is computed inside of the passes' loops, and
  // the first pass that can have it (row values: that comes after it).
  std::vector<bool> full;
  std::vector<int> stage;
  std::vector<bool> kept;  // in an array from the pass that computes it

  SymInt outer_count(const Program& program) const;
  SymInt vector_size(const Program& program) const;
  // Elements of an array that holds a full value of one outer point.
  SymInt array_size(const Program& program) const;
};

// Elements of a vector, and steps whose elements lie in few vectors.
inline constexpr int64_t kVector = 16, kShortStep = 4;

// With `weaves` an axis may be woven.
Schedule schedule(const Program& program, bool weaves = true);
// Whether a load goes along an axis by steps so short that vector code gathers
// it from few vectors: every second element, pixels of three channels.
bool is_short_step(const Instruction& load, size_t axis);
// Additions, roughly, of computing a variable from its operands.
int cost_of(const Program& program, Var v);

}  // namespace taeda::compiler::loops
