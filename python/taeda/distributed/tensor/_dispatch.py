"""Calls of operators on distributed tensors.

A call is looked up by its overload, its tensors' specs and its other arguments; what is
found says which tensors are redistributed, which arguments repeat sizes of parts, and
the specs of the results. A call that needs only the operator on the parts comes here
once: equal ones are computed in C++ (Note [Known calls] in csrc/boxed/known_calls.h).
"""

from __future__ import annotations

import math
from functools import partial

import taeda
from taeda import _C

from ._dtensor_spec import DTensorSpec
from ._handlers import HANDLERS, masked_lookup
from ._layout import local_shape, meta_of
from ._losses import MEAN, ROW_LOSSES, cuts_classes
from ._patterns import REPLICATE
from ._propagate import choose, pattern_for, replaced_sizes, written_names
from ._random import random_call
from ._redistribute import moved
from ._written_views import noted_view, write_back
from .placement_types import _MaskPartial

Tensor = taeda.Tensor

# Key of a call -> its plan. Threads may write the same plan twice, which does no harm;
# the table is emptied when it has many entries, since sizes may differ in every step.
_plans: dict = {}
_MANY = 20_000
# Values that a plan may depend on, by class; others are not part of a key.
_VALUES = frozenset(
    (int, bool, str, type(None), taeda.dtype, taeda.layout, taeda.memory_format)
)
# Whether plain tensors among distributed ones stand for replicas; set by
# `implicit_replication`, which restores it. One value for the process, as in PyTorch.
allows_plain = [False]


# The class of distributed tensors, entered once by the module that has it.
_kinds: list[type] = []


class Plan:
    """How one call is computed.

    Attributes:
        moves: for each tensor None, or the placements that it is given first.
        sizes: values of arguments that repeat sizes of parts.
        share: what the result is multiplied by, 1 for nearly all.
        outputs: specs of the results; None where their shapes depend on data.
    """

    __slots__ = ("is_written", "mask", "moves", "outputs", "share", "sizes")

    def __init__(self, moves: list, sizes: dict, outputs) -> None:
        self.moves, self.sizes, self.outputs = moves, sizes, outputs
        self.is_written = False
        self.share = 1.0
        self.mask: _MaskPartial | None = None


class Unhashable(Exception):
    """An argument that cannot be part of a key."""


def dispatch(func, types, args=(), kwargs=None):
    """The result of an operator.

    Args:
        func: the overload.
        types: classes of the arguments; not used.
        args, kwargs: some of which are distributed tensors.

    Raises:
        RuntimeError: plain tensors among distributed ones, tensors of different
            meshes, or a call that would change the placement of what it writes.
    """
    kind = _kinds[0]
    handler = HANDLERS.get(func.name())
    if handler is not None:
        return handler(func, args, kwargs or {})
    values = dict(
        zip(
            [a.name for a in func._schema.arguments],
            func._schema.bind(func.name(), args, kwargs or {}),
            strict=True,
        )
    )
    rows = ROW_LOSSES.get(func.name())
    if rows is None or not cuts_classes[0]:
        values = _all_ours(kind, func, values)
    if rows is not None and isinstance(values["self"], kind):
        made = rows(values)
        if made is not None:
            return made
        values = _all_ours(kind, func, values)
    try:
        key = _key(kind, func, values)
        plan = _plans.get(key)
    except Unhashable:
        key = plan = None
    if plan is None:
        plan = _planned(kind, func, values)
        if len(_plans) > _MANY:
            _plans.clear()
        if key is not None:
            _plans[key] = plan
    made = _run(kind, func, values, plan)
    if key is not None and rows is None and _is_plain(func, values, plan):
        _remember(func, values, plan)
    return made


def forget() -> None:
    """What is known of calls is found out again, since strategies have changed."""
    _plans.clear()
    _C._forget_calls()


def _is_plain(func, values: dict, plan: Plan) -> bool:
    """Whether such calls need nothing but moves and the operator on the parts."""
    if plan.mask is not None or plan.outputs is None:
        return False
    if any(plan.moves) and (plan.is_written or func.is_view):
        return False
    if plan.share != 1 or pattern_for(func).reads_numbers or _is_random(func):
        return False
    mesh = _mesh_of(values)
    if mesh is None or mesh.get_coordinate() is None:
        return False
    if plan.is_written:
        results = func._schema.returns
        return not plan.sizes and all(
            r.alias_info and r.alias_info.is_write for r in results
        )
    return True


def _remember(func, values: dict, plan: Plan) -> None:
    """Such calls never come here again: they are computed in C++ (known_calls.h)."""
    names, moves = list(values), {}
    for i, (item, wanted) in enumerate(zip(_tensors(values), plan.moves, strict=True)):
        if wanted is not None:
            moves[i] = partial(moved, spec=item._spec, placements=wanted)
    sizes = {names.index(name): value for name, value in plan.sizes.items()}
    device = _mesh_of(values).device_type
    outputs = [None if s is None else (s.maker(device)(), s) for s in plan.outputs]
    _C._remember_call(func._entry, moves, sizes, outputs)


def _mesh_of(values: dict):
    """The mesh of the first distributed tensor."""
    return next((item._spec.mesh for item in _tensors(values)), None)


def _tensors(values: dict) -> list:
    """All distributed tensors among the arguments."""
    return [
        item
        for value in values.values()
        for item in (value if isinstance(value, (list, tuple)) else (value,))
        if isinstance(item, _kinds[0])
    ]


def _is_random(func) -> bool:
    return "nondeterministic_seeded" in func.record.tags


def _key(kind, func, values: dict) -> tuple:
    reads_numbers = pattern_for(func).reads_numbers
    return func, *(_part(kind, v, reads_numbers) for v in values.values())


def _part(kind, value, reads_numbers: bool):
    c = value.__class__
    if isinstance(value, kind):
        return value._spec.token
    if c in _VALUES:
        return c, value
    if c in (list, tuple):
        return (list, *(_part(kind, v, reads_numbers) for v in value))
    if c in (float, complex):
        return (c, value) if reads_numbers else c
    if c is taeda.device:
        return c, str(value)
    raise Unhashable


def _all_ours(kind, func, values: dict) -> dict:
    """The values with plain tensors of one element as replicas.

    Raises:
        RuntimeError: another plain tensor among distributed ones, or two meshes.
    """
    found, plain = [], False
    for value in values.values():
        for item in value if isinstance(value, (list, tuple)) else (value,):
            if isinstance(item, kind):
                found.append(item._spec.mesh)
            elif isinstance(item, Tensor):
                plain = True
    mesh = found[0] if found else None
    for other in found:
        if other is not mesh and other != mesh:
            raise ValueError(
                f"{func}: expected tensors of one mesh, got {mesh} and {other}"
            )
    if not plain:
        return values

    def ours(value):
        if isinstance(value, (list, tuple)):
            return [ours(v) for v in value]
        if isinstance(value, kind) or not isinstance(value, Tensor):
            return value
        if value.numel() != 1 and not allows_plain[0]:
            raise RuntimeError(
                f"{func}: got mixed torch.Tensor and DTensor, need to convert all "
                "torch.Tensor to DTensor before calling distributed operators! Use "
                "distribute_tensor, DTensor.from_local or implicit_replication."
            )
        whole = (REPLICATE,) * mesh.ndim
        return kind._make(value, DTensorSpec(mesh, whole, meta_of(value)))

    return {name: ours(value) for name, value in values.items()}


def _planned(kind, func, values: dict) -> Plan:
    def is_ours(value) -> bool:
        return isinstance(value, kind)

    choice, call = choose(func, values, is_ours)
    moves = [
        None if wanted == spec.placements else wanted
        for wanted, spec in zip(choice.inputs, call.specs, strict=True)
    ]
    plan = Plan(moves, replaced_sizes(func, call, choice), choice.outputs)
    schema = func._schema
    plan.is_written = any(
        a.alias_info and a.alias_info.is_write for a in schema.arguments
    )
    pattern = pattern_for(func)
    if getattr(pattern, "divides_by_size", False) and values["reduction"] == MEAN:
        spec = choice.outputs[0]
        plan.share = math.prod(local_shape(spec)) / max(math.prod(spec.shape), 1)
    if getattr(pattern, "looks_up", False):
        for placement in choice.outputs[0].placements:
            if isinstance(placement, _MaskPartial):
                plan.mask = placement
    return plan


def _run(kind, func, values: dict, plan: Plan):
    spec = _tensors(values)[0]._spec
    mesh = spec.mesh
    moves = iter(plan.moves)

    def local(value):
        if isinstance(value, (list, tuple)):
            return [local(v) for v in value]
        if not isinstance(value, kind):
            return value
        wanted = next(moves)
        if wanted is None:
            return value._local_tensor
        return moved(value._local_tensor, value._spec, wanted)

    given = {name: local(value) for name, value in values.items()}
    given.update(plan.sizes)
    if mesh.get_coordinate() is None:
        made = _absent(plan, func, spec)
    elif _is_random(func):
        made = random_call(func, values, given, plan.outputs, kind)
    elif plan.mask is not None:
        made = masked_lookup(func, values, given, plan)
    else:
        made = _computed(func, given, plan)
        if plan.share != 1:
            made = made * plan.share
    if func.is_view and not plan.is_written:
        wrapped = _wrapped(kind, func, made, plan.outputs, mesh)
        return noted_view(func, values, plan, wrapped)
    if plan.is_written:
        if any(plan.moves):
            _put_back(kind, func, values, given, plan)
        return _written(func, values, made)
    return _wrapped(kind, func, made, plan.outputs, mesh)


def _put_back(kind, func, values: dict, given: dict, plan: Plan) -> None:
    """Writes what was written to redistributed copies into the tensors themselves."""
    names, moves = written_names(func), iter(plan.moves)
    for name, value in values.items():
        is_list = isinstance(value, (list, tuple))
        items = value if is_list else (value,)
        copies = given[name] if is_list else (given[name],)
        for item, copy in zip(items, copies, strict=True):
            if not isinstance(item, kind):
                continue
            wanted = next(moves)
            if wanted is None or name not in names:
                continue
            spec = item._spec
            there = DTensorSpec(spec.mesh, wanted, spec.tensor_meta)
            item._local_tensor.copy_(moved(copy, there, spec.placements))


def _computed(func, given: dict, plan: Plan):
    try:
        return _C._op_call(func._entry, tuple(given.values()))
    except RuntimeError:
        # The whole could be viewed so, and the part has other strides.
        if "size" not in plan.sizes or not func.is_view:
            raise
        return given["self"].reshape(given["size"])


def _absent(plan: Plan, func, spec: DTensorSpec):
    """Results at a rank outside of the mesh: tensors without elements."""
    if plan.outputs is None:
        return None
    made = [
        None if s is None else taeda.empty(0, dtype=s.tensor_meta.dtype)
        for s in plan.outputs
    ]
    is_list = func.record.results[0].type.endswith("[]") if made else False
    return made if len(made) != 1 or is_list else made[0]


def _written(func, values: dict, made):
    """What an operator that writes gives back: the tensors that it wrote."""
    found = [
        values[a.name]
        for a in func._schema.arguments
        if a.alias_info and a.alias_info.is_write
    ]
    for item in found:
        if "_origin" in getattr(item, "__dict__", ()):
            write_back(item)
    if not func._schema.returns:
        return None
    return found[0] if len(found) == 1 else tuple(found)


def _wrapped(kind, func, made, outputs, mesh):
    if made is None:
        return None
    if outputs is None:
        return _replicas(kind, made, mesh)
    if isinstance(made, Tensor):
        return kind._make(made, outputs[0])
    if not isinstance(made, (list, tuple)):
        return made
    specs = iter(outputs)

    def wrapped(item):
        if isinstance(item, (list, tuple)):
            return [wrapped(i) for i in item]
        spec = next(specs)
        if not isinstance(item, Tensor) or spec is None:
            return item
        return kind._make(item, spec)

    parts = [wrapped(item) for item in made]
    return parts if func.record.results[0].type.endswith("[]") else tuple(parts)


def _replicas(kind, made, mesh):
    """Results whose shapes depend on data: every rank has computed them."""
    if isinstance(made, (list, tuple)):
        return type(made)(_replicas(kind, item, mesh) for item in made)
    if not isinstance(made, Tensor):
        return made
    whole = (REPLICATE,) * mesh.ndim
    return kind._make(made, DTensorSpec(mesh, whole, meta_of(made)))
