"""How a quantized tensor's integers stand for numbers: names without tensors yet.

Configurations of quantization name them, compare them and print them.
"""

from __future__ import annotations

import taeda

_NAMES = (
    "per_channel_affine per_channel_affine_float_qparams per_channel_symmetric"
    " per_tensor_affine per_tensor_symmetric"
).split()
__all__ = ["qscheme", *_NAMES]


class qscheme:
    """One of `taeda.per_tensor_affine` and its kin; others cannot be made."""

    __slots__ = ("_name",)

    def __new__(cls):
        raise TypeError(f"cannot create '{taeda.__name__}.qscheme' instances")

    def __repr__(self) -> str:
        return f"{taeda.__name__}.{self._name}"

    def __reduce__(self):
        return f"{self._name}"


qscheme.__module__ = "taeda"


def _made(name: str) -> qscheme:
    one = object.__new__(qscheme)
    one._name = name
    return one


globals().update((name, _made(name)) for name in _NAMES)
