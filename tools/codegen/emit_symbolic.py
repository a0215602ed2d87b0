"""Prints `sym::NAME`: operators whose integers may be symbols, for derivatives.

Per base name with an integer that its schema calls `SymInt` a header
`include/sym/BASE.h`. A call with plain integers is that of `ops::NAME`; with a symbol
among them it is a boxed one, which the kernels of the keys Symbolic and SymbolicGrad
answer.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from .emit_ops import default_count
from .model import Operator, cpp_default, has_symbols, shard_of, symbolic_type
from .writer import Output

SYM_SHARDS = 2


def emit(operators: Iterable[Operator], out: Output) -> None:
    """The headers, and the functions in shards."""
    by_base: dict[str, list[Operator]] = defaultdict(list)
    for op in operators:
        functional = op.form == "functional" and not op.schema.mutable_args
        if functional and op.cpp_name in op.symbolic:
            by_base[op.record.name].append(op)
    shards: list[list[Operator]] = [[] for _ in range(SYM_SHARDS)]
    for base, ops in sorted(by_base.items()):
        out.write(f"include/sym/{base}.h", _header(ops))
        shards[shard_of(base, SYM_SHARDS)] += ops
    for i, ops in enumerate(shards):
        out.write(f"ops/sym_{i}.cpp", _shard(ops))


def _parameters(op: Operator, defaults: int = 0) -> str:
    first = len(op.arguments) - defaults
    return ", ".join(
        f"{symbolic_type(a.type)} {a.name}{_default(a) if i >= first else ''}"
        for i, a in enumerate(op.arguments)
    )


def _default(argument) -> str:
    text = cpp_default(argument)
    if argument.type.base == "SymInt":
        text = text.replace("int64_t", "SymInt")
    return f" = {text}"


def _header(ops: list[Operator]) -> str:
    lines = ["#pragma once", "#include <taeda/aten/core/op_types.h>"]
    lines += ["#include <taeda/c10/symbolic/sym_int.h>", "", "namespace taeda::sym {"]
    lines += ["using Tensor = TensorBase;", "using TensorList = TensorBaseList;"]
    for op in ops:
        parameters = _parameters(op, default_count(op, ops))
        lines.append(f"TAEDA_API {op.result} {op.cpp_name}({parameters});")
    return "\n".join([*lines, "}  // namespace taeda::sym", ""])


def _shard(ops: list[Operator]) -> str:
    bases = sorted({op.record.name for op in ops})
    lines = ["#include <taeda/aten/iter/symbolic_call.h>"]
    for folder in ("ops", "sym"):
        lines += [f"#include <taeda/gen/{folder}/{base}.h>" for base in bases]
    lines += ["", "namespace taeda::sym {"]
    for op in ops:
        lines += _function(op)
    return "\n".join([*lines, "}  // namespace taeda::sym", ""])


def _function(op: Operator) -> list[str]:
    lines = [f"{op.result} {op.cpp_name}({_parameters(op)}) {{"]
    symbols = [a.name for a in op.arguments if a.type.base == "SymInt"]
    given = ", ".join(
        f"integers({a.name})" if a.name in symbols else a.name for a in op.arguments
    )
    call = f"ops::{op.cpp_name}({given})"
    if not has_symbols(op.schema):
        return [*lines, f"  return {call};", "}"]
    test = " && ".join(f"plain({name})" for name in symbols)
    boxed = ", ".join([f"ops::entries::{op.ident}", op.names()])
    return [
        *lines,
        f"  if ({test}) return {call};",
        f"  return boxed_call<{op.result}>({boxed});",
        "}",
    ]
