"""The language of `axes:`: what every axis of a kernel's tensors means to it.

Grammar and meaning: docs/design/records.md, "Axes"; what a batch of calls makes of them
is executed by test/python/records/axes_law.py. Printing gives the canonical text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from .errors import CodegenError, Location
from .schema_types import Argument, Schema
from .yaml_fields import Text

_TERM = re.compile(
    r"(?P<group>\.\.\.|\*)(?P<group_whole>!?)"
    r"|@(?P<at>\w+?)(?P<every>\*?)(?P<at_whole>!?)"
    r"|\#(?P<count>\w+)(?P<per>/2)?!"
    r"|(?P<name>[a-z]\w*)(?P<absent>\??)(?P<fold>\^?)(?P<whole>!?)(?:=(?P<size>\w+))?"
)
_TAIL = re.compile(r"(?P<sizes>=\w+)|(?P<reduction>/\w+)")


@dataclass(frozen=True)
class Axis:
    """One term: a named axis, a group of axes, or the axes that an argument names."""

    kind: str  # "name", "...", "*", "@" or "#"
    name: str = ""  # of the axis, or of the argument of "@" and "#"
    whole: bool = False
    fold: bool = False
    absent: bool = False  # a tensor may lack it
    every: bool = False  # "@": all axes, as one, where the argument names none
    per: int = 1  # "#": entries of the list for an axis
    size: str = ""  # the int argument that repeats its size

    @property
    def key(self) -> str:
        """What terms of one axis or group have in common, in all operands."""
        if self.kind == "name":
            return self.name
        return self.kind + self.name + "!" * (self.whole and self.kind == "*")

    @property
    def takes_batch(self) -> bool:
        """Whether a new axis may come in front of it (groups) or into it (`^`)."""
        return self.fold or (self.kind in ("...", "*") and not self.whole)

    def __str__(self) -> str:
        if self.kind in ("...", "*"):
            return self.kind + "!" * self.whole
        if self.kind == "@":
            return f"@{self.name}{'*' * self.every}{'!' * self.whole}"
        if self.kind == "#":
            return f"#{self.name}{'/2' * (self.per == 2)}!"
        marks = "?" * self.absent + "^" * self.fold + "!" * self.whole
        return self.name + marks + (f"={self.size}" if self.size else "")


@dataclass(frozen=True)
class Operand:
    """The axes of one tensor, or of each tensor of a list, from left to right."""

    axes: tuple[Axis, ...] = ()
    is_list: bool = False
    unread: bool = False  # `_`: the operator looks at its dtype and device only
    sizes: str = ""  # the list argument that repeats the sizes of all its axes
    reduction: str = ""  # the argument that says whether all its axes are reduced

    def find(self, key: str) -> Axis | None:
        return next((axis for axis in self.axes if axis.key == key), None)

    def __str__(self) -> str:
        parts = [str(axis) for axis in self.axes]
        parts += [f"={self.sizes}"] if self.sizes else []
        parts += [f"/{self.reduction}"] if self.reduction else []
        text = "_" if self.unread else " ".join(parts) or "()"
        return f"[{text}]" if self.is_list else text


@dataclass(frozen=True)
class Axes:
    """Operands and results in the order of the schema, or why there is nothing to say.

    `opaque` is the reason: no axis can be told from the others.
    """

    inputs: tuple[Operand, ...] = ()
    outputs: tuple[Operand, ...] = ()
    opaque: str = ""
    location: Location = field(default=Location(), compare=False)

    @property
    def reduced(self) -> frozenset[str]:
        """Names on the left that no result has."""
        left, right = (
            {a.name for o in side for a in o.axes if a.kind == "name"}
            for side in (self.inputs, self.outputs)
        )
        return frozenset(left - right)

    def places(self, schema: Schema) -> tuple[str, ...]:
        """Keys of the axes that can take a batch, in the order of preference.

        Every tensor that is written and every result must have the axis; where an
        argument `output_mask` says which results are wanted, one is enough, and a batch
        of the others cannot be had.
        """
        operands = [*self.inputs, *self.outputs]
        terms = [a for o in operands for a in o.axes if a.takes_batch]
        keys = dict.fromkeys(a.key for a in sorted(terms, key=lambda a: a.fold))
        masked = any(a.name == "output_mask" for a in schema.arguments)
        needed = any if masked and self.outputs else all
        written = [
            operand
            for operand, argument in zip(self.inputs, schema.tensor_args, strict=True)
            if argument.is_mutable
        ]
        return tuple(
            key
            for key in keys
            if needed(o.find(key) for o in self.outputs)
            and all(o.find(key) for o in written)
        )

    def __str__(self) -> str:
        if self.opaque:
            return f"opaque: {self.opaque}"
        left, right = (", ".join(map(str, s)) for s in (self.inputs, self.outputs))
        return f"{left} -> {right}".strip()


def _axis(match: re.Match[str]) -> Axis:
    part = match.groupdict()
    if part["group"]:
        return Axis(part["group"], whole=bool(part["group_whole"]))
    if part["at"]:
        whole, every = bool(part["at_whole"]), bool(part["every"])
        return Axis("@", part["at"], whole=whole, every=every)
    if part["count"]:
        return Axis("#", part["count"], whole=True, per=2 if part["per"] else 1)
    return Axis(
        "name",
        part["name"],
        whole=bool(part["whole"]),
        fold=bool(part["fold"]),
        absent=bool(part["absent"]),
        size=part["size"] or "",
    )


def _operand(words: str, whole_text: Text) -> Operand:
    words = words.strip()
    is_list = words.startswith("[") and words.endswith("]")
    inner = words[1:-1].strip() if is_list else words
    if inner in ("()", "_"):
        return Operand(is_list=is_list, unread=inner == "_")
    axes: list[Axis] = []
    tail = {"sizes": "", "reduction": ""}
    for word in inner.split():
        if match := _TAIL.fullmatch(word):
            tail[match.lastgroup or ""] = word[1:]
        elif (match := _TERM.fullmatch(word)) and not any(tail.values()):
            axes.append(_axis(match))
        else:
            raise _wrong(f"bad axis {word!r}", whole_text, word)
    if not axes:
        raise _wrong("an operand without axes is written ()", whole_text)
    return Operand(tuple(axes), is_list, **tail)


def _wrong(message: str, text: Text, word: str = "") -> CodegenError:
    column = text.index(word) if word else None
    return CodegenError(f"axes: {message}", text.location, str(text), column)


def parse_axes(text: Text) -> Axes:
    """The axes written in a record; raises CodegenError with the place in the file."""
    head, _, reason = text.partition(":")
    if head.strip() == "opaque":
        if not reason.strip():
            raise _wrong("`opaque` needs its reason (`opaque: REASON`)", text)
        return Axes(opaque=reason.strip(), location=text.location)
    left, arrow, right = text.partition("->")
    if not arrow:
        raise _wrong("expected `a b, c -> d`", text)
    sides = [
        tuple(_operand(part, text) for part in side.split(",")) if side.strip() else ()
        for side in (left, right)
    ]
    return Axes(sides[0], sides[1], location=text.location)


def axes_problems(axes: Axes, schema: Schema) -> Iterator[str]:
    """What in the axes does not fit the schema."""
    if axes.opaque:
        return
    tensors = schema.tensor_args
    results = [r for r in schema.returns if r.type.is_tensor_like]
    for side, operands, needed in (
        ("left", axes.inputs, tensors),
        ("right", axes.outputs, results),
    ):
        if len(operands) != len(needed):
            yield (
                f"axes has {len(operands)} operands on the {side}, "
                f"the schema {len(needed)} tensors"
            )
            return
        for operand, tensor in zip(operands, needed, strict=True):
            if operand.is_list != tensor.type.is_list:
                yield f"axes: [...] stands for a list of tensors: {operand}"
    yield from _argument_problems(axes, schema)
    yield from _name_problems(axes)
    if tensors and not axes.places(schema):
        yield "axes: no axis takes a batch; say `opaque: REASON`"


def _argument_problems(axes: Axes, schema: Schema) -> Iterator[str]:
    arguments = {a.name: a for a in schema.arguments}
    for name, is_list in _arguments_used(axes):
        found: Argument | None = arguments.get(name)
        if found is None:
            yield f"axes: no argument {name!r} (has {', '.join(arguments)})"
        elif found.type.base not in ("int", "SymInt"):
            yield f"axes: {name!r} must be int or int[], it is {found.type}"
        elif is_list is not None and found.type.is_list != is_list:
            yield f"axes: {name!r} must be {'int[]' if is_list else 'int'}"


def _arguments_used(axes: Axes) -> Iterator[tuple[str, bool | None]]:
    """Names of arguments, and whether each must be a list (None: either)."""
    for operand in (*axes.inputs, *axes.outputs):
        for axis in operand.axes:
            if axis.kind in ("@", "#"):
                yield axis.name, True if axis.kind == "#" else None
            if axis.size:
                yield axis.size, False
        if operand.sizes:
            yield operand.sizes, True
        if operand.reduction:
            yield operand.reduction, False


def _name_problems(axes: Axes) -> Iterator[str]:
    left = {a.key for o in axes.inputs for a in o.axes}
    folds: dict[str, bool] = {}
    for operand in (*axes.inputs, *axes.outputs):
        for axis in operand.axes:
            if folds.setdefault(axis.key, axis.fold) != axis.fold:
                yield f"axes: {axis.name} has `^` in one place and not in another"
    for operand in axes.outputs:
        for axis in operand.axes:
            if axis.key not in left and not axis.whole and not operand.sizes:
                yield f"axes: {axis} only on the right; mark a new axis with `!`"
