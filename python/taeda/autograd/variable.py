"""Variable, the old name of tensors that can be differentiated."""

from __future__ import annotations

import sys
import types

import taeda


class _VariableMeta(type):
    def __instancecheck__(cls, other) -> bool:
        return isinstance(other, taeda.Tensor)


class Variable(metaclass=_VariableMeta):
    """`Variable(t, requires_grad)` is a tensor over t's memory.

    Example:
        >>> taeda.autograd.Variable(taeda.ones(2), requires_grad=True)
        tensor([1., 1.], requires_grad=True)
    """

    def __new__(cls, data=None, requires_grad: bool = False, volatile=None):
        tensor = taeda.tensor([]) if data is None else data.detach()
        return tensor.requires_grad_(requires_grad)


class _CallableModule(types.ModuleType):
    """`taeda.autograd.variable` was a function once; calls of it say so."""

    def __call__(self, *args, **kwargs):
        raise RuntimeError(taeda.autograd._VARIABLE_IS_GONE)


sys.modules[__name__].__class__ = _CallableModule
