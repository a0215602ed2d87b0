"""Names for type annotations."""

from __future__ import annotations

import builtins
from typing import TypeAlias, Union

from taeda import Size, Tensor
from taeda._C import device as _device
from taeda._C import dtype as _dtype  # noqa: F401
from taeda._C import layout as _layout  # noqa: F401

__all__ = ["Device", "FileLike", "Number"]

Number: TypeAlias = builtins.int | builtins.float | builtins.bool
Device: TypeAlias = _device | str | builtins.int | None
FileLike: TypeAlias = Union[str, "object"]
_int = builtins.int
_float = builtins.float
_bool = builtins.bool
_complex = builtins.complex
_TensorOrTensors: TypeAlias = Union[Tensor, "tuple[Tensor, ...]"]
_TensorOrTensorsOrGradEdge: TypeAlias = Union[Tensor, "tuple[Tensor, ...]"]
_size: TypeAlias = Union[Size, "list[int]", "tuple[int, ...]"]
_symsize: TypeAlias = _size
_dispatchkey: TypeAlias = str
_qscheme: TypeAlias = object


def __getattr__(name: str):
    if name == "Storage":
        from taeda import UntypedStorage

        return UntypedStorage
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
