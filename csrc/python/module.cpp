// PyInit__C: the types first, then the operators.
#include <taeda/aten/iter/output.h>
#include <taeda/csrc/python/arg_parser.h>
#include <taeda/csrc/python/init.h>
#include <taeda/csrc/python/lent.h>
#include <taeda/csrc/python/values.h>

#include <cstring>
#include <map>

namespace taeda::python {

const Function* find_function(std::string_view name) {
  static const auto* const table = [] {
    auto* made = new std::map<std::string_view, const Function*>;
    for (auto* const* shard = function_shards; *shard != nullptr; ++shard) {
      const Function* const* f = (*shard)->functions;
      for (; *f != nullptr; ++f) made->emplace((*f)->name, *f);
    }
    return made;
  }();
  auto found = table->find(name);
  return found == table->end() ? nullptr : found->second;
}

namespace {
constexpr const char* kSpaces[] = {
    "", "nn", "linalg", "special", "fft", "sparse", "nested"};

// A namespace of functions: `_C._nn` and the like.
Ref make_space(PyObject* module, const char* name) {
  std::string attribute =
      name[0] == '\0' ? "_VariableFunctions" : std::string("_") + name;
  std::string full = "taeda._C." + attribute;
  Ref space = checked(PyModule_New(full.c_str()));
  add_object(module, attribute.c_str(), space.get());
  return space;
}

void add_functions(PyObject* space, const char* name) {
  PyObject* dict = PyModule_GetDict(space);
  Ref module =
      new_text(name[0] == '\0' ? "taeda" : str_cat("taeda._C._", name));
  for (auto* const* shard = function_shards; *shard != nullptr; ++shard) {
    PyMethodDef* d = (*shard)->definitions;
    for (size_t i = 0; d[i].ml_name != nullptr; ++i) {
      if (std::strcmp((*shard)->modules[i], name) != 0) continue;
      Ref f = checked(PyCFunction_NewEx(&d[i], nullptr, module.get()));
      check_status(PyDict_SetItemString(dict, d[i].ml_name, f.get()));
    }
  }
}

// Hand-written methods stay where the records have the same name.
void add_methods() {
  PyObject* dict = tensor_base_type->tp_dict;
  for (auto* const* shard = function_shards; *shard != nullptr; ++shard) {
    for (PyMethodDef* d = (*shard)->methods; d->ml_name != nullptr; ++d) {
      Ref name = checked(PyUnicode_InternFromString(d->ml_name));
      if (PyDict_GetItem(dict, name.get()) != nullptr) continue;
      Ref method = checked(PyDescr_NewMethod(tensor_base_type, d));
      check_status(PyDict_SetItem(dict, name.get(), method.get()));
    }
  }
  PyType_Modified(tensor_base_type);
}

PyObject* bind_rest(PyObject* module, PyObject*) {
  return guarded([&] {
    // Apart from _C first: other threads shall see all or nothing.
    Ref fresh = checked(PyModule_New("taeda._C"));
    for (auto* bind : {bind_autograd_engine,
                       bind_torch_function,
                       bind_settings,
                       bind_return_types,
                       bind_autocast,
                       bind_torch_dispatch,
                       bind_symbolic,
                       bind_shared_memory}) {
      bind(fresh.get());
    }
    PyObject* found = PyModule_GetDict(fresh.get());
    check_status(PyDict_Merge(PyModule_GetDict(module), found, 0));
    return none();
  });
}
PyMethodDef functions[] = {
    {"_bind_rest", bind_rest, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

// See lent.h.
void add_bridge(PyObject* module) {
  static const Lent lent{
      {
          .layout = Bridge::kLayout,
          .tensor_type = tensor_base_type,
          .wrap = [](TensorBase t) { return wrap(std::move(t)); },
          .translate = translate_exception,
          .unwrap = [](PyObject* o) -> const TensorBase& {
            return unwrap_checked(o, "argument");
          },
          .wrap_number = [](const Scalar& v) { return wrap(v); },
          .to_number = [](PyObject* o) { return to_scalar(o); },
          .wrap_dtype = [](ScalarType t) { return wrap(t); },
          .to_dtype = to_dtype,
          .wrap_device = new_device,
          .to_device = to_device,
      },
      &tensor_class,
      &parameter_class,
      library_name,
      wrap_as,
      is_int_like,
      is_scalar_like,
      to_int,
      to_double,
      layout_object,
      memory_format_object,
      to_generator,
      wrap,
      &sym_int_type,
      to_symbol,
      to_symbols,
      wrap,
      &symbol_nodes(),
      node_of};
  const Bridge* bridge = &lent;
  Ref capsule = checked(PyCapsule_New(
      const_cast<Bridge*>(bridge), Bridge::kName, /*destructor=*/nullptr));
  add_object(module, "_bridge", capsule.get());
}

// Operators' warnings are Python's, for programs to filter and count.
void warn_in_python(const std::string& message) {
  GilAcquire gil;
  check_status(PyErr_WarnEx(PyExc_UserWarning, message.c_str(), 1));
}

void fill(PyObject* module) {
  check_status(
      PyModule_AddStringConstant(module, "__version__", TAEDA_VERSION));
#define _(name) init_##name(module);
  TAEDA_PARTS(_)
#undef _
  for (const char* name : kSpaces) {
    Ref space = make_space(module, name);
    add_functions(space.get(), name);
  }
  add_methods();
  add_bridge(module);
  warning_handler = warn_in_python;
}

PyModuleDef definition = {PyModuleDef_HEAD_INIT,
                          "taeda._C",
                          "The native part of taeda.",
                          -1,
                          functions,
                          nullptr,
                          nullptr,
                          nullptr,
                          nullptr};
}  // namespace

}  // namespace taeda::python

PyMODINIT_FUNC PyInit__C() {
  using namespace taeda::python;
  Ref module(PyModule_Create(&definition));
  if (!module) return nullptr;
  // Of the thousands of objects that are made here none can be collected.
  bool was_collecting = PyGC_Disable() != 0;
  int status = guarded_status([&] { fill(module.get()); });
  if (was_collecting) PyGC_Enable();
  return status < 0 ? nullptr : module.release();
}
