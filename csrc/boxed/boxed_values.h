// Arguments and results of boxed calls as Python objects.
#pragma once

#include <taeda/aten/core/ivalue.h>
#include <taeda/aten/core/op_info.h>
#include <taeda/csrc/python/common.h>

#include <string>
#include <vector>

namespace taeda::python {

// Note [Kinds]
// A type of a schema as a short text: a letter (T Tensor, i int, f float, b
// bool, s str, S Scalar, t dtype, l layout, m memory format, D device, G
// generator), then '?' for optional elements, then '[' for a list of them. None
// always converts to an empty value.
using Kind = std::string;
using Kinds = std::vector<Kind>;

Kind kind_of(const ArgInfo& value);
// TypeError where the object does not fit. Numbers stand for tensors.
IValue to_ivalue(PyObject* o, const Kind& kind);
Ref to_object(const IValue& v, const Kind& kind);
// One result as it is, several as a tuple.
Ref results_to_object(const Stack& stack, const Kinds& kinds);

}  // namespace taeda::python
