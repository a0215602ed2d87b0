"""What `axes:` of a record promises, executed: many calls as one call.

`call_batched` takes the arguments of a call, some of whose tensors have a new axis in
front that stands for several calls, and makes one call of the operator of it. The rules
of batching follow this file; docs/design/records.md, "Axes", has the grammar.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import taeda

from tools.codegen.axes import Axes, Axis, Operand
from tools.codegen.schema_types import Argument, Schema

KEEP, MASK = "keepdim", "output_mask"
MEAN = 1  # of the argument `reduction`; 0 is none, 2 a sum
GROUPS = ("...", "*")


class NoPlace(Exception):
    """No axis takes the batch of these tensors."""


class Unbound(Exception):
    """A tensor has fewer or more axes than its pattern."""


@dataclass
class Bound:
    """A tensor, and how many of its axes belong to each term of its pattern."""

    tensor: taeda.Tensor
    pattern: Operand
    batched: bool
    counts: list[int]
    lacking: list[int]  # the terms that it could have and has not
    inserted: set[str] = field(default_factory=set)

    @property
    def present(self) -> set[str]:
        pairs = zip(self.pattern.axes, self.counts, strict=True)
        return {mark(axis) for axis, count in pairs if count} - self.inserted

    def position(self, key: str) -> int:
        """Where the axes of that term begin, a batch axis in front not counted."""
        return sum(self.counts[: self._index(key)])

    def count(self, key: str) -> int:
        return self.counts[self._index(key)]

    def _index(self, key: str) -> int:
        return [axis.key for axis in self.pattern.axes].index(key)

    def insert_lacking(self) -> None:
        """An axis of size one for each term that the tensor could have and has not."""
        for index in self.lacking:
            position = sum(self.counts[:index]) + self.batched
            self.tensor = self.tensor.unsqueeze(position)
            self.counts[index] = 1
            self.inserted.add(mark(self.pattern.axes[index]))

    def give_batch(self, size: int) -> None:
        if not self.batched:
            shape = self.tensor.shape
            self.tensor = self.tensor.unsqueeze(0).expand(size, *shape)
            self.batched = True


def bind(
    pattern: Operand, rank: int, values: dict, strict: bool = True
) -> tuple[list[int], list[int]]:
    """How many of the `rank` axes each term of the pattern has, and which lack theirs.

    Optional axes are absent from the left, and so are those of `@` (a number counts as
    a row of one). Of two groups the last one has the axes: in `* *!` none need lie in
    front.
    """
    counts = [_wanted(axis, values) for axis in pattern.axes]
    lacking = []
    for index, axis in enumerate(pattern.axes):
        if sum(counts) > rank and (axis.absent or axis.kind == "@"):
            counts[index] = 0
            lacking.append(index)
    groups = [i for i, axis in enumerate(pattern.axes) if axis.kind in GROUPS]
    rest = rank - sum(counts)
    if strict and (rest < 0 or (rest and not groups)):
        raise Unbound(f"{rank} axes for {pattern}")
    if groups:
        counts[groups[-1]] = max(rest, 0)
    return counts, lacking


def _wanted(axis: Axis, values: dict) -> int:
    if axis.kind in GROUPS:
        return 0
    if axis.kind == "name":
        return 1
    value = values[axis.name]
    if axis.kind == "#":
        return len(value) // axis.per
    return 1 if isinstance(value, int) else len(value or [])


class Batch:
    """One call for `size` calls: arguments made ready, results taken apart."""

    def __init__(
        self, axes: Axes, schema: Schema, values: dict, batched: set[str], size: int
    ) -> None:
        self.axes, self.schema, self.size = axes, schema, size
        self.values, self.batched = dict(values), batched
        self.bound: dict[str, list[Bound]] = {}
        for argument, pattern in zip(schema.tensor_args, axes.inputs, strict=True):
            self._take(argument, pattern)
        self.key = self._place()
        self.flat = self._flattened()
        self.reduction = self._without_reduction()
        self.number = False  # a result without axes has one for the call

    def _take(self, argument: Argument, pattern: Operand) -> None:
        value, batched = self.values[argument.name], argument.name in self.batched
        if value is None:
            return
        if pattern.unread:
            # What is not read is the same for all.
            self.values[argument.name] = value[0] if batched else value
            return
        tensors = value if argument.type.is_list else [value]
        self.bound[argument.name] = [
            Bound(t, pattern, batched, *bind(pattern, t.dim() - batched, self.values))
            for t in tensors
        ]

    @property
    def tensors(self) -> list[Bound]:
        return [b for items in self.bound.values() for b in items]

    @property
    def operands(self) -> tuple[Operand, ...]:
        return (*self.axes.inputs, *self.axes.outputs)

    def _place(self) -> str:
        """The key of the axis that takes the batch."""
        written = {a.name for a in self.schema.mutable_args} & self.bound.keys()
        if self.batched and not written <= self.batched:
            raise NoPlace("calls would write to one tensor")
        wanted = self.values.get(MASK) or [True] * len(self.axes.outputs)
        needed = [o for o, w in zip(self.axes.outputs, wanted, strict=True) if w]
        needed += [b.pattern for b in self.tensors if b.batched]
        for key in self.axes.places(self.schema):
            if all(operand.find(key) for operand in needed):
                return key
        raise NoPlace(f"{self.axes}: {sorted(self.batched)}")

    def _flattened(self) -> tuple[int, ...] | None:
        """All axes as one where `@dim*` names none; the shape that they had."""
        for b in self.tensors:
            every = next((a for a in b.pattern.axes if a.every), None)
            if every is None or isinstance(self.values[every.name], int):
                return None
            if not self.values[every.name]:
                shape = tuple(b.tensor.shape[b.batched :])
                b.give_batch(self.size)
                b.tensor = b.tensor.reshape(self.size, -1)
                b.counts = [int(a.kind == "@") for a in b.pattern.axes]
                is_list = self.schema.argument(every.name).type.is_list
                self.values[every.name] = [0] if is_list else 0
                return shape
        return None

    def _without_reduction(self) -> int:
        """Turns off the reduction that the results are to have; it is done here."""
        kind = 0
        for name in {o.reduction for o in self.axes.outputs if o.reduction}:
            kind, self.values[name] = self.values[name], 0
        return kind

    # -- arguments ------------------------------------------------------------

    def arguments(self) -> dict:
        """The values of the one call."""
        carriers = [b for b in self.tensors if b.pattern.find(self.key)]
        if self.key in GROUPS:
            self._put_in_front(carriers)
        else:
            self._fold(carriers)
        for name, items in self.bound.items():
            tensors = [b.tensor for b in items]
            is_list = self.schema.argument(name).type.is_list
            self.values[name] = tensors if is_list else tensors[0]
        return self.values

    def _put_in_front(self, carriers: list[Bound]) -> None:
        # Broadcasting gives a tensor without the batch what it lacks.
        touched = [b for b in carriers if b.batched or self.key == "*"]
        single = [b for b in carriers if not b.pattern.is_list]
        model = max(single, key=lambda b: b.count(self.key), default=None)
        for b in touched:
            b.give_batch(self.size)
            b.insert_lacking()
            if model and not b.pattern.is_list:
                self._align(b, model)
        shifted = [b.pattern for b in touched] + list(self.axes.outputs)
        for name in {a.name for o in shifted for a in o.axes if a.kind == "@"}:
            self.values[name] = _shifted(self.values[name])
        for operand in (o for o in self.operands if o.sizes):
            sizes = self.values[operand.sizes]
            self.number = not sizes and any(a.kind == "@" for a in operand.axes)
            self.values[operand.sizes] = [self.size, *sizes, *[1] * self.number]

    def _align(self, b: Bound, model: Bound) -> None:
        """As many axes in the group as the longest has, of its sizes for `*`."""
        lacking = model.count(self.key) - b.count(self.key)
        start = 1 + b.position(self.key)
        shape = list(b.tensor.shape)
        shape[start:start] = [1] * lacking
        b.tensor = b.tensor.reshape(shape)
        if self.key == "*" and lacking:
            first = model.batched + model.position("*")
            theirs = model.tensor.shape[first : first + lacking]
            shape[start : start + lacking] = theirs
            b.tensor = b.tensor.expand(*shape)

    def _fold(self, carriers: list[Bound]) -> None:
        for b in carriers:
            b.give_batch(self.size)
            b.insert_lacking()
        longest = max(b.tensor.shape[1 + b.position(self.key)] for b in carriers)
        for b in carriers:
            at = b.position(self.key)
            shape = list(b.tensor.shape)
            if shape[1 + at] == 1:
                shape[1 + at] = longest
            b.tensor = b.tensor.expand(*shape).movedim(0, at).flatten(at, at + 1)
        for operand in self.operands:
            axis = operand.find(self.key)
            if axis and axis.size:
                self.values[axis.size] *= self.size
            if axis and operand.sizes:
                sizes = list(self.values[operand.sizes])
                counts, _ = bind(operand, len(sizes), self.values)
                sizes[sum(counts[: operand.axes.index(axis)])] *= self.size
                self.values[operand.sizes] = sizes

    # -- results --------------------------------------------------------------

    def result(self, pattern: Operand, r: object) -> object:
        """The result of all calls with the batch in front; None stays None."""
        if r is None:
            return None
        if isinstance(r, (list, tuple)):
            return [self.result(pattern, part) for part in r]
        if self.key not in GROUPS:
            at = self._position(pattern, pattern.find(self.key), r.dim())
            parts = (self.size, r.shape[at] // self.size)
            r = r.unflatten(at, parts).movedim(at, 0)
        r = self._without_inserted(pattern, r)
        if self.flat is not None:
            r = self._unflattened(pattern, r)
        if self.number:
            r = r.reshape(self.size)
        if pattern.reduction and self.reduction and r.dim() > 1:
            dims = list(range(1, r.dim()))
            r = r.mean(dims) if self.reduction == MEAN else r.sum(dims)
        return r

    def _without_inserted(self, pattern: Operand, r: taeda.Tensor) -> taeda.Tensor:
        gone: set[str] = set()
        known: set[str] = set()
        for b in self.tensors:
            # A name is there if any tensor has it; `@` as the first has it.
            gone |= {m for m in b.inserted if m not in known}
            gone -= {m for m in b.present if m[0] != "@"}
            known |= b.present
        removed = [
            1 + self._position(pattern, axis, r.dim() - 1)
            for axis in pattern.axes
            if mark(axis) in gone
        ]
        for at in sorted(removed, reverse=True):
            r = r.squeeze(at)
        reduced = any(m[0] == "@" for m in gone) and not _names_dims(pattern)
        return r.squeeze(1) if reduced and self.values.get(KEEP) else r

    def _unflattened(self, pattern: Operand, r: taeda.Tensor) -> taeda.Tensor:
        if _names_dims(pattern):
            return r.reshape(self.size, *self.flat)
        ones = (1,) * len(self.flat) if self.values.get(KEEP) else ()
        return r.reshape(self.size, *ones)

    def _position(self, pattern: Operand, axis: Axis, rank: int) -> int:
        """Where that axis lies in a result: from the left, or from a group's right."""
        index = pattern.axes.index(axis)
        before, after = pattern.axes[:index], pattern.axes[index + 1 :]
        if any(a.kind in GROUPS for a in before):
            return rank - 1 - self._width(after)
        return self._width(before)

    def _width(self, terms: Iterable[Axis]) -> int:
        """How many axes those terms have: one each, if a tensor has it or none can."""
        counts = [
            [b.count(axis.key) for b in self.tensors if b.pattern.find(axis.key)]
            for axis in terms
        ]
        return sum(any(found) or not found for found in counts)


def mark(axis: Axis) -> str:
    """By what a result knows an operand's axis: `gather` has the index's `@dim`."""
    return str(axis) if axis.kind == "@" else axis.key


def _names_dims(pattern: Operand) -> bool:
    return any(axis.kind == "@" for axis in pattern.axes)


def _shifted(dims: object) -> object:
    """Dims counted from the left are one further; those from the right stay."""
    if isinstance(dims, int):
        return dims + (dims >= 0)
    return [d + (d >= 0) for d in dims]


def call_batched(
    function: Callable,
    axes: Axes,
    schema: Schema,
    values: dict,
    batched: set[str],
    size: int,
) -> list:
    """The results of `size` calls, stacked, from one call of `function(**values)`.

    Tensors of the arguments named in `batched` (lists: all of their tensors) have the
    axis of the calls in front. Raises NoPlace where the axes do not tell how.
    """
    batch = Batch(axes, schema, values, batched, size)
    ready = batch.arguments()
    results = results_of(schema, function(**ready), ready)
    patterns = patterns_of_results(axes, schema, ready)
    return [batch.result(p, r) for p, r in zip(patterns, results, strict=True)]


def results_of(schema: Schema, returned: object, values: dict) -> list:
    """Tensors (or lists of them) returned, or those written if nothing is returned."""
    if not schema.returns:
        written = [values[a.name] for a in schema.mutable_args]
        return [value for value in written if value is not None]
    return list(returned) if len(schema.returns) > 1 else [returned]


def patterns_of_results(axes: Axes, schema: Schema, values: dict) -> list[Operand]:
    """The patterns of `results_of`."""
    return list(axes.outputs) or [
        pattern
        for argument, pattern in zip(schema.tensor_args, axes.inputs, strict=True)
        if argument.is_mutable and values[argument.name] is not None
    ]
