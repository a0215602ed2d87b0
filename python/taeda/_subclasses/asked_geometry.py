"""Wrappers whose sizes and strides `__torch_dispatch__` says whenever they are read.

The tensor itself has the geometry that it was made with, which is what the library's
own code sees; programs read the answers of the class. The members of the class stay
those of `Tensor`: what instances are asked for is caught before it is looked up.
"""

from __future__ import annotations

import functools

import taeda
from taeda import _C

__all__ = ["ask_class"]

_STRIDES, _SIZES = "strides", "sizes"
# Name of the attribute of an instance that says what is asked.
_POLICY = "_asked_geometry"


def ask_class(made, policy: str) -> None:
    """From now on the geometry of a wrapper is asked of its class.

    Args:
        made (Tensor): of a class with `__torch_dispatch__`, whose look-up of
            attributes is changed the first time.
        policy: "strides", or "sizes" for both.

    Raises:
        RuntimeError: another policy.
        NotImplementedError: the class looks attributes up itself.
    """
    if policy not in (_STRIDES, _SIZES):
        raise RuntimeError(
            "_make_wrapper_subclass: dispatch_sizes_strides_policy: expected "
            f"'strides' or 'sizes', got {policy!r}"
        )
    cls = type(made)
    if cls.__getattribute__ is not _read:
        if cls.__getattribute__ is not _base.__getattribute__:
            raise NotImplementedError(
                "_make_wrapper_subclass: dispatch_sizes_strides_policy of "
                f"{cls.__name__}, which has a __getattribute__ of its own"
            )
        cls.__getattribute__, cls.__len__ = _read, _len
    setattr(made, _POLICY, policy)


def _read(self, name: str):
    if name in _MEMBERS and getattr(type(self), name) is getattr(_base, name):
        return _MEMBERS[name](self)
    return _base.__getattribute__(self, name)


def _asked(tensor, operator: str, *args, overload: str = "default"):
    """The class's answer; None where it has none and the tensor's own counts."""
    policy = tensor.__dict__.get(_POLICY)
    of_strides = operator in ("sym_stride", "is_contiguous")
    if policy is None or (policy == _STRIDES and not of_strides):
        return None
    func = getattr(getattr(taeda.ops.aten, operator), overload)
    cls = type(tensor)
    answer = cls.__torch_dispatch__(func, (cls,), (tensor, *args), {})
    if answer is NotImplemented:
        raise TypeError(
            f"Multiple dispatch failed for '{func}'; all __torch_dispatch__ handlers "
            f"returned NotImplemented:\n\n  - tensor subclass {cls}"
        )
    return answer


def _place(tensor, dim: int) -> int:
    dims = tensor.dim()
    if not -dims <= dim < dims:
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-dims}, "
            f"{dims - 1}], but got {dim})"
        )
    return dim % dims


def _size(self, dim=None):
    answer = _asked(self, "sym_size")
    if answer is None:
        return _base.size(self) if dim is None else _base.size(self, dim)
    return taeda.Size(answer) if dim is None else answer[_place(self, dim)]


def _stride(self, dim=None):
    answer = _asked(self, "sym_stride")
    if answer is None:
        return _base.stride(self) if dim is None else _base.stride(self, dim)
    return tuple(answer) if dim is None else answer[_place(self, dim)]


def _reader(name: str, operator: str):
    def read(self):
        answer = _asked(self, operator)
        return getattr(_base, name)(self) if answer is None else answer

    read.__name__ = name
    return read


def _is_contiguous(self, *, memory_format=_C.contiguous_format):
    if memory_format is _C.contiguous_format:
        answer = _asked(self, "is_contiguous")
    else:
        answer = _asked(self, "is_contiguous", memory_format, overload="memory_format")
    if answer is None:
        return _base.is_contiguous(self, memory_format=memory_format)
    return answer


def _len(self) -> int:
    if self.dim() == 0:
        raise TypeError("len() of a 0-d tensor")
    return self.size(0)


_base = taeda.Tensor
# What reading each name gives.
_MEMBERS = {
    "shape": _size,
    "ndim": _reader("dim", "dim"),
    **{
        name: functools.partial(functools.partial, method)
        for name, method in {
            "size": _size,
            "stride": _stride,
            "dim": _reader("dim", "dim"),
            "numel": _reader("numel", "sym_numel"),
            "nelement": _reader("numel", "sym_numel"),
            "storage_offset": _reader("storage_offset", "sym_storage_offset"),
            "is_contiguous": _is_contiguous,
        }.items()
    },
}
