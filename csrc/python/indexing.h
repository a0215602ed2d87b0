// tensor[key] and tensor[key] = value. See Note [Indexing].
#pragma once

#include <taeda/csrc/python/tensor_type.h>

namespace taeda::python {

PyObject* get_item(PyObject* self, PyObject* key);
void set_item(PyObject* self, PyObject* key, PyObject* value);
// t[..., i, ...] along one dim.
TensorBase select(const TensorBase& t, int64_t dim, int64_t index);
// Whether views of `t` may be made without the dispatcher.
bool is_plain(const TensorBase& t);

}  // namespace taeda::python
