"""Averages of flat gradients over ranks.

A hook is given a state and the gradients; where those are split, also a tensor for this
rank's part of the result.
"""

from __future__ import annotations

import taeda

from ... import _collectives as collectives

__all__ = [
    "DefaultState",
    "LowPrecisionState",
    "allreduce_hook",
    "bf16_compress_hook",
    "fp16_compress_hook",
    "reduce_scatter_hook",
]


class DefaultState:
    """The ranks, and how a division by their number is made in two steps.

    The first factor is a power of two near the square root: sums of small dtypes then
    neither overflow nor vanish.

    Args:
        process_group: the ranks.

    Raises:
        ValueError: there is none.
    """

    def __init__(self, process_group) -> None:
        if process_group is None:
            raise ValueError(f"Expected to pass in an explicit ProcessGroup to {self}.")
        self.process_group = process_group
        self.world_size = self.process_group.size()
        before = self._get_gradient_predivide_factor(self.world_size)
        self.gradient_predivide_factor = before
        self.gradient_postdivide_factor = self.world_size / before

    @staticmethod
    def _get_gradient_predivide_factor(world_size: int) -> float:
        from ...fsdp._group import first_divisor

        return first_divisor(world_size)


class LowPrecisionState(DefaultState):
    """The same, and the dtype that gradients come back in.

    Args:
        process_group: the ranks.
        parameter_type: that dtype.
    """

    def __init__(self, process_group, parameter_type=taeda.float32) -> None:
        super().__init__(process_group)
        self.parameter_type = parameter_type


def _divide(tensor, factor: float) -> None:
    if factor > 1:
        tensor.div_(factor)


def allreduce_hook(state: DefaultState, grad) -> None:
    """The average of whole gradients, in place."""
    _divide(grad, state.gradient_predivide_factor)
    collectives.all_reduce(grad, group=state.process_group)
    _divide(grad, state.gradient_postdivide_factor)


def reduce_scatter_hook(state: DefaultState, grad, output) -> None:
    """This rank's part of the average, in `output`."""
    _divide(grad, state.gradient_predivide_factor)
    collectives.reduce_scatter_tensor(output, grad, group=state.process_group)
    _divide(output, state.gradient_postdivide_factor)


def _in(dtype, state: LowPrecisionState, grad, output) -> None:
    """The average, computed in another dtype; tensors end in the state's."""
    for tensor in (grad, output):
        if tensor is not None and tensor.dtype != dtype:
            tensor.data = tensor.data.to(dtype)
    if output is None:
        allreduce_hook(state, grad)
    else:
        reduce_scatter_hook(state, grad, output)
    result = grad if output is None else output
    result.data = result.data.to(state.parameter_type)


def fp16_compress_hook(state: LowPrecisionState, grad, output=None) -> None:
    """The average, sent as float16."""
    _in(taeda.float16, state, grad, output)


def bf16_compress_hook(state: LowPrecisionState, grad, output=None) -> None:
    """The average, sent as bfloat16."""
    _in(taeda.bfloat16, state, grad, output)
