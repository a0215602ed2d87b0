"""Nested dictionaries as flat ones, with names joined by dots, and back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import taeda

__all__ = ["flatten_state_dict", "set_element", "traverse", "unflatten_state_dict"]


def _has_parts(value: Any) -> bool:
    """Is this walked into? Lists are if a tensor or a dictionary is in them."""
    if isinstance(value, Mapping):
        return True
    if not isinstance(value, list):
        return False
    return any(isinstance(item, taeda.Tensor) or _has_parts(item) for item in value)


def traverse(
    value: Any, visit: Callable, path: tuple = (), has_parts: Callable = _has_parts
) -> None:
    """Calls `visit(path, value)` for every value that is not walked into.

    A path has names (str) for dictionaries and numbers (int) for lists.
    """
    if not path or has_parts(value):
        named = isinstance(value, Mapping)
        for key, item in value.items() if named else enumerate(value):
            step = str(key) if named else key
            traverse(item, visit, (*path, step), has_parts)
    else:
        visit(path, value)


def _had_parts(value: Any) -> bool:
    """As `_has_parts` up to PyTorch 2.3, which kept dictionaries of plain values."""
    if isinstance(value, Mapping):
        items = value.values()
    elif isinstance(value, list):
        items = value
    else:
        return False
    return any(isinstance(item, taeda.Tensor) or _had_parts(item) for item in items)


def flatten_state_dict(state_dict: Mapping, old: bool = False) -> tuple[dict, dict]:
    """(flat name -> value, flat name -> path) of a nested dictionary.

    Args:
        old (bool): by the rules of checkpoints of PyTorch 2.3 and before.

    Raises:
        ValueError: two paths have the same flat name.
    """
    flat: dict = {}
    paths: dict = {}

    def visit(path: tuple, value: Any) -> None:
        name = ".".join(map(str, path))
        if name in flat:
            raise ValueError(f"duplicated flatten key {name}")
        flat[name], paths[name] = value, path

    traverse(state_dict, visit, (), _had_parts if old else _has_parts)
    return flat, paths


def set_element(root: Any, path: tuple, value: Any) -> None:
    """Puts a value at a path, making dictionaries and lists on the way."""
    place = root
    for step, following in zip(path, path[1:], strict=False):
        fresh: Any = {} if isinstance(following, str) else []
        if isinstance(place, list):
            _reach(place, step)
            if place[step] is None:
                place[step] = fresh
        elif step not in place:
            place[step] = fresh
        place = place[step]
    if isinstance(place, list):
        _reach(place, path[-1])
    place[path[-1]] = value


def _reach(items: list, index: int) -> None:
    """Makes the list long enough."""
    items.extend([None] * (index + 1 - len(items)))


def unflatten_state_dict(state_dict: Mapping, mapping: Mapping) -> dict:
    """The nested dictionary of what `flatten_state_dict` returned."""
    nested: dict = {}
    for name, value in state_dict.items():
        set_element(nested, mapping[name], value)
    return nested
