// A boxed call in the form in which __torch_dispatch__ gets it.
#pragma once

#include <taeda/aten/core/ivalue.h>
#include <taeda/aten/core/op_info.h>
#include <taeda/csrc/python/common.h>

#include <span>
#include <vector>

namespace taeda::python {

// The overload's object, and the arguments without those that equal their
// defaults at the end of the positional ones and wherever among the others.
struct PythonCall {
  PythonCall(const OperatorEntry& op, std::span<const IValue> values);

  Ref function, args, kwargs;
};

// Puts what a handler in Python returned for a call on the stack, whose end is
// where the arguments were; of what the operator writes, the arguments given.
void push_results(const OperatorEntry& op,
                  PyObject* out,
                  std::vector<IValue> given,
                  Stack& stack);

}  // namespace taeda::python
