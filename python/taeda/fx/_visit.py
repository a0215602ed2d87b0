"""Walks through the arguments of nodes: tuples, lists, dicts, slices and ranges.

Arguments are mapped, collected and printed in one way, here.
"""

from __future__ import annotations

from .immutable_collections import immutable_dict, immutable_list

__all__ = ["is_named", "rebuild", "spell"]


def is_named(a) -> bool:
    """Whether a value is a named tuple."""
    return isinstance(a, tuple) and hasattr(a, "_fields")


def rebuild(a, leaf):
    """The same structure with `leaf(x)` in place of every x that is no container.

    Lists and dicts come out immutable; a dict's keys stay as they are.
    """
    if isinstance(a, tuple):
        items = [rebuild(x, leaf) for x in a]
        return type(a)(*items) if is_named(a) else tuple(items)
    if isinstance(a, list):
        return immutable_list([rebuild(x, leaf) for x in a])
    if isinstance(a, dict):
        return immutable_dict({k: rebuild(v, leaf) for k, v in a.items()})
    if isinstance(a, slice):
        return slice(*(rebuild(x, leaf) for x in (a.start, a.stop, a.step)))
    return leaf(a)


def spell(a, leaf, key=str, longest: float = float("inf")) -> str:
    """The structure as text: brackets here, everything else by `leaf`.

    Args:
        a: an argument.
        leaf: the text of what is no tuple, list or dict.
        key: the text of a dict's key.
        longest: entries shown of a sequence; what is left out is counted.
    """
    if isinstance(a, dict):
        shown = (f"{key(k)}: {spell(v, leaf, key, longest)}" for k, v in a.items())
        return "{" + ", ".join(shown) + "}"
    if not isinstance(a, (tuple, list)):
        return leaf(a)
    many = len(a) > longest
    shown = a[: int(longest)] if many else a
    text = ", ".join(spell(x, leaf, key, longest) for x in shown)
    if isinstance(a, tuple) and len(a) == 1:
        text += ","
    if many:
        text += f", ...[total_len={len(a)}]"
    return f"({text})" if isinstance(a, tuple) else f"[{text}]"
