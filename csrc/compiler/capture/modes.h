// Whether calls are recorded for backward, as graphs and their guards see it.
//
// Note [Modes in graphs]
// A graph is entered under the modes that its entry names. A switch becomes a
// node when a call (or the end) follows under other modes than the one before:
// modes that are entered and left around nothing leave no trace. Objects of
// no_grad, enable_grad and inference_mode remember in C what they will switch
// back to. That is read by leaving them and written by entering them, each time
// between two assignments of the thread's modes.
#pragma once

#include <taeda/csrc/python/tensor_type.h>

namespace taeda::capture {

struct Modes {
  bool grad = true, inference = false, forward = true;
  bool operator==(const Modes&) const = default;
};
Modes current_modes();
void set_modes(const Modes& m);

// What a mode is made from and switches back to: (mode, grad, inference,
// forward).
python::Ref state_of_mode(PyObject* mode);
python::Ref make_mode(PyObject* type, PyObject* state);
// Makes `mode` switch back to what `state` says.
void remember(PyObject* mode, PyObject* state);

// set_modes(grad, inference, forward), for graphs.
PyObject* set_modes_for_python(PyObject*, PyObject* args);

}  // namespace taeda::capture
