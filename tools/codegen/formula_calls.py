"""What the C++ text of a derivative's formula calls, and whether that exists.

A formula may call operators (`ops::`), functions that the `formulas*.h` headers of
`csrc/autograd` declare, and functions on numbers (`scalar_math::`).
"""

from __future__ import annotations

import functools
import re
from pathlib import Path

from .model import Operator

_CALL = re.compile(r"(?<![\w:.>])(\w+)\(")
_OPS_CALL = re.compile(r"\b(?:ops|sym)::(\w+)\(")
_SCALAR_CALL = re.compile(r"scalar_math::(\w+)\(")
_KEYWORDS = {"if", "for", "while", "return", "sizeof", "static_cast"}
_KNOWN_TYPES = {
    *("Scalar", "Tensor", "IntArrayRef", "DimVector", "OptionalTensor", "ScalarType"),
    *("TensorGeometry", "Device", "SymInt", "SymIntArrayRef"),
}
_GENERATED = {"any_complex", "no_complex_derivative", "where_used"}


def over_symbols(op: Operator, text: str) -> str:
    """Operators that take sizes are called by the functions that keep symbols."""

    def call(match: re.Match[str]) -> str:
        space = "sym" if match[1] in op.symbolic else "ops"
        return f"{space}::{match[1]}("

    return _OPS_CALL.sub(call, text)


def missing_function(op: Operator, text: str) -> str:
    """Names a function in `text` that neither records nor formulas.h have."""
    for name in _OPS_CALL.findall(text):
        if op.known_base(name) is None:
            return f"operator '{name}'"
    for name in _SCALAR_CALL.findall(text):
        if name not in scalar_functions():
            return f"scalar_math::{name}"
    for name in _CALL.findall(text):
        if name in _KEYWORDS or name in _KNOWN_TYPES or name in _GENERATED:
            continue
        if name not in formula_functions():
            return f"formula '{name}'"
    return ""


def used_bases(op: Operator, text: str) -> set[str]:
    """Base names of the operators that `text` calls."""
    found = {op.known_base(name) for name in _OPS_CALL.findall(text)}
    return {base for base in found if base is not None}


_FOLDER = Path(__file__).absolute().parents[2] / "csrc" / "autograd"


@functools.cache
def formula_headers() -> tuple[str, ...]:
    """Headers that formulas may use the functions of."""
    return tuple(sorted(path.name for path in _FOLDER.glob("formulas*.h")))


@functools.cache
def formula_functions() -> dict[str, str]:
    """Functions that the formulas*.h headers declare, with their headers."""
    found: dict[str, str] = {}
    for path in sorted(_FOLDER.glob("formulas*.h")):
        for name in re.findall(r"\b(\w+)\(", path.read_text(encoding="utf-8")):
            found.setdefault(name, path.name)
    return found


def used_headers(text: str) -> set[str]:
    """Headers of the formulas that `text` calls."""
    known = formula_functions()
    return {known[name] for name in _CALL.findall(text) if name in known}


@functools.cache
def scalar_functions() -> frozenset[str]:
    """Functions that scalar_math.h declares."""
    text = (_FOLDER / "scalar_math.h").read_text(encoding="utf-8")
    return frozenset(re.findall(r"\b(\w+)\(", text))
