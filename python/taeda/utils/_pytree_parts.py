"""How containers come apart and together, by a name for each kind of container.

Libraries register containers of their own with what the built-in ones have, so
`taeda.utils._pytree` answers these names too.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque

from taeda.utils._pytree import _NAMED, SUPPORTED_NODES

__all__ = []


def _parts(kind) -> tuple:
    """`(flatten, flatten_with_keys, unflatten)` of one kind."""

    def with_keys(tree):
        values, context = kind.flatten(tree)
        return list(zip(kind.keys(tree), values, strict=True)), context

    return kind.flatten, with_keys, kind.unflatten


_KINDS = {
    "tuple": SUPPORTED_NODES[tuple],
    "list": SUPPORTED_NODES[list],
    "dict": SUPPORTED_NODES[dict],
    "namedtuple": _NAMED,
    "ordereddict": SUPPORTED_NODES[OrderedDict],
    "odict": SUPPORTED_NODES[OrderedDict],
    "defaultdict": SUPPORTED_NODES[defaultdict],
    "deque": SUPPORTED_NODES[deque],
}
_ENDINGS = "flatten", "flatten_with_keys", "unflatten"
# Name in `_pytree` -> function.
NAMED_PARTS = {
    f"_{name}_{ending}": part
    for name, kind in _KINDS.items()
    for ending, part in zip(_ENDINGS, _parts(kind), strict=True)
}
