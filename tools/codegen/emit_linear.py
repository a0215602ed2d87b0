"""Prints the operators that are linear in an argument (`linear:`), for forward mode."""

from __future__ import annotations

from collections.abc import Iterable

from .model import Operator
from .writer import Output


def emit(operators: Iterable[Operator], out: Output) -> None:
    """One header with a row for each functional form."""
    rows = [
        f'    {{"{op.schema.name}", {_arguments(op)}u}},'
        for op in operators
        if op.form == "functional" and op.overload.linear and not op.schema.mutable_args
    ]
    lines = [
        "// Operators whose tangent along an argument is the operator itself.",
        "#pragma once",
        "",
        "#include <cstdint>",
        "#include <string_view>",
        "",
        "namespace taeda {",
        "struct LinearOperator {",
        "  std::string_view name;",
        "  uint32_t arguments;  // bit i: linear in argument i",
        "};",
        "inline constexpr LinearOperator kLinearOperators[] = {",
        *sorted(rows),
        "};",
        "}  // namespace taeda",
        "",
    ]
    out.write("include/linear.h", "\n".join(lines))


def _arguments(op: Operator) -> int:
    names = [a.name for a in op.functional.arguments]
    return sum(1 << names.index(name) for name in op.overload.linear)
