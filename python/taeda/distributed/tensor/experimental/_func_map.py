"""Functions of parts, called with distributed tensors."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import taeda
from taeda.utils import _pytree as pytree

from ...device_mesh import DeviceMesh
from .._api import DTensor

__all__ = ["local_map"]


def local_map(
    func: Callable | None = None,
    out_placements=None,
    in_placements=None,
    in_grad_placements=None,
    device_mesh: DeviceMesh | None = None,
    *,
    redistribute_inputs: bool = False,
):
    """Makes a function of this rank's parts one of distributed tensors.

    Args:
        func: gets plain tensors. Without it, a decorator is returned.
        out_placements: of the result; a tuple with those of each where it has several,
            None for one that is no tensor.
        in_placements: those that each argument must have; None for what is no
            distributed tensor.
        in_grad_placements: how gradients of the parts are placed; by default as the
            arguments.
        device_mesh: of the results; by default the arguments'.
        redistribute_inputs: whether arguments that lie otherwise are redistributed.

    Raises:
        AssertionError: another number of placements than arguments or results, or
            placements of what is no tensor.
        ValueError: an argument lies otherwise.
    """
    options = {
        "out_placements": out_placements,
        "in_placements": in_placements,
        "in_grad_placements": in_grad_placements,
        "device_mesh": device_mesh,
        "redistribute_inputs": redistribute_inputs,
    }
    if func is None:
        return lambda function: local_map(function, **options)
    return partial(_call, func, options)


def _call(func: Callable, options: dict, *args, **kwargs):
    flat, structure = pytree.tree_flatten(args)
    wanted, grads = options["in_placements"], options["in_grad_placements"]
    if wanted is not None and len(wanted) != len(flat):
        raise AssertionError(
            f"in_placements length {len(wanted)} does not match the number of input "
            f"args {len(flat)}!"
        )
    mesh = options["device_mesh"]
    given = [arg for arg in flat if isinstance(arg, DTensor)]
    if mesh is None and given:
        mesh = given[0].device_mesh
    parts = []
    for i, arg in enumerate(flat):
        own = None if wanted is None else wanted[i]
        if isinstance(arg, DTensor):
            if wanted is not None:
                arg = _as_wanted(arg, own, options["redistribute_inputs"])
            parts.append(_part(arg, grads, i))
            continue
        if own is not None and not isinstance(arg, taeda.Tensor):
            raise AssertionError(
                f"Non-Tensor input {arg} expects None placements but received {own}!"
            )
        parts.append(arg)
    made = func(*pytree.tree_unflatten(parts, structure), **kwargs)
    return _results(made, options["out_placements"], mesh) if given else made


def _part(arg: DTensor, grads, i: int):
    if grads is None:
        return arg.to_local()
    if grads[i] is None:
        raise AssertionError(
            f"DTensor input {arg} expects in grad placements but received None!"
        )
    return arg.to_local(grad_placements=tuple(grads[i]))


def _as_wanted(arg: DTensor, placements, redistributes: bool) -> DTensor:
    if placements is None:
        raise AssertionError(
            f"DTensor input {arg} expects placements but received None!"
        )
    placements = tuple(placements)
    if arg.placements == placements:
        return arg
    if not redistributes:
        raise ValueError(
            f"arg {arg} in local_map has a mismatched placements: arg placements is "
            f"{arg.placements} but the input placements is {placements}! If "
            "redistribute_inputs is wanted, set redistribute_inputs=True to local_map."
        )
    return arg.redistribute(placements=placements)


def _results(made, placements, mesh: DeviceMesh):
    flat, structure = pytree.tree_flatten(made)
    each = placements if isinstance(placements, tuple) else (placements,)
    if len(flat) != len(each):
        raise AssertionError(
            "local_map requires one PlacementType be provided for each output value, "
            f"received {len(each)} out_placements but {len(flat)} is expected!"
        )
    found = []
    for value, own in zip(flat, each, strict=True):
        if isinstance(value, DTensor):
            raise AssertionError(
                f"torch.Tensor output expected but received {type(value)}: {value}"
            )
        if isinstance(value, taeda.Tensor):
            found.append(DTensor.from_local(value, mesh, own))
            continue
        if own is not None:
            raise AssertionError(
                f"Non-tensor output {value} expects None placements but received {own}!"
            )
        found.append(value)
    return pytree.tree_unflatten(found, structure)
