"""The formula of an index map (family `map`): parsed, and its names checked.

What a formula may say is in docs/design/records.md, section 3.
"""

from __future__ import annotations

from .errors import CodegenError
from .expr_ast import Access, Expr, Name, map_children, names
from .expr_parse import parse
from .record_types import Map, MapOfOthers, Overload
from .schema import Argument

# Names besides the arguments: the axis of a read, the element's number in row-major
# order, and the tensor that is made (its sizes; its values are what is computed).
AXIS, POSITION, RESULT = "axis", "position", "result"
_TENSOR_OPS = ("size", "rank", "numel", "read", "flat", "inside")
_SIZE_OPS = ("size", "rank", "numel")
_LIST_OPS = ("entry", "len", "names", "along")
_NUMBERS = ("Scalar", "int", "SymInt", "float", "bool")


def formula_of(overload: Overload) -> Expr:
    """The expression of one element; CodegenError with its place where it is wrong."""
    body = overload.body
    assert isinstance(body, Map | MapOfOthers)
    kinds = {a.name: _kind(a) for a in overload.schema.arguments}
    known = [*kinds, AXIS, POSITION, RESULT]
    tree = parse(body.map, known, places=True)
    returned = overload.schema.returns
    place = body.map.location
    if len(returned) != 1 or not returned[0].type.is_tensor:
        raise CodegenError("map: the operator must have one tensor as result", place)
    try:
        tree = _elements(tree, kinds)
        _check(tree, kinds | {RESULT: "result", POSITION: "number"})
    except CodegenError as error:
        flat = str(body.map).replace("\n", " ")
        raise CodegenError(error.message, place, flat, error.column) from None
    return tree


def _kind(argument: Argument) -> str:
    """What the language sees in an argument."""
    kind = argument.type.element if argument.type.is_optional else argument.type
    if kind.is_list:
        return "list" if kind.element.base in _NUMBERS else "other"
    if kind.base == "Tensor":
        return "tensor"
    return "number" if kind.base in _NUMBERS else "other"


def _elements(expr: Expr, kinds: dict[str, str]) -> Expr:
    """`x[E]` is an entry of a list or an element of a tensor with one axis."""
    expr = map_children(expr, lambda child: _elements(child, kinds))
    entry = isinstance(expr, Access) and expr.op == "entry"
    if not entry or kinds.get(str(expr.args[0])) != "tensor":
        return expr
    free = AXIS not in names(expr.args[1])
    expr.require(free, "map: the place of an element cannot depend on `axis`")
    return Access("read", expr.args, column=expr.column)


def _check(expr: Expr, kinds: dict[str, str]) -> None:
    """Every name stands where its kind may stand."""
    if isinstance(expr, Name):
        kind = kinds.get(expr.name, "nowhere")
        message = f"map: {expr.name!r} is no number here"
        if expr.name == AXIS:
            message = "map: `axis` has a meaning inside an index only"
        expr.require(kind == "number", message)
        return
    rest = expr.children
    if isinstance(expr, Access) and expr.op != "at":
        _check_first(expr, kinds)
        rest = rest[1:]
        if expr.op == "along":
            _check_list(rest[0], kinds, expr)
            rest = rest[1:]
        if expr.op in ("read", "inside"):
            kinds = kinds | {AXIS: "number"}
    for child in rest:
        _check(child, kinds)


def _check_first(expr: Access, kinds: dict[str, str]) -> None:
    name = expr.args[0]
    assert isinstance(name, Name)
    kind = kinds.get(name.name, "nowhere")
    if expr.op in _LIST_OPS:
        _check_list(name, kinds, expr)
    elif expr.op in _TENSOR_OPS:
        sizes = ("tensor", "result") if expr.op in _SIZE_OPS else ("tensor",)
        expr.require(kind in sizes, f"map: {expr.op} of {name.name!r}, no tensor")


def _check_list(name: Expr, kinds: dict[str, str], expr: Access) -> None:
    known = isinstance(name, Name) and kinds.get(name.name) == "list"
    expr.require(known, f"map: {expr.op} of what is no list of numbers")
