#include <taeda/csrc/compiler/bindings/compiled.h>
#include <taeda/csrc/compiler/bindings/regions.h>

#include <taeda/aten/core/level.h>

#include <optional>
#include <stdexcept>
#include <string>

namespace taeda::compiler {

namespace {

using python::checked;
using python::PythonError;
using python::Ref;

// More versions for more kinds of inputs are not made: the function runs as it
// is.
constexpr size_t kMostVersions = 16;

// What the function returned: a tensor, or a tuple or list of tensors and
// other objects.
struct Shape {
  enum Kind : uint8_t { One, Tuple, List } kind = One;
  std::vector<Ref> others;  // by place; null where there is a tensor
};
struct Version {
  IntrusivePtr<CompiledProgram> program;
  Shape shape;
};

// Changed with the GIL held alone; a version never changes.
struct State {
  Ref function, on_failure;
  CompileOptions options;
  std::vector<std::shared_ptr<const Version>> versions;
  bool failed = false;
};

struct Object {
  PyObject_HEAD vectorcallfunc call;
  PyObject* dict;
  State* state;
};
State& state_of(PyObject* o) { return *reinterpret_cast<Object*>(o)->state; }

template <class F>
PyObject* guarded(F&& f) {
  try {
    return f();
  } catch (...) {
    bridge().translate();
    return nullptr;
  }
}

bool is_tensor(PyObject* o) {
  return PyObject_TypeCheck(o, bridge().tensor_type);
}

std::vector<TensorBase> tensors_of(const Ref& found, Shape& shape) {
  std::vector<TensorBase> out;
  auto add = [&](PyObject* o) {
    bool tensor = is_tensor(o);
    out.push_back(tensor ? python::unwrap(o) : TensorBase());
    shape.others.push_back(tensor ? Ref() : Ref::borrow(o));
  };
  if (PyTuple_CheckExact(found.get()) || PyList_CheckExact(found.get())) {
    shape.kind = PyTuple_CheckExact(found.get()) ? Shape::Tuple : Shape::List;
    for (PyObject* o : python::items_of(found.get())) add(o);
  } else {
    add(found.get());
  }
  return out;
}

Ref to_object(const Shape& shape, std::vector<TensorBase> results) {
  auto make = [&](size_t i) {
    if (shape.others[i]) return Py_NewRef(shape.others[i].get());
    return bridge().wrap(std::move(results[i]));
  };
  if (shape.kind == Shape::One) return checked(make(0));
  return shape.kind == Shape::Tuple ? python::new_tuple(results.size(), make)
                                    : python::new_list(results.size(), make);
}

std::shared_ptr<const Version> compile(const State& state,
                                       std::span<const TensorBase> inputs) {
  auto version = std::make_shared<Version>();
  Program program = [&](std::span<const TensorBase> wrappers) {
    Ref args = python::new_tuple(
        wrappers.size(), [&](size_t i) { return bridge().wrap(wrappers[i]); });
    Ref found =
        checked(PyObject_Call(state.function.get(), args.get(), nullptr));
    return tensors_of(found, version->shape);
  };
  version->program =
      make_intrusive<CompiledProgram>(program, inputs, state.options);
  return version;
}

// Null where the function is to run as it is.
std::shared_ptr<const Version> version_for(State& state,
                                           std::span<const TensorBase> inputs) {
  for (const auto& v : state.versions) {
    if (v->program->fits(inputs)) return v;
  }
  if (state.failed) return {};
  try {
    if (state.versions.size() >= kMostVersions) {
      throw std::runtime_error("more than " + std::to_string(kMostVersions) +
                               " kinds of inputs");
    }
    auto made = compile(state, inputs);
    state.versions.push_back(made);
    return made;
  } catch (...) {
    bridge().translate();
  }
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  PyErr_NormalizeException(&type, &value, &trace);
  Ref kept[] = {Ref(type), Ref(value), Ref(trace)};
  if (trace != nullptr) PyException_SetTraceback(value, trace);
  bool error = PyErr_GivenExceptionMatches(type, PyExc_Exception) != 0;
  if (!error) {
    // An interrupt ends the program, not only this graph.
    PyErr_Restore(kept[0].release(), kept[1].release(), kept[2].release());
    throw PythonError();
  }
  // Where it raises, the next call is refused as well.
  checked(PyObject_CallOneArg(state.on_failure.get(), value));
  state.failed = true;
  return {};
}

// Nothing where an argument is no tensor.
std::optional<std::vector<TensorBase>> inputs_of(PyObject* const* args,
                                                 size_t count,
                                                 PyObject* names) {
  if (names != nullptr && PyTuple_GET_SIZE(names) > 0) return std::nullopt;
  std::vector<TensorBase> inputs;
  inputs.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    if (!is_tensor(args[i])) return std::nullopt;
    inputs.push_back(python::unwrap(args[i]));
  }
  return inputs;
}

PyObject* call_object(PyObject* self,
                      PyObject* const* args,
                      size_t flagged,
                      PyObject* names) {
  Ref alive = Ref::borrow(self);
  return guarded([&]() -> PyObject* {
    State& state = state_of(self);
    size_t count = PyVectorcall_NARGS(flagged);
    auto inputs = inputs_of(args, count, names);
    std::shared_ptr<const Version> version;
    if (inputs && !is_watched()) version = version_for(state, *inputs);
    if (!version) {
      return PyObject_Vectorcall(state.function.get(), args, count, names);
    }
    std::vector<TensorBase> results;
    {
      python::GilRelease free(true);
      results = version->program->call(*inputs);
    }
    return to_object(version->shape, std::move(results)).release();
  });
}

void destroy(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  delete reinterpret_cast<Object*>(self)->state;
  Py_CLEAR(reinterpret_cast<Object*>(self)->dict);
  type->tp_free(self);
  Py_DECREF(type);
}

// Compiles for these inputs now; False where the function is to run as it is.
PyObject* prepare(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  return guarded([&] {
    auto inputs = inputs_of(args, static_cast<size_t>(count), nullptr);
    if (!inputs || is_watched()) return python::boolean(false);
    return python::boolean(version_for(state_of(self), *inputs) != nullptr);
  });
}

// [(text of the forward graph, of the backward graph or None)]
PyObject* graphs(PyObject* self, PyObject*) {
  return guarded([&] {
    const State& state = state_of(self);
    return python::new_list(
               state.versions.size(),
               [&](size_t i) {
                 const CompiledProgram& p = *state.versions[i]->program;
                 std::string f = text_of(p.forward());
                 if (p.backward() == nullptr) {
                   return Py_BuildValue("(sO)", f.c_str(), Py_None);
                 }
                 std::string b = text_of(*p.backward());
                 return Py_BuildValue("(ss)", f.c_str(), b.c_str());
               })
        .release();
  });
}

// The kernels of all versions, forward and backward.
PyObject* regions(PyObject* self, PyObject*) {
  return guarded([&] {
    std::vector<const Graph*> graphs;
    for (const auto& version : state_of(self).versions) {
      graphs.push_back(&version->program->forward());
      const Graph* backward = version->program->backward();
      if (backward != nullptr) graphs.push_back(backward);
    }
    return new_regions(graphs);
  });
}

PyMethodDef methods[] = {
    {"prepare",
     reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(prepare)),
     METH_FASTCALL,
     "Compiles for some inputs; False where the function runs as it is."},
    {"graphs",
     graphs,
     METH_NOARGS,
     "Texts of the forward and the backward graph of each version."},
    {"regions",
     regions,
     METH_NOARGS,
     "The kernels of all versions, forward and backward."},
    {nullptr, nullptr, 0, nullptr}};

PyMemberDef members[] = {
    python::offset_member("__vectorcalloffset__", offsetof(Object, call)),
    python::offset_member("__dictoffset__", offsetof(Object, dict)),
    {nullptr, 0, 0, 0, nullptr}};

PyTypeObject* compiled_type = nullptr;  // set once, when the module is loaded

}  // namespace

const python::Bridge& bridge() {
  static const auto* const found = static_cast<const python::Bridge*>(
      PyCapsule_Import(python::Bridge::kName, /*no_block=*/0));
  if (found == nullptr) throw PythonError();
  return *found;
}

PyObject* new_compiled(PyObject* function,
                       PyObject* on_failure,
                       const CompileOptions& options) {
  PyObject* self = compiled_type->tp_alloc(compiled_type, 0);
  if (self == nullptr) return nullptr;
  auto* object = reinterpret_cast<Object*>(self);
  object->call = call_object;
  object->state = new State{Ref::borrow(function),
                            Ref::borrow(on_failure),
                            options,
                            {},
                            /*failed=*/false};
  return self;
}

PyTypeObject* add_compiled_type(PyObject* module) {
  PyType_Slot slots[] = {
      {Py_tp_dealloc, reinterpret_cast<void*>(destroy)},
      {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
      {Py_tp_methods, methods},
      {Py_tp_members, members},
      {0, nullptr}};
  PyType_Spec spec = {"taeda._compiler.Compiled",
                      sizeof(Object),
                      0,
                      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL,
                      slots};
  auto* type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
  compiled_type = type;
  auto* object = reinterpret_cast<PyObject*>(type);
  // For capture: a call that raises may be made again in another way.
  bool made = type != nullptr &&
              PyObject_SetAttrString(object, "repeatable", Py_True) == 0 &&
              PyModule_AddType(module, type) == 0;
  return made ? type : nullptr;
}

}  // namespace taeda::compiler
