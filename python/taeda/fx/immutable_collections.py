"""Lists and dicts of a node's arguments: they may be read, not written.

A node knows who uses it because every change goes through `Node.args` and
`Node.kwargs`; a container changed behind its back would make that table wrong.
"""

from __future__ import annotations

from taeda.utils import _pytree as pytree

__all__ = ["immutable_dict", "immutable_list"]


def _refuse(self, *args, **kwargs):
    raise TypeError(
        f"{type(self).__name__!r} object does not support mutation. Make a changed "
        "copy and assign it to the node: node.args = changed"
    )


def _frozen(base: type, forbidden: str, contents):
    """A subclass of a container in which some methods refuse.

    Args:
        base: list or dict.
        forbidden: names of the methods that write.
        contents: of a container, a hashable value that can make an equal one.
    """

    def reduce(self):
        return type(self), (contents(self),)

    space = dict.fromkeys(forbidden.split(), _refuse)
    space.update(
        __module__=__name__,
        __doc__=f"A {base.__name__} that may be read, not written.",
        __hash__=lambda self: hash(frozenset(contents(self))),
        __reduce__=reduce,
    )
    return type(f"immutable_{base.__name__}", (base,), space)


immutable_list = _frozen(
    list,
    "__delitem__ __iadd__ __imul__ __setitem__ append clear extend insert pop remove"
    " reverse sort",
    tuple,
)
immutable_dict = _frozen(
    dict,
    "__delitem__ __ior__ __setitem__ clear pop popitem setdefault update",
    lambda d: tuple(d.items()),
)

pytree.register_pytree_node(
    immutable_list,
    lambda items: (list(items), None),
    lambda items, context: immutable_list(items),
    flatten_with_keys_fn=pytree._list_flatten_with_keys,
)
pytree.register_pytree_node(
    immutable_dict,
    lambda d: (list(d.values()), list(d)),
    lambda items, keys: immutable_dict(zip(keys, items, strict=True)),
    flatten_with_keys_fn=pytree._dict_flatten_with_keys,
)
