"""The text of a record's `axes`, read when an operator is first met.

The grammar stands in docs/design/records.md, "Axes". A tensor's axes get labels; equal
labels of different tensors go together, and an axis without a label is needed whole.
"""

from __future__ import annotations

import re

_TERM = re.compile(
    r"(?P<group>\.\.\.|\*)(?P<g_whole>!?)"
    r"|@(?P<at>\w+?)(?P<every>\*?)(?P<a_whole>!?)"
    r"|\#(?P<count>\w+)(?P<half>/2)?!"
    r"|(?P<name>[a-z]\w*)(?P<absent>\??)\^?(?P<n_whole>!?)(?:=(?P<size>\w+))?"
)


class Term:
    """One axis, a group of axes, or axes that an argument names."""

    __slots__ = ("absent", "every", "kind", "name", "per", "size", "whole")

    def __init__(self, match: re.Match) -> None:
        part = match.groupdict()
        self.kind = "name"
        for kind in ("group", "at", "count"):
            if part[kind]:
                self.kind = kind
        self.name = part[{"name": "name"}.get(self.kind, self.kind)]
        self.whole = bool(part["g_whole"] or part["a_whole"] or part["n_whole"])
        self.whole |= self.kind == "count"
        self.absent = bool(part["absent"])
        self.every = bool(part["every"])
        self.per = 2 if part["half"] else 1
        self.size = part["size"]


class Operand:
    """The axes of a tensor, or of each tensor of a list."""

    __slots__ = ("is_list", "reduction", "sizes", "terms", "unread")

    def __init__(self, text: str) -> None:
        text = text.strip()
        self.is_list = text.startswith("[")
        text = text.strip("[]").strip()
        self.unread = text == "_"
        self.terms: list[Term] = []
        self.sizes = self.reduction = None
        for word in () if text in ("()", "_", "") else text.split():
            if word.startswith("="):
                self.sizes = word[1:]
            elif word.startswith("/"):
                self.reduction = word[1:]
            else:
                self.terms.append(Term(_TERM.fullmatch(word)))

    def names_dims(self) -> bool:
        """Whether an argument names axes of it."""
        return any(t.kind == "at" for t in self.terms)

    def labels(self, rank: int, values: dict) -> list:
        """A label for each of its axes; None for one that is needed whole.

        Raises:
            ValueError: the tensor has more or fewer axes than the pattern.
        """
        counts = self._counts(rank, values)
        has_group = any(t.kind == "group" for t in self.terms)
        found: list = [None] * rank
        free = list(range(rank))
        if has_group:
            for term, count in zip(self.terms, counts, strict=True):
                if term.kind == "at" and count:
                    for k, dim in enumerate(_dims(values.get(term.name), rank)):
                        free.remove(dim)
                        found[dim] = None if term.whole else ("@", term.name, k)
        at = 0
        for term, count in zip(self.terms, counts, strict=True):
            if term.kind == "at" and has_group:
                continue
            for k in range(count):
                label = (term.name, count - k) if term.kind == "group" else term.name
                found[free[at]] = None if term.whole else label
                at += 1
        return found

    def size_arguments(self, rank: int, values: dict) -> list[tuple[str, int]]:
        """Arguments that repeat the size of one axis, and which."""
        found, at = [], 0
        for term, count in zip(self.terms, self._counts(rank, values), strict=True):
            if term.size and count:
                found.append((term.size, at))
            at += count
        return found

    def _counts(self, rank: int, values: dict) -> list[int]:
        counts = [_wanted(term, values, rank) for term in self.terms]
        for i, term in enumerate(self.terms):
            if sum(counts) > rank and (term.absent or term.kind == "at"):
                counts[i] = 0
        groups = [i for i, t in enumerate(self.terms) if t.kind == "group"]
        rest = rank - sum(counts)
        if rest < 0 or (rest and not groups):
            raise ValueError(f"{rank} axes do not fit the pattern")
        if groups:
            counts[groups[-1]] = rest
        return counts


def _wanted(term: Term, values: dict, rank: int) -> int:
    if term.kind == "group":
        return 0
    if term.kind == "name":
        return 1
    value = values.get(term.name)
    if term.kind == "count":
        return len(value) // term.per
    if value is None or (term.every and isinstance(value, (list, tuple)) and not value):
        return rank if term.every else 0
    return 1 if isinstance(value, int) else len(value)


def _dims(value, rank: int) -> list[int]:
    if value is None or (isinstance(value, (list, tuple)) and not value):
        return list(range(rank))
    dims = [value] if isinstance(value, int) else list(value)
    return [d % rank for d in dims] if rank else []


class Axes:
    """What the text says: operands on the left and results on the right."""

    __slots__ = ("inputs", "outputs")

    def __init__(self, text: str) -> None:
        left, _, right = text.partition("->")
        self.inputs = [Operand(p) for p in left.split(",")] if left.strip() else []
        self.outputs = [Operand(p) for p in right.split(",")] if right.strip() else []
