"""Prints the user's C++ header: class Tensor with methods, operators as functions."""

from __future__ import annotations

from collections.abc import Iterable

from .emit_ops import default_count
from .model import Operator, cpp_default, cpp_type
from .writer import Output

# Methods that are no operators; tensor_members.h and autograd.h of csrc/api/include
# define those that have no body here.
_BY_HAND = """\
  // Elements in memory; RuntimeError when T is not the dtype's C++ type.
  template <class T>
  const T* const_data_ptr() const;
  template <class T>
  T* mutable_data_ptr() const;
  template <class T>
  T* data_ptr() const { return mutable_data_ptr<T>(); }
  void* data_ptr() const { return mutable_raw_data(); }
  template <class T, size_t N>
  TensorAccessor<T, N> accessor() const;
  template <class T>
  T item() const { return ops::item(*this).template to<T>(); }
  front::Device device() const { return TensorBase::device(); }
  TensorOptions options() const;
  int64_t ndimension() const { return dim(); }
  size_t element_size() const { return itemsize(); }
  Tensor operator[](int64_t index) const;
  Tensor operator[](const TensorBase& index) const;
  void backward(const TensorBase& gradient = {},
                bool retain_graph = false,
                bool create_graph = false) const;
  Tensor grad() const;
  const Tensor& set_requires_grad(bool on) const;
  const Tensor& requires_grad_(bool on = true) const;"""

# What a function gives that was called with TensorOptions; autograd.h defines it.
_OPTIONS_RESULT = """\
Tensor made_with(const TensorOptions& options, Tensor made);"""

# The arguments that TensorOptions stands for, and what it gives for each.
_OPTIONS = {
    "dtype": "dtype_opt",
    "layout": "layout_opt",
    "device": "device_opt",
    "pin_memory": "pinned_memory_opt",
}


def emit(operators: Iterable[Operator], out: Output) -> None:
    """`include/tensor.h`; only programs that embed Taeda include it."""
    ops = [
        op for op in operators if op.form != "out" or len(op.schema.mutable_args) == 1
    ]
    overloads: dict[str, list[Operator]] = {}
    for op in ops:
        overloads.setdefault(op.record.name, []).append(op)
    lines = ["#pragma once", "#include <taeda/tensor_options.h>"]
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
            lines += _with_options(op, method=True)
    lines.append("};")
    lines += _OPTIONS_RESULT.splitlines()
    for op in ops:
        lines += _function(op, overloads[op.record.name])
        lines += _with_options(op, method=False)
    out.write("include/tensor.h", "\n".join([*lines, "}  // namespace taeda", ""]))


def _has_self(op: Operator) -> bool:
    first = op.arguments[:1]
    return bool(first) and first[0].name == "self" and first[0].type.is_tensor


def _internal(text: str) -> str:
    """Names of the library as what they stand for in the front end."""
    for old, new in (
        ("const Tensor&", "const TensorBase&"),
        ("TensorList", "TensorBaseList"),
        ("std::optional<ArrayRef<int64_t>>", "OptionalIntArrayRef"),
    ):
        text = text.replace(old, new)
    return text


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


def _with_options(op: Operator, *, method: bool) -> list[str]:
    """The overload that takes TensorOptions in place of dtype, layout and so on."""
    names = [a.name for a in op.arguments]
    wanted = list(_OPTIONS)
    start = names.index("dtype") if "dtype" in names else 0
    if names[start : start + 4] != wanted or op.result != "Tensor":
        return []
    skip = 1 if method else 0
    before = [f"{_internal(cpp_type(a.type))} {a.name}" for a in op.arguments[:start]]
    after = [
        f"{_internal(cpp_type(a.type))} {a.name} = {_internal(cpp_default(a))}"
        for a in op.arguments[start + 4 :]
    ]
    head = ", ".join([*before[skip:], "const TensorOptions& options", *after])
    values = [f"options.{get}()" for get in _OPTIONS.values()]
    passed = ["*this" if method else names[0]] if start else []
    passed += [*names[1:start], *values, *names[start + 4 :]]
    call = f"ops::{op.cpp_name}({', '.join(passed)})"
    if method:
        return [f"  Tensor {op.cpp_name}({head}) const {{ return {call}; }}"]
    result = f"return made_with(options, {call});"
    return [f"inline Tensor {op.cpp_name}({head}) {{ {result} }}"]


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
