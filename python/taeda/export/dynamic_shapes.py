"""Which sizes of inputs may change, as a program says it."""

from __future__ import annotations

import dataclasses
import inspect
import sys
from enum import Enum, auto

import taeda
from taeda._dynamo.exc import UserError, UserErrorType
from taeda.utils import _pytree as pytree

__all__ = [
    "AdditionalInputs",
    "Dim",
    "ShapesCollection",
    "dims",
    "refine_dynamic_shapes_from_suggested_fixes",
]

INT_OO = sys.maxsize - 1


class _DimHintType(Enum):
    AUTO = auto()
    STATIC = auto()
    DYNAMIC = auto()


@dataclasses.dataclass(frozen=True)
class _DimHint:
    """Says how a size is taken without a name for it; called, with bounds."""

    type: _DimHintType
    min: int | None = None
    max: int | None = None

    @staticmethod
    def AUTO() -> _DimHint:
        """Dynamic where the program allows it."""
        return _DimHint(_DimHintType.AUTO)

    @staticmethod
    def DYNAMIC() -> _DimHint:
        """Dynamic; a program that needs one size is an error."""
        return _DimHint(_DimHintType.DYNAMIC)

    @staticmethod
    def STATIC() -> _DimHint:
        """The size of the example."""
        return _DimHint(_DimHintType.STATIC)

    def __call__(self, min=None, max=None) -> _DimHint:
        if self.type is _DimHintType.STATIC:
            raise TypeError("Dim.STATIC does not take bounds")
        bounds = [0, *(b for b in (min, max) if b is not None)]
        if bounds != sorted(bounds):
            raise AssertionError(
                f"bounds must be non-negative and min <= max, got min={min}, max={max}"
            )
        return _DimHint(self.type, min, max)

    def __repr__(self) -> str:
        bounds = [
            f"{name}={bound}"
            for name, bound in (("min", self.min), ("max", self.max))
            if bound is not None
        ]
        return f"DimHint({', '.join([self.type.name, *bounds])})"


class Dim:
    """The name of a size; the same object stands for the same size.

    `Dim.AUTO`, `Dim.DYNAMIC` and `Dim.STATIC` need no name. Sizes that depend on
    another one by a line with whole coefficients are written so: `2 * dim + 1`.

    Args:
        name: an identifier.
        min: the least size, 0 by default.
        max: the largest size, unbounded by default.

    Raises:
        AssertionError: no identifier; a max below min.

    Example:
        >>> batch = Dim("batch", max=64)
        >>> 2 * batch
        2*batch
    """

    AUTO = _DimHint(_DimHintType.AUTO)
    DYNAMIC = _DimHint(_DimHintType.DYNAMIC)
    STATIC = _DimHint(_DimHintType.STATIC)

    def __init__(self, name: str, *, min: int | None = None, max: int | None = None):
        low = 0 if min is None else min
        high = INT_OO if max is None else max
        if high < low:
            raise AssertionError(
                f"Cannot create Dim with inconsistent min={min}, max={max}"
            )
        if not name.isidentifier():
            raise AssertionError(f"Dim name must be a valid identifier, got {name}")
        self.__name__, self.min, self.max = name, low, high

    root = property(lambda self: self, doc="The dim that this one depends on: itself.")

    def _line(self) -> tuple[int, int]:
        """By which factor and summand it depends on its root."""
        return 1, 0

    def _derived(self, scale: int, offset: int):
        a, b = self._line()
        return _DerivedDim(self.root, a * scale, b * scale + offset)

    def _whole(self, other, verb: str, what: str = "an integer"):
        if type(other) is not int or (what != "an integer" and other <= 0):
            shown = {
                "add": f"add {other} to {self.__name__}",
                "subtract": f"subtract {other} from {self.__name__}",
                "multiply": f"multiply {other} with {self.__name__}",
            }
            raise NotImplementedError(
                f"Attempted to {shown[verb]}, where {what} was expected. (Only "
                "increasing linear operations with integer coefficients are supported.)"
            )
        return other

    def __add__(self, other):
        return self._derived(1, self._whole(other, "add"))

    def __sub__(self, other):
        return self._derived(1, -self._whole(other, "subtract"))

    def __mul__(self, other):
        return self._derived(self._whole(other, "multiply", "a positive integer"), 0)

    __radd__, __rmul__ = __add__, __mul__

    def __rsub__(self, other):
        raise NotImplementedError(
            f"Attempted to negate {self.__name__}. (Only increasing linear operations "
            "with integer coefficients are supported.)"
        )

    def __repr__(self) -> str:
        bounds = []
        if self.min != 2:
            bounds.append(f"min={self.min}")
        if self.max != INT_OO:
            bounds.append(f"max={self.max}")
        return f"Dim({', '.join([repr(self.__name__), *bounds])})"


class _DerivedDim(Dim):
    """A size that is `scale * root + offset`."""

    def __init__(self, root: Dim, scale: int, offset: int) -> None:
        self._root, self.scale, self.offset = root, scale, offset
        factor = f"{scale}*" if scale != 1 else ""
        sign = f" {'+' if offset > 0 else '-'} {abs(offset)}" if offset else ""
        self.__name__ = f"{factor}{root.__name__}{sign}"
        self.min = root.min * scale + offset
        high = root.max * scale + offset
        self.max = INT_OO if root.max == INT_OO else high

    root = property(lambda self: self._root)

    def _line(self) -> tuple[int, int]:
        return self.scale, self.offset

    def root_size(self, size: int) -> int:
        """The root's size for which this one is `size`.

        Raises:
            UserError: there is none.
        """
        found, rest = divmod(size - self.offset, self.scale)
        if rest or found < 0:
            raise UserError(
                UserErrorType.INVALID_INPUT,
                f"Expected shape[i] = {size} of input Tensor to be of the form "
                f"{self.__name__}, where {self.root.__name__} is an integer",
            )
        return found

    def __repr__(self) -> str:
        return self.__name__


def dims(*names: str, min: int | None = None, max: int | None = None) -> tuple:
    """A `Dim` for each name, with the same bounds.

    Example:
        >>> dims("rows", "columns", max=8)
        (Dim('rows', min=0, max=8), Dim('columns', min=0, max=8))
    """
    return tuple(Dim(name, min=min, max=max) for name in names)


class _IntWrapper:
    """An integer argument that a `ShapesCollection` can name."""

    def __init__(self, val: int) -> None:
        self.val = val


def _combined_args(mod, args, kwargs) -> dict:
    """The arguments by the names of the parameters that take them."""
    forward = mod.forward if isinstance(mod, taeda.nn.Module) else mod
    return dict(inspect.signature(forward).bind(*args, **(kwargs or {})).arguments)


class ShapesCollection:
    """Dynamic shapes by the tensors themselves, where arguments are nested.

    `collection[tensor] = {0: dim}` says it; `dynamic_shapes` gives the tree that
    `export` takes.

    Raises:
        AssertionError: something that has no shape; two shapes for one tensor.

    Example:
        >>> x = taeda.ones(3, 2)
        >>> shapes = ShapesCollection()
        >>> shapes[x] = {0: Dim("rows")}
        >>> shapes.dynamic_shapes(taeda.nn.Linear(2, 2), (x,))
        {'input': {0: Dim('rows', min=0)}}
    """

    def __init__(self) -> None:
        # By the id of a tensor: the tensor, which lives as long, and its shape.
        self._shapes: dict[int, tuple] = {}

    def __setitem__(self, t, shape) -> None:
        if not isinstance(t, (taeda.Tensor, _IntWrapper)):
            raise AssertionError(
                f"Cannot assign shape to non-tensor or non-_IntWrapper type {type(t)}"
            )
        known = self._shapes.get(id(t))
        if known is not None and known[1] != shape:
            raise AssertionError(
                "Shapes assigned to input do not match: "
                f"expected {known[1]}, got {shape}"
            )
        self._shapes[id(t)] = t, shape

    def __getitem__(self, t):
        if id(t) not in self._shapes:
            self._shapes[id(t)] = t, {}
        return self._shapes[id(t)][1]

    def __len__(self) -> int:
        return len(self._shapes)

    def dynamic_shapes(self, m, args, kwargs=None):
        """The tree of shapes for these arguments of a module.

        Raises:
            ValueError: a tensor that was named is not among the arguments.
        """
        leaves, spec = pytree.tree_flatten(_combined_args(m, args, kwargs))
        lost = self._shapes.keys() - map(id, leaves)
        if lost:
            raise ValueError(
                f"{len(lost)} tensors that were assigned shapes were not found in args:"
                " an argument is a copy, or lies in an object that is no container"
            )
        nothing = (None, None)
        shapes = [self._shapes.get(id(leaf), nothing)[1] for leaf in leaves]
        return pytree.tree_unflatten(shapes, spec)


class AdditionalInputs:
    """Further examples: what differs between them is dynamic.

    `add(args, kwargs)` adds one. Sizes and integers that are equal in all examples stay
    static.

    Example:
        >>> more = AdditionalInputs()
        >>> more.add((taeda.ones(5, 2),))
        >>> more.dynamic_shapes(taeda.nn.Linear(2, 2), (taeda.ones(3, 2),))
        {'input': (DimHint(DYNAMIC), None)}
    """

    def __init__(self) -> None:
        self._examples: list[tuple] = []

    def add(self, args, kwargs=None) -> None:
        """Adds an example.

        Raises:
            AssertionError: args is no tuple, kwargs no dict.
        """
        for name, given, kind in (
            ("args", args, tuple),
            ("kwargs", kwargs or {}, dict),
        ):
            if type(given) is not kind:
                raise AssertionError(
                    f"Representative {name} {given} must be a {kind.__name__}"
                )
        self._examples.append((args, kwargs))

    def dynamic_shapes(self, m, args, kwargs=None):
        """The tree of shapes that all examples and these arguments fit.

        Raises:
            ValueError: other values differ, or ranks.
        """
        trees = [
            _combined_args(m, *example) for example in [(args, kwargs), *self._examples]
        ]
        first, *others = trees
        leaves, spec = pytree.tree_flatten(first)
        columns = [leaves] + [spec.flatten_up_to(tree) for tree in others]
        shapes = [_common_shape(column) for column in zip(*columns, strict=True)]
        return pytree.tree_unflatten(shapes, spec)

    def verify(self, ep) -> None:
        """Calls an exported program with all examples.

        Raises:
            AssertionError: one does not fit a guard.
        """
        module = ep.module()
        for args, kwargs in self._examples:
            module(*args, **(kwargs or {}))


def _common_shape(values):
    first, *others = values
    if not all(type(v) is type(first) for v in others):
        raise ValueError(
            "Inputs were found to have differing types, so they cannot be marked as"
            f" dynamic: {values}"
        )
    if isinstance(first, taeda.Tensor):
        shapes = [v.shape for v in values]
        if len({len(s) for s in shapes}) > 1:
            raise ValueError(f"The tensors' shapes {shapes} differ in rank")
        sizes = zip(*shapes, strict=True)
        return tuple(Dim.DYNAMIC if len(set(s)) > 1 else None for s in sizes)
    if all(v == first for v in others):
        return None
    if isinstance(first, int) and not isinstance(first, bool):
        return Dim.DYNAMIC
    raise ValueError(
        "Inputs that are not integers were found to have differing values, but they"
        f" cannot be marked as dynamic: {values}"
    )


def refine_dynamic_shapes_from_suggested_fixes(msg: str, dynamic_shapes):
    """Dynamic shapes with what an error of `export` suggests under "Suggested fixes".

    Args:
        msg: the text of the error.
        dynamic_shapes: what `export` was given.
    """
    _, _, text = msg.partition("Suggested fixes:")
    fixes: dict = {}
    space = {"Dim": Dim, "oo": None}
    for line in text.split("\n\n")[0].strip().splitlines():
        name, sign, value = map(str.strip, line.partition("="))
        if sign and name.isidentifier():
            fixes[name] = _suggested(value, {**space, **fixes})

    def fixed(shape):
        if isinstance(shape, _DerivedDim):
            root = fixes.get(shape.root.__name__, shape.root)
            return root * shape.scale + shape.offset
        return fixes.get(shape.__name__, shape) if isinstance(shape, Dim) else shape

    return pytree.tree_map(fixed, dynamic_shapes, is_leaf=lambda s: isinstance(s, Dim))


def _suggested(text: str, names: dict):
    """The value of a suggestion: a number, `Dim(...)`, a line over a name."""
    import ast

    tree = ast.parse(text, mode="eval").body
    if isinstance(tree, ast.Call):
        words = {
            k.arg: _suggested(ast.unparse(k.value), names)
            for k in tree.keywords
            if ast.unparse(k.value) != "oo"
        }
        return Dim(*(ast.literal_eval(a) for a in tree.args), **words)
    if isinstance(tree, ast.BinOp):
        left, right = (
            _suggested(ast.unparse(side), names) for side in (tree.left, tree.right)
        )
        if isinstance(tree.op, ast.Mult):
            return left * right
        return left + right if isinstance(tree.op, ast.Add) else left - right
    if isinstance(tree, ast.Name):
        return names.get(tree.id) or names.setdefault(tree.id, Dim(tree.id))
    return ast.literal_eval(tree)
