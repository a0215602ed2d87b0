"""Modules as functions of sequences of tensors, the way of the package `functorch`.

`taeda.func.functional_call` and `stack_module_state` took their place, which call by
name. These stay for programs that name them.
"""

from __future__ import annotations

import copy
import warnings

import taeda
from taeda._functorch.modules import stack_module_state
from taeda.nn import Module
from taeda.nn.utils.stateless import _functional_call

__all__ = [
    "FunctionalModule",
    "FunctionalModuleWithBuffers",
    "combine_state_for_ensemble",
    "make_functional",
    "make_functional_with_buffers",
]


class FunctionalModule(Module):
    """A module without buffers that is called with its parameters first.

    `param_names` tells their order; tied parameters are given once.
    """

    def __init__(self, stateless_model, param_names: tuple, names_map: dict) -> None:
        super().__init__()
        self.stateless_model = stateless_model
        self.param_names = param_names
        self.names_map = names_map

    def forward(self, params, *args, **kwargs):
        """What the module gives for these parameters and arguments."""
        tensors = dict(zip(self.param_names, params, strict=True))
        return _functional_call(self.stateless_model, tensors, args, kwargs)


class FunctionalModuleWithBuffers(Module):
    """A module that is called with its parameters and its buffers first."""

    def __init__(
        self,
        stateless_model,
        param_names: tuple,
        buffer_names: tuple,
        param_names_map: dict,
        buffer_names_map: dict,
    ) -> None:
        super().__init__()
        self.stateless_model = stateless_model
        self.param_names = param_names
        self.buffer_names = buffer_names
        self.all_names_map = {**param_names_map, **buffer_names_map}

    def forward(self, params, buffers, *args, **kwargs):
        """What the module gives for these parameters, buffers and arguments."""
        names = self.param_names + self.buffer_names
        tensors = dict(zip(names, (*params, *buffers), strict=True))
        return _functional_call(self.stateless_model, tensors, args, kwargs)


def _warn(name: str, instead: str) -> None:
    text = f"functorch.{name} is deprecated; use torch.func.{instead} instead."
    warnings.warn(text, FutureWarning, stacklevel=3)


def _taken_out(model, disable_autograd_tracking: bool):
    """(a copy of a module, copies of its parameters, copies of its buffers)."""
    model = copy.deepcopy(model)
    tracked = not disable_autograd_tracking
    params = tuple(
        taeda.nn.Parameter(p.detach().clone(), tracked and p.requires_grad)
        for p in model.parameters()
    )
    return model, params, tuple(b.detach().clone() for b in model.buffers())


def _ties(named) -> dict[str, list[str]]:
    """The first name of each tensor -> all its names."""
    by_tensor: dict[int, list[str]] = {}
    for name, tensor in named:
        by_tensor.setdefault(id(tensor), []).append(name)
    return {names[0]: names for names in by_tensor.values()}


def make_functional(model, disable_autograd_tracking: bool = False):
    """(a function of parameters and arguments, the parameters) of a module.

    Args:
        model: a module without buffers; it stays as it is.
        disable_autograd_tracking: whether the parameters require no gradients.

    Raises:
        RuntimeError: the module has buffers.
    """
    _warn("make_functional", "functional_call")
    if next(model.buffers(), None) is not None:
        raise RuntimeError(
            "make_functional(model): `model` has buffers. Please use "
            "make_functional_with_buffers(model) instead."
        )
    stateless, params, _ = _taken_out(model, disable_autograd_tracking)
    ties = _ties(model.named_parameters(remove_duplicate=False))
    return FunctionalModule(stateless, tuple(ties), ties), params


def make_functional_with_buffers(model, disable_autograd_tracking: bool = False):
    """(a function of parameters, buffers and arguments, parameters, buffers)."""
    _warn("make_functional_with_buffers", "functional_call")
    return _with_buffers(model, disable_autograd_tracking)


def _with_buffers(model, disable_autograd_tracking: bool):
    stateless, params, buffers = _taken_out(model, disable_autograd_tracking)
    maps = (
        _ties(model.named_parameters(remove_duplicate=False)),
        _ties(model.named_buffers(remove_duplicate=False)),
    )
    names = map(tuple, maps)
    return FunctionalModuleWithBuffers(stateless, *names, *maps), params, buffers


def combine_state_for_ensemble(models):
    """(a function of parameters, buffers and arguments, parameters, buffers).

    The parameters and buffers are those of like modules, stacked along a new first dim
    to be mapped over; the parameters require no gradients.

    Raises:
        RuntimeError: see `taeda.func.stack_module_state`.
    """
    _warn("combine_state_for_ensemble", "stack_module_state")
    params, buffers = stack_module_state(models)
    function, _, _ = _with_buffers(models[0], False)
    stacked = tuple(param.detach() for param in params.values())
    return function, stacked, tuple(buffers.values())
