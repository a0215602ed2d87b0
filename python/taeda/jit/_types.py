"""Whether a value has a TorchScript type: `jit.isinstance`."""

from __future__ import annotations

import builtins
import typing
from types import UnionType
from typing import Any, Union, get_args, get_origin

# Containers that are no types until they say what they hold, with an example.
_BARE = [
    (getattr(space, name), f"{name}[{held}]")
    for space, names in (
        (typing, ("List", "Dict", "Tuple", "Optional")),
        (builtins, ("list", "dict", "tuple")),
    )
    for name, held in zip(names, ("int", "int, int", "int", "int"), strict=False)
]


def has_type(value: Any, target: Any) -> bool:
    """Whether `value`, and all that it holds, is of one of the target types.

    Args:
        value: anything.
        target: a class, List, Dict, Tuple, Optional or Union of types, however nested,
            or a tuple of such types.

    Raises:
        RuntimeError: a container type that does not say what it holds.
        TypeError: what is no type.
    """
    targets = target if isinstance(target, tuple) else (target,)
    return any(_is_of(value, kind) for kind in targets)


def _is_of(value, kind) -> bool:
    example = next((text for bare, text in _BARE if bare is kind), None)
    if example is not None:
        raise RuntimeError(
            f"jit.isinstance: Attempted to use {kind} without a contained type. Please "
            f"add a contained type, e.g. {example}"
        )
    origin, inner = get_origin(kind), get_args(kind)
    if origin is None:
        return isinstance(value, kind)
    if origin in (Union, UnionType):
        return any(_is_of(value, k) for k in inner)
    if origin not in (list, dict, tuple) or not isinstance(value, origin):
        return False
    if origin is tuple:
        pairs = zip(value, inner, strict=False)
        return len(value) == len(inner) and all(_is_of(v, k) for v, k in pairs)
    if not value:
        _warn_of_empty(kind)
    if origin is list:
        return all(_is_of(v, inner[0]) for v in value)
    key, entry = inner
    return all(_is_of(k, key) and _is_of(v, entry) for k, v in value.items())


def _warn_of_empty(kind) -> None:
    import warnings

    warnings.warn(
        f"jit.isinstance: an empty container passes for {kind}, as it would for one of "
        "other elements",
        stacklevel=4,
    )
