// Calls of a graph become regions: kernels that compute several at once.
#pragma once

#include <taeda/csrc/compiler/loops/checked_region.h>

namespace taeda::compiler {

struct FuseOptions {
  bool blocking = false;  // wait until the code is there
  // Whether each call's 16-bit result is rounded as if it were stored.
  bool emulate_precision_casts = false;
  // Where set, each kernel is held to its calls at each run.
  loops::ReportDifference check = nullptr;
};

// Note [Fusion]
// A group of calls becomes a region where one loop nest computes them: their
// dims run together (Note [Axes of a group]), all reductions reduce the same
// axes, no other call stands between them, and each result of the group has
// all axes, or all that are not reduced. Groups grow along values: from
// the calls that make a value to those that read it. A group is worth its code
// where a value inside of it does not go through memory; a call alone stays
// with its kernel. A kernel whose record has a definition by other operators
// takes part by those, where it has neighbours; one whose definition is of
// windows (several views of an operand) does by itself too, since its kernel
// finds the elements of a window one by one.
// What is not fused: complex numbers, devices other
// than the CPU, records without a formula.
void fuse(Graph& graph, const FuseOptions& options = {});

}  // namespace taeda::compiler
