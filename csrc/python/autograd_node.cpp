// Python objects of graph nodes: what `tensor.grad_fn` gives.
#include <taeda/csrc/autograd/accumulate_grad.h>
#include <taeda/csrc/python/autograd_common.h>
#include <taeda/csrc/python/dtype.h>
#include <taeda/csrc/python/size.h>

#include <structmember.h>
#include <cstddef>
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

void node_dealloc(PyObject* o) {
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
    Tensors grads;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args); ++i) {
      grads.push_back(optional_tensor(PyTuple_GET_ITEM(args, i), "grad_fn()"));
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
    {"__dictoffset__", T_PYSSIZET, offsetof(PyNode, dict), READONLY, nullptr},
    {"__weaklistoffset__",
     T_PYSSIZET,
     offsetof(PyNode, weakrefs),
     READONLY,
     nullptr},
    {nullptr, 0, 0, 0, nullptr},
};

// One Python type per kind of node, made when the first one is shown.
PyTypeObject* type_for(const std::string& name) {
  static auto* types = new std::map<std::string, PyTypeObject*>;
  auto [found, is_new] = types->try_emplace(name, nullptr);
  if (!is_new) return found->second;
  // The spec's name must stay.
  auto* full = new std::string("taeda.autograd.graph." + name);
  PyType_Slot slots[] = {{0, nullptr}};
  PyType_Spec spec = {full->c_str(),
                      sizeof(PyNode),
                      0,
                      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                      slots};
  Ref bases = checked(PyTuple_Pack(1, node_base_type));
  Ref type = checked(PyType_FromSpecWithBases(&spec, bases.get()));
  found->second = reinterpret_cast<PyTypeObject*>(type.release());
  return found->second;
}
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
  Ref out = checked(PyTuple_New(static_cast<Py_ssize_t>(tensors.size())));
  for (size_t i = 0; i < tensors.size(); ++i) {
    PyObject* item = wrap(tensors[i]);
    if (item == nullptr) throw PythonError();
    PyTuple_SET_ITEM(out.get(), static_cast<Py_ssize_t>(i), item);
  }
  return out;
}

namespace {
IntrusivePtr<Node> live_node(PyObject* o) {
  IntrusivePtr<Node> node = node_of(o);
  if (!node) {
    raise(PyExc_RuntimeError,
          "Attribute is invalid: the autograd Node of this ctx does not exist "
          "(yet, or any more)");
  }
  return node;
}

PyObject* next_functions(PyObject* o, void*) {
  return guarded([&] {
    IntrusivePtr<Node> node = live_node(o);
    const auto& edges = node->next_edges();
    Ref out = checked(PyTuple_New(static_cast<Py_ssize_t>(edges.size())));
    for (size_t i = 0; i < edges.size(); ++i) {
      Ref next(wrap_node(edges[i].node));
      PyObject* pair = Py_BuildValue("(OI)", next.get(), edges[i].input_nr);
      if (pair == nullptr) throw PythonError();
      PyTuple_SET_ITEM(out.get(), static_cast<Py_ssize_t>(i), pair);
    }
    return out.release();
  });
}

PyObject* variable(PyObject* o, void*) {
  return guarded([&]() -> PyObject* {
    IntrusivePtr<Node> node = live_node(o);
    if (auto* leaf = dynamic_cast<autograd::AccumulateGrad*>(node.get())) {
      return wrap(leaf->variable());
    }
    PyErr_Format(PyExc_AttributeError,
                 "'%s' object has no attribute 'variable'",
                 node->name().c_str());
    return nullptr;
  });
}

PyObject* metadata(PyObject* o, void*) {
  return guarded([&] {
    Ref key = new_text("_metadata");
    PyObject** dict = _PyObject_GetDictPtr(o);
    if (*dict == nullptr) *dict = checked(PyDict_New()).release();
    PyObject* found = PyDict_GetItemWithError(*dict, key.get());
    if (found != nullptr) return Py_NewRef(found);
    Ref made = checked(PyDict_New());
    check_status(PyDict_SetItem(*dict, key.get(), made.get()));
    return made.release();
  });
}

PyObject* input_metadata(PyObject* o, void*) {
  return guarded([&] {
    IntrusivePtr<Node> node = live_node(o);
    Ref types = checked(PyImport_ImportModule("types"));
    Ref space = checked(PyObject_GetAttrString(types.get(), "SimpleNamespace"));
    Ref out = checked(PyList_New(0));
    for (size_t i = 0; i < node->num_outputs(); ++i) {
      const autograd::OutputInfo& info = node->output(i);
      if (!info.known) continue;
      Ref item = checked(PyObject_CallNoArgs(space.get()));
      Ref shape(new_size(info.sizes)), dtype(wrap(info.dtype));
      check_status(PyObject_SetAttrString(item.get(), "shape", shape.get()));
      check_status(PyObject_SetAttrString(item.get(), "dtype", dtype.get()));
      check_status(PyList_Append(out.get(), item.get()));
    }
    return out.release();
  });
}

PyObject* name(PyObject* o, PyObject*) {
  return guarded([&] { return new_text(live_node(o)->name()).release(); });
}
PyObject* sequence_nr(PyObject* o, PyObject*) {
  return guarded(
      [&] { return PyLong_FromUnsignedLongLong(live_node(o)->sequence_nr()); });
}
}  // namespace

PyGetSetDef node_getset[] = {
    {"next_functions", next_functions, nullptr, nullptr, nullptr},
    {"metadata", metadata, nullptr, nullptr, nullptr},
    {"_input_metadata", input_metadata, nullptr, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

PyMethodDef node_methods[] = {
    {"name", name, METH_NOARGS, "The name of the node."},
    {"_sequence_nr", sequence_nr, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

void init_autograd_nodes(PyObject* module) {
  static PyGetSetDef leaf_getset[] = {
      {"variable", variable, nullptr, nullptr, nullptr},
      {nullptr, nullptr, nullptr, nullptr, nullptr},
  };
  PyType_Slot slots[] = {
      {Py_tp_dealloc, reinterpret_cast<void*>(node_dealloc)},
      {Py_tp_repr, reinterpret_cast<void*>(node_repr)},
      {Py_tp_call, reinterpret_cast<void*>(node_call)},
      {Py_tp_members, node_members},
      {Py_tp_getset, node_getset},
      {Py_tp_methods, node_methods},
      {0, nullptr},
  };
  PyType_Spec spec = {"taeda._C._NodeBase",
                      sizeof(PyNode),
                      0,
                      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE |
                          Py_TPFLAGS_DISALLOW_INSTANTIATION,
                      slots};
  node_base_type = add_type(module, spec);
  Ref getter = checked(PyDescr_NewGetSet(node_base_type, leaf_getset));
  check_status(
      PyDict_SetItemString(node_base_type->tp_dict, "variable", getter.get()));
}

}  // namespace taeda::python
