"""Passes over exported programs."""

from __future__ import annotations

import copy

import taeda
from taeda.utils._pytree import tree_map

__all__ = ["move_to_device_pass"]


def move_to_device_pass(ep, location):
    """A program like another one, on another device.

    Args:
        ep: the program, which stays as it is.
        location: the device; or a dict from devices of the program to others, where
            devices that are not in it stay.

    Example:
        >>> class Twice(taeda.nn.Module):
        ...     def forward(self, x):
        ...         return x * 2
        >>> program = taeda.export.export(Twice(), (taeda.ones(2),))
        >>> moved = taeda.export.passes.move_to_device_pass(program, "meta")
        >>> moved.module()(taeda.ones(2, device="meta")).device
        device(type='meta')
    """
    moved = copy.deepcopy(ep)

    def device(of):
        if not isinstance(location, dict):
            return taeda.device(location)
        wanted = {taeda.device(k): taeda.device(v) for k, v in location.items()}
        return wanted.get(of, wanted.get(taeda.device(of.type), of))

    def value(x):
        if isinstance(x, taeda.device):
            return device(x)
        return _moved(x, device(x.device)) if isinstance(x, taeda.Tensor) else x

    for table in (moved.state_dict, moved.constants):
        table.update({name: value(x) for name, x in table.items()})
    for module in moved.graph_module.modules():
        if isinstance(module, taeda.fx.GraphModule):
            _move_graph(module, value)
    if moved.example_inputs is not None:
        moved.example_inputs = tree_map(value, moved.example_inputs)
    moved.validate()
    return moved


def _moved(x, device):
    if isinstance(x, taeda.nn.Parameter):
        return taeda.nn.Parameter(x.detach().to(device), x.requires_grad)
    return x.to(device)


def _move_graph(module, value) -> None:
    for name, x in list(vars(module).get("_buffers", {}).items()):
        module._buffers[name] = value(x)
    for node in module.graph.nodes:
        node.args = taeda.fx.node.map_aggregate(node.args, value)
        node.kwargs = taeda.fx.node.map_aggregate(node.kwargs, value)
        if "val" in node.meta:
            node.meta["val"] = tree_map(value, node.meta["val"])
    module.recompile()
