// What the bindings of autograd share. See csrc/autograd.
#pragma once

#include <taeda/csrc/autograd/engine.h>
#include <taeda/csrc/autograd/graph.h>
#include <taeda/csrc/autograd/saved_variable.h>
#include <taeda/csrc/python/tensor_type.h>

namespace taeda::python {

using autograd::Edge;
using autograd::Node;
using autograd::Tensors;

// A Python object held by C++ that may be freed without the GIL.
class Held {
 public:
  explicit Held(PyObject* borrowed) : object_(Py_NewRef(borrowed)) {}
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;
  ~Held() { reset(); }
  void reset() {
    if (object_ == nullptr || !Py_IsInitialized()) return;
    GilAcquire gil;
    Py_CLEAR(object_);
  }
  PyObject* get() const { return object_; }

 private:
  PyObject* object_;
};

// Nodes ------------------------------------------------------------------

// A new reference to the node's Python object; None for a null node. For nodes
// of Python functions that is their ctx.
PyObject* wrap_node(const IntrusivePtr<Node>& node);
// The node of a Python object, null if the object is none.
IntrusivePtr<Node> node_of(PyObject* object);
// Attributes and methods that node objects and ctx objects have in common.
extern PyGetSetDef node_getset[];
extern PyMethodDef node_methods[];

// Custom functions -------------------------------------------------------

extern PyTypeObject* function_type;
// The node that a ctx belongs to, null before and after its life.
IntrusivePtr<Node> node_of_context(PyObject* context);
// The ctx of a node of a Python function; null (borrowed) for other nodes.
PyObject* context_of_node(Node* node);

// The dicts of hooks that a node holds, and those that a tensor or its node, if
// that is the tensor's alone, holds: for Python's collector, since a hook may
// refer to its node or tensor.
int visit_node_hooks(const Node& node, visitproc visit, void* arg);
void clear_node_hooks(Node& node);
int visit_hooks(const TensorBase& t, visitproc visit, void* arg);
void clear_hooks(const TensorBase& t);

// A tuple of tensors, None for undefined ones.
Ref tensors_tuple(const Tensors& tensors);
// None, a tensor, or an error naming `what`.
TensorBase optional_tensor(PyObject* o, const char* what);
// A tuple or list as a tuple; anything else as a tuple of one.
Ref as_tuple(PyObject* o);

// The dict of the hooks that Python has for a node: a new reference.
PyObject* node_hooks(PyObject* node, bool before);
// Hooks on saved tensors of this thread from now on.
void push_saved_hooks(PyObject* pack, PyObject* unpack);

}  // namespace taeda::python
