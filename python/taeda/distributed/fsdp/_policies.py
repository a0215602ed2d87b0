"""The choices of `fully_shard`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import taeda

__all__ = [
    "AllGather",
    "CPUOffloadPolicy",
    "Comm",
    "DataParallelMeshDims",
    "MixedPrecisionPolicy",
    "OffloadPolicy",
    "ReduceScatter",
]


@dataclass(frozen=True)
class MixedPrecisionPolicy:
    """Dtypes of computation; the parameters that optimizers see keep theirs.

    Args:
        param_dtype: of whole parameters.
        reduce_dtype: in which gradients are added over ranks.
        output_dtype: to which outputs are cast.
        cast_forward_inputs: cast inputs to `param_dtype`.
    """

    param_dtype: taeda.dtype | None = None
    reduce_dtype: taeda.dtype | None = None
    output_dtype: taeda.dtype | None = None
    cast_forward_inputs: bool = True


@dataclass
class OffloadPolicy:
    """Parts stay on the device of computation."""


@dataclass
class CPUOffloadPolicy(OffloadPolicy):
    """Parts, their gradients and optimizer states lie in the host's memory.

    Args:
        pin_memory: in pages that are not swapped, where there is a GPU.
    """

    pin_memory: bool = True


@dataclass(frozen=True)
class DataParallelMeshDims:
    """Which dimensions of a mesh are data parallel.

    Args:
        shard: over which parameters are cut.
        replicate: between which there are copies.
    """

    shard: str | tuple[str, ...] | None = None
    replicate: str | tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        if not self.shard and not self.replicate:
            raise ValueError("At least one of shard or replicate must be set")

    @property
    def shard_names(self) -> tuple[str, ...]:
        """The names in `shard`."""
        return _names(self.shard)

    @property
    def replicate_names(self) -> tuple[str, ...]:
        """The names in `replicate`."""
        return _names(self.replicate)


def _names(value) -> tuple[str, ...]:
    if value is None:
        return ()
    return (value,) if isinstance(value, str) else tuple(value)


class Comm(ABC):
    """A collective in place of the built-in one."""

    @abstractmethod
    def allocate(self, size, *, dtype, device):
        """A tensor for its input or output."""


class AllGather(Comm):
    """Gathers `input_tensor` of all ranks into `output_tensor`."""

    @abstractmethod
    def __call__(self, output_tensor, input_tensor, group, async_op: bool = False):
        """Returns what has `wait()`, or None."""


class ReduceScatter(Comm):
    """Reduces `input_tensor` over ranks; each keeps a part in `output_tensor`."""

    @abstractmethod
    def __call__(self, output_tensor, input_tensor, group, op, async_op: bool = False):
        """Returns what has `wait()`, or None."""
