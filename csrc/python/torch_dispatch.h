// __torch_dispatch__: classes of tensors and modes that compute operators below
// autograd, see Note [Python dispatch] in torch_dispatch.cpp.
#pragma once

#include <taeda/aten/core/ivalue.h>
#include <taeda/csrc/python/tensor_type.h>

namespace taeda::python {

// Whether the class computes operators on its tensors itself.
bool has_torch_dispatch(PyTypeObject* type);
// Called for each new class of tensors: one that computes operators itself does
// not override functions as well, unless it says so.
void settle_protocols(PyTypeObject* type);
// As wrap_as, for classes that programs name; the tensor gets into the hands of
// such a class, or out of them.
PyObject* wrap_for(TensorBase t, PyTypeObject* type);

// Runs linear and matmul, which are kernels here for the sake of quick calls,
// as the views and products that Python sees of them; false for all others.
bool run_parts(const OperatorEntry& op, Stack& stack);

}  // namespace taeda::python
