"""Expressions as postfix words of 16 bits, which aten/expr builds its nodes from.

A word holds the node in its upper four bits and a payload in the lower twelve. A
section begins with a `SECTION` word that says what its expression is for; `END` ends
the list.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Mapping, Sequence

from .errors import CodegenError
from .expr_ast import (
    ACCESS,
    ARITHMETIC,
    BITWISE,
    CAST_KINDS,
    COMPARISONS,
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
from .expr_functions import CONSTANTS, FUNCTIONS

# The order of expr::Word in aten/expr/graph.h.
WORDS = (
    *("end", "name", "integer", "literal", "constant", "unary", "binary"),
    *("compare", "logic", "cond", "call", "cast", "section", "access"),
)
WORD = {name: number << 12 for number, name in enumerate(WORDS)}
# The order of expr::Role.
ROLES = (
    *("forward", "gradient", "init", "map", "combine", "finish", "element"),
    *("choice", "numbers", "step"),
)
UNARY = ("-", "not", "~")
BINARY = ARITHMETIC + BITWISE
LOGIC = ("and", "or")
# Names that are no arguments of the schema, from SPECIAL upwards.
SPECIAL = 0x800
SPECIAL_NAMES = (
    "grad",
    "result",
    "a",
    "b",
    "c",
    "acc",
    "count",
    "axis",
    "position",
    "index",
)
_FUNCTION = {name: number for number, name in enumerate(FUNCTIONS)}
_ACCESS = {name: number for number, name in enumerate(ACCESS)}
_CONSTANT = {name: number for number, name in enumerate(CONSTANTS)}


def slots(arguments: Iterable[str]) -> dict[str, int]:
    """The number of every name: arguments by position, then the special ones."""
    special = {name: SPECIAL + i for i, name in enumerate(SPECIAL_NAMES)}
    return special | {name: i for i, name in enumerate(arguments)}


def section(role: str, kind: str, index: int) -> int:
    """The word before an expression: role, kind of compute type, argument or part."""
    if not 0 <= index < 64:
        raise CodegenError(f"no place for {index} in an expression's section")
    packed = ROLES.index(role) << 8 | KINDS.index(kind) << 6 | index
    return WORD["section"] | packed


def encode(expr: Expr, slot: Callable[[str], int]) -> list[int]:
    """The words of one expression."""
    words: list[int] = []
    for child in expr.children:
        words += encode(child, slot)
    return words + _own(expr, slot)


def _own(expr: Expr, slot: Callable[[str], int]) -> list[int]:
    match expr:
        case Name():
            return [WORD["name"] | slot(expr.name)]
        case Literal():
            return _literal(expr.value)
        case Constant():
            return [WORD["constant"] | _CONSTANT[expr.name]]
        case Unary():
            return [WORD["unary"] | UNARY.index(expr.op)]
        case Binary():
            return [WORD["binary"] | BINARY.index(expr.op)]
        case Compare():
            return [WORD["compare"] | COMPARISONS.index(expr.op)]
        case Logic():
            return [WORD["logic"] | LOGIC.index(expr.op)]
        case Cond():
            return [WORD["cond"]]
        case Call():
            return [WORD["call"] | _FUNCTION[expr.function]]
        case Cast():
            return [WORD["cast"] | CAST_KINDS.index(expr.kind)]
        case Access():
            return [WORD["access"] | _ACCESS[expr.op]]
    raise CodegenError(f"cannot encode {expr!r}")


def _literal(value: bool | int | float | complex) -> list[int]:
    head = WORD["literal"] | KINDS.index(type(value).__name__)
    if isinstance(value, bool):
        return [head, int(value)]
    if isinstance(value, int):
        if -0x800 <= value < 0x800:
            return [WORD["integer"] | value & 0xFFF]
        return [head, *struct.unpack("<4H", struct.pack("<q", value))]
    if isinstance(value, float):
        return [head, *struct.unpack("<4H", struct.pack("<d", value))]
    return [head, *struct.unpack("<8H", struct.pack("<2d", value.real, value.imag))]


def encode_sections(
    sections: Mapping[tuple[str, str, int], Expr], arguments: Iterable[str]
) -> list[int]:
    """The words of expressions by (role, kind, index)."""
    return encode_variants([("", sections)], list(arguments))


def encode_variants(
    variants: Iterable[tuple[str, Mapping[tuple[str, str, int], Expr]]],
    arguments: Sequence[str],
    numbers: Sequence[str] = (),
) -> list[int]:
    """The words of expressions by choice; `numbers` are numbered behind arguments.

    The choice, or the numbers' names, are a section whose words are the text's bytes.
    """
    slot = slots([*arguments, *numbers]).__getitem__
    words = _text("numbers", " ".join(numbers)) if numbers else []
    for choice, sections in variants:
        words += _text("choice", choice) if choice else []
        for key, expr in sections.items():
            words += [section(*key), *encode(expr, slot)]
    return [*words, WORD["end"]]


def _text(role: str, text: str) -> list[int]:
    return [section(role, KINDS[0], 0), *text.encode(), 0]
