"""The formulas of records: by kind, by choice, and by accumulator."""

from __future__ import annotations

from dataclasses import dataclass

from .choices import When, choices_of
from .errors import CodegenError
from .record_dtypes import KINDS
from .yaml_fields import Node, Text, entries_of, entry, list_of, named, struct, text


@dataclass(frozen=True)
class KindExpr:
    """One expression for all kinds of compute type, or one per kind and `default`."""

    by_kind: dict[str, Text]

    def for_kind(self, kind: str) -> Text:
        found = self.by_kind.get(kind, self.by_kind.get("default"))
        if found is None:
            place = next(iter(self.by_kind.values())).location
            raise CodegenError(f"no expression for kind {kind!r} and no default", place)
        return found


def _kind_expr(node: Node) -> KindExpr:
    found = named(text, "default")(node)
    for kind, value in found.items():
        if kind not in (*KINDS, "default"):
            raise CodegenError(f"expr: unknown kind {kind!r}", value.location)
    if not found:
        raise node.fail("expr: empty")
    return KindExpr(found)


@dataclass(frozen=True)
class Formula:
    """The expressions of a pointwise overload: one, or one for each choice."""

    by_choice: tuple[tuple[When, KindExpr], ...]

    @property
    def whens(self) -> list[When]:
        return [when for when, _ in self.by_choice]

    def for_kind(self, kind: str) -> Text:
        """The first choice's expression for a kind."""
        return self.by_choice[0][1].for_kind(kind)

    @property
    def key(self) -> tuple:
        """Equal for overloads that compute the same."""
        return tuple(
            (
                tuple(map(str, when)),
                tuple(sorted((k, str(v)) for k, v in e.by_kind.items())),
            )
            for when, e in self.by_choice
        )


def formula(node: Node) -> Formula:
    return Formula(tuple(choices_of(node, _kind_expr, (*KINDS, "default"))))


@dataclass(frozen=True)
class Fold:
    """How elements become one: init, map, combine and finish, by kind of compute."""

    init: dict[str, Text] = entry(named(text, "acc"))
    combine: dict[str, Text] = entry(named(text, "acc"))
    map: dict[str, Text] = entry(named(text, "acc"), {})
    finish: Text | None = entry(text, None)
    empty: Text | None = entry(text, None)


def folds(node: Node) -> tuple[tuple[When, Fold], ...]:
    return tuple(choices_of(node, struct(Fold, "fold"), tuple(entries_of(Fold))))


@dataclass(frozen=True)
class Accumulation:
    """How elements become results, each part by accumulator (`acc` if only one).

    `map` is the state of one element, `combine` that of two parts side by side (`a`,
    `b`; with several accumulators `a.name`, `b.name`), `init` that of no element, and
    `finish` has a text for each result.
    """

    combine: dict[str, Text] = entry(named(text, "acc"))
    map: dict[str, Text] = entry(named(text, "acc"), {})
    init: dict[str, Text] = entry(named(text, "acc"), {})
    finish: tuple[Text, ...] = entry(lambda node: texts(node), ())


Accumulations = tuple[tuple[When, Accumulation], ...]


def texts(node: Node) -> tuple[Text, ...]:
    return list_of(text)(node) if node.tag == "seq" else (text(node),)


def accumulations(node: Node) -> Accumulations:
    """One, or one for each choice (choices.py)."""
    leaf = struct(Accumulation, "fold")
    return tuple(choices_of(node, leaf, tuple(entries_of(Accumulation))))
