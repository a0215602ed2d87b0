"""Variable, the old name of tensors that can be differentiated."""

from __future__ import annotations

import taeda


class _VariableMeta(type):
    def __instancecheck__(cls, other) -> bool:
        return isinstance(other, taeda.Tensor)


class Variable(metaclass=_VariableMeta):
    """`Variable(t, requires_grad)` is a tensor over t's memory."""

    def __new__(cls, data=None, requires_grad: bool = False, volatile=None):
        tensor = taeda.tensor([]) if data is None else data.detach()
        return tensor.requires_grad_(requires_grad)
