"""Optimizers' states by the names of the unwrapped model, and back.

An optimizer of a wrapped model has states of this rank's parts. They become states of
whole parameters by the way the parts do, and the parts of whole states by cutting.
"""

from __future__ import annotations

from typing import Any

import taeda
from taeda.distributed import _collectives as collectives
from taeda.distributed._join import get_rank
from taeda.distributed._objects import all_gather_object, broadcast_object_list

from ._slots import plain_name
from ._states import rows_of, whole_of

__all__ = ["Names", "from_first", "gather", "rekey", "to_load"]


class Names:
    """What the parameters of a wrapped model are called.

    Args:
        model: it.
        wrappers: those in it.

    Attributes:
        of: id of a parameter that optimizers see -> (wrapper or None, numbers in its
            layout, names of those).
    """

    def __init__(self, model, wrappers) -> None:
        self.of: dict[int, tuple[Any, list[int], list[str]]] = {}
        known = {id(wrapper) for wrapper in wrappers}
        for path, module in model.named_modules():
            if id(module) not in known or module._group is None:
                continue
            start = f"{path}." if path else ""
            layout = module._group.layout
            names = [plain_name(start + slot.name) for slot in layout.slots]
            seen = layout.seen()
            if layout.keeps_originals:
                for number, parameter in enumerate(seen):
                    self.of[id(parameter)] = module, [number], [names[number]]
            else:
                self.of[id(seen[0])] = module, list(range(len(names))), names
        for name, parameter in model.named_parameters():
            self.of.setdefault(id(parameter), (None, [0], [plain_name(name)]))


def parameters_of(model, optim, optim_input=None) -> list:
    """An optimizer's parameters by number."""
    if optim_input is not None:
        found = []
        for item in optim_input:
            found += list(item["params"]) if isinstance(item, dict) else [item]
        return found
    if optim is None:
        return list(model.parameters())
    return [p for group in optim.param_groups for p in group["params"]]


def is_part(value) -> bool:
    """Whether a state is cut like its parameter; steps are not."""
    return isinstance(value, taeda.Tensor) and value.dim() > 0


# To whole states.


def gather(
    model, wrappers, optim, state, config, in_shards, optim_input=None, group=None
):
    """An optimizer's state dict by names, with whole or sharded tensors.

    Args:
        model, wrappers, optim: whose.
        state: what `optim.state_dict()` returned.
        config: an OptimStateDictConfig.
        in_shards: tensors are ShardedTensors or DTensors.
        optim_input: the optimizer's argument, where there is no optimizer.
        group: that decides who is first.
    """
    names = Names(model, wrappers)
    parameters = parameters_of(model, optim, optim_input)
    by_name = {n: p for p in parameters for n in names.of[id(p)][2]}
    local: dict[int, dict] = {}
    for key, value in state["state"].items():
        parameter = parameters[key] if isinstance(key, int) else by_name[key]
        local[id(parameter)] = value
    found: dict[str, dict] = {}
    done = set()
    for parameter in parameters:
        wrapper = names.of[id(parameter)][0]
        if wrapper is None:
            if id(parameter) in local:
                found[names.of[id(parameter)][2][0]] = dict(local[id(parameter)])
        elif id(wrapper) not in done:
            done.add(id(wrapper))
            found.update(_whole_states(wrapper, names, local, in_shards))
    groups = []
    for entry in state["param_groups"]:
        params = []
        for key in entry["params"]:
            parameter = parameters[key] if isinstance(key, int) else by_name[key]
            params += names.of[id(parameter)][2]
        groups.append({**entry, "params": list(dict.fromkeys(params))})
    if getattr(config, "rank0_only", False) and get_rank(group) != 0:
        return {}
    if config.offload_to_cpu:
        for states in found.values():
            for name, value in states.items():
                if isinstance(value, taeda.Tensor):
                    states[name] = value.cpu()
    return {"state": found, "param_groups": groups}


def _whole_states(wrapper, names, local, in_shards) -> dict[str, dict]:
    """The states of a wrapper's parameters, by name; all its ranks take part."""
    group = wrapper._group
    layout, ranks = group.layout, group.ranks
    own: dict[int, dict] = {}
    seen = layout.seen()
    for parameter in seen:
        for number in names.of[id(parameter)][1]:
            if id(parameter) in local:
                own[number] = local[id(parameter)]
    kinds = _agree(own, ranks, len(layout.slots))
    rows: dict[str, Any] = {}
    found: dict[str, dict] = {}
    for number, (states, slot) in enumerate(zip(kinds, layout.slots, strict=True)):
        name = names.of[id(seen[number if layout.keeps_originals else 0])][2]
        name = name[0] if layout.keeps_originals else name[number]
        for state, (dtype, value) in states.items():
            if dtype is not None:
                if (state, dtype) not in rows:
                    rows[state, dtype] = _gather_rows(layout, ranks, own, state, dtype)
                value = rows[state, dtype][number]
                if in_shards and not (ranks.world == 1 and layout.keeps_originals):
                    value = rows_of(value, wrapper) if slot.shape else value
            found.setdefault(name, {})[state] = value
    return found


def _agree(own: dict[int, dict], ranks, count: int) -> list:
    """By number, state -> (dtype, None) of tensors cut like the parameter.

    Of other states it is (None, value).

    A rank whose part of a parameter is empty may have no state of it.
    """
    described = {
        number: {
            name: (value.dtype, None) if is_part(value) else (None, value)
            for name, value in states.items()
        }
        for number, states in own.items()
    }
    tables = [described]
    if ranks.world > 1:
        tables = [None] * ranks.world  # type: ignore[list-item]
        all_gather_object(tables, described, group=ranks.shard)
    merged: list[dict] = [{} for _ in range(count)]
    for table in tables:
        for number, states in table.items():
            for name, kind in states.items():
                merged[number].setdefault(name, kind)
    return merged


def _gather_rows(layout, ranks, own, state, dtype) -> list:
    """A state of all parameters, whole; zeros of those without it."""
    with taeda.no_grad():
        row = taeda.zeros(layout.length, dtype=dtype, device=layout.stored()[1])
        for number, states in own.items():
            value = states.get(state)
            if not is_part(value):
                continue
            if layout.keeps_originals:
                layout._piece(row, number).copy_(value)
            else:
                row.copy_(value)
                break
        if ranks.world > 1:
            whole = row.new_empty(row.numel() * ranks.world)
            collectives.all_gather_into_tensor(whole, row, ranks.shard)
            row = whole
        return layout.wholes_of(row)


# Back.


def to_load(state, model, wrappers, optim, *, by_name=False, optim_input=None) -> dict:
    """A state dict by names, as `optim.load_state_dict` takes it at this rank.

    Args:
        state: of whole or sharded tensors.
        model, wrappers, optim: whose.
        by_name: leave the parameters' names.
        optim_input: the optimizer's argument, where there is no optimizer.
    """
    names = Names(model, wrappers)
    parameters = parameters_of(model, optim, optim_input)
    found: dict[Any, dict] = {}
    number_of: dict[str, Any] = {}
    with taeda.no_grad():
        for index, parameter in enumerate(parameters):
            wrapper, numbers, own = names.of[id(parameter)]
            key = own[0] if by_name else index
            number_of.update(dict.fromkeys(own, key))
            states = [state["state"].get(name) for name in own]
            if all(s is None for s in states):
                continue
            if wrapper is None:
                found[key] = dict(states[0])
                continue
            cut = _cut(wrapper._group.layout, numbers, states)
            if cut:
                found[key] = cut
    groups = []
    for entry in state["param_groups"]:
        unknown = [n for n in entry["params"] if n not in number_of]
        if unknown:
            raise KeyError(
                f"optim_state_dict_to_load: the model has no parameters {unknown}"
            )
        params = list(dict.fromkeys(number_of[n] for n in entry["params"]))
        groups.append({**entry, "params": params})
    return {"state": found, "param_groups": groups}


def _cut(layout, numbers, states) -> dict:
    """This rank's part of the states of one or of all parameters of a layout."""
    found: dict[str, Any] = {}
    for number, own in zip(numbers, states, strict=True):
        for name, value in (own or {}).items():
            value = whole_of(value)
            # States of parameters without dimensions look like steps.
            if not is_part(value) and (
                name == "step" or not _fits(value, layout, number)
            ):
                found[name] = (
                    value.clone() if isinstance(value, taeda.Tensor) else value
                )
                continue
            start, inside, length = layout.part(number)
            piece = value.reshape(-1).narrow(0, inside, length)
            if layout.keeps_originals:
                if length:
                    shape = (
                        layout.slots[number].shape if layout.world == 1 else [length]
                    )
                    found[name] = piece.clone().view(shape)
                continue
            row = found.get(name)
            if row is None:
                row = found[name] = value.new_zeros(layout.length)
            row.narrow(0, start, length).copy_(piece)
    if layout.keeps_originals and not layout.part(numbers[0])[2]:
        return {}
    return found


def _fits(value, layout, number) -> bool:
    same = isinstance(value, taeda.Tensor) and value.shape == layout.slots[number].shape
    return same and layout.slots[number].numel == 1


def from_first(state, group=None):
    """The first rank's state dict at all ranks."""
    given = [state]
    broadcast_object_list(given, group=group, group_src=0)
    return given[0]


def rekey(state, to_names: bool, model, optim, optim_input=None) -> dict:
    """A state dict with names in place of numbers, or numbers in place of names.

    Args:
        state: of an unwrapped model.
        to_names: which way.
        model, optim, optim_input: whose.
    """
    called = {id(p): name for name, p in model.named_parameters()}
    parameters = parameters_of(model, optim, optim_input)
    names = [called[id(p)] for p in parameters]
    other: dict = (
        dict(enumerate(names)) if to_names else {n: i for i, n in enumerate(names)}
    )
    return {
        "state": {other[key]: value for key, value in state["state"].items()},
        "param_groups": [
            {**group, "params": sorted(other[key] for key in group["params"])}
            for group in state["param_groups"]
        ],
    }
