"""Modules as functions of their parameters."""

from __future__ import annotations

import taeda
from taeda.nn.utils import stateless

__all__ = [
    "functional_call",
    "replace_all_batch_norm_modules_",
    "stack_module_state",
]


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
        ValueError: no dictionaries, a name in two of them, or tied names with
            different values.
        RuntimeError: with strict, names that are missing or unknown.

    Example:
        >>> layer = taeda.nn.Linear(1, 1, bias=False)
        >>> given = {"weight": taeda.full((1, 1), 3.0)}
        >>> taeda.func.functional_call(layer, given, taeda.ones(1))
        tensor([3.])
    """
    tensors = parameter_and_buffer_dicts
    if not isinstance(tensors, (dict, list, tuple)):
        raise ValueError(
            "Expected parameter_and_buffer_dicts to be a dict, or a list/tuple of "
            f"dicts, but got {type(tensors)}"
        )
    if not isinstance(tensors, dict):
        tensors = {}
        for part in parameter_and_buffer_dicts:
            if not isinstance(part, dict):
                raise ValueError(
                    "Expected all elements of parameter_and_buffer_dicts to be "
                    f"dictionaries, got {type(part)}"
                )
            if repeated := set(tensors) & set(part):
                raise ValueError(
                    f"{sorted(repeated)} appeared in multiple dictionaries; behavior "
                    "of functional call is ambiguous"
                )
            tensors.update(part)
    return stateless._functional_call(
        module, tensors, args, kwargs, tie_weights=tie_weights, strict=strict
    )


def stack_module_state(models) -> tuple[dict, dict]:
    """Parameters and buffers of like modules, each stacked along a new first dim.

    Raises:
        RuntimeError: no module, or modules in different modes, of different classes or
            with parameters of which some require gradients.

    Example:
        >>> layers = [taeda.nn.Linear(2, 1) for _ in range(3)]
        >>> taeda.func.stack_module_state(layers)[0]["weight"].shape
        taeda.Size([3, 1, 2])
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
        each = [model.get_parameter(name) for model in models]
        if len({p.requires_grad for p in each}) > 1:
            raise RuntimeError(
                f"Expected {name} from each model to have the same .requires_grad"
            )
        stacked = taeda.stack([p.detach() for p in each])
        params[name] = stacked.requires_grad_(first.requires_grad)
    buffers = {
        name: taeda.stack([model.get_buffer(name) for model in models])
        for name, _ in models[0].named_buffers()
    }
    return params, buffers


def replace_all_batch_norm_modules_(root):
    """Takes the running statistics from all batch norm layers of a module.

    vmap cannot update statistics that all elements share; without them the layers
    normalize by what they see.

    Args:
        root: a module, changed in place.

    Returns:
        The module.

    Example:
        >>> net = taeda.nn.Sequential(taeda.nn.BatchNorm1d(2))
        >>> taeda.func.replace_all_batch_norm_modules_(net)[0].running_mean is None
        True
    """
    from taeda.nn.modules.batchnorm import _BatchNorm

    for module in root.modules():
        if isinstance(module, _BatchNorm):
            module.running_mean = module.running_var = None
            module.num_batches_tracked = None
            module.track_running_stats = False
    return root
