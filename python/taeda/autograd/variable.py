"""Variable, the old name of tensors that can be differentiated."""

from __future__ import annotations

import sys
import types

import taeda


class _Engine:
    """What programs reach as `Variable._execution_engine`."""

    @staticmethod
    def queue_callback(callback) -> None:
        """Call `callback()` when the running backward pass is done."""
        taeda._C._queue_callback(callback)

    @staticmethod
    def is_checkpoint_valid() -> bool:
        """Whether the running pass goes to all leaves."""
        return taeda._C._is_checkpoint_valid()

    @staticmethod
    def run_backward(
        tensors,
        grad_tensors,
        keep_graph: bool = False,
        create_graph: bool = False,
        inputs=(),
        allow_unreachable: bool = False,
        accumulate_grad: bool = False,
    ):
        """A backward pass; the gradients of `inputs` unless it accumulates."""
        return taeda._C._run_backward(
            tuple(tensors),
            tuple(grad_tensors),
            keep_graph,
            create_graph,
            tuple(inputs),
            allow_unreachable,
            accumulate_grad,
        )


class _VariableMeta(type):
    def __instancecheck__(cls, other) -> bool:
        return isinstance(other, taeda.Tensor)


class Variable(metaclass=_VariableMeta):
    """`Variable(t, requires_grad)` is a tensor over t's memory.

    Example:
        >>> taeda.autograd.Variable(taeda.ones(2), requires_grad=True)
        tensor([1., 1.], requires_grad=True)
    """

    _execution_engine = _Engine()

    def __new__(cls, data=None, requires_grad: bool = False, volatile=None):
        tensor = taeda.tensor([]) if data is None else data.detach()
        return tensor.requires_grad_(requires_grad)


class _CallableModule(types.ModuleType):
    """`taeda.autograd.variable` was a function once; calls of it say so."""

    def __call__(self, *args, **kwargs):
        raise RuntimeError(taeda.autograd._VARIABLE_IS_GONE)


sys.modules[__name__].__class__ = _CallableModule
