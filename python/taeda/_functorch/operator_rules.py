"""Rules of vmap for users' operators: see `taeda.library.register_vmap`."""

from __future__ import annotations

from taeda._functorch.custom_function import _mapped
from taeda._functorch.levels import innermost
from taeda.utils._pytree import tree_flatten, tree_unflatten

__all__ = ["call_with_rule"]


def call_with_rule(overload, rule, args, kwargs, plain):
    """A call of an operator that has a rule, in a thread that has levels.

    Args:
        overload: the operator.
        rule: called as rule(info, in_dims, *args) on what a level of vmap maps over.
        args, kwargs: of the call.
        plain: the call without a rule, for levels of other kinds.
    """
    level = innermost()
    if level is None or level.kind != "vmap":
        return plain(*args, **kwargs)
    leaves, shape = tree_flatten((args, kwargs))

    class Mapped:
        """What `_mapped` asks of a Function."""

        generate_vmap_rule = False

        @staticmethod
        def apply(*values):
            given, named = tree_unflatten(values, shape)
            return overload(*given, **named)

        @staticmethod
        def vmap(info, in_dims, *values):
            given, named = tree_unflatten(values, shape)
            dims, _ = tree_unflatten(in_dims, shape)
            return rule(info, dims, *given, **named)

    return _mapped(level, Mapped, tuple(leaves))
