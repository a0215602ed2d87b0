"""Copies between devices as PyTorch's functions of autograd are called.

What `taeda.cuda.comm` does has derivatives already; `apply` has the order of arguments
that libraries call these classes with.
"""

from __future__ import annotations

import itertools

import taeda
from taeda.cuda import comm

__all__ = ["Broadcast", "Gather", "ReduceAddCoalesced", "Scatter"]


class Broadcast:
    """Copies of tensors for each device, one device after the other."""

    @staticmethod
    def apply(target_gpus, *inputs):
        """A tuple of len(target_gpus) * len(inputs) tensors."""
        copies = comm.broadcast_coalesced(inputs, target_gpus)
        return tuple(itertools.chain.from_iterable(copies))


class ReduceAddCoalesced:
    """Sums over devices."""

    @staticmethod
    def apply(destination, num_inputs: int, *grads):
        """`num_inputs` sums; `grads` has as many tensors of each device in turn."""
        rows = [grads[i : i + num_inputs] for i in range(0, len(grads), num_inputs)]
        return comm.reduce_add_coalesced(rows, destination)


class Gather:
    """Tensors of devices side by side."""

    @staticmethod
    def apply(target_device, dim: int, *inputs):
        """The joined tensor, of numbers a vector."""
        numbers = [x for x in inputs if not x.shape]
        rows = [x[None] for x in numbers] if len(numbers) == len(inputs) else inputs
        return comm.gather(rows, dim, target_device)


class Scatter:
    """Parts of a tensor for devices."""

    @staticmethod
    def apply(target_gpus, chunk_sizes, dim: int, input):
        """A tuple of parts."""
        return comm.scatter(input, target_gpus, chunk_sizes, dim)


def _get_stream(device: taeda.device):
    """The stream that copies to a device run on; None for the CPU."""
    return None if device.type == "cpu" else taeda.cuda.current_stream(device)
