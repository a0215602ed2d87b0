// csrc/python's functions in the extension modules beside _C: what they do
// there is done by _C (see lent.h). Not part of libtaeda.
#include <taeda/csrc/python/casters.h>
#include <taeda/csrc/python/lent.h>

namespace taeda::python {

PyTypeObject* tensor_base_type = nullptr;
PyTypeObject* tensor_class = nullptr;
PyTypeObject* parameter_class = nullptr;

namespace {
const Lent* lent = nullptr;
}  // namespace

// The package sets the classes before anything can import such a module.
void borrow_from_native() {
  void* found = PyCapsule_Import(Bridge::kName, /*no_block=*/0);
  if (found == nullptr) throw py::error_already_set();
  lent = static_cast<const Lent*>(static_cast<const Bridge*>(found));
  tensor_base_type = lent->tensor_type;
  tensor_class = *lent->tensor_class;
  parameter_class = *lent->parameter_class;
  // As in _C the kind of an error is its type in Python.
  py::register_local_exception_translator([](std::exception_ptr error) {
    try {
      std::rethrow_exception(error);
    } catch (...) {
      translate_exception();
    }
  });
}

void translate_exception() noexcept { lent->translate(); }
const char* library_name() { return lent->library_name(); }

const TensorBase& unwrap_checked(PyObject* o, const char*) {
  return lent->unwrap(o);
}
PyObject* wrap(TensorBase t) { return lent->wrap(std::move(t)); }
PyObject* wrap_as(TensorBase t, PyTypeObject* type) {
  return lent->wrap_as(std::move(t), type);
}
PyObject* wrap(const Scalar& v) { return lent->wrap_number(v); }
Scalar to_scalar(PyObject* o) { return lent->to_number(o); }
PyObject* wrap(ScalarType t) { return lent->wrap_dtype(t); }
ScalarType to_dtype(PyObject* o) { return lent->to_dtype(o); }
PyObject* new_device(Device d) { return lent->wrap_device(d); }
Device to_device(PyObject* o) { return lent->to_device(o); }

bool is_int_like(PyObject* o) { return lent->is_int_like(o); }
bool is_scalar_like(PyObject* o) { return lent->is_scalar_like(o); }
int64_t to_int(PyObject* o) { return lent->to_int(o); }
double to_double(PyObject* o) { return lent->to_double(o); }
PyObject* layout_object(Layout l) { return lent->layout_object(l); }
PyObject* memory_format_object(MemoryFormat f) {
  return lent->memory_format_object(f);
}
Generator to_generator(PyObject* o) { return lent->to_generator(o); }
PyObject* wrap(const Generator& g) { return lent->wrap_generator(g); }

bool holds_symbol(PyObject* o) { return Py_TYPE(o) == *lent->sym_int_type; }
SymInt to_symbol(PyObject* o) { return lent->to_symbol(o); }
Dims<SymInt> to_symbols(PyObject* o, const char* where) {
  return lent->to_symbols(o, where);
}
PyObject* wrap(const SymInt& v) { return lent->wrap_symbol(v); }
SymbolNodes& symbol_nodes() { return *lent->symbol_nodes; }
IntrusivePtr<autograd::Node> node_of(PyObject* o) { return lent->node_of(o); }

}  // namespace taeda::python
