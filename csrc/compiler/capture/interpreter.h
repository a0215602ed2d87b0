// Which interpreter this is compiled for, and what is asked of its inside.
#pragma once

#include <taeda/csrc/compiler/capture/capture.h>

namespace taeda::capture {

inline constexpr bool kPython312 = PY_VERSION_HEX >= 0x030C0000;  // or newer
inline constexpr bool kPython313 = PY_VERSION_HEX >= 0x030D0000;

// Adds the frame's line to the traceback of the error that is set.
void add_traceback(const Frame& f);
// (callable, arguments) that make a generator again which has not begun; null
// where it has.
Ref call_of_generator(PyObject* generator);

}  // namespace taeda::capture
