// Indexing of tensors whose sizes are symbols.
#pragma once

#include <taeda/aten/core/tensor_base.h>
#include <taeda/csrc/python/symbolic.h>

namespace taeda::python {

// self[key] as views that keep the symbols; nothing where the key has more than
// numbers, slices, None and `...`.
std::optional<TensorBase> symbolic_item(const TensorBase& self, PyObject* key);

}  // namespace taeda::python
