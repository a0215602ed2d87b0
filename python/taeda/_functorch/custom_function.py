"""`autograd.Function` under function transforms.

Note [A function and the levels]
`Function.apply` asks the innermost level of the thread, which calls `apply` again with
itself out of the way, and so on; without levels forward runs. A level of reverse mode
records the function's own backward, one of forward mode calls its `jvp`, one of vmap
its `vmap`, or maps forward, backward and jvp themselves where `generate_vmap_rule` is
set; functionalize hands on the function of forward, backward and jvp without writes.
Each level shows setup_context its own tensors, with a ctx of its own.
"""

from __future__ import annotations

from typing import NamedTuple

import taeda
from taeda import _C
from taeda._functorch.functionalize import functionalize
from taeda._functorch.levels import batch_level, below, innermost
from taeda._functorch.vmap import _expanded
from taeda.autograd.function import Function
from taeda.utils._pytree import tree_flatten, tree_map, tree_unflatten

__all__ = ["VmapInfo", "call"]


class VmapInfo(NamedTuple):
    """What a Function's `vmap` is told about the batch."""

    batch_size: int
    randomness: str


def _is_tensor(value) -> bool:
    return isinstance(value, taeda.Tensor)


def call(cls, args: tuple):
    """`cls.apply(*args)` in a thread that has levels."""
    if not cls._has_setup_context and _C._functorch.in_transform():
        raise RuntimeError(
            "In order to use an autograd.Function with functorch transforms (vmap, "
            "grad, jvp, jacrev, ...), it must override the setup_context staticmethod "
            f"({cls.__name__} does not)."
        )
    level = innermost()
    if level is None:
        return _C._apply_function(cls, args, None)[1]
    apply = {
        "grad": _recorded,
        "dual": _pushed,
        "vmap": _mapped,
        "functionalize": _without_writes,
        "record": _seen_through,
    }
    return apply[level.kind](level, cls, args)


def _keeping_identity(given, inside, wrap):
    """`wrap`, but an argument that was returned as it came stays that argument."""

    def wrapped(t):
        for outer, inner in zip(given, inside, strict=True):
            if t is inner and outer is not inner:
                return outer
        return wrap(t)

    return wrapped


# Reverse mode -----------------------------------------------------------------------


def _recorded(level, cls, args: tuple):
    if not any(_is_tensor(a) and level.holds(a) for a in args):
        with below(level):
            return cls.apply(*args)
    given = tuple(
        level.wrap(a) if _is_tensor(a) and not level.holds(a) else a for a in args
    )
    inside = tuple(level.unwrap(a) if _is_tensor(a) else a for a in given)
    outer = _keeping_identity(given, inside, level.wrap)

    def forward(*_):
        with below(level):
            result = cls.apply(*inside)
        return tree_map(lambda t: outer(t) if _is_tensor(t) else t, result)

    return _C._apply_function(cls, given, forward)[1]


def _seen_through(level, cls, args: tuple):
    """What forward calls is recorded; its backward is not part of a graph."""
    return _C._apply_function(cls, args, None)[1]


# Without writes ---------------------------------------------------------------------


def _without_writes(level, cls, args: tuple):
    if not level.is_transform:
        # Autograd records wrappers of the level, forward is a program inside of it.
        return _C._apply_function(cls, args, None)[1]
    inside = tuple(level.unwrap(a) if _is_tensor(a) else a for a in args)
    outer = _keeping_identity(args, inside, level.wrap)
    remove = "mutations" if level.keeps_views else "mutations_and_views"
    parts = {
        name: staticmethod(functionalize(getattr(cls, name), remove=remove))
        for name in ("forward", "backward", "jvp")
        if getattr(cls, name) is not getattr(Function, name)
    }
    with below(level):
        result = type(cls)(cls.__name__, (cls,), parts).apply(*inside)
    return tree_map(lambda t: outer(t) if _is_tensor(t) else t, result)


# Forward mode -----------------------------------------------------------------------


class _ForwardContext:
    """ctx as `jvp` sees it, where nothing is saved for backward yet."""

    def __init__(self, ctx) -> None:
        self._ctx = ctx

    @property
    def saved_tensors(self):
        """What save_for_forward kept."""
        return getattr(self._ctx, "saved_for_forward", None) or ()

    def __getattr__(self, name: str):
        return getattr(self._ctx, name)


def _pushed(level, cls, args: tuple):
    tangents = tuple(level.tangent(a) if _is_tensor(a) else None for a in args)
    active = _C._functorch.fwd_grad_enabled() and any(t is not None for t in tangents)
    with below(level):
        if not active:
            return cls.apply(*args)
        if cls._has_setup_context:
            ctx = cls._backward_cls()
            ctx.needs_input_grad = tuple(
                _is_tensor(a) and a.requires_grad for a in args
            )
            result = cls.apply(*args)
            with taeda.no_grad():
                cls.setup_context(ctx, args, result)
        else:
            ctx, result = _C._apply_function(cls, args, None)
        given = _with_zeros(ctx, args, tangents)
        moved = cls.jvp(_ForwardContext(ctx), *given)
    _give_tangents(level, cls, ctx, args, result, moved)
    return result


def _with_zeros(ctx, args: tuple, tangents: tuple) -> tuple:
    """The tangents, zeros for tensors without one where ctx wants zeros."""
    return tuple(
        taeda.zeros_like(a)
        if t is None
        and ctx.materialize_grads
        and _is_tensor(a)
        and (a.is_floating_point() or a.is_complex())
        else t
        for a, t in zip(args, tangents, strict=True)
    )


def _give_tangents(level, cls, ctx, args: tuple, result, moved) -> None:
    results = result if isinstance(result, tuple) else (result,)
    moved = moved if isinstance(moved, tuple) else (moved,)
    if len(moved) != len(results):
        raise RuntimeError(
            f"Function's jvp returned an invalid number of forward gradients (expected "
            f"{len(results)} but got {len(moved)}): {cls.__name__}"
        )
    fixed = [id(t) for t in ctx.non_differentiable or ()]
    for i, (out, tangent) in enumerate(zip(results, moved, strict=True)):
        if tangent is not None and not _is_tensor(tangent):
            raise RuntimeError(
                f"expected Variable or None (got {type(tangent).__name__}) for grad "
                f"output {i}."
            )
        if tangent is None or not _is_tensor(out) or id(out) in fixed:
            continue
        if any(out is a for a in args):
            level.update_tangent(out, tangent)
        else:
            level.set_tangent(out, tangent)


# vmap -------------------------------------------------------------------------------


def _mapped(level, cls, args: tuple):
    has_rule = cls.vmap is not Function.vmap
    if has_rule and cls.generate_vmap_rule:
        raise RuntimeError(
            f"You tried to vmap over {cls.__name__}, but it has both "
            "generate_vmap_rule=True and an overridden vmap staticmethod. Please set "
            "generate_vmap_rule=False or delete the overridden vmap staticmethod to "
            "avoid ambiguity."
        )
    if not has_rule and not cls.generate_vmap_rule:
        raise RuntimeError(
            f"You tried to vmap over {cls.__name__}, but it does not have vmap "
            "support. Please override and implement the vmap staticmethod or set "
            "generate_vmap_rule=True."
        )
    leaves, spec = tree_flatten(args)
    dims = [0 if _is_tensor(a) and level.holds(a) else None for a in leaves]
    if not any(dim == 0 for dim in dims):
        with below(level):
            return cls.apply(*args)
    inside = [
        a if dim is None else level.unwrap(a, 0)
        for a, dim in zip(leaves, dims, strict=True)
    ]
    with below(level):
        if has_rule:
            info = VmapInfo(level.size, level.randomness)
            in_dims = tuple(tree_unflatten(dims, spec))
            returned = cls.vmap(info, in_dims, *tree_unflatten(inside, spec))
        else:
            plan = _Plan(cls, level, spec, dims)
            returned = _OverBatch.apply(plan, *inside), plan.out_dims
    found, out_dims, shape = _checked(returned)
    return tree_unflatten(
        [
            t
            if dim is None
            else _keeping_identity(leaves, inside, lambda t, d=dim: level.wrap(t, d))(t)
            for t, dim in zip(found, out_dims, strict=True)
        ],
        shape,
    )


def _checked(returned) -> tuple[list, list, object]:
    """(results, their dims, their structure) of what a vmap staticmethod returned."""
    if not isinstance(returned, tuple) or len(returned) != 2:
        raise RuntimeError(
            "Expected the vmap staticmethod to have two returns, an output and "
            f"out_dims with pytree structure compatible with the output. Got a "
            f"{type(returned)} instead"
        )
    result, out_dims = returned
    found, shape = tree_flatten(result)
    try:
        dims = _expanded(out_dims, shape, "")
    except ValueError as error:
        raise RuntimeError(
            "The autograd.Function's vmap staticmethod returned an incompatible "
            f"(output, out_dims) tuple. Expected out_dims={out_dims} to be compatible "
            f"with the structure of `output`: {error}"
        ) from None
    return found, dims, shape


class _Plan:
    """How a Function is mapped: which arguments, and later which results, have the
    batch in dim 0."""

    def __init__(self, cls, level, spec, dims: list) -> None:
        self.cls, self.spec, self.in_dims = cls, spec, dims
        self.size, self.randomness = level.size, level.randomness
        self.out_dims = None

    def level(self):
        """A new level over the batch."""
        return batch_level(self.size, self.randomness)


def _into(level, values, dims) -> list:
    """Values as the mapped function sees them."""
    return [
        level.wrap(v, 0) if dim == 0 and v is not None else v
        for v, dim in zip(values, dims, strict=True)
    ]


def _out_of(level, value):
    """(the value without this level's wrapper, 0 if it had one)."""
    if _is_tensor(value) and level.holds(value):
        return level.unwrap(value, 0), 0
    return value, None


def _several(values) -> tuple:
    return values if isinstance(values, tuple) else (values,)


class _MappedContext:
    """ctx of the mapped function; what it keeps, the ctx outside of the level keeps."""

    def __init__(self, needs_input_grad: tuple) -> None:
        self.needs_input_grad = needs_input_grad
        self.materialize_grads = True
        self._kept: dict[str, tuple] = {}

    def save_for_backward(self, *tensors) -> None:
        """Keep tensors for backward."""
        self._kept["backward"] = tensors

    def save_for_forward(self, *tensors) -> None:
        """Keep tensors for jvp."""
        self._kept["forward"] = tensors

    def mark_dirty(self, *tensors) -> None:
        """Names the inputs that forward changes in place."""
        self._kept["dirty"] = tensors

    def mark_non_differentiable(self, *tensors) -> None:
        """Names outputs without gradient."""
        self._kept["fixed"] = tensors

    def set_materialize_grads(self, value: bool) -> None:
        """Whether backward gets zeros instead of None."""
        self.materialize_grads = value

    def at(self, level, saved, dims, needs_input_grad: tuple):
        """The same ctx with its saved tensors in another level."""
        seen = _MappedContext(needs_input_grad)
        seen.__dict__.update(self.__dict__)
        seen.saved_tensors = tuple(_into(level, saved, dims))
        seen.needs_input_grad = needs_input_grad
        return seen


class _OverBatch(Function):
    """A Function over a batch: its own forward, backward and jvp in a level of vmap.

    The first argument of forward is the _Plan; the others are the leaves of the
    Function's arguments.
    """

    generate_vmap_rule = True

    @staticmethod
    def forward(plan, *leaves):
        """The mapped function's results."""
        with plan.level() as level:
            args = tree_unflatten(_into(level, leaves, plan.in_dims), plan.spec)
            result = plan.cls.forward(*args)
            found = [_out_of(level, value) for value in _several(result)]
        alone = not isinstance(result, tuple)
        dims = tuple(dim for _, dim in found)
        plan.out_dims = dims[0] if alone else dims
        return found[0][0] if alone else tuple(value for value, _ in found)

    @staticmethod
    def setup_context(ctx, inputs, output) -> None:
        """Has the mapped function keep what it needs."""
        plan, *leaves = inputs
        ctx.plan = plan
        with plan.level() as level:
            seen = _into(level, leaves, plan.in_dims)
            shown = _into(level, _several(output), _several(plan.out_dims))
            ctx.inner = _MappedContext(ctx.needs_input_grad[1:])
            plan.cls.setup_context(
                ctx.inner,
                tuple(tree_unflatten(seen, plan.spec)),
                tuple(shown) if isinstance(output, tuple) else shown[0],
            )
            pairs = [*zip(seen, leaves, strict=True)]
            pairs += [*zip(shown, _several(output), strict=True)]
            _keep_outside(ctx, level, pairs)

    @staticmethod
    def backward(ctx, *grads):
        """The mapped function's backward; summed for arguments without a batch."""
        plan = ctx.plan
        with plan.level() as level:
            needs = ctx.needs_input_grad[1:]
            seen = ctx.inner.at(level, ctx.saved_tensors, ctx.backward_dims, needs)
            given = _into(level, grads, _several(plan.out_dims))
            found = _several(plan.cls.backward(seen, *given))
            leaves = found if len(found) == len(plan.in_dims) else _flat(plan, found)
            out = [
                _gradient(level, g, dim)
                for g, dim in zip(leaves, plan.in_dims, strict=False)
            ]
        return None, *out

    @staticmethod
    def jvp(ctx, _, *tangents):
        """The mapped function's jvp."""
        plan = ctx.plan
        with plan.level() as level:
            kept, dims = ctx.saved_tensors, ctx.forward_dims
            seen = ctx.inner.at(level, kept, dims, ctx.needs_input_grad[1:])
            given = tree_unflatten(_into(level, tangents, plan.in_dims), plan.spec)
            found = _several(plan.cls.jvp(seen, *given))
            moved = [
                t if t is None or dim is None else level.unwrap(t, 0)
                for t, dim in zip(found, _several(plan.out_dims), strict=True)
            ]
        return tuple(moved) if isinstance(plan.out_dims, tuple) else moved[0]


def _flat(plan, found: tuple) -> list:
    return tree_flatten(found)[0]


def _gradient(level, grad, dim):
    """A gradient outside of the level, of the shape of its argument."""
    if grad is None or not _is_tensor(grad):
        return grad
    if dim == 0:
        return level.unwrap(grad, 0)
    value, batch = _out_of(level, grad)
    return value if batch is None else value.sum(0)


def _keep_outside(ctx, level, pairs: list) -> None:
    """Hands what the mapped function keeps on to the ctx outside of the level."""
    kept = ctx.inner._kept
    ctx.inner._kept = {}

    def outside(t):
        return next((outer for inner, outer in pairs if inner is t), t)

    saved = [_out_of(level, t) for t in kept.get("backward", ())]
    ctx.save_for_backward(*(t for t, _ in saved))
    ctx.backward_dims = ctx.forward_dims = tuple(dim for _, dim in saved)
    if "forward" in kept:
        saved = [_out_of(level, t) for t in kept["forward"]]
        ctx.save_for_forward(*(t for t, _ in saved))
        ctx.forward_dims = tuple(dim for _, dim in saved)
    if "dirty" in kept:
        ctx.mark_dirty(*map(outside, kept["dirty"]))
    if "fixed" in kept:
        ctx.mark_non_differentiable(*map(outside, kept["fixed"]))
    ctx.set_materialize_grads(ctx.inner.materialize_grads)
