"""Steps of an optimizer as soon as each gradient is there."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import taeda

__all__: list[str] = []


def _apply_optimizer_in_backward(
    optimizer_class: type,
    params: Iterable,
    optimizer_kwargs: dict[str, Any],
    register_hook: bool = True,
) -> None:
    """Gives each parameter an optimizer that steps within the backward pass.

    Args:
        optimizer_class: of the optimizers.
        params: the parameters; their gradients are gone after each step.
        optimizer_kwargs: of each optimizer.
        register_hook: whether the step is a hook of the gradient's arrival.
    """
    for parameter in params:
        made = optimizer_class([parameter], **optimizer_kwargs)
        known = getattr(parameter, "_in_backward_optimizers", None)
        if known is None:
            known = parameter._in_backward_optimizers = []
        known.append(made)
        parameter._optimizer_classes = [type(o) for o in known]
        parameter._optimizer_kwargs = [optimizer_kwargs]
        if register_hook and len(known) == 1:
            parameter.register_post_accumulate_grad_hook(_step_of(known))


def _step_of(optimizers: list):
    def step(parameter) -> None:
        with taeda.no_grad():
            for optimizer in optimizers:
                optimizer.step()
        parameter.grad = None

    return step


def _get_in_backward_optimizers(module) -> list:
    """The optimizers of a module's parameters."""
    found: list = []
    for parameter in module.parameters():
        found.extend(getattr(parameter, "_in_backward_optimizers", []))
    return found
