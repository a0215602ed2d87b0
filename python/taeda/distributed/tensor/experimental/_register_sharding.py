"""Strategies of users, for their own operators and in place of those of records."""

from __future__ import annotations

from collections.abc import Callable

from .. import _dispatch, _propagate
from .._patterns import REPLICATE, Operands, Strategy

__all__ = ["register_sharding"]


class _Registered:
    """The strategies that a function gives for a call."""

    reads_numbers = True
    axes = None
    goes_by_entries = False

    def __init__(self, function: Callable) -> None:
        self.function = function

    def strategies(self, call: Operands, mesh_dim: int, count: int) -> list[Strategy]:
        """What the function returns, without inputs that are no tensors."""
        schema = call.func._schema
        args, named = [], {}
        for argument in schema.arguments:
            value = call.values[argument.name]
            value = getattr(value, "_spec", value)
            if argument.kwarg_only:
                named[argument.name] = value
            else:
                args.append(value)
        found = []
        for outputs, inputs in self.function(*args, **named):
            placed = [p for p in inputs if p is not None]
            if len(placed) != len(call.tensors):
                raise ValueError(
                    f"{call.func}: expected placements of {len(call.tensors)} tensors, "
                    f"got {inputs}"
                )
            found.append(
                Strategy(placed, [REPLICATE if p is None else p for p in outputs])
            )
        return found


def register_sharding(op):
    """A decorator of a function that says how an operator may be computed on parts.

    The function gets the operator's arguments, with a spec (`shape`, `ndim`, `mesh`,
    `placements`) in the place of each tensor. It returns pairs: placements of the
    results, and of the arguments, None for those that are no tensors; along one
    dimension of a mesh. The cheapest is taken.

    Args:
        op: an overload, or a list of some.

    In a program:
        @register_sharding(taeda.ops.aten._softmax.default)
        def rows(x, dim, half_to_float):
            whole = ([Replicate()], [Replicate(), None, None])
            dims = [d for d in range(x.ndim) if d != dim % x.ndim]
            return [whole, *(([Shard(d)], [Shard(d), None, None]) for d in dims)]
    """

    def register(function: Callable) -> Callable:
        for overload in op if isinstance(op, (list, tuple)) else [op]:
            _propagate._patterns[overload] = _Registered(function)
        _dispatch.forget()
        return function

    return register
