"""Kinds of expressions: bool < int < float < complex."""

from __future__ import annotations

from collections.abc import Mapping

from . import expr_functions as functions
from .errors import CodegenError
from .expr_ast import (
    BITWISE,
    KINDS,
    Access,
    Binary,
    Call,
    Cast,
    Compare,
    Cond,
    Constant,
    Expr,
    Literal,
    Logic,
    Name,
    Unary,
)
from .expr_functions import FUNCTIONS


def rank(kind: str) -> int:
    return KINDS.index(kind)


def widest(*kinds: str) -> str:
    return max(kinds, key=rank)


def argument_kind(call: Call, kinds: list[str]) -> str:
    """The kind that all arguments of a call are converted to."""
    common = widest(*kinds)
    rule = FUNCTIONS[call.function].result
    float_in = rule in (functions.FLOAT, functions.REAL_FLOAT)
    return widest(common, "float") if float_in else common


def check(expr: Expr, env: Mapping[str, str], compute: str = "float") -> str:
    """The kind of `expr`; `env` gives the kinds of variables, `compute` that of T.

    Raises CodegenError with the column of the offending part.
    """
    if isinstance(expr, Literal):
        return expr.kind
    if isinstance(expr, Constant):
        limit = functions.CONSTANTS[expr.name] is None
        return compute if limit and compute != "complex" else "float"
    if isinstance(expr, Name):
        expr.require(expr.name in env, f"unknown name {expr.name!r}")
        return env[expr.name]
    kinds = [check(child, env, compute) for child in expr.children]
    if isinstance(expr, Access):
        if expr.op in ("read", "flat", "entry", "along"):
            return kinds[0]
        return "bool" if expr.op in ("names", "missing", "inside") else "int"
    if isinstance(expr, Call):
        return _call_kind(expr, kinds)
    if isinstance(expr, Cast):
        kind = compute if expr.kind == "T" else expr.kind
        if kinds[0] == "complex":
            message = "a complex value is cast by real(x) or abs(x)"
            expr.require(kind in ("complex", "bool"), message)
        return kind
    return _operator_kind(expr, kinds)


def _operator_kind(expr: Expr, kinds: list[str]) -> str:
    common = widest(*kinds)
    if isinstance(expr, Cond):
        return widest(kinds[1], kinds[2])
    if isinstance(expr, Logic):
        return "bool"
    if isinstance(expr, Compare):
        ordered = expr.op not in ("==", "!=")
        expr.require(
            not (ordered and common == "complex"), f"complex has no order ({expr.op})"
        )
        return "bool"
    if isinstance(expr, Binary):
        if expr.op in BITWISE:
            expr.require(rank(common) <= rank("int"), f"{expr.op} needs bool or int")
            return common if expr.op in ("&", "|", "^") else "int"
        return widest(common, "float" if expr.op == "/" else "int")
    assert isinstance(expr, Unary)
    if expr.op == "not":
        return "bool"
    if expr.op == "~":
        expr.require(rank(common) <= rank("int"), "~ needs bool or int")
        return common
    return widest(common, "int")


def _call_kind(call: Call, kinds: list[str]) -> str:
    function = FUNCTIONS[call.function]
    common = argument_kind(call, kinds)
    if common == "complex" and not function.complex_ok:
        raise CodegenError(
            f"{call.function} is not defined for complex arguments",
            column=call.column if call.column >= 0 else None,
        )
    if function.result == functions.BOOL:
        return "bool"
    if function.result == functions.REAL_FLOAT:
        return "float"
    if function.result == functions.REAL and common == "complex":
        return "float"
    return common
