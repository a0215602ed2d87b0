"""Data parallelism with threads; `DistributedDataParallel` is the better way."""

from __future__ import annotations

import taeda

from ..modules.module import Module
from .parallel_apply import parallel_apply
from .replicate import replicate
from .scatter_gather import devices_of, gather, scatter_kwargs

__all__ = ["DataParallel", "data_parallel"]


class DataParallel(Module):
    """Runs parts of a batch on several CUDA devices; without any, just the module.

    Args:
        module: what to run.
        device_ids: devices; default all.
        output_device: where the outputs go; default the first.
        dim: dimension of the batch.

    Example:
        >>> net = taeda.nn.DataParallel(taeda.nn.ReLU())
        >>> net(taeda.tensor([-1.0]))
        tensor([0.])
    """

    def __init__(self, module, device_ids=None, output_device=None, dim: int = 0):
        super().__init__()
        self.module, self.dim = module, dim
        self.device_ids = devices_of(device_ids) if taeda.cuda.is_available() else []
        self.output_device = output_device
        if self.device_ids:
            self.module.to(self.device_ids[0])

    def forward(self, *inputs, **kwargs):
        if not self.device_ids:
            return self.module(*inputs, **kwargs)
        first, *others = self.device_ids
        rows, named = self.scatter(inputs, kwargs, self.device_ids)
        rows, named = rows or ((),), named or ({},)
        if not others:
            return self.module(*rows[0], **named[0])
        copies = self.replicate(self.module, self.device_ids[: len(rows)])
        target = first if self.output_device is None else self.output_device
        return self.gather(self.parallel_apply(copies, rows, named), target)

    def replicate(self, module, device_ids):
        """See `parallel.replicate`."""
        return replicate(module, device_ids, not taeda.is_grad_enabled())

    def scatter(self, inputs, kwargs, device_ids):
        """See `scatter_gather.scatter_kwargs`."""
        return scatter_kwargs(inputs, kwargs, device_ids, self.dim)

    def parallel_apply(self, replicas, inputs, kwargs):
        """See `parallel.parallel_apply`."""
        return parallel_apply(replicas, inputs, kwargs)

    def gather(self, outputs, output_device):
        """See `parallel.gather`."""
        return gather(outputs, output_device, self.dim)


def data_parallel(
    module,
    inputs,
    device_ids=None,
    output_device=None,
    dim: int = 0,
    module_kwargs=None,
):
    """Call a module once as `DataParallel` would.

    Args:
        inputs: a tuple of arguments, or a single one.
        module_kwargs: named arguments.
        module, device_ids, output_device, dim: as for `DataParallel`.
    """
    inputs = inputs if isinstance(inputs, tuple) else (inputs,)
    parallel = DataParallel(module, device_ids, output_device, dim)
    return parallel(*inputs, **(module_kwargs or {}))
