// Python objects of graph nodes: what `tensor.grad_fn` gives.
#include <taeda/csrc/python/autograd_common.h>
#include <taeda/csrc/python/init.h>
#include <taeda/csrc/python/tensor_entry.h>

#include <map>

namespace taeda::python {

namespace {
// Made when asked for; the node knows its object as long as that lives.
struct PyNode {
  PyObject_HEAD IntrusivePtr<Node> node;
  PyObject* dict;
  PyObject* weakrefs;
};

PyTypeObject* node_base_type = nullptr;

PyNode* as_node(PyObject* o) { return reinterpret_cast<PyNode*>(o); }

// Of a node that nobody else holds: what it keeps is the object's.
Node* lone_node(PyObject* o) {
  Node* node = as_node(o)->node.get();
  return node != nullptr && node->use_count() == 1 ? node : nullptr;
}

int node_traverse(PyObject* o, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(o));
  Py_VISIT(as_node(o)->dict);
  Node* node = lone_node(o);
  return node == nullptr ? 0 : visit_node_hooks(*node, visit, arg);
}

int node_clear(PyObject* o) {
  Py_CLEAR(as_node(o)->dict);
  if (Node* node = lone_node(o)) clear_node_hooks(*node);
  return 0;
}

void node_dealloc(PyObject* o) {
  PyObject_GC_UnTrack(o);
  PyNode* self = as_node(o);
  if (self->weakrefs != nullptr) PyObject_ClearWeakRefs(o);
  if (self->node && self->node->python_object == o) {
    self->node->python_object = nullptr;
  }
  autograd::release_node(std::move(self->node));
  self->node.~IntrusivePtr<Node>();
  Py_CLEAR(self->dict);
  PyTypeObject* type = Py_TYPE(o);
  type->tp_free(o);
  Py_DECREF(type);
}

PyObject* node_repr(PyObject* o) {
  std::string_view name = Py_TYPE(o)->tp_name;
  name.remove_prefix(name.rfind('.') + 1);
  return PyUnicode_FromFormat("<%s object at %p>", name.data(), o);
}

PyObject* node_call(PyObject* o, PyObject* args, PyObject* kwargs) {
  return guarded([&]() -> PyObject* {
    IntrusivePtr<Node> node = node_of(o);
    ArrayRef<PyObject*> given = items_of(args);
    if (given.size() != node->num_outputs()) {
      raise(PyExc_TypeError,
            "{}: expected {} arguments, got {} instead",
            node->name(),
            node->num_outputs(),
            given.size());
    }
    Tensors grads;
    for (PyObject* grad : given) {
      grads.push_back(optional_tensor(grad, "grad_fn()"));
    }
    Tensors out;
    {
      GilRelease no_gil(true);
      out = node->apply(std::move(grads));
    }
    if (out.size() == 1) return wrap(std::move(out[0]));
    return tensors_tuple(out).release();
  });
}

PyMemberDef node_members[] = {
    offset_member("__dictoffset__", offsetof(PyNode, dict)),
    offset_member("__weaklistoffset__", offsetof(PyNode, weakrefs)),
    {nullptr, 0, 0, 0, nullptr},
};

// One Python type per kind of node, made when the first one is shown.
PyTypeObject* type_for(const std::string& name) {
  static auto* types = new std::map<std::string, PyTypeObject*>;
  auto [found, is_new] = types->try_emplace(name, nullptr);
  if (!is_new) return found->second;
  // The spec's name must stay. PyTorch's programs print it without a module.
  bool own = std::string_view(library_name()) == "taeda";
  auto* full =
      new std::string((own ? "taeda.autograd.graph." : "builtins.") + name);
  found->second = add_type(nullptr,
                           full->c_str(),
                           sizeof(PyNode),
                           {},
                           Py_TPFLAGS_DISALLOW_INSTANTIATION,
                           node_base_type);
  if (!own) found->second->tp_name = full->c_str() + sizeof("builtins");
  return found->second;
}

IntrusivePtr<Node> live_node(PyObject* o) {
  IntrusivePtr<Node> node = node_of(o);
  if (!node) {
    raise(PyExc_RuntimeError,
          "Attribute is invalid: the autograd Node of this ctx does not exist "
          "(yet, or any more)");
  }
  return node;
}

// An attribute, or a method without arguments, of the node itself.
template <auto Body>
PyObject* of_node(PyObject* o, auto*) {
  return guarded([&] { return to_object(Body(*live_node(o))); });
}

PyObject* next_functions(const Node& node) {
  const auto& edges = node.next_edges();
  return new_tuple(edges.size(),
                   [&](size_t i) {
                     Ref next(wrap_node(edges[i].node));
                     return Py_BuildValue(
                         "(OI)", next.get(), edges[i].input_nr);
                   })
      .release();
}

PyObject* metadata(PyObject* o, void*) {
  return guarded([&] {
    std::shared_ptr<void>& kept = live_node(o)->extra().metadata;
    if (!kept) {
      kept = std::make_shared<Held>(checked(PyDict_New()).get());
    }
    return Py_NewRef(static_cast<Held*>(kept.get())->get());
  });
}

PyObject* input_metadata(const Node& node) {
  Ref space = imported("types", "SimpleNamespace");
  Ref out = checked(PyList_New(0));
  for (size_t i = 0; i < node.num_outputs(); ++i) {
    const autograd::OutputInfo& info = node.output(i);
    if (!info.known) continue;
    Ref item = checked(PyObject_CallNoArgs(space.get()));
    Ref shape(new_size(info.sizes)), dtype(wrap(info.dtype));
    check_status(PyObject_SetAttrString(item.get(), "shape", shape.get()));
    check_status(PyObject_SetAttrString(item.get(), "dtype", dtype.get()));
    check_status(PyList_Append(out.get(), item.get()));
  }
  return out.release();
}

PyObject* name(const Node& node) { return new_text(node.name()).release(); }
uint64_t sequence_nr(const Node& node) { return node.sequence_nr(); }
}  // namespace

PyObject* wrap_node(const IntrusivePtr<Node>& node) {
  if (!node) return none();
  if (PyObject* context = context_of_node(node.get())) {
    return Py_NewRef(context);
  }
  if (node->python_object != nullptr) {
    return Py_NewRef(static_cast<PyObject*>(node->python_object));
  }
  PyTypeObject* type = type_for(node->name());
  PyObject* o = checked(type->tp_alloc(type, 0)).release();
  new (&as_node(o)->node) IntrusivePtr<Node>(node);
  node->python_object = o;
  return o;
}

IntrusivePtr<Node> node_of(PyObject* o) {
  if (PyObject_TypeCheck(o, node_base_type)) return as_node(o)->node;
  if (PyObject_TypeCheck(o, function_type)) return node_of_context(o);
  return {};
}

TensorBase optional_tensor(PyObject* o, const char* what) {
  if (o == Py_None) return {};
  return unwrap_checked(o, what);
}

Ref as_tuple(PyObject* o) {
  if (PyTuple_Check(o)) return Ref::borrow(o);
  if (PyList_Check(o)) return checked(PyList_AsTuple(o));
  return checked(PyTuple_Pack(1, o));
}

Ref tensors_tuple(const Tensors& tensors) {
  return new_tuple(tensors.size(), [&](size_t i) { return wrap(tensors[i]); });
}

PyGetSetDef node_getset[] = {
    {"next_functions", of_node<next_functions>, nullptr, nullptr, nullptr},
    {"metadata", metadata, nullptr, nullptr, nullptr},
    {"_input_metadata", of_node<input_metadata>, nullptr, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

PyMethodDef node_methods[] = {
    {"name", of_node<name>, METH_NOARGS, "The name of the node."},
    {"_sequence_nr", of_node<sequence_nr>, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

void init_autograd_nodes(PyObject* module) {
  node_base_type =
      add_type(module,
               "taeda._C._NodeBase",
               sizeof(PyNode),
               {slot(Py_tp_dealloc, node_dealloc),
                slot(Py_tp_traverse, node_traverse),
                slot(Py_tp_clear, node_clear),
                slot(Py_tp_repr, node_repr),
                slot(Py_tp_call, node_call),
                {Py_tp_members, node_members},
                {Py_tp_getset, node_getset},
                {Py_tp_methods, node_methods}},
               Py_TPFLAGS_BASETYPE | Py_TPFLAGS_DISALLOW_INSTANTIATION |
                   Py_TPFLAGS_HAVE_GC);
}

}  // namespace taeda::python
