"""Stepping an optimizer on other tensors than its own."""

from __future__ import annotations

from contextlib import contextmanager

import taeda
from taeda.optim.optimizer import StateMap

__all__ = ["swap_in_optimizer_params_and_state"]


@contextmanager
def swap_in_optimizer_params_and_state(
    optimizer, swapin_parameters: dict, swapin_optim_state: dict
):
    """Put other parameters and state into an optimizer while the block runs.

    Args:
        optimizer (Optimizer): with state. swapin_parameters (dict): name -> tensor,
            in the order of `optimizer.param_groups`.
        swapin_optim_state (dict): as `optimizer.state_dict()` gives it.

    Raises:
        RuntimeError: the two do not fit the optimizer.

    In a graph:
        with swap_in_optimizer_params_and_state(optimizer, fake, state):
            optimizer.step()
    """
    groups, state = _fit(optimizer, swapin_parameters, swapin_optim_state)
    kept = [dict(group) for group in optimizer.param_groups]
    kept_state = optimizer.state
    try:
        for group, swapped in zip(optimizer.param_groups, groups, strict=True):
            group.update(swapped)
        optimizer.state = state
        yield
    finally:
        for group, original in zip(optimizer.param_groups, kept, strict=True):
            group.clear()
            group.update(original)
        optimizer.state = kept_state


def _require(valid, text: str) -> None:
    if not valid:
        raise RuntimeError("swap_in_optimizer_params_and_state: " + text)


def _fit(optimizer, parameters: dict, saved: dict):
    """Groups with the new tensors, and the state keyed by them."""
    _require(optimizer.state, "the optimizer has no state yet")
    valid = isinstance(saved, dict) and isinstance(saved.get("state"), dict)
    _require(valid, "expected what optimizer.state_dict() returns")
    numbered = all(not isinstance(k, taeda.Tensor) for k in saved["state"])
    _require(numbered, "the state must be keyed by parameter numbers")
    live, given = optimizer.param_groups, saved.get("param_groups")
    valid = isinstance(given, list) and len(given) == len(live)
    _require(valid, "the number of parameter groups differs")
    tensors, by_number, groups = list(parameters.values()), {}, []
    for number, (group, other) in enumerate(zip(live, given, strict=True)):
        _require(set(group) == set(other), f"the options of group {number} differ")
        keys, count = other["params"], len(group["params"])
        _require(len(keys) == count, f"the size of group {number} differs")
        taken, tensors = tensors[:count], tensors[count:]
        _require(len(taken) == count, "there are fewer parameters than in the groups")
        by_number.update(zip(keys, taken, strict=True))
        groups.append({**other, "params": taken})
    _require(not tensors, "there are more parameters than in the groups")
    state = {by_number.get(k, k): v for k, v in saved["state"].items()}
    return groups, StateMap(state)
