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


def has_type(obj: Any, target_type: Any) -> bool:
    """Whether `obj`, and all that it holds, is of one of the target types.

    Args:
        obj: anything.
        target_type: a class, List, Dict, Tuple, Optional or Union of types, however
            nested, or a tuple of such types.

    Raises:
        RuntimeError: a container type that does not say what it holds.
        TypeError: what is no type.
    """
    several = isinstance(target_type, tuple)
    return any(
        _is_of(obj, kind) for kind in (target_type if several else [target_type])
    )


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
