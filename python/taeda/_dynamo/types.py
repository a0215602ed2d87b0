"""What filters of guards are given."""

from __future__ import annotations

from collections import namedtuple
from typing import NamedTuple

__all__ = ["Guard", "GuardFilterEntry", "GuardSource"]


class GuardSource(NamedTuple):
    """Where what a guard looks at comes from.

    Args:
        globals: whether from a global, a module or a class.
        module: whether it is an `nn.Module` or hangs on one.
        builtin: whether that module's class is the library's own.
    """

    globals: bool
    module: bool
    builtin: bool

    def is_global(self) -> bool:
        """Whether it is found by a global."""
        return self.globals

    def is_local(self) -> bool:
        """Whether it is found by a variable of the function."""
        return not self.globals

    def is_unspecialized_nn_module(self) -> bool:
        """Whether it is an `nn.Module` or one's attribute."""
        return self.module

    def is_unspecialized_builtin_nn_module(self) -> bool:
        """Whether it is one of the library's modules or such a one's attribute."""
        return self.builtin


class Guard(NamedTuple):
    """A guard's name, like "L['x']", and its source."""

    name: str
    source: GuardSource


class GuardFilterEntry(
    namedtuple(
        "GuardFilterEntry",
        "name has_value value guard_type derived_guard_types is_global orig_guard",
    )
):
    """A guard, as a filter sees it.

    Args:
        name: how the function finds what is looked at, like "self.scale".
        has_value, value: what was found there when the graph was captured.
        guard_type: what must stay the same: "TENSOR_MATCH" (class, dtype, sizes and so
            on of a tensor), "CONSTANT_MATCH", "TYPE_MATCH", "ID_MATCH",
            "CLOSURE_MATCH", "SEQUENCE_LENGTH", "DICT_KEYS_MATCH", "SHAPE_ENV" (what
            must hold of symbolic sizes), ...
        derived_guard_types: nothing here; each guard is an entry.
        is_global: whether it is found by a global and not by an argument.
        orig_guard: the name again, with the source, a `Guard`.
    """

    __slots__ = ()
