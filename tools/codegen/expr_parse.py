"""Text to expression nodes, by way of Python's own parser."""

from __future__ import annotations

import ast
import difflib
from collections.abc import Callable, Collection

from .errors import CodegenError, Location
from .expr_ast import (
    ACCESS,
    AXIS,
    KINDS,
    SAME,
    Access,
    Binary,
    Call,
    Cast,
    Compare,
    Cond,
    Constant,
    Expr,
    Literal,
    Logic,
    Name,
    Unary,
)
from .expr_functions import CONSTANTS, FUNCTIONS

_BINARY: dict[type, str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.BitAnd: "&",
    ast.BitOr: "|",
    ast.BitXor: "^",
    ast.LShift: "<<",
    ast.RShift: ">>",
}
_BINARY_CALLS: dict[type, str] = {
    ast.Pow: "pow",
    ast.FloorDiv: "floor_divide",
    ast.Mod: "remainder",
}
_COMPARE: dict[type, str] = {
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
}
# Those that are written as calls; the others have syntax of their own.
_ACCESS_CALLS = {*ACCESS} - {"read", "entry", "names", "missing", "inside"}
_UNARY: dict[type, str] = {ast.USub: "-", ast.Not: "not", ast.Invert: "~"}


def parse(
    text: str,
    variables: Collection[str] | None = None,
    location: Location | None = None,
    places: bool = False,
) -> Expr:
    """The expression of `text`; errors carry its place and a caret.

    With `variables` given every other name is an error; otherwise any name that is not
    a constant is a variable. A `Text` of a record brings its location along. With
    `places` the text may look at its own place and at elements (`Access`).
    """
    place = location or getattr(text, "location", None)
    flat = str(text).replace("\n", " ")
    try:
        # Python takes leading blanks for indentation.
        shift = len(flat) - len(flat.lstrip())
        tree = _python_tree(flat.lstrip(), shift)
        return _Builder(variables, shift, places).build(tree)
    except CodegenError as error:
        raise CodegenError(error.message, place, flat, error.column) from None


def _python_tree(text: str, shift: int) -> ast.expr:
    try:
        return ast.parse(text, mode="eval").body
    except SyntaxError as error:
        column = max((error.offset or 1) - 1, 0) + shift
        raise CodegenError(f"expression: {error.msg}", column=column) from None
    except ValueError as error:
        raise CodegenError(f"expression: {error}") from None


class _Builder:
    def __init__(
        self, variables: Collection[str] | None, shift: int, places: bool
    ) -> None:
        self.variables = variables
        self.shift = shift
        self.places = places

    def column(self, node: ast.expr) -> int:
        return node.col_offset + self.shift

    def build(self, node: ast.expr) -> Expr:
        method: Callable[[ast.expr], Expr] | None = getattr(
            self, f"build_{type(node).__name__}", None
        )
        if method is None:
            raise self.fail(node, f"{type(node).__name__} is not in the language")
        return method(node)

    def fail(self, node: ast.expr, message: str) -> CodegenError:
        return CodegenError(f"expression: {message}", column=self.column(node))

    def build_Constant(self, node: ast.Constant) -> Expr:
        if not isinstance(node.value, (bool, int, float, complex)):
            raise self.fail(node, f"{node.value!r} is no number")
        return Literal(node.value, column=self.column(node))

    def build_Name(self, node: ast.Name) -> Expr:
        column = self.column(node)
        known = self.variables
        if known is not None and node.id in known:
            return Name(node.id, column=column)
        if node.id in CONSTANTS:
            return Constant(node.id, column=column)
        if known is None:
            return Name(node.id, column=column)
        raise self.fail(node, _unknown("name", node.id, [*known, *CONSTANTS]))

    def build_Attribute(self, node: ast.Attribute) -> Expr:
        """A part's accumulator, `a.mean`, where the formula has such."""
        known = self.variables or ()
        name = ast.unparse(node)
        if name in known:
            return Name(name, column=self.column(node))
        parts = [each for each in known if "." in each]
        if not parts:
            raise self.fail(node, "Attribute is not in the language")
        raise self.fail(node, _unknown("name", name, parts))

    def build_BinOp(self, node: ast.BinOp) -> Expr:
        column = self.column(node.left)
        left, right = self.build(node.left), self.build(node.right)
        kind = type(node.op)
        if kind in _BINARY:
            return Binary(_BINARY[kind], left, right, column=column)
        if kind in _BINARY_CALLS:
            return Call(_BINARY_CALLS[kind], (left, right), column=column)
        raise self.fail(node, f"operator {kind.__name__} is not in the language")

    def build_UnaryOp(self, node: ast.UnaryOp) -> Expr:
        operand = self.build(node.operand)
        if isinstance(node.op, ast.UAdd):
            return operand
        column = self.column(node)
        if isinstance(node.op, ast.USub) and isinstance(operand, Literal):
            return Literal(-operand.value, column=column)
        return Unary(_UNARY[type(node.op)], operand, column=column)

    def build_Compare(self, node: ast.Compare) -> Expr:
        column = self.column(node)
        if self.places and isinstance(node.ops[0], ast.Is | ast.In):
            return self._membership(node)
        terms = [self.build(term) for term in (node.left, *node.comparators)]
        found: Expr | None = None
        for i, op in enumerate(node.ops):
            if type(op) not in _COMPARE:
                raise self.fail(node, f"{type(op).__name__} is not in the language")
            link = Compare(_COMPARE[type(op)], terms[i], terms[i + 1], column=column)
            found = link if found is None else Logic("and", found, link, column=column)
        assert found is not None
        return found

    def build_BoolOp(self, node: ast.BoolOp) -> Expr:
        op = "and" if isinstance(node.op, ast.And) else "or"
        found = self.build(node.values[0])
        for value in node.values[1:]:
            found = Logic(op, found, self.build(value), column=self.column(node))
        return found

    def build_IfExp(self, node: ast.IfExp) -> Expr:
        test, then = self.build(node.test), self.build(node.body)
        return Cond(test, then, self.build(node.orelse), column=self.column(node))

    def build_Call(self, node: ast.Call) -> Expr:
        column = self.column(node)
        if not isinstance(node.func, ast.Name) or node.keywords:
            raise self.fail(node, "only calls `name(x, y)` are in the language")
        name, args = node.func.id, tuple(self.build(arg) for arg in node.args)
        if self.places and name == "inside":
            return self._inside(node, args)
        if self.places and name in _ACCESS_CALLS:
            return Access(name, args, column=column)
        special = {"select": 3, "cast": 1} | dict.fromkeys(KINDS, 1)
        if name in special and len(args) != special[name]:
            raise self.fail(
                node, f"{name} takes {special[name]} arguments, got {len(args)}"
            )
        if name == "select":
            return Cond(*args, column=column)
        if name in special:
            return Cast("T" if name == "cast" else name, args[0], column=column)
        if name not in FUNCTIONS:
            raise self.fail(node, _unknown("function", name, [*FUNCTIONS, *special]))
        return Call(name, args, column=column)

    def _membership(self, node: ast.Compare) -> Expr:
        """`x is None` and `axis in dims`."""
        column, left = self.column(node), self.build(node.left)
        other = node.comparators[0]
        if len(node.ops) > 1:
            raise self.fail(node, "`is` and `in` do not chain")
        if isinstance(node.ops[0], ast.In):
            return Access("names", (self.build(other), left), column=column)
        if not isinstance(other, ast.Constant) or other.value is not None:
            raise self.fail(node, "`is` compares with None only")
        return Access("missing", (left,), column=column)

    def _inside(self, node: ast.Call, args: tuple[Expr, ...]) -> Expr:
        """`inside(x[...])`: whether there is such an element."""
        read = args[0] if len(args) == 1 else None
        if not isinstance(read, Access) or read.op != "read":
            raise self.fail(node, "inside takes a read x[axis: E]")
        return Access("inside", read.args, column=self.column(node))

    def build_Subscript(self, node: ast.Subscript) -> Expr:
        """An entry of a list or an element of a tensor."""
        if not self.places:
            raise self.fail(node, "Subscript is not in the language")
        column, value = self.column(node), self.build(node.value)
        inner = node.slice
        if isinstance(inner, ast.Constant) and inner.value is ...:
            return Access("read", (value, SAME), column=column)
        if not isinstance(inner, ast.Slice | ast.Tuple):
            return Access("entry", (value, self.build(inner)), column=column)
        parts = inner.elts if isinstance(inner, ast.Tuple) else [inner]
        if all(isinstance(part, ast.Slice) for part in parts):
            index = self._index_by_axes(value, parts)
        else:
            index = self._index_by_place([self.build(part) for part in parts])
        return Access("read", (value, index), column=column)

    def _index_by_axes(self, value: Expr, parts: list[ast.Slice]) -> Expr:
        """`axis: E` gives the index along every axis, `dim: E` along that one."""
        index: Expr = SAME
        single = []
        for part in parts:
            if part.lower is None or part.upper is None or part.step is not None:
                raise self.fail(part, "an index is `axis: E`")
            which, inner = self.build(part.lower), self.build(part.upper)
            if which == AXIS:
                index = inner
            else:
                single.append((which, inner))
        for which, inner in reversed(single):
            place = Call("remainder", (which, Access("rank", (value,))))
            index = Cond(Compare("==", AXIS, place), inner, index)
        return index

    def _index_by_place(self, parts: list[Expr]) -> Expr:
        """The index along each axis from the left."""
        index = parts[-1]
        for place, part in reversed(list(enumerate(parts[:-1]))):
            index = Cond(Compare("==", AXIS, Literal(place)), part, index)
        return index


def _unknown(what: str, name: str, known: Collection[str]) -> str:
    close = difflib.get_close_matches(name, known, n=1)
    hint = f" (did you mean {close[0]!r}?)" if close else ""
    return f"unknown {what} {name!r}{hint}"
