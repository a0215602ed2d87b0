"""Prints the user's C++ header: class Tensor with methods, operators as functions."""

from __future__ import annotations

from collections.abc import Iterable

from .emit_ops import default_count
from .model import Operator, cpp_default, cpp_type
from .writer import Output

# Methods that are no operators; csrc/api/include/autograd.h defines the last ones.
_BY_HAND = """\
  template <class T>
  T* data_ptr() const { return mutable_data<T>(); }
  template <class T>
  T item() const { return ops::item(*this).template to<T>(); }
  void backward(const TensorBase& gradient = {},
                bool retain_graph = false,
                bool create_graph = false) const;
  Tensor grad() const;
  const Tensor& set_requires_grad(bool on) const;
  const Tensor& requires_grad_(bool on = true) const;"""


def emit(operators: Iterable[Operator], out: Output) -> None:
    """`include/tensor.h`; only programs that embed Taeda include it."""
    ops = [
        op for op in operators if op.form != "out" or len(op.schema.mutable_args) == 1
    ]
    overloads: dict[str, list[Operator]] = {}
    for op in ops:
        overloads.setdefault(op.record.name, []).append(op)
    lines = ["#pragma once"]
    lines += [
        f"#include <taeda/gen/ops/{base}.h>"
        for base in sorted({op.record.name for op in ops})
    ]
    lines += ["", "namespace taeda {", "class Tensor;"]
    lines += ["class Tensor : public TensorBase {", " public:"]
    lines += ["  Tensor() = default;", "  using TensorBase::TensorBase;"]
    lines += ["  Tensor(TensorBase base) : TensorBase(std::move(base)) {}"]
    lines += _BY_HAND.splitlines()
    for op in ops:
        if "method" in op.overload.variants and op.form != "out" and _has_self(op):
            lines += _method(op, overloads[op.record.name])
    lines.append("};")
    for op in ops:
        lines += _function(op, overloads[op.record.name])
    out.write("include/tensor.h", "\n".join([*lines, "}  // namespace taeda", ""]))


def _has_self(op: Operator) -> bool:
    first = op.arguments[:1]
    return bool(first) and first[0].name == "self" and first[0].type.is_tensor


def _internal(text: str) -> str:
    """The internal alias Tensor as what it stands for."""
    return text.replace("const Tensor&", "const TensorBase&").replace(
        "TensorList", "TensorBaseList"
    )


def _parameters(op: Operator, skip: int, ops: list[Operator]) -> str:
    trailing = default_count(op, ops)
    parts = []
    for i, a in enumerate(op.arguments):
        text = f"{_internal(cpp_type(a.type))} {a.name}"
        if i >= len(op.arguments) - trailing:
            text += f" = {_internal(cpp_default(a))}"
        parts.append(text)
    return ", ".join(parts[skip:])


def _method(op: Operator, ops: list[Operator]) -> list[str]:
    names = ", ".join(["*this", *(a.name for a in op.arguments[1:])])
    head = f"{op.cpp_name}({_parameters(op, 1, ops)}) const"
    call = f"ops::{op.cpp_name}({names})"
    if op.form == "inplace" or op.result == "void":
        return [f"  const Tensor& {head} {{ {call}; return *this; }}"]
    return [f"  {op.result} {head} {{ {_return(op, call)} }}"]


def _function(op: Operator, ops: list[Operator]) -> list[str]:
    if op.schema.mutable_args and op.form == "functional":
        return []
    if op.cpp_name == "complex":  # the class template; the function is ops::complex
        return []
    names = ", ".join(a.name for a in op.arguments)
    head = f"{op.cpp_name}({_parameters(op, 0, ops)})"
    call = f"ops::{op.cpp_name}({names})"
    if op.result == "void":
        return [f"inline void {head} {{ {call}; }}"]
    return [f"inline {op.result} {head} {{ {_return(op, call)} }}"]


def _return(op: Operator, call: str) -> str:
    """The result, whose tensors are of the derived class in its lists too."""
    tensors = "std::vector<Tensor>"
    if tensors not in op.result:
        return f"return {call};"
    if op.result == tensors:
        return f"auto v = {call}; return {{v.begin(), v.end()}};"
    kinds = op.result.removeprefix("std::tuple<").removesuffix(">").split(", ")
    names = [f"r{i}" for i in range(len(kinds))]
    parts = ", ".join(
        f"{tensors}({name}.begin(), {name}.end())" if kind == tensors else name
        for name, kind in zip(names, kinds, strict=True)
    )
    return f"auto [{', '.join(names)}] = {call}; return {{{parts}}};"
