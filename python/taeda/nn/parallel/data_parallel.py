"""Data parallelism with threads; `DistributedDataParallel` is the better way."""

from __future__ import annotations

import taeda
from taeda import Tensor

from ..modules.module import Module

__all__ = [
    "DataParallel",
    "data_parallel",
    "gather",
    "parallel_apply",
    "replicate",
    "scatter",
]


def _devices(device_ids):
    """Devices by number or name; all CUDA devices where None."""
    if device_ids is None:
        if not taeda.cuda.is_available():
            return []
        device_ids = range(taeda.cuda.device_count())
    return [taeda.device("cuda", d) if isinstance(d, int) else d for d in device_ids]


def scatter(inputs, target_gpus, dim: int = 0):
    """Cut every tensor of nested `inputs` along `dim`, a part for each device.

    Args:
        inputs: tensors in tuples, lists and dictionaries; other values are repeated.
        target_gpus: devices.
        dim: dimension to cut.

    Returns:
        list: the inputs of each device; fewer where tensors are too small.
    """
    devices = _devices(target_gpus)
    if isinstance(inputs, Tensor):
        parts = inputs.chunk(len(devices), dim)
        return [p.to(d) for p, d in zip(parts, devices, strict=False)]
    if isinstance(inputs, (tuple, list)) and inputs:
        columns = zip(*(scatter(i, target_gpus, dim) for i in inputs), strict=False)
        kind = type(inputs)
        named = hasattr(inputs, "_fields")
        return [kind(*column) if named else kind(column) for column in columns]
    if isinstance(inputs, dict) and inputs:
        rows = scatter(list(inputs.items()), target_gpus, dim)
        return [type(inputs)(row) for row in rows]
    return [inputs for _ in devices]


def gather(outputs, target_device, dim: int = 0):
    """Join the outputs of all devices on one; the inverse of `scatter`."""
    first = outputs[0]
    if isinstance(first, Tensor):
        if first.dim() == 0:
            outputs = [t.unsqueeze(0) for t in outputs]
        (target,) = _devices([target_device])
        return taeda.cat([t.to(target) for t in outputs], dim)
    if first is None:
        return None
    if isinstance(first, dict):
        if any(len(row) != len(first) for row in outputs):
            raise ValueError("All dicts must have the same number of keys")
        joined = (
            (k, gather([o[k] for o in outputs], target_device, dim)) for k in first
        )
        return type(first)(joined)
    parts = [gather(list(c), target_device, dim) for c in zip(*outputs, strict=True)]
    kind = type(first)
    return kind(*parts) if hasattr(first, "_fields") else kind(parts)


def replicate(network: Module, devices, detach: bool = False) -> list[Module]:
    """A copy of a module on each device, whose gradients reach the module's parameters.

    Args:
        network: the module.
        devices: where to.
        detach: cut that connection.
    """
    copies = []
    for device in _devices(devices):
        tensors, modules = {}, {}

        def moved(t, device=device, tensors=tensors):
            if t is not None and id(t) not in tensors:
                tensors[id(t)] = (t.detach() if detach else t).to(device)
            return None if t is None else tensors[id(t)]

        for module in network.modules():
            modules[id(module)] = module._replicate_for_data_parallel()
        for module in network.modules():
            own = modules[id(module)].__dict__
            # Not leaves, so not parameters: they stand as plain attributes.
            own.update({n: moved(p) for n, p in module._parameters.items()})
            own["_buffers"] = {n: moved(b) for n, b in module._buffers.items()}
            for name, child in module._modules.items():
                own["_modules"][name] = None if child is None else modules[id(child)]
        copies.append(modules[id(network)])
    return copies


def parallel_apply(modules, inputs, kwargs_tup=None, devices=None) -> list:
    """Call each module on its inputs, all at once, in threads.

    Args:
        modules, inputs: as many as one another.
        kwargs_tup: named arguments of each.
        devices: of each.

    Raises:
        Exception: the first that a module raised.
    """
    from concurrent.futures import ThreadPoolExecutor

    kwargs_tup = kwargs_tup or ({},) * len(modules)
    mode = taeda.is_grad_enabled()

    def work(module, args, kwargs):
        args = args if isinstance(args, (tuple, list)) else (args,)
        with taeda.set_grad_enabled(mode):
            return module(*args, **kwargs)

    jobs = list(zip(modules, inputs, kwargs_tup, strict=True))
    if len(jobs) == 1:
        return [work(*jobs[0])]
    with ThreadPoolExecutor(len(jobs)) as pool:
        return list(pool.map(work, *zip(*jobs, strict=True)))


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
        self.device_ids = _devices(device_ids) if taeda.cuda.is_available() else []
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
        """Positional and named inputs of each device."""
        from itertools import zip_longest

        cut = (scatter(x, device_ids, self.dim) if x else [] for x in (inputs, kwargs))
        calls = [(row or (), named or {}) for row, named in zip_longest(*cut)]
        return tuple(row for row, _ in calls), tuple(named for _, named in calls)

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
