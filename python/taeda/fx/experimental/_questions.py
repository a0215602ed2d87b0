"""More questions about numbers that may be symbolic; part of `symbolic_shapes`."""

from __future__ import annotations

import taeda

__all__ = [
    "expect_true",
    "fx_placeholder_targets",
    "fx_placeholder_vals",
    "guard_bool",
    "guard_float",
    "guard_scalar",
    "has_free_unbacked_symbols",
    "has_static_value",
    "has_symbolic_sizes_strides",
    "is_accessor_node",
    "is_concrete_bool",
    "is_concrete_float",
    "is_concrete_int",
    "statically_known_false",
    "sym_and",
    "sym_eq",
    "sym_or",
]


def is_concrete_int(a) -> bool:
    """Whether an integer is a number, or a symbol that is fixed."""
    return a.node.is_fixed() if isinstance(a, taeda.SymInt) else isinstance(a, int)


def is_concrete_bool(a) -> bool:
    """Whether a condition is decided by what is known."""
    if isinstance(a, taeda.SymBool):
        return a.node.known() is not None
    return isinstance(a, bool)


def is_concrete_float(a) -> bool:
    """Whether a float is a number."""
    return isinstance(a, float)


def has_static_value(a) -> bool:
    """Whether a number or condition has one value under all sizes."""
    if isinstance(a, taeda.SymInt):
        return is_concrete_int(a)
    if isinstance(a, taeda.SymBool):
        return is_concrete_bool(a)
    return not isinstance(a, taeda.SymFloat)


def statically_known_false(x) -> bool:
    """Whether a condition fails by what is known, without asking for a hint."""
    return x.node.known() is False if isinstance(x, taeda.SymBool) else not x


def sym_and(x, *others):
    """All conditions at once; symbolic where one is."""
    for other in others:
        x = x & other
    return x


def sym_or(x, *others):
    """Any of the conditions."""
    for other in others:
        x = x | other
    return x


def sym_eq(x, y):
    """Whether numbers, or tuples and lists of them, are equal.

    Raises:
        AssertionError: things of other kinds.
    """
    if isinstance(x, (tuple, list)) and isinstance(y, (tuple, list)):
        if len(x) != len(y):
            return False
        return sym_and(True, *(sym_eq(a, b) for a, b in zip(x, y, strict=True)))
    numbers = (int, taeda.SymInt)
    if isinstance(x, numbers) and isinstance(y, numbers):
        return x == y
    raise AssertionError(f"unexpected sym_eq between {type(x)} {type(y)}")


def guard_bool(a) -> bool:
    """The condition's truth, which leaves a guard where it is symbolic."""
    return bool(a)


def guard_float(a) -> float:
    """The float, in the same way."""
    return float(a)


def guard_scalar(a):
    """The number or condition, in the same way; others raise AssertionError."""
    for kinds, make in (
        ((bool, taeda.SymBool), bool),
        ((int, taeda.SymInt), int),
        ((float, taeda.SymFloat), float),
    ):
        if isinstance(a, kinds):
            return make(a)
    raise AssertionError(f"unrecognized scalar {a}")


def expect_true(a, skip: int = 0) -> bool:
    """Says that a condition holds; one that depends on data is checked at run time."""
    taeda._check(a)
    return True


def has_free_unbacked_symbols(x) -> bool:
    """Whether a number, list or tensor depends on sizes that come from data."""
    from .symbolic_shapes import free_unbacked_symbols

    return bool(free_unbacked_symbols(x))


def has_symbolic_sizes_strides(elem) -> bool:
    """Whether a tensor's geometry has symbols."""
    numbers = (*elem.shape, *elem.stride(), elem.storage_offset())
    return any(isinstance(n, taeda.SymInt) for n in numbers)


def fx_placeholder_vals(gm) -> list:
    """What tracing noted for the inputs of a graph."""
    return [n.meta["val"] for n in gm.graph.find_nodes(op="placeholder")]


def fx_placeholder_targets(gm) -> list[str]:
    """The names of the inputs of a graph."""
    return [n.target for n in gm.graph.find_nodes(op="placeholder")]


def is_accessor_node(node) -> bool:
    """Whether a node reads a tensor's size, stride or offset."""
    names = ("sym_size", "sym_stride", "sym_storage_offset", "sym_numel")
    if node.op == "call_method":
        return node.target in ("size", "stride", "storage_offset", "item", "numel")
    packet = getattr(node.target, "overloadpacket", None)
    return node.op == "call_function" and getattr(packet, "__name__", "") in names
