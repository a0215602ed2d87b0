"""PyTorch's operator schema grammar: the parser, and the face of the schema modules.

The grammar is the one `torch.library` and `torch.ops` show to users; printing a parsed
schema gives back torch's own text, which the tests check for every aten schema.
"""

from __future__ import annotations

import re
from dataclasses import replace

from .errors import CodegenError
from .schema_forms import inplace_schema, out_overload_name, out_schema
from .schema_types import (
    ESCAPES,
    TENSOR_OPTIONS,
    Alias,
    Argument,
    Default,
    Return,
    Schema,
    Type,
    format_default,
)

__all__ = [
    "TENSOR_OPTIONS",
    "Alias",
    "Argument",
    "Default",
    "Return",
    "Schema",
    "Type",
    "format_default",
    "inplace_schema",
    "out_overload_name",
    "out_schema",
    "parse_schema",
    "parse_type",
]

# Names usable as defaults in records; torch prints them as these integers
# (at::Reduction, c10::MemoryFormat and c10::ScalarType enumerations).
NAMED_DEFAULTS: dict[str, int] = {
    "Mean": 1,
    "Sum": 2,
    "contiguous_format": 0,
    "preserve_format": 1,
    "long": 4,
    "float": 6,
    "double": 7,
    "strided": 0,
}
GENERIC_TYPES = frozenset({"Dict", "Future", "RRef", "Await", "Tuple", "Union"})
_KEYWORD_VALUES: dict[str, Default] = {"None": None, "True": True, "False": False}

_TOKEN = re.compile(
    r"\s*(?:(?P<dots>\.\.\.)|(?P<arrow>->)|(?P<scope>::)"
    r"|(?P<num>-?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)"
    r"|(?P<str>\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*')"
    r"|(?P<id>[A-Za-z_]\w*)|(?P<op>[()\[\]?,*=!|.]))"
)


class _Parser:
    """Recursive descent over the tokens of one schema."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens: list[tuple[str, str, int]] = []
        position, end = 0, len(text.rstrip())
        while position < end:
            match = _TOKEN.match(text, position)
            if match is None:
                raise CodegenError("unexpected character", text=text, column=position)
            kind = match.lastgroup or ""
            self.tokens.append((kind, match[kind], match.start(kind)))
            position = match.end()
        self.tokens.append(("end", "end of schema", end))
        self.index = 0

    @property
    def value(self) -> str:
        return self.tokens[self.index][1]

    def fail(self, expected: str) -> CodegenError:
        _, value, column = self.tokens[self.index]
        return CodegenError(
            f"schema: expected {expected}, got {value!r}", text=self.text, column=column
        )

    def take(self, kind: str, what: str) -> str:
        if self.tokens[self.index][0] != kind:
            raise self.fail(what)
        self.index += 1
        return self.tokens[self.index - 1][1]

    def accept(self, value: str) -> bool:
        kind, text, _ = self.tokens[self.index]
        if text != value or kind in ("str", "end"):
            return False
        self.index += 1
        return True

    def expect(self, value: str) -> None:
        if not self.accept(value):
            raise self.fail(repr(value))

    def schema(self) -> Schema:
        namespace, base = "", self.take("id", "an operator name")
        if self.accept("::"):
            namespace, base = base, self.take("id", "an operator name")
        overload = self.take("id", "an overload name") if self.accept(".") else ""
        arguments, is_vararg = self.arguments()
        self.expect("->")
        is_varret = self.accept("...")
        returns = () if is_varret else self.returns()
        self.take("end", "the end of the schema")
        return Schema(
            base, overload, arguments, returns, namespace, is_vararg, is_varret
        )

    def arguments(self) -> tuple[tuple[Argument, ...], bool]:
        found: list[Argument] = []
        kwarg_only = is_vararg = False
        self.expect("(")
        while not self.accept(")"):
            if found or kwarg_only or is_vararg:
                self.expect(",")
            if self.accept("..."):
                is_vararg = True
            elif not kwarg_only and self.accept("*"):
                kwarg_only = True
            else:
                column = self.index
                argument = self.argument(kwarg_only)
                if any(argument.name == other.name for other in found):
                    self.index = column
                    raise self.fail(f"one argument named {argument.name!r}")
                found.append(argument)
        return tuple(found), is_vararg

    def argument(self, kwarg_only: bool) -> Argument:
        kind = self.type()
        name = self.take("id", "an argument name")
        if not self.accept("="):
            return Argument(name, kind, kwarg_only=kwarg_only)
        default = self.default(kind)
        return Argument(name, kind, default, has_default=True, kwarg_only=kwarg_only)

    def default(self, kind: Type) -> Default:
        token, text, _ = self.tokens[self.index]
        if self.accept("["):
            items: list[Default] = []
            while not self.accept("]"):
                if items:
                    self.expect(",")
                items.append(self.default(kind.element))
            return tuple(items)
        self.index += 1
        if token == "num":
            return float(text) if re.search(r"[.eE]", text) else int(text)
        if token == "str":
            return re.sub(r"\\(.)", lambda m: ESCAPES.get(m[1], m[1]), text[1:-1])
        if text in _KEYWORD_VALUES:
            return _KEYWORD_VALUES[text]
        if text in NAMED_DEFAULTS:
            return NAMED_DEFAULTS[text]
        self.index -= 1
        raise self.fail("a default value")

    def returns(self) -> tuple[Return, ...]:
        if not self.accept("("):
            return (self.one_return(),)
        found: list[Return] = []
        while not self.accept(")"):
            if found:
                self.expect(",")
            found.append(self.one_return())
        return tuple(found)

    def one_return(self) -> Return:
        kind = self.type()
        if self.tokens[self.index][0] == "id":
            return Return(kind, self.take("id", "a return name"))
        return Return(kind)

    def type(self) -> Type:
        found = self.atom()
        while True:
            if self.accept("?"):
                found = Type("Optional", (found,))
            elif self.accept("["):
                size = None
                if not self.accept("]"):
                    size = int(self.take("num", "a list size"))
                    self.expect("]")
                found = Type("List", (found,), size)
            elif self.value == "(" and found.alias is None:
                found = replace(found, alias=self.alias())
            else:
                return found

    def atom(self) -> Type:
        if self.accept("("):
            return Type("()", self.type_list())
        name = self.take("id", "a type")
        while self.accept("."):
            name += "." + self.take("id", "a class name")
        if name in GENERIC_TYPES and self.accept("("):
            return Type(name, self.type_list())
        return Type(name)

    def type_list(self) -> tuple[Type, ...]:
        found: list[Type] = []
        while not self.accept(")"):
            if found:
                self.expect(",")
            found.append(self.type())
        return tuple(found)

    def alias(self) -> Alias:
        self.expect("(")
        before = self.alias_set()
        write = self.accept("!")
        after = self.alias_set() if self.accept("->") else ()
        self.expect(")")
        return Alias(before, write, after)

    def alias_set(self) -> tuple[str, ...]:
        found: list[str] = []
        while True:
            found.append("*" if self.accept("*") else self.take("id", "an alias name"))
            if not self.accept("|"):
                return tuple(found)


def parse_schema(text: str) -> Schema:
    """Parses one schema; raises CodegenError with a caret at the offending token."""
    return _Parser(text).schema()


def parse_type(text: str) -> Type:
    parser = _Parser(text)
    found = parser.type()
    parser.take("end", "the end of the type")
    return found
