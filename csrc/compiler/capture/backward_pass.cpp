// `tensor.backward()` as a call of the graph.
//
// Note [Passes in graphs]
// A backend that takes passes (Note [Passes inside] of the graph compiler)
// gets `backward` as the call that it is; stand-ins get their gradients from
// the pass over stand-ins. It is taken where the graph holds all that the pass
// comes to: no input is the result of calls before this function, and no leaf
// has hooks. Behind it the graph ends at what only runs call by call (steps of
// optimizers, numbers from tensors), which would take the pass along; a graph
// that the backend leaves all the same is captured again, to end at the pass.
#include <taeda/aten/core/level.h>
#include <taeda/csrc/autograd/accumulate_grad.h>
#include <taeda/csrc/compiler/capture/pieces.h>

namespace taeda::capture {

namespace {

bool is_true(PyObject* kwargs, const char* name) {
  PyObject* value = kwargs ? PyDict_GetItemString(kwargs, name) : nullptr;
  return value != nullptr && value != Py_None && value != Py_False;
}

const char* obstacle(const Capture& c) {
  if (levels().size() != c.levels_before) return "backward inside a transform";
  if (autograd::anomaly_mode().enabled) return "backward in anomaly mode";
  for (const auto& [inner, outer] : c.places_of_tensors) {
    if (!is_tensor(outer.first.get())) continue;
    const TensorBase& t = python::unwrap(outer.first.get());
    if (!t.requires_grad()) continue;
    if (!autograd::is_leaf(t)) {
      return "backward where inputs are results of calls";
    }
    if (!autograd::is_plain_leaf(t)) return "backward where leaves have hooks";
  }
  return nullptr;
}

}  // namespace

// False where the graph has to end before it.
bool Capture::begin_pass(PyObject* kwargs) {
  if (!takes_passes || open_pieces > 0) return false;
  if (is_true(kwargs, "create_graph"))
    break_graph("backward with create_graph");
  if (const char* reason = obstacle(*this)) break_graph(reason);
  return true;
}

void Capture::end_pass() {
  entry.has_pass = entry.mutates = true;
  for (const auto& [inner, outer] : places_of_tensors) {
    if (!is_tensor(inner)) continue;
    const TensorBase& t = python::unwrap(inner);
    if (t.requires_grad() && autograd::grad_of(t).defined()) {
      written_grads.insert(inner);
    }
  }
}

void Capture::refuse_after_pass(const char* what) const {
  if (!entry.has_pass) return;
  break_graph(std::string(what) + " after backward, which runs by itself");
}

}  // namespace taeda::capture
