// Calls that change nothing.
#pragma once

#include <taeda/csrc/compiler/graph/graph.h>

namespace taeda::compiler::loops {

// Takes away pointwise calls whose formula is, with their numbers put in, their
// only tensor: a product with 1, as derivatives have them. What results of the
// graph show stays, since they are tensors of their own.
void drop_identities(Graph& graph);

}  // namespace taeda::compiler::loops
