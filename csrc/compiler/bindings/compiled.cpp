#include <taeda/csrc/compiler/bindings/compiled.h>
#include <taeda/csrc/compiler/bindings/regions.h>

#include <taeda/aten/core/level.h>
#include <taeda/csrc/autograd/variable.h>
#include <taeda/csrc/compiler/graph/leaves.h>

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

// What the function returned: a tensor, or a tuple or list of tensors, sizes
// and other objects.
struct Shape {
  enum Kind : uint8_t { One, Tuple, List } kind = One;
  std::vector<Ref> others;  // by place; null where there is a tensor
  SizeTable sizes;
  std::vector<int32_t> places;  // in the table, by place; -1 for no size
  bool has_sizes = false;
};
// Of a function of numbers: for all that its guards allow, or for those alone
// with which it was traced.
struct Version {
  IntrusivePtr<CompiledProgram> program;
  Shape shape;
  bool for_all = true;
  DimVector numbers;
  IntArrayRef symbols(const Arguments& given) const {
    return for_all ? IntArrayRef(given.numbers) : IntArrayRef();
  }
  bool fits(const Arguments& given) const {
    bool numbers_fit = for_all || given.numbers == numbers;
    return numbers_fit && program->fits(given.tensors, symbols(given));
  }
};

// Changed with the GIL held alone; a version never changes.
struct State : CompiledSettings {
  Ref function;
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

std::vector<TensorBase> tensors_of(const Ref& found, Shape& shape) {
  std::vector<TensorBase> out;
  auto add = [&](PyObject* o) {
    bool tensor = is_tensor(o);
    out.push_back(tensor ? python::unwrap(o) : TensorBase());
    shape.others.push_back(tensor ? Ref() : Ref::borrow(o));
    std::optional<SymInt> size;
    if (!tensor) size = unwrap_size(o);
    shape.places.push_back(size ? shape.sizes.place(*size) : -1);
    shape.has_sizes = shape.has_sizes || shape.places.back() >= 0;
  };
  if (PyTuple_CheckExact(found.get()) || PyList_CheckExact(found.get())) {
    shape.kind = PyTuple_CheckExact(found.get()) ? Shape::Tuple : Shape::List;
    for (PyObject* o : python::items_of(found.get())) add(o);
  } else {
    add(found.get());
  }
  return out;
}

Ref to_object(const Shape& shape,
              std::vector<TensorBase> results,
              IntArrayRef symbols) {
  SizeNumbers sizes;
  if (shape.has_sizes) shape.sizes.run(symbols, sizes);
  auto make = [&](size_t i) {
    if (int32_t place = shape.places[i]; place >= 0) {
      return PyLong_FromLongLong(sizes[static_cast<size_t>(place)]);
    }
    if (shape.others[i]) return Py_NewRef(shape.others[i].get());
    return bridge().wrap(std::move(results[i]));
  };
  if (shape.kind == Shape::One) return checked(make(0));
  return shape.kind == Shape::Tuple ? python::new_tuple(results.size(), make)
                                    : python::new_list(results.size(), make);
}

std::shared_ptr<const Version> compile(const State& state,
                                       const Arguments& given,
                                       const SymbolicInputs* symbolic) {
  auto version = std::make_shared<Version>();
  std::vector<SymInt> numbers(given.numbers.begin(), given.numbers.end());
  if (symbolic != nullptr) {
    version->shape.sizes = SizeTable(symbolic->symbols);
    numbers = symbolic->symbols;
  } else {
    version->for_all = numbers.empty();
    version->numbers = given.numbers;
  }
  Program program = [&](std::span<const TensorBase> wrappers) {
    Ref args = state.signature.merged(
        state.passes ? wrappers.first(given.passes.own) : wrappers, numbers);
    Ref found =
        checked(PyObject_Call(state.function.get(), args.get(), nullptr));
    return tensors_of(found, version->shape);
  };
  version->program =
      make_intrusive<CompiledProgram>(program,
                                      given.tensors,
                                      state.options,
                                      symbolic,
                                      state.passes ? &given.passes : nullptr);
  return version;
}

// By symbols where the function has numbers; what cannot be traced so is traced
// with these numbers.
std::shared_ptr<const Version> compile(const State& state,
                                       const Arguments& given) {
  if (!state.signature.has_symbols()) return compile(state, given, nullptr);
  try {
    SymbolicInputs symbolic = state.signature.symbols(given.numbers);
    symbolic.inputs.resize(given.tensors.size());
    return compile(state, given, &symbolic);
  } catch (const PythonError&) {
    bool is_error = PyErr_ExceptionMatches(PyExc_Exception) != 0;
    if (!is_error) throw;
    PyErr_Clear();
  } catch (const std::exception&) {
    // The other trace tells what is wrong, if it is not about symbols.
  }
  return compile(state, given, nullptr);
}

// Before a call, and before it is compiled.
void look_at_grads(const State& state, Arguments& given) {
  for (size_t i : state.cleared) autograd::set_grad(given.tensors[i], {});
  if (!state.passes) return;
  given.passes.own = given.tensors.size();
  given.tensors = with_grads(given.tensors, given.passes.holders);
}

// Null where the function is to run as it is.
std::shared_ptr<const Version> version_for(PyObject* self,
                                           const Arguments& given) {
  State& state = state_of(self);
  for (const auto& v : state.versions) {
    if (v->fits(given)) return v;
  }
  if (state.failed) return {};
  try {
    if (state.versions.size() >= kMostVersions) {
      throw std::runtime_error("more than " + std::to_string(kMostVersions) +
                               " kinds of inputs");
    }
    auto made = compile(state, given);
    state.versions.push_back(made);
    if (state.on_made.get() != Py_None) {
      checked(PyObject_CallOneArg(state.on_made.get(), self));
    }
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

PyObject* call_object(PyObject* self,
                      PyObject* const* args,
                      size_t flagged,
                      PyObject* names) {
  Ref alive = Ref::borrow(self);
  return guarded([&]() -> PyObject* {
    State& state = state_of(self);
    size_t count = PyVectorcall_NARGS(flagged);
    std::optional<Arguments> given;
    bool named = names != nullptr && PyTuple_GET_SIZE(names) > 0;
    if (!named) given = state.signature.read(args, count);
    if (given) look_at_grads(state, *given);
    std::shared_ptr<const Version> version;
    if (given && !is_watched()) version = version_for(self, *given);
    if (!version) {
      return PyObject_Vectorcall(state.function.get(), args, count, names);
    }
    std::vector<TensorBase> results;
    {
      python::GilRelease free(true);
      results =
          version->program->call(given->tensors, version->symbols(*given));
    }
    if (state.passes) version->program->give_grads(given->tensors, results);
    return to_object(
               version->shape, std::move(results), version->symbols(*given))
        .release();
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
    const Signature& signature = state_of(self).signature;
    auto given = signature.read(args, static_cast<size_t>(count));
    if (!given || is_watched()) return python::boolean(false);
    look_at_grads(state_of(self), *given);
    return python::boolean(version_for(self, *given) != nullptr);
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

// [[Region]]
PyObject* regions(PyObject* self, PyObject*) {
  return guarded([&] {
    const auto& versions = state_of(self).versions;
    return python::new_list(versions.size(),
                            [&](size_t i) {
                              const CompiledProgram& p = *versions[i]->program;
                              return new_regions(p.forward(), p.backward());
                            })
        .release();
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
     "The kernels of each version, of its forward and its backward graph."},
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

PyObject* new_compiled(PyObject* function, CompiledSettings settings) {
  PyObject* self = compiled_type->tp_alloc(compiled_type, 0);
  if (self == nullptr) return nullptr;
  auto* object = reinterpret_cast<Object*>(self);
  object->call = call_object;
  object->state = new State{
      std::move(settings), Ref::borrow(function), {}, /*failed=*/false};
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
