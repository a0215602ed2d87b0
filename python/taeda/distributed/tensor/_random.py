"""Random numbers that do not depend on how many ranks there are.

Note [Random numbers of distributed tensors] Every rank draws the numbers of the whole
tensor and keeps those of its part, so that a program gives the same numbers at any
number of ranks, and replicas agree. Where ranks have the same seed, as `manual_seed`
leaves them, they draw from their default generators. Where a mesh's ranks were seeded
differently, its tensors draw from a generator of their own, with the least of the
seeds; ranks find that out at the first draw after a seed was set.
"""

from __future__ import annotations

from contextlib import contextmanager

import taeda
from taeda import _C

from .. import _collectives as collectives
from .._types import ReduceOp
from ._dtensor_spec import DTensorSpec
from ._patterns import REPLICATE
from ._redistribute import moved
from ._transfers import part

Tensor = taeda.Tensor

# Mesh -> (seed of this process when ranks compared theirs, generator or None). All
# ranks of a mesh draw in the same order, in the thread that runs the program.
_agreed: dict = {}


def _generator_of(mesh):
    """The generator of a mesh whose ranks have different seeds; else None."""
    seed = taeda.initial_seed()
    known = _agreed.get(mesh)
    if known is not None and known[0] == seed:
        return known[1]
    least, largest = (taeda.tensor([seed], dtype=taeda.int64) for _ in range(2))
    for dim in range(mesh.ndim):
        collectives.all_reduce(least, ReduceOp.MIN, mesh.get_group(dim))
        collectives.all_reduce(largest, ReduceOp.MAX, mesh.get_group(dim))
    generator = None
    if least.item() != largest.item():
        generator = taeda.Generator().manual_seed(least.item())
    _agreed[mesh] = (seed, generator)
    return generator


@contextmanager
def agreed_numbers(mesh):
    """Within, the default generator gives the same numbers at all ranks of a mesh."""
    generator = _generator_of(mesh) if mesh.get_coordinate() is not None else None
    if generator is None:
        yield
        return
    before = taeda.get_rng_state()
    taeda.set_rng_state(generator.get_state())
    try:
        yield
    finally:
        generator.set_state(taeda.get_rng_state())
        taeda.set_rng_state(before)


def random_call(func, values: dict, given: dict, outputs, kind):
    """A call of an operator that draws: of the whole, of which a part is kept.

    Args:
        func: the overload.
        values: its arguments by name.
        given: the same with this rank's parts.
        outputs: specs of the results.
        kind: the class of distributed tensors.
    """
    ours = [v._spec for v in values.values() if isinstance(v, kind)]
    with agreed_numbers(ours[0].mesh):
        if not any(spec.is_sharded() for spec in ours):
            return _C._op_call(func._entry, tuple(given.values()))
        return _drawn(func, values, outputs, kind)


def _drawn(func, values: dict, outputs, kind):
    written = [
        a.name for a in func._schema.arguments if a.alias_info and a.alias_info.is_write
    ]
    full = dict(values)
    is_unread = func.name().endswith(("_like", "bernoulli.p"))
    for name, value in values.items():
        if isinstance(value, kind):
            unread = is_unread or name in written
            full[name] = _hollow(value._spec) if unread else _whole(value)
    made = _C._op_call(func._entry, tuple(full.values()))
    for name in written:
        target = values[name]
        if isinstance(target, kind):
            target._local_tensor.copy_(part_of(full[name], target._spec))
    if written:
        return made
    if isinstance(made, Tensor):
        return part_of(made, outputs[0])
    return tuple(part_of(m, s) for m, s in zip(made, outputs, strict=True))


def _whole(tensor) -> Tensor:
    spec = tensor._spec
    return moved(tensor._local_tensor, spec, (REPLICATE,) * spec.mesh.ndim)


def _hollow(spec: DTensorSpec) -> Tensor:
    shape, stride, dtype = spec.tensor_meta
    return taeda.empty_strided(
        tuple(shape), stride, dtype=dtype, device=spec.mesh.device_type
    )


def part_of(whole: Tensor, spec: DTensorSpec) -> Tensor:
    """What this rank holds of a tensor under a spec without partial values."""
    coordinate = spec.mesh.get_coordinate()
    for at, placement in enumerate(spec.placements):
        if placement.is_shard():
            whole = part(whole, placement, spec.mesh.size(at), coordinate[at])
    return whole.contiguous()
