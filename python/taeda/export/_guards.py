"""What must hold of the inputs of an exported program, as text that can be saved.

A guard is a condition on sources (`x.size()[0] % 2 == 0`), written in a small part of
Python that `holds` evaluates itself: numbers, sizes, arithmetic and comparisons. So a
program from a file brings no code along.
"""

from __future__ import annotations

import ast
import operator
from itertools import product

import taeda
from taeda import nn
from taeda._dynamo.exc import UserError, UserErrorType

from .dynamic_shapes import INT_OO

__all__ = ["GuardsFn", "Symbol", "ValueRanges", "pretty", "value_of"]


class Symbol(str):
    """The name of a symbol, or an expression of symbols, shown as it is."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)

    name = property(str)


class ValueRanges:
    """The values that a size may have.

    Attributes: lower, upper: the least and the largest; `int_oo` has no bound.
    """

    __slots__ = ("lower", "upper")

    def __init__(self, lower, upper) -> None:
        self.lower, self.upper = lower, upper

    def __contains__(self, value) -> bool:
        return self.lower <= value <= self.upper

    def __eq__(self, other) -> bool:
        if not isinstance(other, ValueRanges):
            return NotImplemented
        return (self.lower, self.upper) == (other.lower, other.upper)

    def __hash__(self) -> int:
        return hash((self.lower, self.upper))

    def __repr__(self) -> str:
        low, high = map(_bound, (self.lower, self.upper))
        return f"VR[{low}, {high}]"


def _bound(value) -> str:
    if isinstance(value, float):
        return "oo" if value > 0 else "-oo"
    if abs(value) >= INT_OO:
        return "int_oo" if value > 0 else "-int_oo"
    return str(value)


_OPERATIONS = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Div: operator.truediv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.USub: operator.neg,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Not: operator.not_,
}
_FUNCTIONS = {
    "Eq": operator.eq,
    "Ne": operator.ne,
    "Mod": operator.mod,
    "Max": taeda.sym_max,
    "Min": taeda.sym_min,
    "IntTrueDiv": operator.truediv,
    "FloatTrueDiv": operator.truediv,
    "FloatPow": operator.pow,
    "ToFloat": taeda.sym_float,
    "Not": operator.not_,
}
_WRITTEN = {"Eq": ast.Eq, "Ne": ast.NotEq}


class _Pretty(ast.NodeTransformer):
    """Writes calls as operators, and sources in the place of symbols."""

    def __init__(self, sources: dict[str, str]) -> None:
        self.sources = sources

    def visit_Name(self, node):
        if node.id in self.sources:
            return ast.parse(self.sources[node.id], mode="eval").body
        return node

    def visit_Call(self, node):
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        if name in _WRITTEN:
            left, right = map(self.visit, node.args)
            return ast.Compare(left, [_WRITTEN[name]()], [right])
        if name == "Mod":
            left, right = map(self.visit, node.args)
            return ast.BinOp(left, ast.Mod(), right)
        return self.generic_visit(node)


def pretty(text: str, sources: dict[str, str]) -> str:
    """A condition on symbols as one on what they stand for, written as in Python."""
    return ast.unparse(_Pretty(sources).visit(ast.parse(text, mode="eval")))


def value_of(text: str, known: dict):
    """The value of an expression.

    Args:
        text: numbers, names, sizes (`x.size()[0]`), arithmetic, comparisons.
        known: the value of each name or source.

    Raises:
        ValueError: the text has something else in it.
    """
    return _value(ast.parse(text, mode="eval").body, known)


def _value(tree, known: dict):
    if isinstance(tree, ast.Constant):
        return tree.value
    if isinstance(tree, ast.BinOp):
        sides = (_value(tree.left, known), _value(tree.right, known))
        return _OPERATIONS[type(tree.op)](*sides)
    if isinstance(tree, ast.UnaryOp):
        return _OPERATIONS[type(tree.op)](_value(tree.operand, known))
    if isinstance(tree, ast.BoolOp):
        join = all if isinstance(tree.op, ast.And) else any
        return join(_value(part, known) for part in tree.values)
    if isinstance(tree, ast.Compare) and len(tree.ops) == 1:
        sides = (_value(tree.left, known), _value(tree.comparators[0], known))
        return _OPERATIONS[type(tree.ops[0])](*sides)
    text = ast.unparse(tree)
    if text in known:
        return known[text]
    if isinstance(tree, ast.Call) and isinstance(tree.func, ast.Name):
        if tree.func.id in _FUNCTIONS:
            return _FUNCTIONS[tree.func.id](*(_value(a, known) for a in tree.args))
    if isinstance(tree, ast.Subscript) and isinstance(tree.value, ast.Call):
        return _size(tree, known)
    raise ValueError(f"guard: {text} is not known")


def _size(tree, known: dict) -> int:
    """`x.size()[0]` of an input `x`."""
    call = tree.value.func
    if not isinstance(call, ast.Attribute) or call.attr != "size":
        raise ValueError(f"guard: {ast.unparse(tree)} is no size")
    return _value(call.value, known).size()[_value(tree.slice, known)]


class GuardsFn(nn.Module):
    """Checks the inputs of an exported program.

    Args:
        names: the inputs of the graph that the caller gives.
        guards: conditions on them.

    Raises:
        AssertionError: when it is called with inputs that do not fit.
    """

    _is_impure = True  # passes that look for dead code leave its calls

    def __init__(self, names=(), guards=()) -> None:
        super().__init__()
        self.names, self.guards = tuple(names), tuple(guards)

    def forward(self, *inputs) -> None:
        """Checks each guard in turn."""
        known = dict(zip(self.names, inputs, strict=True))
        for guard in self.guards:
            if not value_of(guard, known):
                raise AssertionError(f"Guard failed: {guard}")


# What a program's guards say about sizes that were named ---------------------------


def _samples(low: int, high: int, hint: int) -> list[int]:
    """Sizes to try, the seen one among them."""
    near = [
        *range(low, low + 33),
        hint - 1,
        hint,
        hint + 1,
        *(2**k for k in range(6, 13)),
    ]
    near += [n + 1 for n in near] + ([high] if high < INT_OO else [])
    return sorted({n for n in near if max(low, 2) <= n <= high})


def holds_always(guard: str, symbols) -> bool:
    """Whether a condition holds for all sizes that are tried, from two on."""
    names = [s.name for s in symbols if s.name in _names(guard)]
    few = (2, 3, 4, 5, 7, 8, 16, 31, 64, 1000, 4097)
    others = {s.name: s.hint for s in symbols}
    return (
        all(
            value_of(guard, {**others, **dict(zip(names, sizes, strict=True))})
            for sizes in product(few, repeat=min(len(names), 3))
            if len(sizes) == len(names)
        )
        and len(names) <= 3
    )


def check_named(symbols, guards: list[str]) -> None:
    """Holds the program's guards to what was promised of dynamic sizes.

    Each guard is tried at many sizes: it may leave out sizes of `Dim.DYNAMIC`, but none
    of those that a named `Dim` has, and not all but one.

    Args:
        symbols: the symbols with `name`, `hint`, `low`, `high`, `label`, `source` and
            `kind` ("auto", "dynamic" or "named").
        guards: conditions on them.

    Raises:
        UserError: a guard excludes sizes that were promised.
    """
    hints = {s.name: s.hint for s in symbols}
    problems: list[str] = []
    labels: dict[str, None] = {}
    fixes: dict[str, str] = {}
    for symbol in symbols:
        if symbol.kind == "auto":
            continue
        own = [g for g in guards if symbol.name in _names(g)]
        sizes = _samples(symbol.low, symbol.high, symbol.hint)
        kept = [
            n for n in sizes if all(value_of(g, {**hints, symbol.name: n}) for g in own)
        ]
        found = _complaint(symbol, symbols, own, sizes, kept, hints, fixes)
        if found:
            labels[symbol.label] = None
            problems += found
    if problems:
        raise _violated(problems, labels, fixes)


def _names(text: str) -> set[str]:
    return {n.id for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Name)}


def _complaint(symbol, symbols, own, sizes, kept, hints, fixes) -> list[str]:
    named = symbol.kind == "named"
    alone = [g for g in own if _names(g) & set(hints) == {symbol.name}]
    fixed = [
        n for n in sizes if all(value_of(g, {**hints, symbol.name: n}) for g in alone)
    ]
    if len(sizes) > 1 and fixed == [symbol.hint]:
        if named:
            fixes[symbol.label] = str(symbol.hint)
        return [specialized(symbol.label, symbol.hint)]
    if not named or kept == sizes:
        return []
    sources = {s.name: s.source for s in symbols}
    for guard in own:
        others = _names(guard) & set(hints) - {symbol.name}
        if others and guard.startswith("Eq("):
            other = next(s for s in symbols if s.name in others)
            if symbols.index(other) > symbols.index(symbol):
                return []  # said of that one
            fixes.setdefault(symbol.label, other.label)
            return [
                f"  - The values of {symbol.label} = {symbol.source} and {other.label}"
                f" = {other.source} must always be equal."
            ]
    broken = [g for g in alone if not all(value_of(g, {symbol.name: n}) for n in sizes)]
    return [
        f"  - Not all values of {symbol.label} = {symbol.source} in the specified range"
        f" satisfy the generated guard {pretty(guard, sources)}."
        for guard in broken
    ]


def specialized(label: str, size: int) -> str:
    """The complaint about a size that the program needs as it is."""
    return (
        f"  - You marked {label} as dynamic but your code specialized it to be a "
        f"constant ({size}). If you're using mark_dynamic, either remove it or use "
        "maybe_mark_dynamic. If you're using Dim.DYNAMIC, replace it with either "
        "Dim.STATIC or Dim.AUTO."
    )


def _violated(problems: list[str], labels, fixes: dict[str, str]) -> UserError:
    logs = f"{taeda.__name__.upper()}_LOGS"
    text = (
        f"Constraints violated ({', '.join(labels)})! For more information, run with "
    )
    text += f'{logs}="+dynamic".\n' + "\n".join(problems)
    if fixes:
        text += "\nSuggested fixes:\n"
        text += "\n".join(f"  {name} = {value}" for name, value in fixes.items())
    return UserError(UserErrorType.CONSTRAINT_VIOLATION, text)


def violated_at(label: str, size: int, named: bool) -> UserError:
    """The error for one size that cannot be dynamic, before the program has run."""
    fixes = {label: str(size)} if named else {}
    return _violated([specialized(label, size)], [label], fixes)
