"""YAML with line numbers, read into dataclasses whose fields name their own parser.

A dataclass field made with `entry(parser)` is a key that a record may have; that one
declaration drives reading, type checks and the unknown-key message.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import yaml

from .errors import CodegenError, Location

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_SCALARS = {"str", "int", "float"}
_SHOWN = {"str": "text", "map": "a mapping", "seq": "a list", "null": "nothing"}

D = TypeVar("D")
Parser = Callable[["Node"], Any]


class Text(str):
    """A string that remembers where it stands; everywhere else it is a plain str."""

    location: Location

    def __new__(cls, value: str, location: Location = Location()) -> Text:  # noqa: B008
        text = super().__new__(cls, value)
        text.location = location
        return text


@dataclasses.dataclass(frozen=True)
class Node:
    """A YAML value with its place: scalars as text, lists and mappings as nodes."""

    tag: str
    value: Any
    location: Location
    key_location: Location | None = None

    @property
    def shown(self) -> str:
        if self.tag in ("map", "seq", "null"):
            return _SHOWN[self.tag]
        return f"{_SHOWN.get(self.tag, self.tag)} {self.value!r}"

    def fail(self, message: str) -> CodegenError:
        return CodegenError(message, self.location)

    def mapping(self, what: str = "a mapping") -> dict[str, Node]:
        if self.tag != "map":
            raise self.fail(f"expected {what}, got {self.shown}")
        return self.value

    def items(self, what: str = "a list") -> list[Node]:
        if self.tag != "seq":
            raise self.fail(f"expected {what}, got {self.shown}")
        return self.value


def read_yaml(text: str, file: str) -> Node | None:
    """The document's root, or None for an empty one."""
    try:
        root = yaml.compose(text, Loader=_LOADER)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        line = mark.line + 1 if mark else 0
        problem = error.problem or "not YAML"
        raise CodegenError(f"YAML: {problem}", Location(file, line)) from None
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise CodegenError(f"YAML: {error.reason}", Location(file, line)) from None
    return None if root is None else _convert(root, file)


def _convert(node: yaml.Node, file: str) -> Node:
    tag = node.tag.rpartition(":")[2]
    block = getattr(node, "style", None) in ("|", ">")
    location = Location(file, node.start_mark.line + 1 + block)
    if isinstance(node, yaml.SequenceNode):
        return Node("seq", [_convert(item, file) for item in node.value], location)
    if not isinstance(node, yaml.MappingNode):
        return Node(tag, node.value, location)
    found: dict[str, Node] = {}
    for key, value in node.value:
        place = Location(file, key.start_mark.line + 1)
        if not isinstance(key, yaml.ScalarNode):
            raise CodegenError("a key must be text", place)
        if key.value in found:
            raise CodegenError(f"key {key.value!r} given twice", place)
        child = _convert(value, file)
        found[key.value] = dataclasses.replace(child, key_location=place)
    return Node("map", found, location)


def text(node: Node) -> Text:
    """Any scalar, as written; block text loses its last line break."""
    if node.tag not in _SCALARS:
        raise node.fail(f"expected text, got {node.shown}")
    return Text(node.value.rstrip("\n"), node.location)


def boolean(node: Node) -> bool:
    if node.tag != "bool":
        raise node.fail(f"expected true or false, got {node.shown}")
    return node.value.lower() in ("true", "yes", "on")


def number(node: Node) -> float:
    if node.tag not in ("int", "float"):
        raise node.fail(f"expected a number, got {node.shown}")
    return float(node.value)


def one_of(*names: str) -> Parser:
    def parse(node: Node) -> str:
        if node.value not in names:
            choices = ", ".join(repr(name) for name in names)
            raise node.fail(f"expected one of {choices}, got {node.shown}")
        return str(node.value)

    return parse


def list_of(parser: Parser) -> Parser:
    def parse(node: Node) -> tuple[Any, ...]:
        return tuple(parser(item) for item in node.items())

    return parse


def map_of(parser: Parser) -> Parser:
    def parse(node: Node) -> dict[str, Any]:
        return {key: parser(value) for key, value in node.mapping().items()}

    return parse


def named(parser: Parser, single: str) -> Parser:
    """A mapping of names, or one scalar that stands for `{single: scalar}`."""
    many = map_of(parser)

    def parse(node: Node) -> dict[str, Any]:
        return many(node) if node.tag == "map" else {single: parser(node)}

    return parse


def entry(
    parser: Parser, default: Any = dataclasses.MISSING, key: str | None = None
) -> Any:
    """A dataclass field read from YAML; without a default it is required."""
    metadata = {"parser": parser, "key": key}
    if isinstance(default, dict):
        return dataclasses.field(default_factory=dict, metadata=metadata)
    return dataclasses.field(default=default, metadata=metadata)


def entries_of(cls: type) -> dict[str, dataclasses.Field[Any]]:
    """YAML key to field, for the fields made with `entry`."""
    return {
        field.metadata["key"] or field.name: field
        for field in dataclasses.fields(cls)
        if "parser" in field.metadata
    }


def reject_unknown(values: Mapping[str, Node], known: set[str], what: str) -> None:
    for key, node in values.items():
        if key not in known:
            choices = ", ".join(sorted(known))
            raise CodegenError(
                f"{what}: unknown field {key!r} (known: {choices})",
                node.key_location or node.location,
            )


def build(
    cls: type[D], values: Mapping[str, Node], place: Location, what: str, **extra: Any
) -> D:
    """An instance of `cls` from the keys it declares; other keys are left alone."""
    found = dict(extra)
    for key, field in entries_of(cls).items():
        if key in values:
            found[field.name] = field.metadata["parser"](values[key])
        elif field.name in extra:
            continue
        elif (
            field.default is dataclasses.MISSING
            and field.default_factory is dataclasses.MISSING
        ):
            raise CodegenError(f"{what}: missing field {key!r}", place)
    return cls(**found)


def struct(cls: type[D], what: str) -> Parser:
    """A nested mapping with exactly the keys of `cls`."""

    def parse(node: Node) -> D:
        values = node.mapping(f"a mapping ({what})")
        reject_unknown(values, set(entries_of(cls)), what)
        return build(cls, values, node.location, what)

    return parse
