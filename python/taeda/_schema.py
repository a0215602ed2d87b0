"""Operator schemas at run time: names, types and defaults of arguments.

The grammar is that of `torch.library`: `f(Tensor x, *, float a=1.0) -> Tensor`. Only
what a call needs is kept; alias annotations are recognised and remembered as `written`.
"""

from __future__ import annotations

# Letters of the native side (csrc/python/library.cpp, Note [Kinds]).
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
_NAMES = {"None": None, "True": True, "False": False, "Mean": 1, "Sum": 2}


class Mismatch(RuntimeError):
    """The arguments of a call do not fit the schema; another overload may."""


class Argument:
    """One parameter: name, type text, native kind, default, keyword-only, written."""

    __slots__ = (
        "default",
        "has_default",
        "kind",
        "kwarg_only",
        "name",
        "type",
        "written",
    )

    def __init__(self, text: str, kwarg_only: bool) -> None:
        text, equals, default = text.partition("=")
        head, _, self.name = text.strip().rpartition(" ")
        self.type, self.written = _strip_alias(head)
        self.kind = _kind(self.type)
        self.has_default = bool(equals)
        self.default = _literal(default.strip()) if equals else None
        self.kwarg_only = kwarg_only


class Schema:
    """A parsed schema; `str()` gives the text back."""

    def __init__(self, text: str) -> None:
        self.text = text
        name, rest = text.split("(", 1)
        self.name, _, self.overload_name = name.strip().partition(".")
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
        types = [_strip_alias(part)[0].split(" ")[0] for part in _split_commas(inner)]
        self.returns = types
        self.kinds = tuple(a.kind for a in self.arguments)
        self.return_kinds = tuple(_kind(t) for t in types)

    def __str__(self) -> str:
        return self.text

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


def _strip_alias(text: str) -> tuple[str, bool]:
    """`Tensor(a!)[]` to (`Tensor[]`, True)."""
    text = text.strip()
    start = text.find("(")
    if start < 0:
        return text, False
    end = text.index(")", start)
    return text[:start] + text[end + 1 :], "!" in text[start:end]


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
        return None  # a named constant such as contiguous_format: the native default
