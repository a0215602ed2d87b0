// What the hand-written methods of tensors and functions of the module share,
// by the file that defines it.
#pragma once

#include <taeda/csrc/python/common.h>
#include <taeda/csrc/python/tensor_entry.h>
#include <taeda/csrc/python/tensor_type.h>

namespace taeda::python {

// The one element of a tensor; RuntimeError when there are more or fewer.
// What an element is read for: errors under vmap say so.
enum class Reading : uint8_t { Number, Truth };
Scalar item_of(const TensorBase& t, Reading reading = Reading::Number);
// The same as a Python number.
PyObject* item_object(const TensorBase& t);
// Nested lists; a number for a 0-d tensor.
PyObject* list_of(const TensorBase& t);

// What tensor(), as_tensor(), new_tensor() and indexing make of Python data.
struct DataOptions {
  std::optional<ScalarType> dtype;
  std::optional<Device> device;
  bool requires_grad = false;
  bool copy = true;  // as_tensor shares what it can
};
TensorBase tensor_from_data(PyObject* data, const DataOptions& options);
// The dtype that a Python number has as a tensor.
ScalarType inferred_dtype(PyObject* data);
// Writes a number into one element.
void store_number(PyObject* number, ScalarType dtype, void* out);

// NumPy arrays, with NumPy optional; see numpy.cpp.
bool is_numpy_array(PyObject* o);
// Shares memory; TypeError for dtypes that no tensor has.
TensorBase tensor_from_numpy(PyObject* array, bool warn_if_readonly);
PyObject* numpy_from_tensor(const TensorBase& t, PyObject* owner);

// Tensor(...) as old programs write it: sizes, data or another tensor.
PyObject* legacy_new(PyTypeObject* type, PyObject* args, PyObject* kwargs);

PyObject* to_method(const MethodArgs& m);
PyObject* cpu_method(const MethodArgs& m);
PyObject* cuda_method(const MethodArgs& m);
PyObject* new_tensor_method(const MethodArgs& m);
// float(), long(), ...: (*, memory_format=preserve_format).
PyObject* cast_method(const MethodArgs& m, const char* name, ScalarType dtype);
template <FixedName Name, ScalarType Dtype>
PyObject* cast_entry(const MethodArgs& m) {
  return cast_method(m, Name.text, Dtype);
}
// A new handle of the same memory that stays in the graph.
TensorBase alias_with_history(const TensorBase& t);
// The tensor in another dtype or place, recorded where grad mode asks for it.
TensorBase convert(const TensorBase& t,
                   ScalarType dtype,
                   Device device,
                   bool non_blocking,
                   bool copy,
                   MemoryFormat format);

PyObject* get_item(PyObject* self, PyObject* key);
void set_item(PyObject* self, PyObject* key, PyObject* value);
// t[..., i, ...] along one dim.
TensorBase select(const TensorBase& t, int64_t dim, int64_t index);
// Whether views of `t` may be made without the dispatcher.
bool is_plain(const TensorBase& t);

PyObject* numpy_method(const MethodArgs& m);

PyObject* untyped_storage_method(const TensorBase& t);

}  // namespace taeda::python
