"""Modules whose parameters lie over a mesh."""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature

from taeda import nn

from ..device_mesh import DeviceMesh
from ._api import DTensor, _entered_mesh, distribute_tensor
from .placement_types import Replicate

__all__ = ["distribute_module"]


def _replicate(module: nn.Module, mesh: DeviceMesh) -> None:
    """Parameters and buffers of this module that no partition took become replicas."""
    whole = [Replicate()] * mesh.ndim
    for key, parameter in list(module._parameters.items()):
        if parameter is not None and not isinstance(parameter, DTensor):
            made = distribute_tensor(parameter.data, mesh, whole)
            module.register_parameter(
                key, nn.Parameter(made, requires_grad=parameter.requires_grad)
            )
    for key, buffer in list(module._buffers.items()):
        if buffer is not None and not isinstance(buffer, DTensor):
            module._buffers[key] = distribute_tensor(buffer, mesh, whole)


def _accepts(function: Callable, count: int, what: str) -> None:
    found = len(signature(function).parameters)
    if found != count:
        raise ValueError(
            f"{what} should take in {count} arguments, but got {found} arguments!"
        )


def distribute_module(
    module: nn.Module,
    device_mesh: DeviceMesh | None = None,
    partition_fn: Callable | None = None,
    input_fn: Callable | None = None,
    output_fn: Callable | None = None,
) -> nn.Module:
    """Places a module's parameters over a mesh, and what goes in and out.

    Args:
        module: changed in place.
        device_mesh: the ranks; by default the mesh that was entered by `with`.
        partition_fn: called with name, submodule and mesh for each submodule; it
            replaces parameters by distributed ones. What it leaves becomes a replica.
        input_fn: called with module, inputs and mesh before the module; what it
            returns, unless None, takes the place of the inputs.
        output_fn: the same with what the module returns.

    Returns:
        The module.

    Raises:
        RuntimeError: the module was distributed before.
        ValueError: a function that takes other arguments.
    """
    if getattr(module, "_distribute_module_applied", False):
        raise RuntimeError(
            "distribute_module should only be called once on a module, but it has "
            "already been called on this module!"
        )
    mesh = device_mesh or _entered_mesh()
    for name, part in module.named_modules():
        if partition_fn is not None:
            partition_fn(name, part, mesh)
        _replicate(part, mesh)
    if input_fn is not None:
        _accepts(input_fn, 3, "input_fn")
        module.register_forward_pre_hook(lambda m, inputs: input_fn(m, inputs, mesh))
    if output_fn is not None:
        _accepts(output_fn, 3, "output_fn")
        module.register_forward_hook(
            lambda m, inputs, outputs: output_fn(m, outputs, mesh)
        )
    module._distribute_module_applied = True
    return module
