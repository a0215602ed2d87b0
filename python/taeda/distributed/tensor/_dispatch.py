"""Calls of operators on distributed tensors.

A call is looked up by its overload, its tensors' specs and its other arguments; what is
found says which tensors are redistributed, which arguments repeat sizes of parts, and
the specs of the results. So a call that was seen before costs a look-up, the operator
on the local tensors, and a wrapper.
"""

from __future__ import annotations

import math

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

_op_call = _C._op_call
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
        quick: how the results of a call without moves are made tensors, or None.
        maker, spec: makes the wrapper of a result that is one, and its spec.
        head, tail, places: of a quick call, sizes among its positional arguments, the
            values of those that were not given, and where keywords lie among these.
    """

    __slots__ = (
        "head",
        "is_written",
        "maker",
        "mask",
        "moves",
        "outputs",
        "places",
        "quick",
        "share",
        "sizes",
        "spec",
        "tail",
    )

    def __init__(self, moves: list, sizes: dict, outputs) -> None:
        self.moves, self.sizes, self.outputs = moves, sizes, outputs
        self.is_written = False
        self.share = 1.0
        self.mask: _MaskPartial | None = None
        self.quick = self.maker = self.spec = None
        self.head: list = []
        self.tail: tuple = ()
        self.places: dict = {}


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
    if kwargs:
        return _with_keywords(kind, func, args, kwargs)
    entry = func._entry
    key, local = [entry], []
    for a in args:
        c = a.__class__
        if c is kind:
            spec = a._spec
            key.append(spec._token or spec.token)
            local.append(a._local_tensor)
        elif c in _VALUES:
            key += (c, a)
            local.append(a)
        elif not _append(key, a):
            return _dispatch(kind, func, args, {}, None)
        else:
            local.append(a)
    found = tuple(key)
    plan = _plans.get(found)
    if plan is None or plan.quick is None:
        return _dispatch(kind, func, args, {}, found)
    if plan.head:
        for place, value in plan.head:
            local[place] = value
    try:
        made = _op_call(entry, (*local, *plan.tail))
    except RuntimeError:
        return _dispatch(kind, func, args, {}, found)
    make = plan.maker
    if make is None:
        return plan.quick(kind, made, plan.outputs, args)
    result = make()
    result._local_tensor = made
    result._spec = plan.spec
    return result


def _append(key: list, a) -> bool:
    """Adds an argument that is no tensor to a key; False if it cannot be in one."""
    if a.__class__ is float:
        key.append(float)
    elif a.__class__ is list and a and a[0].__class__ is int:
        key.append(tuple(a))
    else:
        return False
    return True


def _with_keywords(kind, func, args: tuple, kwargs: dict):
    """The same for calls with arguments by name, none of which is a tensor."""
    key, local = [func._entry], []
    for a in args:
        if a.__class__ is kind:
            key.append(a._spec.token)
            local.append(a._local_tensor)
            continue
        if a.__class__ in _VALUES:
            key += (a.__class__, a)
        elif not _append(key, a):
            return _dispatch(kind, func, args, kwargs, None)
        local.append(a)
    for name, a in kwargs.items():
        if a.__class__ not in _VALUES:
            return _dispatch(kind, func, args, kwargs, None)
        key += (name, a)
    found = tuple(key)
    plan = _plans.get(found)
    if plan is None or plan.quick is None:
        return _dispatch(kind, func, args, kwargs, found)
    for place, value in plan.head:
        local[place] = value
    tail = list(plan.tail)
    for name, a in kwargs.items():
        tail[plan.places[name]] = a
    try:
        made = _op_call(func._entry, (*local, *tail))
    except RuntimeError:
        return _dispatch(kind, func, args, kwargs, found)
    return plan.quick(kind, made, plan.outputs, args)


# How results become tensors.


def _one(kind, made, outputs, args):
    return kind._make(made, outputs[0])


def _first_argument(kind, made, outputs, args):
    written = args[0]
    if "_origin" in written.__dict__:
        write_back(written)
    return written


def _view(kind, made, outputs, args):
    viewed = args[0]
    view = kind._make(made, outputs[0])
    if "_origin" in viewed.__dict__:
        view._origin = (viewed, None, ())
    return view


def _list(kind, made, outputs, args):
    return [kind._make(m, spec) for m, spec in zip(made, outputs, strict=True)]


def _tuple(kind, made, outputs, args):
    return tuple(
        kind._make(m, spec) if isinstance(m, Tensor) else m
        for m, spec in zip(made, outputs, strict=True)
    )


def _dispatch(kind, func, args: tuple, kwargs: dict, short: tuple | None):
    handler = HANDLERS.get(func.name())
    if handler is not None:
        return handler(func, args, kwargs)
    values = dict(
        zip(
            [a.name for a in func._schema.arguments],
            func._schema.bind(func.name(), args, kwargs),
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
    if short is not None and key is not None and short not in _plans:
        _shorten(func, args, values, plan, short)
    return _run(kind, func, values, plan)


def _shorten(func, args: tuple, values: dict, plan: Plan, short: tuple) -> None:
    """Enters a plan under the key that is made without binding arguments."""
    quick = _quick(func, values, plan)
    if quick is None or pattern_for(func).reads_numbers or _is_random(func):
        return
    made = Plan(plan.moves, plan.sizes, plan.outputs)
    made.quick = quick
    if quick is _one:
        made.spec = plan.outputs[0]
        made.maker = made.spec.maker(plan_mesh(values).device_type)
    names = list(values)
    given = {**values, **plan.sizes}
    made.head = [
        (i, given[n]) for i, n in enumerate(names[: len(args)]) if n in plan.sizes
    ]
    made.tail = tuple(given[n] for n in names[len(args) :])
    made.places = {n: i for i, n in enumerate(names[len(args) :])}
    if any(isinstance(v, Tensor) for v in made.tail):
        return
    if any(n in plan.sizes for n in names[len(args) :]):
        return
    _plans[short] = made


def _quick(func, values: dict, plan: Plan):
    """How results of a call that needs nothing but the operator are made tensors."""
    if any(plan.moves) or plan.mask is not None or plan.outputs is None:
        return None
    if plan.share != 1:
        return None
    mesh = plan_mesh(values)
    if mesh is None or mesh.get_coordinate() is None:
        return None
    results = func.record.results
    if plan.is_written:
        first = func._schema.arguments[0].alias_info
        is_one = len(results) == 1 and first is not None and first.is_write
        return _first_argument if is_one and not plan.sizes else None
    if len(results) == 1:
        if not results[0].type.endswith("[]"):
            one = _view if func.is_view else _one
            return one if plan.outputs and plan.outputs[0] is not None else None
        return _list
    return _tuple if all(not r.type.endswith("[]") for r in results) else None


def plan_mesh(values: dict):
    """The mesh of the first distributed tensor that is an argument of its own."""
    for value in values.values():
        spec = getattr(value, "_spec", None)
        if spec is not None:
            return spec.mesh
    return None


def _is_random(func) -> bool:
    return "nondeterministic_seeded" in func.record.tags


def _key(kind, func, values: dict) -> tuple:
    reads_numbers = pattern_for(func).reads_numbers
    # None in front, since a short key may have the same parts.
    return None, func, *(_part(kind, v, reads_numbers) for v in values.values())


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
    specs = [
        item._spec
        for value in values.values()
        for item in (value if isinstance(value, (list, tuple)) else (value,))
        if isinstance(item, kind)
    ]
    mesh = specs[0].mesh
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
        made = _absent(plan, func, specs[0])
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
        return _op_call(func._entry, tuple(given.values()))
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
