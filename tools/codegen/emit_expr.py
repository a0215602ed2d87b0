"""Prints the table of functions of aten/expr from expr_functions.py."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from .emit_kernels import all_kernels, any_argument
from .expr import Call, Expr, walk
from .expr_code import encode, slots
from .expr_cpp import INTEGER_DECIDED, INTEGER_IDENTITY
from .expr_functions import BOOL, FLOAT, FUNCTIONS, REAL, REAL_FLOAT, SAME, Function
from .expr_parse import parse
from .model import Operator
from .record_types import Pointwise, Reduction
from .reduction import reduction_kernels
from .writer import Output

_RULES = {
    FLOAT: "Float",
    SAME: "Same",
    REAL: "Real",
    REAL_FLOAT: "RealFloat",
    BOOL: "Bool",
}
_ARGUMENTS = ("a", "b", "c")
# (field, C++ type, kind of the records' expressions)
_EVALUATORS = (
    ("int64_t", "int"),
    ("double", "float"),
    ("complex<double>", "complex"),
)


def emit(operators: Iterable[Operator], out: Output) -> None:
    """One file: the functions, their derivatives as words, their values."""
    used = _used_kinds(operators)
    arrays: list[str] = []
    rows = [_row(function, used, arrays) for function in FUNCTIONS.values()]
    lines = [
        "#include <taeda/aten/expr/functions.h>",
        "#include <taeda/aten/math/complex_math.h>",
        "#include <taeda/aten/math/math.h>",
        "",
        "namespace taeda::expr {",
        "namespace {",
        *arrays,
        "}  // namespace",
        "const Function kFunctions[] = {",
        *rows,
        "};",
        f"const int kNumFunctions = {len(rows)};",
        "}  // namespace taeda::expr",
        "",
    ]
    out.write("expr/functions.cpp", "\n".join(lines))


def expressions(op: Operator) -> Iterator[tuple[str, Expr]]:
    """Every expression that an operator's kernels are printed from, with its kind."""
    if isinstance(op.overload.body, Pointwise):
        for kernel in all_kernels(op):
            yield from kernel.exprs.items()
    elif isinstance(op.overload.body, Reduction):
        for reduction in reduction_kernels(op.record, op.overload):
            for part in (reduction.init, reduction.map, reduction.combine):
                yield from part.items()
            yield from reduction.finish.items()


def _used_kinds(operators: Iterable[Operator]) -> set[tuple[str, str]]:
    return {
        (node.function, kind)
        for op in operators
        for kind, expr in expressions(op)
        for node in walk(expr)
        if isinstance(node, Call)
    }


def _row(function: Function, used: set[tuple[str, str]], arrays: list[str]) -> str:
    partials = (function.partials, function.complex_partials, function.conj_partials)
    groups = [
        _partials(f"{kind}_{function.name}", texts or (), arrays)
        for kind, texts in zip(("p", "z", "j"), partials, strict=True)
    ]
    cpp = "nullptr" if function.cpp is None else json.dumps(function.cpp)
    fields = [
        json.dumps(function.name),
        json.dumps(function.op),
        cpp,
        str(function.arity),
        f"ResultRule::{_RULES[function.result]}",
        str(function.complex_ok).lower(),
        str(function.complex_partials is not None).lower(),
        str(function.shared).lower(),
        *groups,
        *(_evaluator(function, cpp_type, kind, used) for cpp_type, kind in _EVALUATORS),
    ]
    return "  {" + ", ".join(fields) + "},"


def _partials(name: str, texts: Iterable[str | None], arrays: list[str]) -> str:
    names = []
    for i, text in enumerate(texts):
        if text is None:
            names.append("nullptr")
            continue
        words = encode(parse(text, _ARGUMENTS), slots(()).__getitem__)
        body = ", ".join(map(str, [*words, 0]))
        arrays.append(f"constexpr uint16_t {name}_{i}[] = {{{body}}};")
        names.append(f"{name}_{i}")
    return "{" + ", ".join(names) + "}"


def _evaluator(
    function: Function, cpp_type: str, kind: str, used: set[tuple[str, str]]
) -> str:
    """A lambda over the arguments; null where no record could need it."""
    if not _takes(function, kind, used):
        return "nullptr"
    args = [f"a[{i}]" for i in range(function.arity)]
    text = function.cpp or f"{{math}}{function.name}({', '.join(args)})"
    call = text.format(*args, t=cpp_type, math="math::")
    if kind == "float":
        call = any_argument(call)
    return f"[](const {cpp_type}* a) -> {cpp_type} {{ return {cpp_type}({call}); }}"


def _takes(function: Function, kind: str, used: set[tuple[str, str]]) -> bool:
    # What the evaluator answers without a call.
    if kind != "complex" and function.name in ("conj", "real", "imag"):
        return False
    if kind == "int" and function.name in (*INTEGER_IDENTITY, *INTEGER_DECIDED):
        return False
    # A complex expression may call it with real numbers.
    if kind == "complex" and not function.complex_ok:
        return False
    if (function.name, kind) in used:
        return True
    kinds = {k for name, k in used if name == function.name}
    if kind == "float":
        return kinds != {"int"}
    return kind == "complex" and kinds != {"int"}
