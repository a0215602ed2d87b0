"""Symbols for sizes: the `ShapeEnv` of a trace, and questions about numbers."""

from __future__ import annotations

import contextlib
import re
from typing import NamedTuple

import taeda
from taeda import _shapes

__all__ = [
    "ConstraintViolationError",
    "Guard",
    "GuardOnDataDependentSymNode",
    "ShapeEnv",
    "free_symbols",
    "free_unbacked_symbols",
    "guard_int",
    "guard_or_false",
    "guard_or_true",
    "guard_size_oblivious",
    "has_free_symbols",
    "is_symbolic",
    "statically_known_true",
]


class GuardOnDataDependentSymNode(RuntimeError):
    """A condition depends on a size that comes from data, which has no hint."""


class ConstraintViolationError(RuntimeError):
    """A size is not what was said of it."""


class Guard(NamedTuple):
    """What must hold of sizes for a trace to be valid.

    Attributes: expression, a condition on symbols as it was asked (a SymBool); text,
    the same over the sources of the symbols; where, the program's line that asked, or
    an empty string.
    """

    expression: taeda.SymBool
    text: str
    where: str


class ShapeEnv:
    """The symbols of one trace with what is known of them, and its guards.

    A symbol with a hint stands for a size that was seen; sizes that were equal share
    one. A decision about it leaves a guard: under other sizes the trace is valid where
    all guards hold. A symbol without a hint stands for a size that comes from data.

    Args:
        allow_scalar_outputs: `item()` of a fake tensor gives a symbol without a hint.
        allow_dynamic_output_shape_ops: so do the sizes of `nonzero` and the like.

    Example:
        >>> env = taeda.fx.experimental.symbolic_shapes.ShapeEnv()
        >>> size = env.create_size(8)
        >>> bool(size > 3), env.guards
        (True, ['s0 >= 4'])
    """

    def __init__(
        self,
        *,
        allow_scalar_outputs: bool = True,
        allow_dynamic_output_shape_ops: bool = True,
    ) -> None:
        self._native = _shapes.ShapeEnv()
        self._unnamed = 0
        self._unbacked_floats = 0
        self.allow_scalar_outputs = allow_scalar_outputs
        self.allow_dynamic_output_shape_ops = allow_dynamic_output_shape_ops

    def __deepcopy__(self, memo):
        return self  # symbols and their tensors belong to one

    def create_size(self, hint: int, source: str | None = None, dynamic="duck"):
        """A symbol for a size.

        Args:
            hint: the size that was seen.
            source: what the symbol stands for, in guards ("x.size()[0]").
            dynamic: "duck": 0 and 1 are integers, and equal hints share a symbol;
                "marked": a symbol of its own whatever the hint; "static": an integer.

        Returns:
            A SymInt, or an int.
        """
        if source is None:
            source = f"size{self._unnamed}"
            self._unnamed += 1
        return self._native.create_size(int(hint), source, dynamic)

    def create_unbacked_symint(self, *, size: bool = True):
        """A SymInt that comes from data, without a hint.

        Args:
            size: it is one: not negative.
        """
        return self._native.create_unbacked(0 if size else None, None)

    def create_unbacked_symbool(self):
        """A SymBool that comes from data."""
        return self._native.create_unbacked(0, 1) == 1

    def create_unbacked_symfloat(self):
        """A SymFloat that comes from data."""
        name = f"zuf{self._unbacked_floats}"
        self._unbacked_floats += 1

        def unknown() -> float:
            raise GuardOnDataDependentSymNode(
                f"Could not guard on data-dependent expression {name}"
            )

        return taeda.SymFloat(name, unknown)

    @contextlib.contextmanager
    def laying_out(self):
        """A context: operators ask, to lay out their results.

        A size that comes from data, without a hint, then counts as one that is neither
        0 nor 1; that it is none that is negative has to hold at run time.
        """
        before = self._native.lay_out(True)
        try:
            yield
        finally:
            self._native.lay_out(before)

    @property
    def guards(self) -> list[str]:
        """The conditions that decisions have left, in their order."""
        return [text for text, _ in self._native.guards()]

    @property
    def deferred_runtime_asserts(self) -> list[str]:
        """What was said of sizes that come from data, to be checked at run time."""
        return [text for text, _ in self._native.assertions()]

    def format_guards(self, verbose: bool = False) -> str:
        """One guard in a line, with the program's line that asked where `verbose`."""
        shown = self._native.guards()
        return "\n".join(
            f" - {text} ({where})" if verbose and where else f" - {text}"
            for text, where in shown
        )

    def guards_on_sources(self) -> list[Guard]:
        """All that must hold of the sizes of inputs, each as an expression.

        The conditions that decisions have left, that the sources of one symbol agree,
        and the least values that were assumed of symbols (0 and 1 are others).

        Returns:
            The guards, in that order; those of the last two kinds have no expression
            of their own and are True there.

        Example:
            >>> env = taeda.fx.experimental.symbolic_shapes.ShapeEnv()
            >>> bool(env.create_size(8, "x.size()[0]") > 3)
            True
            >>> [guard.text for guard in env.guards_on_sources()]
            ['x.size()[0] >= 4', 'x.size()[0] >= 2']
        """
        symbols = self._native.sources()
        names = {name: sources[0] for name, sources, _ in symbols}

        def on_sources(text: str) -> str:
            return re.sub(r"\bs\d+\b", lambda m: names.get(m[0], m[0]), text)

        found = []
        texts = self._native.guards()
        for (node, where), (text, _) in zip(
            self._native.conditions(), texts, strict=True
        ):
            found.append(Guard(taeda.SymBool(node), on_sources(text), where))
        for _, (first, *others), _ in symbols:
            found += [Guard(True, f"Eq({first}, {other})", "") for other in others]
        for _, (first, *_), low in symbols:
            found.append(Guard(True, f"{first} >= {low}", ""))
        return found

    def evaluate(self, value, sizes: dict[str, int]):
        """A number, or each one of a tuple or a list, at other sizes.

        Args:
            value: a SymInt, SymBool or SymFloat of this env, or a plain number.
            sizes: integers by the sources of symbols; by their names where they have
                no source ("u0").

        Returns:
            An int, bool or float; a tuple of them for a tuple or a list.

        Raises:
            RuntimeError: a symbol has no value, or sources of one symbol differ.

        Example:
            >>> env = taeda.fx.experimental.symbolic_shapes.ShapeEnv()
            >>> size = env.create_size(8, "x.size()[0]")
            >>> env.evaluate((2 * size, size / 4, 3), {"x.size()[0]": 10})
            (20, 2.5, 3)
        """
        if isinstance(value, (tuple, list)):
            return tuple(self.evaluate(v, sizes) for v in value)
        if isinstance(value, (taeda.SymInt, taeda.SymBool)):
            return value.node.evaluate(sizes)
        if isinstance(value, taeda.SymFloat):
            return value.evaluate(sizes)
        return value

    def fits(self, sizes: dict[str, int]) -> bool:
        """Whether the guards hold for these sizes, given by their sources.

        Raises:
            RuntimeError: a source has no size.
        """
        return self._native.fits(sizes)


def _symbolic(v) -> bool:
    return isinstance(v, (taeda.SymInt, taeda.SymBool, taeda.SymFloat))


def is_symbolic(val) -> bool:
    """Whether a number is symbolic and not fixed yet."""
    if isinstance(val, taeda.SymInt):
        return not val.node.is_fixed()
    return _symbolic(val)


def _sizes(val):
    if isinstance(val, taeda.Tensor):
        return val.shape
    return val if isinstance(val, (tuple, list)) else (val,)


def _names(val) -> set[str]:
    from re import findall

    shown = (repr(v) for v in _sizes(val) if _symbolic(v))
    return {name for text in shown for name in findall(r"\b[su]\d+\b", text)}


def free_symbols(val) -> set[str]:
    """The names of the symbols in a number, a list of numbers or a tensor's sizes."""
    return _names(val)


def free_unbacked_symbols(val) -> set[str]:
    """Those of them that have no hint."""
    return {name for name in _names(val) if name.startswith("u")}


def has_free_symbols(val) -> bool:
    """Whether there are any."""
    return bool(_names(val))


def guard_int(a) -> int:
    """The integer; a symbolic one is fixed to its hint, which leaves a guard."""
    return int(a)


def statically_known_true(x) -> bool:
    """Whether a condition holds by what is known, without asking for a hint."""
    return x.node.known() is True if isinstance(x, taeda.SymBool) else bool(x)


def guard_or_false(a) -> bool:
    """The condition's truth; False where it depends on data."""
    if isinstance(a, taeda.SymBool) and not a.node.has_hint():
        return False
    return bool(a)


def guard_or_true(a) -> bool:
    """The condition's truth; True where it depends on data."""
    if isinstance(a, taeda.SymBool) and not a.node.has_hint():
        return True
    return bool(a)


def guard_size_oblivious(a) -> bool:
    """The condition's truth."""
    return bool(a)


from ._questions import *  # noqa: E402, F403  which ask the functions above
