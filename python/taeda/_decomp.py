"""Operators as functions of others, for traces: PyTorch's `torch._decomp`.

A table maps overloads (`taeda.ops.aten.NAME.OVERLOAD`) to functions of the same
arguments, and is what `make_fx(decomposition_table=...)` takes. Those of composites and
of operators that records define by others come from the records; a program registers
its own by `register_decomposition`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from taeda._ops import OpOverload, OpOverloadPacket

__all__ = [
    "core_aten_decompositions",
    "decomposition_table",
    "get_decompositions",
    "global_decomposition_table",
    "meta_table",
    "pre_autograd_decomposition_table",
    "register_decomposition",
    "remove_decompositions",
]

# What programs registered, by kind.
global_decomposition_table: dict[str, dict[OpOverload, Callable]] = {
    "post_autograd": {},
    "pre_autograd": {},
    "meta": {},
}
decomposition_table = global_decomposition_table["post_autograd"]
pre_autograd_decomposition_table = global_decomposition_table["pre_autograd"]
meta_table = global_decomposition_table["meta"]


def _flat(ops) -> list[OpOverload]:
    """Overloads, of packets all, of collections in any depth.

    Raises:
        TypeError: something is neither.
    """
    if isinstance(ops, OpOverload):
        return [ops]
    if isinstance(ops, OpOverloadPacket):
        return [getattr(ops, name) for name in ops.overloads()]
    if isinstance(ops, str) or not isinstance(ops, Iterable):
        raise TypeError(f"_decomp: expected an operator of taeda.ops, got {ops!r}")
    return [found for op in ops for found in _flat(op)]


def _check(kind: str) -> None:
    kinds = [*global_decomposition_table]
    if kind not in kinds:
        raise AssertionError(f"_decomp: type is one of {kinds}, got {kind!r}")


def register_decomposition(
    aten_op, registry: dict | None = None, *, type: str = "post_autograd", unsafe=False
) -> Callable:
    """A decorator that makes a function the decomposition of operators.

    Args:
        aten_op: an overload, a packet (all its overloads), or a list of them.
        registry: the table that gets it; None for that of `type`.
        type: "post_autograd", "pre_autograd" or "meta".
        unsafe: has no meaning here: functions are kept as they are.

    Raises:
        TypeError: `aten_op` is no operator.
        RuntimeError: the table has another for this overload.
    """
    _check(type)
    table = global_decomposition_table[type] if registry is None else registry
    ops = _flat(aten_op)

    def register(function: Callable) -> Callable:
        for op in ops:
            if op in table:
                raise RuntimeError(f"duplicate registrations for {op}")
        table.update(dict.fromkeys(ops, function))
        return function

    return register


def _of_record(op: OpOverload) -> Callable:
    def decomposed(*args, **kwargs):
        return op.decompose(*args, **kwargs)

    decomposed.__name__ = decomposed.__qualname__ = op.__name__.replace(".", "_")
    return decomposed


def get_decompositions(
    aten_ops: Sequence[OpOverload | OpOverloadPacket], type: str = "post_autograd"
) -> dict[OpOverload, Callable]:
    """The table of some operators; those that nothing decomposes are left out.

    Args:
        aten_ops: overloads, and packets for all of theirs.
        type: as of `register_decomposition`.

    Example:
        >>> from taeda._decomp import get_decompositions
        >>> len(get_decompositions([taeda.ops.aten._softmax]))
        1
    """
    from taeda.export._decompositions import written

    _check(type)
    own, others = global_decomposition_table[type], written()
    table: dict[OpOverload, Callable] = {}
    for op in _flat(aten_ops):
        if op in own:
            table[op] = own[op]
        elif type == "post_autograd" and op in others:
            table[op] = others[op]
        elif type == "post_autograd" and op.decomposes:
            table[op] = _of_record(op)
    return table


def remove_decompositions(
    decompositions: dict, aten_ops: Iterable[OpOverload | OpOverloadPacket]
) -> None:
    """Takes operators out of a table, where they are in it."""
    for op in _flat(aten_ops):
        decompositions.pop(op, None)


def core_aten_decompositions():
    """The table that leaves core operators alone: `export.default_decompositions()`."""
    from taeda.export import default_decompositions

    return default_decompositions()
