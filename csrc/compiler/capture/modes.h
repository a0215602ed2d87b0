// What a thread has switched on, as graphs and their guards see it: whether
// calls are recorded for backward, autocast, the default dtype.
//
// Note [Modes in graphs]
// A graph is entered under the modes that its entry names. A switch becomes a
// node when a call (or the end) follows under other modes than the one before:
// modes that are entered and left around nothing leave no trace. Objects of
// no_grad, enable_grad and inference_mode remember in C what they will switch
// back to. That is read by leaving them and written by entering them, each time
// between two assignments of the thread's modes. Scopes of autocast are Python
// objects; what they switch, and how many are open, is a mode like the others.
#pragma once

#include <taeda/c10/core/local_state.h>
#include <taeda/csrc/autograd/autocast.h>
#include <taeda/csrc/python/tensor_type.h>

namespace taeda::capture {

struct Modes {
  bool grad = true, inference = false, forward = true;
  ScalarType default_dtype = ScalarType::Float;
  Device default_device;  // not to be set while a graph is captured
  int threads = 1;        // likewise
  int nesting = 0;        // open scopes of autocast
  autocast::Settings autocast;
  bool anomaly = false, checks_nan = true;  // likewise

  bool has_same_gradients(const Modes& other) const;
  bool has_same_autocast(const Modes& other) const;
  bool operator==(const Modes& other) const {
    return has_same_gradients(other) && has_same_autocast(other) &&
           default_dtype == other.default_dtype &&
           default_device == other.default_device && threads == other.threads &&
           anomaly == other.anomaly && checks_nan == other.checks_nan;
  }
};
Modes current_modes();
void set_modes(const Modes& m);

// What a mode is made from and switches back to: (mode, grad, inference,
// forward).
python::Ref state_of_mode(PyObject* mode);
python::Ref make_mode(PyObject* type, PyObject* state);
// Makes `mode` switch back to what `state` says.
void remember(PyObject* mode, PyObject* state);

// For graphs: set_modes(grad, inference, forward), and
// set_autocast(enabled, cache_enabled, nesting, dtypes), whose first is a mask
// of devices and whose last a byte for each.
PyObject* set_modes_for_python(PyObject*, PyObject* args);
PyObject* set_autocast_for_python(PyObject*, PyObject* args);
python::Ref arguments_of_autocast(const Modes& m);

}  // namespace taeda::capture
