"""Checks of users' operators on sample inputs: what `library.opcheck` runs."""

from __future__ import annotations

import taeda
from taeda._ops import OpOverload
from taeda.utils import _pytree


class OpCheckError(Exception):
    """An operator does not keep what its registrations say."""


def _tensors(tree) -> list:
    return [
        leaf for leaf in _pytree.tree_leaves(tree) if isinstance(leaf, taeda.Tensor)
    ]


def _copied(tree):
    """The same arguments over memory of their own, with the same requires_grad."""

    def copy(leaf):
        if not isinstance(leaf, taeda.Tensor):
            return leaf
        fresh = leaf.detach().clone(memory_format=taeda.preserve_format)
        return fresh.requires_grad_(leaf.requires_grad)

    return _pytree.tree_map(copy, tree)


def _equal(a, b) -> bool:
    return a.shape == b.shape and bool(((a == b) | ((a != a) & (b != b))).all())


def _written(
    op: OpOverload, args: tuple, kwargs: dict
) -> list[tuple[str, object, bool]]:
    """(name, value, whether the schema says that it is written) of each argument."""
    arguments = op._schema.arguments
    named = [(a, value) for a, value in zip(arguments, args, strict=False)]
    named += [(a, kwargs[a.name]) for a in arguments if a.name in kwargs]
    return [(a.name, value, bool(a.written)) for a, value in named]


def check_schema(op: OpOverload, args: tuple, kwargs: dict, **_: object) -> None:
    """Nothing is written but what the schema marks; results share no input's memory."""
    args, kwargs = _copied((args, kwargs))
    before = _copied((args, kwargs))
    with taeda.no_grad():
        results = _tensors(op(*args, **kwargs))
    old = {name: value for name, value, _ in _written(op, *before)}
    for name, value, may_write in _written(op, args, kwargs):
        for now, then in zip(_tensors(value), _tensors(old[name]), strict=True):
            if not may_write and not _equal(now.detach(), then.detach()):
                raise OpCheckError(
                    f"{op}: argument {name} is not defined as mutated but was mutated; "
                    f"mark it in the schema {op._schema}"
                )
            shared = [r for r in results if _shares(r, now)]
            if shared and not may_write and "(a" not in str(op._schema):
                raise OpCheckError(
                    f"{op}: argument {name} is not defined to alias output but was "
                    f"aliasing; return a clone, or say so in the schema {op._schema}"
                )


def _shares(a, b) -> bool:
    same = a.untyped_storage().data_ptr() == b.untyped_storage().data_ptr()
    return same and a.numel() > 0 and b.numel() > 0


def check_fake(op: OpOverload, args: tuple, kwargs: dict, **_: object) -> None:
    """On tensors without data the results have the same sizes, strides and types."""

    def to_meta(leaf):
        return leaf.to("meta") if isinstance(leaf, taeda.Tensor) else leaf

    real_args, real_kwargs = _copied((args, kwargs))
    with taeda.no_grad():
        real = _tensors(op(*real_args, **real_kwargs))
        try:
            made = op(
                *_pytree.tree_map(to_meta, args), **_pytree.tree_map(to_meta, kwargs)
            )
        except NotImplementedError as error:
            raise OpCheckError(
                f"{op}: no fake kernel; add one with library.register_fake"
            ) from error
    fake = _tensors(made)
    if len(fake) != len(real):
        raise OpCheckError(
            f"{op}: {len(real)} results, but {len(fake)} of the fake kernel"
        )
    for i, (a, b) in enumerate(zip(real, fake, strict=True)):
        for what in ("shape", "dtype", "stride"):
            x, y = (getattr(t, what) for t in (a, b))
            x, y = (x(), y()) if callable(x) else (x, y)
            if x != y:
                raise OpCheckError(f"{op}: result {i} has {what} {x}, its fake has {y}")


def check_autograd(op: OpOverload, args: tuple, kwargs: dict, **_: object) -> None:
    """Results of floating dtype are differentiable where an argument requires grad."""
    args, kwargs = _copied((args, kwargs))
    if not any(t.requires_grad for t in _tensors((args, kwargs))):
        return
    results = [
        t
        for t in _tensors(op(*args, **kwargs))
        if t.is_floating_point() or t.is_complex()
    ]
    if results and not any(t.requires_grad for t in results):
        raise OpCheckError(
            f"{op}: an argument requires grad and no result does; add a derivative "
            "with library.register_autograd"
        )


def check_compiled(op: OpOverload, args: tuple, kwargs: dict, **_: object) -> None:
    """As a graph with symbolic sizes it gives the same results and gradients."""

    def called(*args, **kwargs):
        return op(*args, **kwargs)

    graph = taeda.compile(
        called, fullgraph=True, dynamic=True, backend=lambda module, inputs: module
    )
    found = []
    for function in (called, graph):
        given = _copied((args, kwargs))
        results = _tensors(function(*given[0], **given[1]))
        leaves = [t for t in _tensors(given) if t.requires_grad]
        ends = [r for r in results if r.requires_grad]
        grads = ()
        if ends and leaves:
            sums = [r.abs().sum() if r.is_complex() else r.sum() for r in ends]
            grads = taeda.autograd.grad(sums, leaves, allow_unused=True)
        found.append([*results, *(g for g in grads if g is not None)])
    if len(found[0]) != len(found[1]):
        raise OpCheckError(f"{op}: compiled it gives another number of results")
    for i, (a, b) in enumerate(zip(*found, strict=True)):
        if not taeda.allclose(a.detach(), b.detach(), equal_nan=True):
            raise OpCheckError(f"{op}: compiled it differs in result or gradient {i}")


CHECKS = {
    "test_schema": check_schema,
    "test_autograd_registration": check_autograd,
    "test_faketensor": check_fake,
    "test_aot_dispatch_dynamic": check_compiled,
}


def opcheck(
    op, args, kwargs=None, *, test_utils=tuple(CHECKS), raise_exception=True
) -> dict:
    """See `taeda.library.opcheck`."""
    names = (test_utils,) if isinstance(test_utils, str) else tuple(test_utils)
    unknown = [name for name in names if name not in CHECKS]
    if unknown:
        raise ValueError(f"opcheck: no such test_utils {unknown}, have {list(CHECKS)}")
    report = {}
    for name in names:
        try:
            CHECKS[name](op, tuple(args), dict(kwargs or {}))
            report[name] = "SUCCESS"
        except Exception as error:
            if raise_exception:
                raise OpCheckError(
                    f"opcheck({op}, ...): {name} failed: {error}"
                ) from error
            report[name] = error
    return report
