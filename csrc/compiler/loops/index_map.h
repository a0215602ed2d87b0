// Index maps (records of family `map`) as loads at places linear in loop axes.
#pragma once

#include <taeda/aten/expr/graph.h>
#include <taeda/csrc/compiler/graph/graph.h>
#include <taeda/csrc/compiler/loops/linear.h>

namespace taeda::compiler::loops {

// Note [Index maps]
// The formula of a map says which element of which tensor a result's element
// is, by integers that it works out of the element's own index. With the call's
// arguments known these are linear in the axes of the result: a quotient or a
// remainder parts an axis, so that `at(-1) // 2` is the outer one of two. What
// is not linear then (a remainder that turns around, a clamped index) is no map
// of loops, and the call stays. A test of integers that the axes leave open
// becomes a condition of the element; `inside(...)` bounds of the load.

// An element of a tensor, by its index along each dim.
struct MapRead {
  ValueId value = kNoValue;
  std::vector<Linear> dims;
  // What stands for elements that the tensor does not have; then `dims` may
  // lie outside of it.
  std::optional<expr::Literal> fill;
};

struct MapTest {
  expr::CompareOp op = expr::CompareOp::Eq;
  Linear left;  // compared with 0
};

struct IndexMap {
  // Over names: r0, r1, ... are reads, c0, ... tests, x0, ... integers.
  expr::Id formula = 0;
  std::vector<MapRead> reads;
  std::vector<MapTest> tests;
  std::vector<Linear> integers;
};

// The map of a call, of whose result `spaces` has the axes; parts them where
// the formula does. Nothing where it is not one of loops.
std::optional<IndexMap> index_map(const Graph& graph,
                                  const Node& node,
                                  expr::Graph& expressions,
                                  Spaces& spaces);

}  // namespace taeda::compiler::loops
