"""Formulas that depend on parameters: one expression for each choice of values.

`{approximate: {none: "...", tanh: "..."}}` names a parameter of the schema and gives a
formula for each of its values; choices nest. What is chosen is decided once per call.

| type | values |
|---|---|
| str | the text |
| bool | true, false |
| int, float, Scalar | a number, or a comparison with one: `>= 0` |
| optional ones and tensors | `given`, `absent` |
| all | `otherwise`, the last |
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from .errors import CodegenError
from .schema import Argument, Schema
from .yaml_fields import Node, Text

_NUMBER = r"-?(?:inf|\d+(?:\.\d+)?)"
_COMPARED = re.compile(rf"(==|!=|<|<=|>|>=) ({_NUMBER})")
_PLAIN_NUMBER = re.compile(_NUMBER)


@dataclass(frozen=True)
class Choice:
    """A parameter and one of its values, as written."""

    argument: Text
    value: Text

    def __str__(self) -> str:
        return f"{self.argument}: {self.value}"


When = tuple[Choice, ...]


def choices_of(
    node: Node, leaf: Callable[[Node], Any], reserved: tuple[str, ...] = ()
) -> Iterator[tuple[When, Any]]:
    """The leaves of nested choices with what leads to them.

    A mapping whose only key is not `reserved` names a parameter.
    """
    yield from _choices(node, leaf, reserved, ())


def _choices(
    node: Node, leaf: Callable[[Node], Any], reserved: tuple[str, ...], when: When
) -> Iterator[tuple[When, Any]]:
    names = list(node.value) if node.tag == "map" else []
    if len(names) != 1 or names[0] in reserved:
        yield when, leaf(node)
        return
    values = node.value[names[0]]
    argument = Text(names[0], values.key_location or values.location)
    for key, child in values.mapping(f"a formula for each {argument}").items():
        value = Text(key, child.key_location or child.location)
        yield from _choices(child, leaf, reserved, (*when, Choice(argument, value)))


def check_choice(choice: Choice, schema: Schema) -> None:
    """A CodegenError where the schema has no such parameter or value."""
    known = {a.name: a for a in schema.arguments}
    argument = known.get(choice.argument)
    if argument is None:
        raise CodegenError(
            f"{schema.name}: no argument {str(choice.argument)!r} to choose by "
            f"(has {', '.join(known)})",
            choice.argument.location,
        )
    allowed = _allowed(argument)
    if choice.value == "otherwise" or _accepts(argument, choice.value):
        return
    raise CodegenError(
        f"{schema.name}: {argument.name} ({argument.type}) cannot be "
        f"{str(choice.value)!r}; expected {allowed}",
        choice.value.location,
    )


def check_choices(whens: list[When], schema: Schema) -> None:
    """Every choice is legal, and a bool or a default is among the values."""
    values: dict[Text, set[str]] = {}
    for choice in {c: None for when in whens for c in when}:
        check_choice(choice, schema)
        values.setdefault(choice.argument, set()).add(str(choice.value))
    for name, found in values.items():
        argument = schema.argument(name)
        if "otherwise" in found:
            continue
        wanted = ()
        if argument.type.base == "bool" and not argument.type.is_optional:
            wanted = ("true", "false")
        elif argument.type.base == "str" and isinstance(argument.default, str):
            wanted = (argument.default,)
        for value in wanted:
            if value not in found:
                raise CodegenError(
                    f"{schema.name}: no formula for {name}: {value}", name.location
                )


def _allowed(argument: Argument) -> str:
    kind = argument.type
    texts = {
        "str": "its text",
        "bool": "true or false",
        "int": "a number or a comparison such as '>= 0'",
        "float": "a number or a comparison such as '>= 0'",
        "Scalar": "a number or a comparison such as '>= 0'",
    }
    text = texts.get(kind.base, "") if not kind.is_list else ""
    if kind.is_optional:
        text = f"{text}, given or absent".removeprefix(", ")
    return text or "no choice: it has no values to tell apart"


def _accepts(argument: Argument, value: Text) -> bool:
    kind = argument.type
    if kind.is_optional and value in ("given", "absent"):
        return True
    if kind.is_list:
        return False
    if kind.base == "str":
        return value not in ("given", "absent")
    if kind.base == "bool":
        return value in ("true", "false")
    if kind.base in ("int", "float", "Scalar"):
        return bool(_COMPARED.fullmatch(value) or _PLAIN_NUMBER.fullmatch(value))
    return False


def is_given(choice: Choice) -> bool:
    """Whether the choice says that an optional argument is there."""
    return choice.value not in ("absent", "otherwise")


def condition(choice: Choice, argument: Argument, saved: bool = False) -> str:
    """The choice as C++ text over the call's arguments, or over a node's members."""
    name, value, kind = argument.name, str(choice.value), argument.type
    if value == "otherwise":
        return "true"
    if kind.base == "Tensor":
        text = f"{name}.defined()" if saved else f"({name} && {name}->defined())"
    else:
        text = f"{name}.has_value()"
    if value in ("given", "absent"):
        return text if value == "given" else f"!{text}"
    if kind.base == "str":
        return f'{name} == "{value}"'
    operand = f"(*{name})" if kind.is_optional else name
    if kind.base == "bool":
        test = operand if value == "true" else f"!{operand}"
    else:
        compared = _COMPARED.fullmatch(value)
        sign, number = compared.groups() if compared else ("==", value)
        number = number.replace("inf", "std::numeric_limits<double>::infinity()")
        if kind.base == "Scalar":
            operand = f"{operand}.to_double()"
        test = f"{operand} {sign} {number}"
    return f"{text} && {test}" if kind.is_optional else test


def conditions(when: When, schema: Schema, saved: bool = False) -> str:
    """All choices together; `true` where nothing is chosen."""
    texts = [condition(c, schema.argument(c.argument), saved) for c in when]
    return " && ".join(t for t in texts if t != "true") or "true"
