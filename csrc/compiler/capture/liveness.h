// Which local variables matter where a part ends.
#pragma once

#include <taeda/csrc/compiler/capture/capture.h>

namespace taeda::capture {

// Note [Live variables]
// A variable is live where some way from there reads it before it writes it.
// Others are not made again behind a break, or each tensor that a program no
// longer needs would be a result of the graph: it would be kept in memory, and
// backward would get to it. Where the end of an object can be seen (by its
// __del__, or by a weak reference) it is kept, as the interpreter keeps it.
// Code that may ask for its variables by other means than their instructions
// has them all.

// By slot, for the frame as it stands.
std::vector<bool> live_slots(const Frame& f);

// Whether the frames have nothing to do any more but to return what they have:
// no call, operator or jump is left that a graph could begin with.
bool only_returns(const Frames& frames);

}  // namespace taeda::capture
