"""States of optimizers by the names of parameters instead of their numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import taeda
from taeda import nn

from ._model_names import canonical, fsdp_context, is_wrapped_by_fsdp
from ._spread import gathered, scattered

__all__ = ["named_state", "set_named_state"]


def initialize(optimizer: taeda.optim.Optimizer) -> None:
    """Makes an optimizer have its state: a step with gradients and rates of zero."""
    groups = optimizer.param_groups
    params = [p for group in groups for p in group["params"]]
    if optimizer.state or any(p.grad is not None for p in params):
        return  # it has its state, or none at all
    for param in params:
        if param.requires_grad:
            param.grad = taeda.zeros_like(param)
    rates = [group.get("lr") for group in groups]
    for group, rate in zip(groups, rates, strict=True):
        if rate is not None:
            tensor = isinstance(rate, taeda.Tensor)
            group["lr"] = taeda.zeros_like(rate) if tensor else 0.0
    optimizer.step(closure=None)
    for group, rate in zip(groups, rates, strict=True):
        if rate is not None:
            group["lr"] = rate
    optimizer.zero_grad(set_to_none=True)


def _names(model: nn.Module, modifiers: str) -> dict[int, list[str]]:
    """id of a parameter -> its names; those that are shared have several."""
    found: dict[int, list[str]] = {}
    for name, param in model.named_parameters(remove_duplicate=False):
        found.setdefault(id(param), []).append(canonical(model, name, modifiers))
    return found


def _by_name(model: nn.Module, optimizer: Any, options: Any) -> dict:
    """One optimizer's state, in the layout that this process has it in."""
    initialize(optimizer)
    state = optimizer.state_dict()
    if is_wrapped_by_fsdp(model):
        from taeda.distributed.fsdp import FullyShardedDataParallel

        with fsdp_context(model, options):
            state = FullyShardedDataParallel.optim_state_dict(model, optimizer, state)
        clean = {k: canonical(model, k) for k in state.get("state", {})}
        named = {clean[k]: v for k, v in state.get("state", {}).items()}
        groups = [
            {**group, "params": [canonical(model, k) for k in group["params"]]}
            for group in state.get("param_groups", [])
        ]
        return {"state": named, "param_groups": groups}
    names = _names(model, options.dsd_fqn_modifiers)
    order = [p for group in optimizer.param_groups for p in group["params"]]
    name = {i: names[id(param)][0] for i, param in enumerate(order)}
    return {
        "state": {name[i]: value for i, value in state["state"].items()},
        "param_groups": [
            {**group, "params": [name[i] for i in group["params"]]}
            for group in state["param_groups"]
        ],
    }


def named_state(model: nn.Module, optimizers: tuple, options: Any) -> dict:
    """The states of optimizers in one, by names, as the options say."""
    together: dict = {"state": {}, "param_groups": []}
    for optimizer in optimizers:
        one = _by_name(model, optimizer, options)
        together["state"].update(one["state"])
        together["param_groups"] += one["param_groups"]
    if options.flatten_optimizer_state_dict:
        together = flat_form(together)
    return gathered(together, options.full_state_dict, options.cpu_offload)


def flat_form(state: dict) -> dict:
    """ "state.NAME.KEY" and "param_groups.NAME.KEY" -> value.

    Ranks that have different parameters, as in pipelines, can put these together.
    """
    flat = {}
    for path, value in _leaves(state["state"]):
        if not isinstance(value, (taeda.Tensor, int, float)):
            raise NotImplementedError(
                f"flatten_optimizer_state_dict: {'.'.join(map(str, path))} is a "
                f"{type(value).__name__}, neither tensor, int, float nor dict"
            )
        flat[".".join(map(str, ("state", *path)))] = value
    for group in state["param_groups"]:
        for name in group["params"]:
            for key, value in group.items():
                if key != "params":
                    flat[f"param_groups.{name}.{key}"] = value
    return flat


def _leaves(value: Any, path: tuple = ()):
    """(path, value) of what is in nested dictionaries."""
    if not isinstance(value, Mapping):
        yield path, value
        return
    for key, item in value.items():
        yield from _leaves(item, (*path, key))


def _nested(leaves: dict) -> dict:
    """The nested dictionaries of path -> value."""
    root: dict = {}
    for path, value in leaves.items():
        place = root
        for key in path[:-1]:
            place = place.setdefault(key, {})
        place[path[-1]] = value
    return root


def _from_flat(optimizer: Any, names: dict, flat: dict) -> dict:
    """One optimizer's part of a flat form, by names."""
    keys: dict[str, list] = {}
    for text in flat:
        if text.startswith("state."):
            keys.setdefault(text.split(".", 1)[1], []).append(text)
    state: dict = {}
    groups = []
    for group in optimizer.param_groups:
        settings = [key for key in group if key != "params"]
        used = []
        for param in group["params"]:
            own = names[id(param)]
            name = next((n for n in own if _has(flat, n, settings)), own[0])
            used.append(name)
            if param.requires_grad:
                found = {
                    tuple(rest[len(name) + 1 :].split(".")): flat[texts[0]]
                    for rest, texts in keys.items()
                    if rest.startswith(f"{name}.")
                }
                state[name] = _nested(found)
        first = used[0] if used else None
        values = {k: flat[f"param_groups.{first}.{k}"] for k in settings if used}
        groups.append({**values, "params": used})
    return {"state": state, "param_groups": groups}


def _has(flat: dict, name: str, settings: list) -> bool:
    return any(f"param_groups.{name}.{key}" in flat for key in settings)


def _from_named(optimizer: Any, names: dict, given: dict, strict: bool) -> dict:
    """One optimizer's part of what several have, by names."""
    group_of = {name: g for g in given["param_groups"] for name in g["params"]}
    empty = [g for g in given["param_groups"] if not g["params"]]
    state: dict = {}
    groups = []
    for group in optimizer.param_groups:
        settings = empty[0] if empty and not group["params"] else {}
        used = []
        for param in group["params"]:
            own = names[id(param)]
            name = next((n for n in own if n in group_of), own[0])
            settings = group_of.get(name, settings)
            used.append(name)
            if not param.requires_grad or not given["state"]:
                continue
            if name in given["state"]:
                state[name] = given["state"][name]
            elif strict:
                raise RuntimeError(
                    f"Missing optimizer state for parameter '{name}' in the "
                    "checkpoint. To load without it, use "
                    "StateDictOptions(strict=False)."
                )
        if used and not settings:
            settings = _own_settings(group, used[0], strict)
        groups.append({**settings, "params": used})
    return {"state": state, "param_groups": groups}


def _own_settings(group: dict, name: str, strict: bool) -> dict:
    """What a group keeps of which a state knows no parameter.

    States of ranks with different parameters are saved as one list of names: only a
    flat form has all.
    """
    if strict:
        raise RuntimeError(
            f"Missing param_groups of parameter '{name}' in the checkpoint. Ranks with "
            "different parameters, as in pipelines, save them with "
            "StateDictOptions(flatten_optimizer_state_dict=True); to keep the "
            "optimizer's own settings, use StateDictOptions(strict=False)."
        )
    return {key: value for key, value in group.items() if key != "params"}


def set_named_state(
    model: nn.Module, optimizers: tuple, given: dict, options: Any
) -> None:
    """Gives optimizers their parts of a state by names."""
    import taeda.distributed as dist

    names = _names(model, options.dsd_fqn_modifiers)
    for optimizer in optimizers:
        initialize(optimizer)
        mine: dict = {"state": {}, "param_groups": []}
        if given and "state" not in given:
            mine = _from_flat(optimizer, names, given)
        elif given and all(isinstance(k, int) for k in given["state"]):
            mine = given  # an optimizer's own state, by numbers
        elif given and len(optimizers) == 1 and is_wrapped_by_fsdp(model):
            mine = given  # a flat parameter has no name among those
        elif given:
            mine = _from_named(optimizer, names, given, options.strict)
        if is_wrapped_by_fsdp(model):
            from taeda.distributed.fsdp import FullyShardedDataParallel

            with fsdp_context(model, options):
                change = FullyShardedDataParallel.optim_state_dict_to_load
                optimizer.load_state_dict(change(model, optimizer, mine))
            continue
        if options.full_state_dict:
            spread = options.broadcast_from_rank0 and dist.is_initialized()
            mine = _laid_out(model, optimizer, mine, options, spread)
        optimizer.load_state_dict(_by_number(mine))


def _laid_out(
    model: nn.Module, optimizer: Any, given: dict, options: Any, from_first: bool
) -> dict:
    """A state of whole tensors in the layout that this process's has."""
    import taeda.distributed as dist

    own = dict(_leaves(_by_name(model, optimizer, options)["state"]))
    state = scattered(dict(_leaves(given["state"])), own, from_first, False)
    groups = [given["param_groups"]]
    if from_first:
        dist.broadcast_object_list(groups, src=0)
    return {"state": _nested(state), "param_groups": groups[0]}


def _by_number(state: dict) -> dict:
    """The state with parameters numbered in the order of the groups."""
    order: dict = {}
    groups = []
    for group in state["param_groups"]:
        numbers = [order.setdefault(name, len(order)) for name in group["params"]]
        groups.append({**group, "params": numbers})
    numbered = {order[k]: v for k, v in state["state"].items() if k in order}
    return {"state": numbered, "param_groups": groups}
