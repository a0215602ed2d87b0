"""Nested containers as lists of leaves and a description of their shape.

A type is a node when it is registered; everything else is a leaf.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque, namedtuple

__all__ = [
    "arg_tree_leaves",
    "register_constant",
    "GetAttrKey",
    "LeafSpec",
    "MappingKey",
    "PyTreeSpec",
    "SequenceKey",
    "TreeSpec",
    "is_namedtuple",
    "is_namedtuple_class",
    "is_namedtuple_instance",
    "is_structseq",
    "is_structseq_class",
    "is_structseq_instance",
    "key_get",
    "keystr",
    "register_pytree_node",
    "tree_all",
    "tree_all_only",
    "tree_any",
    "tree_any_only",
    "tree_flatten",
    "tree_flatten_with_path",
    "tree_is_leaf",
    "tree_iter",
    "tree_leaves",
    "tree_leaves_with_path",
    "tree_map",
    "tree_map_",
    "tree_map_only",
    "tree_map_only_",
    "tree_map_with_path",
    "tree_structure",
    "tree_unflatten",
    "treespec_pprint",
]


class _Key:
    """One step from a container to an entry."""

    __slots__ = ("value",)

    def __init__(self, value) -> None:
        self.value = value

    def __eq__(self, other) -> bool:
        return type(self) is type(other) and self.value == other.value

    def __hash__(self) -> int:
        return hash((type(self), self.value))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.value!r})"

    def __str__(self) -> str:
        return f"[{self.value!r}]"

    def get(self, container):
        """The entry of `container`."""
        return container[self.value]


class SequenceKey(_Key):
    """An index."""

    idx = property(lambda self: self.value)


class MappingKey(_Key):
    """A key of a dictionary."""

    def __init__(self, key) -> None:
        super().__init__(key)

    key = property(lambda self: self.value)


class GetAttrKey(_Key):
    """The name of an attribute."""

    name = property(lambda self: self.value)

    def __str__(self) -> str:
        return f".{self.value}"

    def get(self, container):
        """The attribute of `container`."""
        return getattr(container, self.value)


def keystr(kp) -> str:
    """A path as it would be written after the tree's name."""
    return "".join(map(str, kp))


def key_get(obj, kp):
    """The entry at a path."""
    for key in kp:
        obj = key.get(obj)
    return obj


class _Kind:
    """How containers of one type come apart and together again."""

    __slots__ = ("dump", "flatten", "keys", "load", "name", "unflatten")

    def __init__(self, flatten, unflatten, keys=None) -> None:
        self.flatten, self.unflatten, self.keys = flatten, unflatten, keys
        self.name = self.dump = self.load = None  # of the shape's text


def _indices(tree) -> list:
    return [SequenceKey(i) for i in range(len(tree))]


def _mapping_keys(tree) -> list:
    return [MappingKey(k) for k in tree]


def _from_mapping(make):
    return lambda values, keys: make(zip(keys, values, strict=True))


def _default_dict(values, context):
    factory, keys = context
    return defaultdict(factory, zip(keys, values, strict=True))


SUPPORTED_NODES: dict = {
    list: _Kind(lambda t: (list(t), None), lambda v, c: list(v), _indices),
    tuple: _Kind(lambda t: (list(t), None), lambda v, c: tuple(v), _indices),
    dict: _Kind(
        lambda t: (list(t.values()), list(t)), _from_mapping(dict), _mapping_keys
    ),
    OrderedDict: _Kind(
        lambda t: (list(t.values()), list(t)), _from_mapping(OrderedDict), _mapping_keys
    ),
    defaultdict: _Kind(
        lambda t: (list(t.values()), [t.default_factory, list(t)]),
        _default_dict,
        _mapping_keys,
    ),
    deque: _Kind(
        lambda t: (list(t), t.maxlen), lambda v, c: deque(v, maxlen=c), _indices
    ),
}
_NAMED = _Kind(
    lambda t: (list(t), type(t)),
    lambda v, c: c(*v),
    lambda t: [GetAttrKey(n) for n in t._fields],
)


# Class of named tuples -> its name in the texts of shapes. Written by registration.
NAMES_OF_NAMEDTUPLES: dict = {}


def is_namedtuple_class(cls) -> bool:
    """Is this a class made by namedtuple?"""
    if not (isinstance(cls, type) and issubclass(cls, tuple)):
        return False
    fields = getattr(cls, "_fields", None)
    return isinstance(fields, tuple) and all(type(f) is str for f in fields)


def is_namedtuple_instance(obj) -> bool:
    """Is this an instance of such a class?"""
    return is_namedtuple_class(type(obj))


def is_namedtuple(obj) -> bool:
    """Is this such a class, or an instance of one?"""
    return is_namedtuple_class(obj if isinstance(obj, type) else type(obj))


def is_structseq_class(cls) -> bool:
    """Is this a class of named tuples made in C, such as `time.struct_time`?"""
    counts = ("n_fields", "n_sequence_fields", "n_unnamed_fields")
    return (
        isinstance(cls, type)
        and cls.__bases__ == (tuple,)
        and all(type(getattr(cls, count, None)) is int for count in counts)
    )


def is_structseq_instance(obj) -> bool:
    """Is this an instance of such a class?"""
    return is_structseq_class(type(obj))


def is_structseq(obj) -> bool:
    """Is this such a class, or an instance of one?"""
    return is_structseq_class(obj if isinstance(obj, type) else type(obj))


def treespec_pprint(treespec) -> str:
    """The tree of a shape as text, with `*` for each leaf."""
    return repr(tree_unflatten([_Leaf()] * treespec.num_leaves, treespec))


class _Leaf:
    def __repr__(self) -> str:
        return "*"


def _kind_of(tree) -> _Kind | None:
    kind = SUPPORTED_NODES.get(type(tree))
    if kind is None and isinstance(tree, tuple) and is_namedtuple_instance(tree):
        return _NAMED
    if kind is None and hasattr(type(tree), "n_sequence_fields"):
        return _register_result(type(tree))
    return kind


def _register_result(cls) -> _Kind:
    """Makes a class of several results (`x.max(0)`) a node, when one is first met."""
    made = _Kind(lambda t: (list(t), None), lambda v, c: cls(v), _indices)
    made.name = f"{cls.__module__}.{cls.__name__}"
    return SUPPORTED_NODES.setdefault(cls, made)


def register_pytree_node(
    cls,
    flatten_fn,
    unflatten_fn,
    *,
    serialized_type_name: str | None = None,
    to_dumpable_context=None,
    from_dumpable_context=None,
    flatten_with_keys_fn=None,
) -> None:
    """Make a type a node.

    Args:
        cls: the type. flatten_fn: tree -> (list of children, context).
        serialized_type_name: the type in the text of a shape; to_dumpable_context and
            from_dumpable_context: its context as JSON holds it, and back.
        unflatten_fn: (children, context) -> tree.
        flatten_with_keys_fn: tree -> (list of (key, child), context).

    Raises:
        ValueError: registered already; only one of the functions of contexts.

    Example:
        >>> register_pytree_node(Pair, lambda p: ([p.a, p.b], None),
        ...                      lambda c, _: Pair(*c))
    """
    if cls in SUPPORTED_NODES:
        raise ValueError(f"{cls} is already registered as pytree node")
    keys = None
    if flatten_with_keys_fn is not None:

        def keys(tree):
            return [key for key, _ in flatten_with_keys_fn(tree)[0]]

    if (to_dumpable_context is None) != (from_dumpable_context is None):
        raise ValueError(
            f"register_pytree_node({cls}): Both to_dumpable_context and "
            "from_dumpable_context are needed, or none"
        )
    made = SUPPORTED_NODES[cls] = _Kind(flatten_fn, unflatten_fn, keys)
    made.name = serialized_type_name
    made.dump, made.load = to_dumpable_context, from_dumpable_context


def register_constant(cls) -> None:
    """Make objects of a type part of shapes: they have no leaves.

    Args:
        cls: a type whose objects can be compared and hashed by value.

    Raises:
        TypeError: it has the `==` or the hash of `object`.
        ValueError: registered already.
    """
    if cls.__eq__ is object.__eq__ or cls.__hash__ in (None, object.__hash__):
        raise TypeError(
            f"register_constant({cls}): expected a type with __eq__ and __hash__ of "
            "its own, for shapes are compared by them"
        )
    register_pytree_node(
        cls, lambda x: ([], x), lambda _, x: x, flatten_with_keys_fn=lambda x: ([], x)
    )


class TreeSpec:
    """The shape of a tree: its type, what else it needs, its children's shapes.

    Args:
        type: of the container; None for a leaf. context: from its flatten function.
        children_specs (list of TreeSpec).
    """

    __slots__ = ("_children", "context", "num_leaves", "num_nodes", "type")

    def __init__(self, type, context, children_specs) -> None:
        self.type, self.context = type, context
        self._children = tuple(children_specs)
        if type is None:
            self.num_nodes = self.num_leaves = 1
        else:
            self.num_nodes = 1 + sum(c.num_nodes for c in self._children)
            self.num_leaves = sum(c.num_leaves for c in self._children)

    @property
    def children_specs(self) -> list:
        """The shapes of the children."""
        return list(self._children)

    @property
    def num_children(self) -> int:
        """How many children."""
        return len(self._children)

    def children(self) -> list:
        """The shapes of the children."""
        return list(self._children)

    def child(self, index: int) -> TreeSpec:
        """The shape of one child."""
        return self._children[index]

    def is_leaf(self) -> bool:
        """Is it the shape of a leaf?"""
        return self.type is None

    def flatten_up_to(self, tree) -> list:
        """Take a tree apart as far as this shape goes.

        Raises:
            ValueError: the tree has another shape.
        """
        if self.type is None:
            return [tree]
        kind = _kind_of(tree)
        same = kind is not None and type(tree) in (self.type, self.context)
        children, context = kind.flatten(tree) if same else ([], None)
        if not same or len(children) != len(self._children):
            raise ValueError(
                f"expected {self!r}, got {type(tree).__name__} {tree!r:.60}"
            )
        if isinstance(self.type, type) and issubclass(self.type, dict):
            children = self._in_order(tree)
        elif context != self.context:
            raise ValueError(f"expected context {self.context}, got {context}")
        pairs = zip(self._children, children, strict=True)
        return [leaf for spec, child in pairs for leaf in spec.flatten_up_to(child)]

    def _in_order(self, tree) -> list:
        keys = self.context[1] if self.type is defaultdict else self.context
        if set(keys) != set(tree):
            raise ValueError(f"expected the keys {keys}, got {list(tree)}")
        return [tree[k] for k in keys]

    def unflatten(self, leaves):
        """The tree with these leaves.

        Raises:
            ValueError: another number of leaves.
        """
        leaves = list(leaves)
        if len(leaves) != self.num_leaves:
            raise ValueError(
                f"expected {self.num_leaves} leaves for {self!r}, got {len(leaves)}"
            )
        return self._build(iter(leaves))

    def _build(self, leaves):
        if self.type is None:
            return next(leaves)
        children = [c._build(leaves) for c in self._children]
        return SUPPORTED_NODES.get(self.type, _NAMED).unflatten(children, self.context)

    def __eq__(self, other) -> bool:
        if not isinstance(other, TreeSpec):
            return NotImplemented
        return (self.type, self.context, self._children) == (
            other.type,
            other.context,
            other._children,
        )

    def __hash__(self) -> int:
        return hash((self.type, repr(self.context), self._children))

    def __repr__(self, indent: int = 0) -> str:
        if self.type is None:
            return "*"
        indent += 2
        inner = f",\n{' ' * indent}".join(c.__repr__(indent) for c in self._children)
        return f"TreeSpec({self.type.__name__}, {self.context}, [{inner}])"


PyTreeSpec = TreeSpec


class LeafSpec(TreeSpec):
    """The shape of a leaf; there is one."""

    __slots__ = ()

    def __new__(cls) -> LeafSpec:
        return _LEAF

    def __init__(self) -> None:
        pass

    def __reduce__(self):
        return LeafSpec, ()


_LEAF = object.__new__(LeafSpec)
TreeSpec.__init__(_LEAF, None, None, ())


def tree_is_leaf(tree, is_leaf=None) -> bool:
    """Is this value a leaf?"""
    return _kind_of(tree) is None or bool(is_leaf is not None and is_leaf(tree))


def _collect(tree, leaves: list, is_leaf) -> TreeSpec:
    kind = _kind_of(tree)
    if kind is None or (is_leaf is not None and is_leaf(tree)):
        leaves.append(tree)
        return _LEAF
    children, context = kind.flatten(tree)
    specs = [_collect(child, leaves, is_leaf) for child in children]
    return TreeSpec(namedtuple if kind is _NAMED else type(tree), context, specs)


def tree_flatten(tree, is_leaf=None) -> tuple[list, TreeSpec]:
    """(leaves, shape) of a tree.

    Args:
        tree: nested containers. is_leaf: value -> treat it as a leaf?

    Example:
        >>> tree_flatten({"a": [1, 2], "b": 3})[0]
        [1, 2, 3]
    """
    leaves: list = []
    return leaves, _collect(tree, leaves, is_leaf)


def tree_unflatten(leaves, treespec: TreeSpec):
    """The tree of a shape with these leaves.

    Raises:
        TypeError: no TreeSpec. ValueError: another number of leaves.
    """
    if not isinstance(treespec, TreeSpec):
        raise TypeError(f"expected a TreeSpec, got {type(treespec).__name__}")
    return treespec.unflatten(leaves)


def tree_iter(tree, is_leaf=None):
    """The leaves, one after another."""
    return iter(tree_leaves(tree, is_leaf))


def tree_leaves(tree, is_leaf=None) -> list:
    """The leaves.

    Example:
        >>> taeda.utils._pytree.tree_leaves({"a": 1, "b": (2, 3)})
        [1, 2, 3]
    """
    return tree_flatten(tree, is_leaf)[0]


def tree_structure(tree, is_leaf=None) -> TreeSpec:
    """The shape."""
    return tree_flatten(tree, is_leaf)[1]


def tree_map(func, tree, *rests, is_leaf=None):
    """A tree of the same shape with func(leaf, ...) in place of every leaf.

    Args:
        func: of a leaf and the entries of `rests` at its place.

    Example:
        >>> tree_map(lambda x: x + 1, {"a": [1, 2]})
        {'a': [2, 3]}
    """
    leaves, spec = tree_flatten(tree, is_leaf)
    others = [spec.flatten_up_to(rest) for rest in rests]
    return spec.unflatten(map(func, leaves, *others))


def tree_map_(func, tree, *rests, is_leaf=None):
    """Call func at every leaf; returns the tree."""
    tree_map(func, tree, *rests, is_leaf=is_leaf)
    return tree


def _selected(which, func):
    """`func` where `which` (types, or a predicate) holds; else the leaf itself."""
    test = which
    if isinstance(which, (type, tuple)) or hasattr(which, "__args__"):

        def test(x):
            return isinstance(x, which)

    return lambda x: func(x) if test(x) else x


def tree_map_only(type_or_types_or_pred, /, func, tree, is_leaf=None):
    """`tree_map` at the leaves of some types, or where a predicate holds."""
    return tree_map(_selected(type_or_types_or_pred, func), tree, is_leaf=is_leaf)


def tree_map_only_(type_or_types_or_pred, /, func, tree, is_leaf=None):
    """Call func at such leaves; returns the tree."""
    return tree_map_(_selected(type_or_types_or_pred, func), tree, is_leaf=is_leaf)


def tree_all(pred, tree, is_leaf=None) -> bool:
    """Does the predicate hold for every leaf?"""
    return all(map(pred, tree_leaves(tree, is_leaf)))


def tree_any(pred, tree, is_leaf=None) -> bool:
    """Does the predicate hold for some leaf?"""
    return any(map(pred, tree_leaves(tree, is_leaf)))


def tree_all_only(type_or_types, /, pred, tree, is_leaf=None) -> bool:
    """Does the predicate hold for every leaf of these types?"""
    leaves = tree_leaves(tree, is_leaf)
    return all(pred(x) for x in leaves if isinstance(x, type_or_types))


def tree_any_only(type_or_types, /, pred, tree, is_leaf=None) -> bool:
    """Does the predicate hold for some leaf of these types?"""
    leaves = tree_leaves(tree, is_leaf)
    return any(pred(x) for x in leaves if isinstance(x, type_or_types))


def _paths(tree, path: tuple, is_leaf):
    kind = _kind_of(tree)
    if kind is None or (is_leaf is not None and is_leaf(tree)):
        yield path, tree
        return
    if kind.keys is None:
        raise ValueError(f"no keys are registered for {type(tree).__name__}")
    children = kind.flatten(tree)[0]
    for key, child in zip(kind.keys(tree), children, strict=True):
        yield from _paths(child, (*path, key), is_leaf)


def arg_tree_leaves(*args, **kwargs) -> list:
    """The leaves of a call's arguments, without making a tree of both."""
    return [*tree_leaves(args), *tree_leaves(kwargs)]


def tree_leaves_with_path(tree, is_leaf=None) -> list:
    """(path, leaf) pairs."""
    return list(_paths(tree, (), is_leaf))


def tree_flatten_with_path(tree, is_leaf=None) -> tuple[list, TreeSpec]:
    """((path, leaf) pairs, shape)."""
    return tree_leaves_with_path(tree, is_leaf), tree_structure(tree, is_leaf)


def tree_map_with_path(func, tree, *rests, is_leaf=None):
    """`tree_map` whose function gets the path first."""
    pairs, spec = tree_flatten_with_path(tree, is_leaf)
    others = [spec.flatten_up_to(rest) for rest in rests]
    paths, leaves = [p for p, _ in pairs], [x for _, x in pairs]
    return spec.unflatten(map(func, paths, leaves, *others))


# Names that libraries for PyTorch register their own containers with.
Context = object
PyTree = object


def _get_node_type(tree):
    kind = _kind_of(tree)
    return namedtuple if kind is _NAMED else type(tree)


_TYPES = (
    "DumpableContext FlattenFn FromDumpableContextFn ToDumpableContextFn UnflattenFn"
)


def __getattr__(name: str):
    from . import _pytree_specs

    if name in _pytree_specs.__all__ or name in _pytree_specs.UNLISTED:
        return getattr(_pytree_specs, name)
    if name in _TYPES.split():
        from . import _pytree_types

        return getattr(_pytree_types, name)
    if name.endswith(("flatten", "flatten_with_keys")):
        from ._pytree_parts import NAMED_PARTS

        if name in NAMED_PARTS:
            return NAMED_PARTS[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
