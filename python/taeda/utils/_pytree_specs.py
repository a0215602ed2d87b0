"""Dataclasses as nodes of trees, and the shapes of trees as text.

Part of `_pytree`. A text names types that are registered here or under a name of their
own; reading one makes nothing but `TreeSpec`s.
"""

from __future__ import annotations

import dataclasses
import json
import warnings
from collections import OrderedDict, defaultdict, deque, namedtuple

from . import _pytree

__all__ = ["register_dataclass", "treespec_dumps", "treespec_leaf", "treespec_loads"]
# Names of `_pytree` that are not public and that programs use.
UNLISTED = (
    "_broadcast_to_and_flatten",
    "_register_namedtuple",
    "_register_pytree_node",
)

_PLAIN = {kind.__name__: kind for kind in (list, tuple, dict, deque)}
_PLAIN |= {"OrderedDict": OrderedDict, "defaultdict": defaultdict}


def register_dataclass(
    cls: type,
    *,
    field_names: list[str] | None = None,
    drop_field_names: list[str] | None = None,
    serialized_type_name: str | None = None,
) -> None:
    """Makes a dataclass a node; fields that are None belong to its shape.

    Args:
        cls: a dataclass.
        field_names: the fields that are children; by default those of `__init__`.
        drop_field_names: fields that are left to their defaults.
        serialized_type_name: its name in the text of a shape.

    Raises:
        ValueError: no dataclass; registered already; field names that do not cover
            `__init__`.
    """
    if not dataclasses.is_dataclass(cls):
        raise ValueError(
            "field_names must be specified with a list of all fields used to initialize"
            f" {cls}, as it is not a dataclass: register_dataclass() takes dataclasses"
            " only"
        )
    own = [f.name for f in dataclasses.fields(cls) if f.init]
    names = own if field_names is None else list(field_names)
    dropped = drop_field_names or []
    names = [n for n in names if n not in dropped]
    if set(names) | set(dropped) != set(own):
        raise ValueError(f"register_dataclass: {cls} has the fields {own}, got {names}")

    def split(value):
        given = [(n, getattr(value, n)) for n in names]
        present = [(n, v) for n, v in given if v is not None]
        absent = [n for n, v in given if v is None]
        return present, [[n for n, _ in present], absent]

    def flatten(value):
        present, context = split(value)
        return [v for _, v in present], context

    def flatten_with_keys(value):
        present, context = split(value)
        return [(_pytree.GetAttrKey(n), v) for n, v in present], context

    def unflatten(values, context):
        present, absent = context
        fields = dict(zip(present, values, strict=True))
        return cls(**fields, **dict.fromkeys(absent))

    _pytree.register_pytree_node(
        cls,
        flatten,
        unflatten,
        serialized_type_name=serialized_type_name,
        flatten_with_keys_fn=flatten_with_keys,
    )


def _register_namedtuple(cls: type, *, serialized_type_name: str) -> None:
    """Gives a class of named tuples, which is a node, a name in texts of shapes."""
    _pytree.NAMES_OF_NAMEDTUPLES[cls] = serialized_type_name


def _register_pytree_node(cls, flatten_fn, unflatten_fn, **options) -> None:
    """The older name of `register_pytree_node`, which goes over what is there."""
    warnings.warn(
        "torch.utils._pytree._register_pytree_node is deprecated: use "
        "torch.utils._pytree.register_pytree_node",
        FutureWarning,
        stacklevel=2,
    )
    if _pytree.SUPPORTED_NODES.pop(cls, None) is not None:
        warnings.warn(
            f"{cls} is already registered as pytree node; it is now what was given",
            stacklevel=2,
        )
    _pytree.register_pytree_node(cls, flatten_fn, unflatten_fn, **options)


def _broadcast_to_and_flatten(tree, treespec, is_leaf=None) -> list | None:
    """For each leaf of a shape, the leaf of a tree above or at its place.

    None where the tree is no beginning of the shape.
    """
    whole = _pytree.tree_unflatten([0] * treespec.num_leaves, treespec)
    leaves, spec = _pytree.tree_flatten(tree, is_leaf)
    try:
        below = spec.flatten_up_to(whole)
    except ValueError:
        return None
    counts = [_pytree.tree_structure(each, is_leaf).num_leaves for each in below]
    pairs = zip(leaves, counts, strict=True)
    return [leaf for leaf, count in pairs for _ in range(count)]


def treespec_leaf():
    """The shape of a leaf.

    Example:
        >>> taeda.utils._pytree.treespec_leaf()
        *
    """
    return _pytree.LeafSpec()


def _name_of(kind: type) -> str:
    name = kind.__name__
    if _PLAIN.get(name) is kind:
        return name
    registered = _pytree.SUPPORTED_NODES.get(kind)
    if registered is None or registered.name is None:
        raise NotImplementedError(
            f"No registered serialization name for {kind} found. Please register it "
            "with `serialized_type_name`."
        )
    return registered.name


def _named_tuple_name(cls: type) -> str:
    if cls not in _pytree.NAMES_OF_NAMEDTUPLES:
        raise NotImplementedError(
            f"No registered serialization name for {cls} found. Please register using "
            "`_register_namedtuple`"
        )
    return _pytree.NAMES_OF_NAMEDTUPLES[cls]


def _as_data(spec):
    if spec.is_leaf():
        return None
    kind, context = spec.type, spec.context
    if kind is namedtuple:
        return [
            _named_tuple_name(context),
            None,
            [_as_data(c) for c in spec.children()],
        ]
    if kind is defaultdict:
        factory, keys = context
        if factory not in (None, *_PLAIN.values(), int, float):
            raise NotImplementedError(f"treespec_dumps: the factory {factory}")
        context = [factory and factory.__name__, keys]
    registered = _pytree.SUPPORTED_NODES.get(kind)
    if registered is not None and registered.dump is not None:
        context = registered.dump(context)
    return [_name_of(kind), context, [_as_data(c) for c in spec.children()]]


def treespec_dumps(treespec, protocol: int | None = None) -> str:
    """The shape of a tree as JSON.

    Args:
        treespec: of a tree.
        protocol: the version of the text; there is 1, which None means too.

    Raises:
        ValueError: another version.
        NotImplementedError: a type that was registered without a name.
        TypeError: a context that JSON does not hold.
    """
    if not isinstance(treespec, _pytree.TreeSpec):
        raise TypeError(f"treespec_dumps: expected a TreeSpec, got {type(treespec)}")
    if protocol not in (None, 1):
        raise ValueError(f"treespec_dumps: Unknown protocol {protocol}, there is 1")
    return json.dumps([1, _as_data(treespec)])


def treespec_loads(serialized: str):
    """The shape that `treespec_dumps` wrote.

    Raises:
        NotImplementedError: a type that is not registered here.
        ValueError: another version of the text.
    """
    version, data = json.loads(serialized)
    if version != 1:
        raise ValueError(f"treespec_loads: Unknown protocol {version}, there is 1")
    return _from_data(data)


def _from_data(data):
    if data is None:
        return _pytree.LeafSpec()
    name, context, below = data
    children = [_from_data(child) for child in below]
    if name.startswith(("taeda.return_types.", "torch.return_types.")):
        from taeda import return_types

        cls = getattr(return_types, name.split(".")[-1])
        name = _pytree._register_result(cls).name  # as the library goes by here
    if name in _PLAIN:
        kind = _PLAIN[name]
        if kind is defaultdict:
            factory, keys = context
            known = {**_PLAIN, "int": int, "float": float}
            context = [factory and known[factory], keys]
        return _pytree.TreeSpec(kind, context, children)
    for cls, given in _pytree.NAMES_OF_NAMEDTUPLES.items():
        if given == name:
            return _pytree.TreeSpec(namedtuple, cls, children)
    for kind, registered in list(_pytree.SUPPORTED_NODES.items()):
        if registered.name == name:
            if registered.load is not None:
                context = registered.load(context)
            return _pytree.TreeSpec(kind, context, children)
    raise NotImplementedError(
        f"Deserializing {name} in pytree is not registered: register the type first"
    )
