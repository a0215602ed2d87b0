// Which values of a graph lie with their channels innermost.
#pragma once

#include <taeda/csrc/compiler/graph/graph.h>

#include <span>

namespace taeda::compiler {

// Note [Layouts]
// Convolutions of row-major tensors reorder what they read and write at each
// call, since no processor runs well along single pixels of channels that lie
// far apart. With the channels innermost they take tensors as they are, and so
// does everything that goes by strides. Where several convolutions follow each
// other, what lies between them is therefore laid out that way: convolutions
// get their images converted, every other call passes the layout on if its
// record's rule says that its results lie as its arguments do, and who cannot
// (views, random calls, whose draws follow the layout, operators of users)
// gets a row-major copy. So do the outputs that programs see.
// Calls that hang together by such values are one piece. A piece in which the
// conversions move nearly as much as the reorders that they spare is left as it
// was. So is a convolution whose weights are most of what it reads, unless they
// stay the same from call to call (Note [Kept forms]).
struct LayoutOptions {
  size_t fixed = 0;  // the first outputs, which keep their strides
  // Inputs that come with their channels innermost where the graph was made for
  // row-major ones.
  std::span<const size_t> turned = {};
  bool trains = true;  // weights are written between calls
};
void choose_layouts(Graph& graph, const LayoutOptions& options);

}  // namespace taeda::compiler
