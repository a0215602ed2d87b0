// Passes that keep what a graph computes.
#pragma once

#include <taeda/csrc/compiler/graph/graph.h>

#include <span>

namespace taeda::compiler {

// Whether a call draws numbers: it is neither left out nor made once for two,
// so that later draws are those of the program.
bool is_random(const Node& node);
// Takes away nodes whose results nobody reads. True where there were some.
bool remove_dead(Graph& graph);
// Equal calls of equal values are made once, but those that give the program's
// `results`: it may write to them, and what the backward pass reads must not
// change with that.
void merge_equal(Graph& graph, std::span<const ValueId> results);
// Numbers the makers of values again after nodes were taken away or added.
void renumber(Graph& graph);
// A node at the end of the graph that copies a value; gives the copy.
ValueId append_copy(Graph& graph, ValueId value);

}  // namespace taeda::compiler
