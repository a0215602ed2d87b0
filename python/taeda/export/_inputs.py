"""The arguments of a program that is exported: names, symbols, stand-ins."""

from __future__ import annotations

import dataclasses
import inspect
import re

import taeda
from taeda._dynamo.exc import UserError, UserErrorType
from taeda.utils import _pytree as pytree

from ._guards import Symbol, ValueRanges, violated_at
from .dynamic_shapes import INT_OO, Dim, _DerivedDim, _DimHint, _DimHintType

__all__ = ["Inputs", "identifier"]

_PLAIN = (
    *(int, float, bool, str, complex, type(None)),
    *(taeda.dtype, taeda.device, taeda.layout, taeda.memory_format),
)


def identifier(text: str) -> str:
    """A path as part of a name."""
    return re.sub(r"[^a-zA-Z0-9]", "_", text)


@dataclasses.dataclass
class _Symbol:
    """What is known of a symbol; `kind` is "auto", "dynamic" or "named"."""

    size: taeda.SymInt
    name: str
    hint: int
    source: str
    label: str
    kind: str
    low: int
    high: int


@dataclasses.dataclass
class _Leaf:
    """One leaf of the arguments."""

    name: str
    value: object
    shape: object  # what was said of its sizes
    stand_in: object = None


class Inputs:
    """Binds arguments, and gives each dynamic size its symbol.

    Args:
        forward: the function that is exported, bound.
        args, kwargs: the example.

    Attributes: leaves, in the order of `spec`; names, of the top-level arguments;
    combined, the arguments by the names of parameters.
    """

    def __init__(self, forward, args: tuple, kwargs: dict) -> None:
        signature = inspect.signature(forward)
        self.args, self.kwargs = args, kwargs
        bound = signature.bind(*args, **kwargs).arguments
        self.names, top = [], []
        self.combined: dict = {}
        for name, value in bound.items():
            kind = signature.parameters[name].kind
            if kind is inspect.Parameter.VAR_KEYWORD:
                self.combined[name] = value
                continue
            self.combined[name] = value
            if kind is inspect.Parameter.VAR_POSITIONAL:
                top += [(f"{name}_{i}", v) for i, v in enumerate(value)]
            elif name not in kwargs:
                top.append((name, value))
        top += kwargs.items()
        self.names = [identifier(name) for name, _ in top]
        _, self.spec = pytree.tree_flatten((args, kwargs))
        self.leaves = [
            _Leaf(identifier(name) + _suffix(path), leaf, None)
            for name, value in top
            for path, leaf in _leaves_with_path(value)
        ]
        for leaf in self.leaves:
            _check_type(leaf.value)
        self.symbols: list[_Symbol] = []
        self.ranges: dict[str, ValueRanges] = {}
        self.roots: set[Symbol] = set()  # those that derived dims are worked out of
        self.equal: list[str] = []  # guards that say that two sources agree
        self._by_dim: dict[str, tuple] = {}  # name of a Dim -> it, its symbol, size

    def assign_shapes(self, shapes: list) -> None:
        """What was said of the leaves of `combined`, to the leaves in graph order."""
        by_place: dict[int, list] = {}
        leaves = pytree.tree_leaves(self.combined)
        for value, shape in zip(leaves, shapes, strict=True):
            by_place.setdefault(id(value), []).append(shape)
        for leaf in self.leaves:
            leaf.shape = by_place[id(leaf.value)].pop(0)

    def stand_ins(self, mode) -> list:
        """What the program gets: fake tensors, symbols for dynamic integers.

        Raises:
            UserError: a size is not what was said of it.
        """
        self.env = mode.shape_env
        for leaf in self.leaves:
            value = leaf.value
            if isinstance(value, taeda.Tensor):
                sizes = self._sizes(leaf)
                leaf.stand_in = mode.from_tensor(value, source=leaf.name, sizes=sizes)
            elif isinstance(leaf.shape, (_DimHint, Dim)):
                leaf.stand_in = self._size(leaf.name, value, leaf.shape)
            else:
                leaf.stand_in = value
        return [leaf.stand_in for leaf in self.leaves]

    def rename(self, names: dict[str, str]) -> None:
        """Inputs have other names in the graph, where the state has theirs."""

        def renamed(text: str) -> str:
            return re.sub(r"\w+", lambda m: names.get(m[0], m[0]), text)

        if any(old != new for old, new in names.items()):
            for symbol in self.symbols:
                symbol.source = renamed(symbol.source)
            self.equal = [renamed(text) for text in self.equal]

    def _sizes(self, leaf: _Leaf) -> tuple:
        shape, rank = leaf.shape, leaf.value.dim()
        said: list = [None] * rank
        if isinstance(shape, dict):
            for dim, how in shape.items():
                said[dim] = how
        elif shape is not None:
            said = list(shape)
        return tuple(
            self._size(f"{leaf.name}.size()[{i}]", n, said[i])
            for i, n in enumerate(leaf.value.shape)
        )

    def _size(self, source: str, size: int, said):
        """An integer or a symbol for one size."""
        if isinstance(said, _DimHint):
            return self._hinted(source, size, said)
        if isinstance(said, Dim):
            return self._named(source, size, said)
        if said is not None and said != size:
            raise _violation(
                f"Static shape constraint of {said} does not match input size of {size}"
                f", for L[{_labelled(source)}"
            )
        return size

    def _hinted(self, source: str, size: int, said: _DimHint):
        if said.type is _DimHintType.STATIC:
            return size
        auto = said.type is _DimHintType.AUTO
        label = f"L[{_labelled(source)}"
        if size < 2:
            if auto:
                return size
            raise violated_at(label, size, named=False)
        low = 2 if said.min is None else said.min
        high = INT_OO if said.max is None else said.max
        return self._symbol(
            source, size, label, "auto" if auto else "dynamic", low, high
        )

    def _symbol(self, source, size, label, kind, low, high):
        if not low <= size <= high:
            raise _violation(f"{size} not in range [{max(low, 2)}, {high}]")
        made = self.env.create_size(size, source, "marked")
        found = _Symbol(made, repr(made), size, source, label, kind, low, high)
        self.symbols.append(found)
        self.ranges[Symbol(found.name)] = ValueRanges(low, high)
        return made

    def _named(self, source: str, size: int, dim: Dim):
        derived = isinstance(dim, _DerivedDim)
        root = dim.root
        wanted = dim.root_size(size) if derived else size
        known = self._by_dim.get(root.__name__)
        if known is None:
            if not derived and size < 2:
                raise violated_at(dim.__name__, size, named=True)
            # A root that is no size of an input is worked out from this one.
            place = f"({source} - {dim.offset}) // {dim.scale}" if derived else source
            symbol = self._symbol(
                place, wanted, root.__name__, "named", root.min, root.max
            )
            self._by_dim[root.__name__] = root, symbol, wanted
        else:
            first, symbol, seen = known
            if (first.min, first.max) != (root.min, root.max):
                raise UserError(
                    UserErrorType.INVALID_INPUT,
                    f"Found different definitions {first} and {root} for the same "
                    "symbolic dimension",
                )
            if seen != wanted:
                raise _violation(
                    f"Constraints violated ({dim.__name__})! {source} = {size} is not "
                    f"{dim.__name__} where {root.__name__} = {seen}"
                )
        value = symbol * dim.scale + dim.offset if derived else symbol
        if derived:
            self.ranges[Symbol(repr(value))] = ValueRanges(dim.min, dim.max)
            if known is None:  # of no input's size: it stands behind the first that is
                self.roots.add(Symbol(repr(symbol)))
                self.ranges |= {s: self.ranges.pop(s) for s in [Symbol(repr(symbol))]}
        if known is not None or derived:
            self.equal.append(f"{source} == {value!r}")
        return value


def _leaves_with_path(value) -> list:
    try:
        return pytree.tree_leaves_with_path(value)
    except ValueError:  # a container whose keys were not registered
        leaves = pytree.tree_leaves(value)
        return [((pytree.SequenceKey(i),), leaf) for i, leaf in enumerate(leaves)]


def _suffix(path) -> str:
    return "".join(f"_{identifier(str(key.value))}" for key in path)


def _labelled(source: str) -> str:
    """`x.size()[0]` as `'x'].size()[0]`."""
    name, dot, rest = source.partition(".")
    return f"'{name}']{dot}{rest}"


def _check_type(value) -> None:
    if isinstance(value, (taeda.Tensor, *_PLAIN)):
        return
    library = taeda.__name__
    raise ValueError(
        f"Unsupported input type {type(value)}. Export only supports pytree containers "
        "of basic types (Tensor, int, float, ...) as input. To register a custom "
        f"dataclass, use {library}.export.register_dataclass. To register a custom "
        f"container type, use {library}.utils._pytree.register_pytree_node. To register"
        f" a constant input, use {library}.utils._pytree.register_constant"
    )


def _violation(text: str):
    from taeda.fx.experimental.symbolic_shapes import ConstraintViolationError

    return ConstraintViolationError(text)
