// Loops, copies and fills for the device of a program.
#pragma once

#include <taeda/aten/iter/launch.h>

namespace taeda {

// Note [Devices of programs]. Copies are the program's `_copy_from`, fills its
// `fill_.Scalar` where it has one; what plans a loop without being called
// through the dispatcher is computed by the CPU's loops on copies.
const Launchers& program_launchers();

}  // namespace taeda
