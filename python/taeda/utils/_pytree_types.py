"""Types of the functions that containers are registered with, for annotations."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

__all__ = [
    "DumpableContext",
    "FlattenFn",
    "FromDumpableContextFn",
    "ToDumpableContextFn",
    "UnflattenFn",
]

# What JSON holds of a container's shape, and a container's shape itself.
DumpableContext = Any
_Context = Any
FlattenFn = Callable[[Any], tuple[list[Any], _Context]]
UnflattenFn = Callable[[Iterable[Any], _Context], Any]
ToDumpableContextFn = Callable[[_Context], DumpableContext]
FromDumpableContextFn = Callable[[DumpableContext], _Context]
