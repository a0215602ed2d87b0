// Which results are computed right into the inputs that they are written to.
#pragma once

#include <taeda/csrc/compiler/graph/graph.h>

namespace taeda::compiler {

// What an input holds after the call.
struct Overwrite {
  ValueId input = kNoValue, output = kNoValue;
};

// Note [Writes in place]
// A result that the program writes to an input needs no memory of its own, and
// no copy, where a region makes it and nothing else would notice:
// - the region reads the input, if at all, at the place that it writes to
//   (Region::may_overwrite);
// - nothing that runs after the region reads the input or a view of it;
// - the result is not handed out or saved for the backward pass besides;
// - no call follows, only regions and views: where a call raises, inputs are
//   as they were. What does not depend on such a region is put before it.
// Gives for each value the input whose memory it takes, or kNoValue.
std::vector<ValueId> overwrite_inputs(Graph& graph,
                                      std::span<const Overwrite> writes);

}  // namespace taeda::compiler
