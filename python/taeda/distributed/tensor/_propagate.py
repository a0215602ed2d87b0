"""How the tensors of a call are to be placed, and how its results then are."""

from __future__ import annotations

from itertools import product

import taeda

from ._costs import redistribute_cost
from ._dtensor_spec import DTensorSpec
from ._layout import local_shape, meta_of
from ._patterns import REPLICATE, Operands, Pattern, Strategy, flat_results
from ._rules import rule_for
from ._views import ViewPattern

# Overload -> its pattern. Written once for each key, and what is written is the same
# whoever writes it, so that threads need no lock.
_patterns: dict = {}


def pattern_for(func):
    """The pattern of an overload: a rule of the table, a view, or its record's."""
    found = _patterns.get(func)
    if found is None:
        found = rule_for(func)
        if found is None:
            is_view = func.is_view and len(func.record.arguments) > 0
            found = ViewPattern(func) if is_view else Pattern(func)
        _patterns[func] = found
    return found


def results_on_meta(func, values: dict, is_ours):
    """The results of a call as tensors on meta; None where they depend on data."""

    def shown(value):
        if is_ours(value):
            return empty_like_spec(value._spec)
        if isinstance(value, (list, tuple)):
            return [shown(v) for v in value]
        return taeda.device("meta") if isinstance(value, taeda.device) else value

    try:
        made = taeda._C._op_call(func._entry, tuple(map(shown, values.values())))
    except NotImplementedError:
        return None
    if made is None:
        return []
    return list(made) if isinstance(made, tuple) else [made]


def empty_like_spec(spec: DTensorSpec):
    """A tensor on meta with the whole's shape, strides and dtype."""
    shape, stride, dtype = spec.tensor_meta
    return taeda.empty_strided(tuple(shape), stride, dtype=dtype, device="meta")


class Choice:
    """What was chosen for a call: placements of its tensors, and specs of its results.

    `outputs` is None where the results' shapes depend on data: they are replicas.
    """

    __slots__ = ("inputs", "outputs")

    def __init__(self, inputs: list[tuple], outputs: list | None) -> None:
        self.inputs, self.outputs = inputs, outputs


def choose(func, values: dict, is_ours) -> tuple[Choice, Operands]:
    """The cheapest way to compute a call.

    Args:
        func: the overload.
        values: its arguments by name.
        is_ours: whether a value is a distributed tensor.

    Raises:
        RuntimeError: what it writes would have to be placed otherwise, or a view would
            need communication.
    """
    results = results_on_meta(func, values, is_ours)
    call = Operands(func, values, is_ours, results or [])
    mesh = call.specs[0].mesh
    whole = (REPLICATE,) * mesh.ndim
    if results is None:
        return Choice([whole] * len(call.tensors), None), call
    pattern = pattern_for(func)
    written = _written(func, call)
    options = [
        _ordered(pattern.strategies(call, dim, mesh.size(dim)))
        for dim in range(mesh.ndim)
    ]
    best = _cheapest(call, options, written)
    if best is None:
        raise _refused_write(func, call, options)
    metas = list(flat_results(results))
    outputs = []
    for i, meta in enumerate(metas):
        placements = tuple(s.outputs[i] for s in best)
        outputs.append(
            None if meta is None else DTensorSpec(mesh, placements, meta_of(meta))
        )
    inputs = [tuple(s.inputs[i] for s in best) for i in range(len(call.tensors))]
    return Choice(inputs, outputs), call


def _ordered(strategies: list[Strategy]) -> list[Strategy]:
    """Of two that cost the same, the one that cuts the earlier axis comes first."""

    def place(strategy: Strategy) -> tuple:
        first = strategy.outputs[0] if strategy.outputs else REPLICATE
        return (0, first.dim) if first.is_shard() else (1, 0)

    return sorted(strategies, key=place)


def _cheapest(call: Operands, options: list[list[Strategy]], written: list[int]):
    best, lowest = None, float("inf")
    for combined in product(*options):
        cost = sum(strategy.extra for strategy in combined)
        for i, spec in enumerate(call.specs):
            placements = tuple(s.inputs[i] for s in combined)
            if i in written and placements != spec.placements:
                cost = float("inf")
                break
            cost += redistribute_cost(spec, placements)
            if cost >= lowest:
                break
        if cost < lowest:
            best, lowest = combined, cost
    return best


def _written(func, call: Operands) -> list[int]:
    """Which tensors the call writes and may not be placed otherwise.

    Of operators of lists that go together these are the first list's; the others that
    they write are put back afterwards.
    """
    names = written_names(func)
    if getattr(pattern_for(func), "goes_by_entries", False):
        names &= {pattern_for(func).names[0]}
    return [i for i, name in enumerate(call.names) if name in names]


def written_names(func) -> set[str]:
    """The arguments that an overload writes.

    Gradients of fused optimizers are left out: they are only scaled, and only where a
    scale is given.
    """
    return {
        a.name
        for a in func._schema.arguments
        if a.alias_info and a.alias_info.is_write and a.name != "grads"
    }


def _refused_write(func, call: Operands, options) -> RuntimeError:
    placed = call.specs[0].placements
    wanted = tuple(strategies[0].inputs[0] for strategies in options)
    return RuntimeError(
        f"{func}: in-place operations that require placement changes are not supported."
        f" The input has placement {tuple(map(str, placed))}, the operation needs "
        f"{tuple(map(str, wanted))}; redistribute it first, or compute out of place."
    )


def replaced_sizes(func, call: Operands, choice: Choice) -> dict:
    """Arguments that repeat sizes, with those of this rank's parts."""
    if not choice.outputs or choice.outputs[0] is None:
        return {}
    spec, values = choice.outputs[0], call.values
    if not spec.is_sharded():
        return _cut_numbers(func, call, choice)
    pattern, found = pattern_for(func), {}
    if isinstance(pattern, ViewPattern):
        if func.record.name.startswith(("aten::as_strided", "aten::unfold")):
            return {}
        names = [
            n for n in ("size", "sizes") if isinstance(values.get(n), (list, tuple))
        ]
        for name in names:
            found[name] = list(local_shape(spec))
        return found
    if pattern.axes is not None:
        for operand in pattern.axes.outputs:
            if operand.sizes and operand.sizes in values:
                found[operand.sizes] = list(local_shape(spec))
    return {**found, **_cut_numbers(func, call, choice)}


def _cut_numbers(func, call: Operands, choice: Choice) -> dict:
    pattern, found = pattern_for(func), {}
    if getattr(pattern, "axes", None) is None:
        return found
    patterns = dict(zip(pattern.names, pattern.axes.inputs, strict=False))
    for i, name in enumerate(call.names):
        spec = call.specs[i]
        placed = DTensorSpec(spec.mesh, choice.inputs[i], spec.tensor_meta)
        try:
            pairs = patterns[name].size_arguments(spec.ndim, call.values)
        except (ValueError, KeyError):
            continue
        for argument, at in pairs:
            found[argument] = local_shape(placed)[at]
    return found
