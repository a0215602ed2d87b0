// What nodes of the graph keep, as attributes of their Python objects:
// `grad_fn._saved_self`, and `_raw_saved_self` for hooks on it.
#include <taeda/csrc/autograd/accumulate_grad.h>
#include <taeda/csrc/autograd/fields.h>
#include <taeda/csrc/autograd/node_names.h>
#include <taeda/csrc/boxed/module.h>
#include <taeda/csrc/python/lent.h>

namespace taeda::python {

namespace {
using autograd::Field;
using autograd::Node;
using autograd::SavedList;
using autograd::SavedVariable;
using NodeRef = IntrusivePtr<Node>;

py::object owned(PyObject* o) { return py::reinterpret_steal<py::object>(o); }

// Values as Python has them; what has no form there is None.
struct Shown {
  const NodeRef& node;

  py::object operator()(const SavedVariable& v) const {
    Tensor t = v.unpack(node);
    return t.defined() ? owned(wrap(std::move(t))) : py::none();
  }
  py::object operator()(const SavedList& list) const { return items(list); }
  py::object operator()(const SymInt& v) const { return owned(wrap(v)); }
  py::object operator()(const Dims<SymInt>& list) const { return items(list); }
  py::object operator()(const DimVector& list) const { return items(list); }
  py::object operator()(const Scalar& v) const { return owned(wrap(v)); }
  py::object operator()(ScalarType t) const { return owned(wrap(t)); }
  py::object operator()(Device d) const { return owned(new_device(d)); }
  py::object operator()(const autograd::TensorGeometry&) const {
    return py::none();
  }
  template <class T>
  py::object operator()(const std::vector<T>& list) const {
    return items(list);
  }
  template <class T>
  py::object operator()(const std::optional<T>& v) const {
    return v ? (*this)(*v) : py::none();
  }
  template <class T>
    requires std::is_arithmetic_v<T> || std::is_same_v<T, std::string>
  py::object operator()(const T& v) const {
    return py::cast(v);
  }

 private:
  template <class List>
  py::tuple items(const List& list) const {
    py::tuple out(list.size());
    for (size_t i = 0; i < list.size(); ++i) out[i] = (*this)(list[i]);
    return out;
  }
};

// Hooks of one saved tensor, in Python.
struct SavedHooks final : autograd::SavedTensorHooks {
  SavedHooks(py::object to, py::object from)
      : pack_with(std::move(to)), unpack_with(std::move(from)) {}
  struct Packed final : autograd::PackedTensor {
    Packed(py::object kept, py::object from)
        : value(std::move(kept)), unpack_with(std::move(from)) {}
    ~Packed() override {
      GilAcquire gil;
      value = unpack_with = py::object();
    }
    Tensor unpack() override {
      GilAcquire gil;
      py::object out = unpack_with(value);
      if (!is_tensor(out.ptr())) {
        raise(PyExc_TypeError,
              "Output of saved tensor unpack_hook expected to be a Tensor but "
              "got result of type {}",
              type_name_of(out.ptr()));
      }
      return unwrap(out.ptr());
    }
    py::object value, unpack_with;
  };
  std::unique_ptr<autograd::PackedTensor> pack(const Tensor& t) override {
    return std::make_unique<Packed>(pack_with(owned(wrap(t))), unpack_with);
  }
  py::object pack_with, unpack_with;
};

// `_raw_saved_x`: the place where a node keeps a tensor.
struct SavedTensor {
  NodeRef node;
  SavedVariable* place;
  void register_hooks(py::function pack, py::function unpack) {
    SavedHooks hooks(std::move(pack), std::move(unpack));
    place->register_hooks(hooks);
  }
};

struct Raw {
  const NodeRef& node;
  py::object operator()(SavedVariable& v) const {
    return py::cast(SavedTensor{node, &v});
  }
  py::object operator()(SavedList& list) const {
    py::tuple out(list.size());
    for (size_t i = 0; i < list.size(); ++i) out[i] = (*this)(list[i]);
    return out;
  }
  template <class T>
  py::object operator()(const T&) const {
    return {};
  }
};

// Each name with the field of that name, until use() says that it is done.
template <class Use>
void each_field(Node& node, Use&& use) {
  autograd::NodeFields fields;
  if (!node.list_fields(fields)) return;
  const char* name = autograd::names_of_fields(node);
  for (const Field& field : fields.list()) {
    if (name == nullptr || *name == '\0') return;
    if (use(std::string_view(name), field)) return;
    name += std::string_view(name).size() + 1;
  }
}

// Null where the node has no such attribute.
py::object node_value(py::handle object, std::string_view name) {
  NodeRef node = node_of(object.ptr());
  if (!node) return {};
  if (name == "variable") {
    auto* leaf = dynamic_cast<autograd::AccumulateGrad*>(node.get());
    return leaf ? owned(wrap(leaf->variable())) : py::object();
  }
  constexpr std::string_view kRaw = "_raw_saved_", kSaved = "_saved_";
  const bool raw = name.starts_with(kRaw);
  if (!raw && !name.starts_with(kSaved)) return {};
  name.remove_prefix(raw ? kRaw.size() : kSaved.size());
  py::object found;
  each_field(*node, [&](std::string_view field_name, const Field& field) {
    if (field_name != name) return false;
    std::visit(
        [&](auto* value) {
          found = raw ? Raw{node}(*value) : Shown{node}(*value);
        },
        field);
    return true;
  });
  return found;
}

std::vector<std::string> node_names(py::handle object) {
  std::vector<std::string> names;
  NodeRef node = node_of(object.ptr());
  if (!node) return names;
  each_field(*node, [&](std::string_view name, const Field& field) {
    names.push_back("_saved_" + std::string(name));
    if (std::holds_alternative<SavedVariable*>(field) ||
        std::holds_alternative<SavedList*>(field)) {
      names.push_back("_raw" + names.back());
    }
    return false;
  });
  return names;
}
}  // namespace

void bind_node_values(py::module_ m) {
  py::class_<SavedTensor>(m, "SavedTensor", "A tensor that a node keeps.")
      .def("register_hooks",
           &SavedTensor::register_hooks,
           "Packs the tensor by pack(tensor) now, and unpacks it by "
           "unpack(packed).");
  m.def("_node_value", [](py::object node, const std::string& name) {
    py::object found = node_value(node, name);
    if (!found) {
      std::string kind = Py_TYPE(node.ptr())->tp_name;
      throw py::attribute_error("'" + kind.substr(kind.rfind('.') + 1) +
                                "' object has no attribute '" + name + "'");
    }
    return found;
  });
  m.def("_node_names", node_names);
}

}  // namespace taeda::python
