"""How operators are made of the core ones."""

from __future__ import annotations

from functools import cache

from taeda._ops import OpOverload

from ._decompositions import written

__all__ = ["CustomDecompTable"]


@cache
def _is_composite(op: OpOverload) -> bool:
    if op.__name__.startswith("sym_"):
        return False
    return op.record.family == "composite"


def _without_entry(op):
    def decompose(*args, **kwargs):
        return op.decompose(*args, **kwargs)

    return decompose


class CustomDecompTable(dict):
    """Operator -> a function that computes it by others.

    Every composite operator is in it, made of what it calls; further entries are there
    for what is no core operator. Taking an entry out keeps the operator whole.

    Example:
        >>> table = taeda.export.default_decompositions()
        >>> del table[taeda.ops.aten.linear.default]
        >>> taeda.ops.aten.linear.default in table
        False
    """

    def __init__(self) -> None:
        super().__init__(written())
        self.removed: set[OpOverload] = set()

    def __missing__(self, op):
        if op in self:
            return _without_entry(op)
        raise KeyError(op)

    def __contains__(self, key) -> bool:
        if super().__contains__(key):
            return True
        composite = isinstance(key, OpOverload) and key not in self.removed
        return composite and _is_composite(key)

    def __setitem__(self, key, value) -> None:
        self.removed.discard(key)
        super().__setitem__(key, value)

    def __delitem__(self, key) -> None:
        self.pop(key)

    def get(self, op, default=None):
        """The function of an operator."""
        return self[op] if op in self else default

    def pop(self, *args):
        """Takes an entry out: the operator stays whole.

        Args:
            args: the operator, and what to give where there is no entry.
        """
        op, *default = args
        if op not in self and default:
            return default[0]
        found = self[op]
        super().pop(op, None)
        self.removed.add(op)
        return found

    def copy(self) -> CustomDecompTable:
        """A table with the same entries."""
        made = CustomDecompTable()
        dict.clear(made)
        dict.update(made, self)
        made.removed = set(self.removed)
        return made

    def materialize(self) -> dict:
        """The entries that are written out, as a plain dict."""
        return dict(self)
