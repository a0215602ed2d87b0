"""The order in which `einsum` multiplies three operands and more.

With the package opt_einsum it is the one that package finds, unless `enabled` is False;
without it, from left to right.
"""

from __future__ import annotations

from functools import cache

from ._switches import flag_functions, properties

__all__ = ["flags", "get_opt_einsum", "is_available", "set_flags"]


@cache
def is_available() -> bool:
    """Whether the package opt_einsum is installed."""
    from importlib.util import find_spec

    return find_spec("opt_einsum") is not None


def get_opt_einsum():
    """The package; None where it is not installed."""
    if not is_available():
        return None
    from importlib import import_module

    return import_module("opt_einsum")


class _Enabled:
    """Whether the package is asked; one attribute, set under the interpreter's lock."""

    value = True

    def read(self) -> bool:
        return is_available() and self.value

    def write(self, value: bool) -> None:
        if value and not is_available():
            raise ValueError(
                "opt_einsum is not available, so that it cannot be enabled; install it "
                "first"
            )
        self.value = bool(value)


class _Strategy:
    """How opt_einsum searches; one attribute, set under the interpreter's lock."""

    value = "auto"
    known = ("auto", "greedy", "optimal")
    assigned = "auto"  # what `flags` may come back to besides

    def read(self) -> str | None:
        return self.value if is_available() else None

    def write(self, value: str) -> None:
        if value not in (*self.known, self.assigned):
            raise ValueError(
                f"`strategy` must be one of the following: {list(self.known)} but is "
                f"{value}"
            )
        self.value = value


class _Assigned:
    """The strategy as an attribute: any that opt_einsum knows, checked by it alone."""

    def read(self) -> str | None:
        return _switches["strategy"].read()

    def write(self, value: str) -> None:
        strategy = _switches["strategy"]
        strategy.value = strategy.assigned = value


_switches = {"enabled": _Enabled(), "strategy": _Strategy()}
set_flags, flags = flag_functions(_switches, {"enabled": None, "strategy": None})


def path_of(equation: str, operands) -> list[int] | None:
    """The positions that `einsum` is to multiply step by step; None: as they stand."""
    if len(operands) < 3 or not _switches["enabled"].read():
        return None
    steps, _ = get_opt_einsum().contract_path(
        equation, *operands, optimize=_switches["strategy"].read()
    )
    return [position for step in steps for position in step]


properties(__name__, enabled=_switches["enabled"], strategy=_Assigned())
