// Which tangents gradients and saved values have to do with.
#pragma once

#include <taeda/csrc/compiler/graph/graph.h>

namespace taeda::compiler {

// Note [Tangents that do not arrive]
// A backward pass may have gradients for some of a graph's results only. It has
// a graph of its own then (backwards.h), traced by the engine with just these,
// since zeros in the place of the others are not the same: behind a division by
// zero they become NaN, and a hook or a Function's backward sees them. Where
// such a graph would read what was not saved, draws random numbers, is one too
// many, or is first asked for under a Python mode that sees all calls, the
// graph of all tangents computes with zeros. There too an input that none of
// those that arrived leads to has no gradient, and what was saved for others
// alone may have been changed.
using TangentSet = std::vector<bool>;  // by tangent; empty: none

// For each output of a joint graph behind `outputs`: the tangents that it is
// made of. They are the inputs behind `inputs`.
std::vector<TangentSet> causes_of_gradients(const Graph& joint,
                                            size_t inputs,
                                            size_t outputs);
// For each of a backward graph's first `saved` inputs: the tangents that it is
// used together with.
std::vector<TangentSet> readers_of_saved(const Graph& backward, size_t saved);

// Whether one of them has arrived; of none, true.
bool meets(const TangentSet& set, const TangentSet& arrived);

}  // namespace taeda::compiler
