"""Copies of a module on devices."""

from __future__ import annotations

from ..modules.module import Module
from .scatter_gather import devices_of

__all__ = ["replicate"]


def replicate(network: Module, devices, detach: bool = False) -> list[Module]:
    """A copy of a module on each device, whose gradients reach the module's parameters.

    Args:
        network: the module.
        devices: where to.
        detach: cut that connection.
    """
    copies = []
    for device in devices_of(devices):
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
