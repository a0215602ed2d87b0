// Tensor elements as Python objects and the way back.
#pragma once

#include <taeda/csrc/python/tensor_type.h>

namespace taeda::python {

// The one element of a tensor; RuntimeError when there are more or fewer.
Scalar item_of(const TensorBase& t);
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

}  // namespace taeda::python
