// A boxed call in the form in which __torch_dispatch__ gets it.
#pragma once

#include <taeda/aten/core/ivalue.h>
#include <taeda/aten/core/op_info.h>
#include <taeda/csrc/python/common.h>

#include <span>
#include <vector>

namespace taeda::python {

// What is set aside while Python, below these keys, computes a call.
inline constexpr DispatchKeySet kAbovePython{
    DispatchKey::Functionalize, DispatchKey::Autograd, DispatchKey::Autocast};

// The overload as which Python sees a call.
const OperatorEntry& seen_as(const OperatorEntry& op);

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

// A result of a view operator is a view for autograd, whoever made it. `args`
// are the call's arguments.
void join_view(const OperatorEntry& op, size_t index, IValue& v, IValue* args);

}  // namespace taeda::python
