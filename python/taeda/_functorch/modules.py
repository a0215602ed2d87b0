"""Modules as functions of their parameters."""

from __future__ import annotations

import taeda
from taeda.nn.utils import stateless

__all__ = ["functional_call", "stack_module_state"]


def functional_call(
    module,
    parameter_and_buffer_dicts,
    args=None,
    kwargs=None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
):
    """`module(*args, **kwargs)` with other parameters and buffers.

    Args:
        module: not changed.
        parameter_and_buffer_dicts: names to tensors, or several such dictionaries.
        args: a tuple of arguments, or a single one.
        kwargs: named arguments.
        tie_weights: one name of a tied tensor stands for all of them.
        strict: the names must be exactly those of the module.

    Raises:
        ValueError: a name in two of the dictionaries, or none given.
    """
    tensors = parameter_and_buffer_dicts
    if not isinstance(tensors, (dict, list, tuple)):
        raise ValueError(
            "functional_call: expected a dict, or a list or tuple of dicts, but got "
            f"{type(tensors).__name__}"
        )
    if not isinstance(tensors, dict):
        tensors = {}
        for part in parameter_and_buffer_dicts:
            if repeated := set(tensors) & set(part):
                raise ValueError(
                    f"{sorted(repeated)} appear in multiple dictionaries, so behavior "
                    "of functional call is ambiguous"
                )
            tensors.update(part)
    return stateless.functional_call(
        module, tensors, args, kwargs, tie_weights=tie_weights, strict=strict
    )


def stack_module_state(models) -> tuple[dict, dict]:
    """Parameters and buffers of like modules, each stacked along a new first dim.

    Raises:
        RuntimeError: no module, or modules in different modes or of different classes.
    """
    if not len(models):
        raise RuntimeError("stack_module_state: Expected at least one model, got 0.")
    if len({model.training for model in models}) > 1:
        raise RuntimeError(
            "stack_module_state: Expected all models to have the same training/eval "
            "mode."
        )
    if len({type(model) for model in models}) > 1:
        raise RuntimeError(
            "stack_module_state: Expected all models to be of the same class."
        )
    params = {}
    for name, first in models[0].named_parameters():
        stacked = taeda.stack([m.get_parameter(name).detach() for m in models])
        params[name] = stacked.requires_grad_(first.requires_grad)
    buffers = {
        name: taeda.stack([m.get_buffer(name) for m in models])
        for name, _ in models[0].named_buffers()
    }
    return params, buffers
