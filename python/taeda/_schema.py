"""Operator schemas at run time: names, types and defaults of arguments.

The grammar is that of `torch.library`: `f(Tensor x, *, float a=1.0) -> Tensor`. Only
what a call needs is kept; alias annotations are recognised and remembered as `written`.
"""

from __future__ import annotations

import re

# Letters of the native side (csrc/boxed/boxed_values.h, Note [Kinds]).
_LETTERS = {
    "Tensor": "T",
    "int": "i",
    "SymInt": "i",
    "float": "f",
    "bool": "b",
    "str": "s",
    "Scalar": "S",
    "ScalarType": "t",
    "Layout": "l",
    "MemoryFormat": "m",
    "Device": "D",
    "Generator": "G",
}
_LENGTH = re.compile(r"\[(\d+)\]")
_NAMES = {"None": None, "True": True, "False": False, "Mean": 1, "Sum": 2}


class Mismatch(RuntimeError):
    """The arguments of a call do not fit the schema; another overload may."""


class AliasInfo:
    """The memory that a value shares, as names of sets, and whether it is written."""

    __slots__ = ("after_set", "before_set", "is_write")

    def __init__(self, text: str) -> None:
        before, arrow, after = text.partition("->")
        self.is_write = "!" in before
        self.before_set = _names_of_sets(before)
        self.after_set = _names_of_sets(after) if arrow else self.before_set


class Result:
    """One result: name or None, type text, alias info or None."""

    __slots__ = ("alias_info", "name", "type")

    def __init__(self, text: str) -> None:
        self.type, self.alias_info, self.name = _parts(text)


class Argument(Result):
    """A parameter: also native kind, default, keyword-only, written."""

    __slots__ = ("default", "has_default", "kind", "kwarg_only")

    def __init__(self, text: str, kwarg_only: bool) -> None:
        text, equals, default = text.partition("=")
        super().__init__(text)
        self.kind = _kind(self.type)
        self.has_default = bool(equals)
        self.default = _literal(default.strip()) if equals else None
        self.kwarg_only = kwarg_only

    @property
    def written(self) -> bool:
        """Whether a call changes it."""
        return self.alias_info is not None and self.alias_info.is_write

    @property
    def default_value(self):
        """What it is where a call leaves it out; None without a default.

        One number that stands for a list of a known length (`int[2] x=0`) is that list.
        """
        length = _LENGTH.search(self.type)
        if length and isinstance(self.default, (int, float)):
            return [self.default] * int(length[1])
        return self.default

    def has_default_value(self) -> bool:
        """Whether a call may leave it out."""
        return self.has_default

    @property
    def is_out(self) -> bool:
        """Whether it is the `out` of an operator."""
        return self.kwarg_only and self.written


class Schema:
    """A parsed schema; `str()` gives the text back.

    Attributes: name ("aten::add" where the namespace is given), overload_name,
    arguments, returns, is_mutable (some argument is written).
    """

    def __init__(self, text: str, namespace: str = "") -> None:
        self.text = text
        name, rest = text.split("(", 1)
        self.name, _, self.overload_name = name.strip().partition(".")
        if namespace and "::" not in self.name:
            self.name = f"{namespace}::{self.name}"
        arguments, returns = _split_arrow(rest)
        self.arguments = []
        kwarg_only = False
        for part in _split_commas(arguments):
            if part == "*":
                kwarg_only = True
            else:
                self.arguments.append(Argument(part, kwarg_only))
        inner = returns.strip()
        if inner.startswith("(") and inner.endswith(")"):
            inner = inner[1:-1]
        self.returns = [Result(part) for part in _split_commas(inner)]
        self.is_mutable = any(a.written for a in self.arguments)
        self.kinds = tuple(a.kind for a in self.arguments)
        self.return_kinds = tuple(_kind(r.type) for r in self.returns)

    def __str__(self) -> str:
        space = self.name.rpartition("::")[0]
        prefix = f"{space}::" if space and not self.text.startswith(space) else ""
        return prefix + self.text

    __repr__ = __str__

    def bind(self, qualname: str, args: tuple, kwargs: dict) -> tuple:
        """All arguments in order; Mismatch where the call does not fit."""
        positional = [a for a in self.arguments if not a.kwarg_only]
        if len(args) > len(positional):
            raise Mismatch(
                f"{qualname}(): takes {len(positional)} positional arguments but "
                f"{len(args)} were given. Declaration: {self.text}"
            )
        values = list(args)
        left = dict(kwargs)
        for argument in self.arguments[len(args) :]:
            if argument.name in left:
                values.append(left.pop(argument.name))
            elif argument.has_default:
                values.append(argument.default)
            else:
                raise Mismatch(
                    f"{qualname}() is missing value for argument '{argument.name}'. "
                    f"Declaration: {self.text}"
                )
        if left:
            raise Mismatch(
                f"{qualname}(): Unknown keyword argument '{next(iter(left))}'. "
                f"Declaration: {self.text}"
            )
        return tuple(values)


def _split_arrow(rest: str) -> tuple[str, str]:
    depth = 1
    for i, c in enumerate(rest):
        depth += (c in "([") - (c in ")]")
        if depth == 0:
            return rest[:i], rest[i + 1 :].split("->", 1)[1]
    raise ValueError(f"schema without closing parenthesis: {rest!r}")


def _split_commas(text: str) -> list[str]:
    parts, depth, start = [], 0, 0
    for i, c in enumerate(text):
        depth += (c in "([") - (c in ")]")
        if c == "," and depth == 0:
            parts.append(text[start:i])
            start = i + 1
    parts.append(text[start:])
    return [part.strip() for part in parts if part.strip()]


def _parts(text: str) -> tuple:
    """`Tensor(a!)[] out` to (`Tensor[]`, alias info, `out`); None where not given."""
    head, _, tail = text.strip().rpartition(")")
    if not head:
        kind, _, name = text.strip().partition(" ")
        return kind, None, name or None
    base, _, alias = head.partition("(")
    suffix, _, name = tail.partition(" ")
    return base + suffix, AliasInfo(alias), name or None


def _names_of_sets(text: str) -> set[str]:
    return {name.strip(" !") for name in text.split("|") if name.strip(" !")}


def _kind(text: str) -> str:
    base = text.split("[")[0].rstrip("?")
    letter = _LETTERS.get(base)
    if letter is None:
        raise RuntimeError(f"unknown type {text!r} in an operator schema")
    optional_element = "?" if "?[" in text else ""
    return letter + optional_element + ("[" if "[" in text else "")


def _literal(text: str) -> object:
    if text in _NAMES:
        return _NAMES[text]
    if text.startswith("["):
        return [_literal(part) for part in _split_commas(text[1:-1])]
    if text[:1] in "'\"":
        return text[1:-1]
    try:
        return int(text)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        # A dtype; of other named constants (contiguous_format) the native default.
        import taeda

        named = getattr(taeda, text.removeprefix("torch."), None)
        return named if isinstance(named, taeda.dtype) else None
