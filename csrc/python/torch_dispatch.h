// __torch_dispatch__: classes of tensors that compute operators below autograd;
// how is csrc/boxed's, see Note [Python dispatch] there.
#pragma once

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

}  // namespace taeda::python
