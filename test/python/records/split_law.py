"""The other promise of `axes:`: an axis without `!` may be cut, in all who have it.

`Split.calls` makes the calls of the parts and puts their results together: side by side
where a result has the axis, added up where it has not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import taeda
from axes_law import KEEP, MEAN, bind, mark, patterns_of_results, results_of

from tools.codegen.axes import Axes, Axis, Operand
from tools.codegen.schema_types import Schema

# An axis: the key of its term, and which of a group's axes it is, from the right.
Place = tuple[str, int]


@dataclass
class Split:
    """A call, and where its axes lie in its tensors."""

    axes: Axes
    schema: Schema
    values: dict

    @property
    def operands(self) -> tuple[Operand, ...]:
        return (*self.axes.inputs, *self.axes.outputs)

    def dims(self, axis: Axis) -> list[int]:
        value = self.values[axis.name]
        return [value] if isinstance(value, int) else list(value or [])

    def positions(self, pattern: Operand, rank: int) -> dict[Place, int]:
        """The position of every axis by its place."""
        terms = [*pattern.axes, *self._kept(pattern)]
        at = [a for a in terms if a.kind == "@"]
        plain = Operand(tuple(a for a in terms if a.kind != "@"))
        number = sum(len(self.dims(a)) for a in at)
        counts, _ = bind(plain, max(rank - number, 0), self.values, strict=False)
        # Dims are counted among the axes before those that stand behind `@`.
        last = max((i for i, a in enumerate(pattern.axes) if a.kind == "@"), default=0)
        behind = len(pattern.axes) - 1 - last if at and last else 0
        named = {
            (mark(a), index): d % max(rank - behind, 1)
            for a in at
            for index, d in enumerate(self.dims(a))
            if rank
        }
        free = iter([d for d in range(rank) if d not in named.values()])
        return named | {
            (axis.key, index): position
            for axis, count in zip(plain.axes, counts, strict=True)
            for index in reversed(range(count))
            if (position := next(free, None)) is not None
        }

    def _kept(self, pattern: Operand) -> list[Axis]:
        """Terms of `@` that stay with size one in a tensor that does not have them."""
        if not self.values.get(KEEP) or not pattern.find("*"):
            return []
        every = {a.key: a for o in self.operands for a in o.axes if a.kind == "@"}
        return [a for key, a in every.items() if not pattern.find(key)]

    def tensors(self) -> Iterator[tuple[str, int, Operand, taeda.Tensor]]:
        """Name of the argument, index in its list, pattern and tensor."""
        pairs = zip(self.schema.tensor_args, self.axes.inputs, strict=True)
        for argument, pattern in pairs:
            value = self.values[argument.name]
            if value is not None and not pattern.unread:
                for index, t in enumerate(value if argument.type.is_list else [value]):
                    yield argument.name, index, pattern, t

    def sizes(self) -> dict[Place, set[int]]:
        """The sizes of every axis in the tensors that have it."""
        found: dict[Place, set[int]] = {}
        for _, _, pattern, t in self.tensors():
            for place, position in self.positions(pattern, t.dim()).items():
                found.setdefault(place, set()).add(t.shape[position])
        return found

    def places(self) -> list[Place]:
        """The axes that may be cut and have two elements or more."""
        terms = [a for o in self.operands for a in o.axes]
        if any(a.every and not self.dims(a) for a in terms):
            return []  # all axes are one
        if any(o.reduction and self.values[o.reduction] == MEAN for o in self.operands):
            return []  # the mean of the parts' means is another
        if sum(o.is_list for o in self.axes.inputs) > 1:
            return []  # each element of the lists has axes of its own
        whole = {mark(a) for a in terms if a.whole}
        return [
            place
            for place, found in self.sizes().items()
            if place[0] not in whole and max(found) > 1 and found <= {1, max(found)}
        ]

    def calls(self, function: Callable, place: Place) -> list:
        """The results of the call, from two calls with the axis of that place cut."""
        size = max(self.sizes()[place])
        half = size // 2
        found = []
        for start, length in ((0, half), (half, size - half)):
            part = self._part(place, start, length)
            found.append(results_of(self.schema, function(**part), part))
        patterns = patterns_of_results(self.axes, self.schema, self.values)
        pairs = zip(patterns, zip(*found, strict=True), strict=True)
        return [self._joined(pattern, parts, place) for pattern, parts in pairs]

    def _part(self, place: Place, start: int, length: int) -> dict:
        part = dict(self.values)
        for name, index, pattern, t in self.tensors():
            position = self.positions(pattern, t.dim()).get(place)
            if position is None or t.shape[position] == 1:
                continue
            piece = t.narrow(position, start, length)
            value = part[name]
            is_list = isinstance(value, list)
            part[name] = (
                [*value[:index], piece, *value[index + 1 :]] if is_list else piece
            )
        for operand in self.operands:
            for axis in operand.axes:
                if axis.size and axis.key == place[0]:
                    part[axis.size] = length
            if operand.sizes:
                part[operand.sizes] = self._cut_sizes(operand, place, length)
        return part

    def _cut_sizes(self, operand: Operand, place: Place, length: int) -> list[int]:
        sizes = list(self.values[operand.sizes])
        position = self.positions(operand, len(sizes)).get(place)
        return [length if d == position else n for d, n in enumerate(sizes)]

    def _joined(self, pattern: Operand, parts: tuple, place: Place) -> object:
        first = parts[0]
        if first is None:
            return None
        if isinstance(first, (list, tuple)):
            pairs = zip(*parts, strict=True)
            return [self._joined(pattern, pair, place) for pair in pairs]
        summed = pattern.reduction and self.values[pattern.reduction]
        if summed or place[0] not in map(mark, pattern.axes):
            return parts[0] + parts[1]
        there = tuple(a for a in pattern.axes if not a.absent or self._has(a))
        where = self.positions(Operand(there), first.dim())
        return taeda.cat(list(parts), where[place])

    def _has(self, axis: Axis) -> bool:
        """Whether a tensor of the call has that axis."""
        return (axis.key, 0) in self.sizes()
