"""Flattens the arguments of a function whose inputs were traced as structures."""

from __future__ import annotations

from collections import namedtuple

from taeda.utils import _pytree as pytree

__all__ = ["register_pytree_flatten_spec", "tree_flatten_spec"]

# Type -> (structure, spec) -> its children. Written by registrations at import time.
_CHILDREN: dict = {
    dict: lambda tree, spec: [tree[key] for key in spec.context],
}


def register_pytree_flatten_spec(
    cls, flatten_fn_spec, flatten_fn_exact_match_spec=None
):
    """Tells how the children of a structure of this class are found by its spec."""
    _CHILDREN[cls] = flatten_fn_spec


def tree_flatten_spec(tree, spec) -> list:
    """The leaves of a structure in a spec's order; further entries are passed over.

    Raises:
        RuntimeError: the structure is another one.
    """
    if spec.is_leaf():
        return [tree]
    children = _CHILDREN.get(spec.type)
    if children is None and _is_sequence(spec.type):
        found = [tree[i] for i in range(spec.num_children)]
    elif children is not None:
        found = children(tree, spec)
    else:
        leaves, real = pytree.tree_flatten(tree)
        if real != spec:
            raise RuntimeError(f"expected the structure {spec}, got {real} of {tree}")
        return leaves
    pairs = zip(found, spec.children(), strict=True)
    return [leaf for child, below in pairs for leaf in tree_flatten_spec(child, below)]


def _is_sequence(kind) -> bool:
    return kind is namedtuple or issubclass(kind, (list, tuple))
