"""Expressions as C++ compositions of tensor operators, for differentiable backward.

Variables are tensors unless named in `scalars`. Operations between scalars alone call
`scalar_math::`, so that no tensor is made for them.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from .errors import CodegenError
from .expr_ast import (
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
    names,
    walk,
)
from .expr_functions import CONSTANTS, FUNCTIONS

_BINARY_OPS = {
    "+": "add",
    "-": "sub",
    "*": "mul",
    "/": "div",
    "&": "bitwise_and",
    "|": "bitwise_or",
    "^": "bitwise_xor",
    "<<": "bitwise_left_shift",
    ">>": "bitwise_right_shift",
}
_COMPARE_OPS = {"==": "eq", "!=": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge"}
_SWAPPED = {"==": "==", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
# Functions whose operators have overloads for a Scalar on the right or left.
_SCALAR_RIGHT = {"pow", "fmod", "remainder", "floor_divide", "div_trunc"}
_SCALAR_LEFT = {"pow", "polygamma"}
_SPECIAL_NUMBERS = {
    "inf": "std::numeric_limits<double>::infinity()",
    "nan": "std::numeric_limits<double>::quiet_NaN()",
}


@dataclass(frozen=True)
class _Term:
    text: str
    is_scalar: bool


@dataclass(frozen=True)
class _Composer:
    scalars: Collection[str]
    like: str
    differentiable: bool = False

    def lift(self, term: _Term, like: str | None = None) -> str:
        """A scalar as a tensor of the shape and dtype of another."""
        if not term.is_scalar:
            return term.text
        return f"ops::full_like({like or self.like}, {term.text})"

    def apply(self, name: str, *terms: _Term) -> _Term:
        inner = ", ".join(term.text for term in terms)
        if all(term.is_scalar for term in terms):
            return _Term(f"scalar_math::{name}({inner})", True)
        return _Term(f"ops::{name}({inner})", False)

    def term(self, expr: Expr) -> _Term:
        match expr:
            case Literal():
                return _Term(_scalar_literal(expr.value), True)
            case Constant():
                return _Term(_scalar_constant(expr), True)
            case Name():
                return _Term(expr.name, expr.name in self.scalars)
            case Unary():
                names = {"-": "neg", "not": "logical_not", "~": "bitwise_not"}
                return self.apply(names[expr.op], self.term(expr.operand))
            case Binary():
                return self.binary(expr)
            case Compare():
                return self.compare(expr)
            case Logic():
                return self.logic(expr)
            case Cond():
                return self.conditional(expr)
            case Cast():
                return self.cast(expr)
            case Call():
                return self.call(expr)
        raise CodegenError(f"cannot compose {expr!r}")

    def binary(self, expr: Binary) -> _Term:
        left, right = self.term(expr.left), self.term(expr.right)
        if left.is_scalar and not right.is_scalar:
            if expr.op in ("+", "*", "&", "|", "^"):
                left, right = right, left
            elif expr.op == "-":
                return self.apply("add", self.apply("neg", right), left)
            elif expr.op == "/":
                inverse = self.apply("reciprocal", right)
                return (
                    inverse if _is_one(expr.left) else self.apply("mul", inverse, left)
                )
            else:
                left = _Term(self.lift(left, right.text), False)
        return self.apply(_BINARY_OPS[expr.op], left, right)

    def compare(self, expr: Compare) -> _Term:
        left, right, op = self.term(expr.left), self.term(expr.right), expr.op
        if left.is_scalar and not right.is_scalar:
            left, right, op = right, left, _SWAPPED[op]
        return self.apply(_COMPARE_OPS[op], left, right)

    def logic(self, expr: Logic) -> _Term:
        left, right = self.term(expr.left), self.term(expr.right)
        if left.is_scalar != right.is_scalar:
            tensor = right if left.is_scalar else left
            left = _Term(self.lift(left, tensor.text), False)
            right = _Term(self.lift(right, tensor.text), False)
        return self.apply(f"logical_{expr.op}", left, right)

    def conditional(self, expr: Cond) -> _Term:
        test = self.term(expr.test)
        then, other = self.term(expr.then), self.term(expr.other)
        if not test.is_scalar:
            if self.differentiable:
                inverse = f"ops::logical_not({test.text})"
                then = self.guarded(expr.then, then, inverse)
                other = self.guarded(expr.other, other, test.text)
            return _Term(f"ops::where({test.text}, {then.text}, {other.text})", False)
        choice = f"scalar_math::is_true({test.text})"
        if then.is_scalar and other.is_scalar:
            return _Term(f"({choice} ? {then.text} : {other.text})", True)
        return _Term(f"({choice} ? {self.lift(then)} : {self.lift(other)})", False)

    def guarded(self, arm: Expr, term: _Term, unused: str) -> _Term:
        """An arm of a select that is finite where it is not selected.

        Note [Arms of selects]
        A select gives an element that it leaves out no gradient, 0 times what the arm
        would have had: NaN, where that is infinite. What arms compute from are numbers
        that nothing is singular at there.
        """
        tensors, numbers = _singular_in(arm, {self.like}, self.scalars)
        if not (tensors or numbers) or term.is_scalar:
            return term
        if numbers:
            kept = frozenset(self.scalars) - numbers
            term = _Composer(kept, self.like, True).term(arm)
        variables = sorted(tensors | numbers)
        parameters = ", ".join(f"const Tensor& {name}" for name in variables)
        values = []
        for name in variables:
            value = self.lift(_Term(name, name in numbers), self.like)
            values.append(f"where_used({unused}, {value}, {self.like})")
        body = f"[&]({parameters}) -> Tensor {{ return {term.text}; }}"
        return _Term(f"{body}({', '.join(values)})", False)

    def cast(self, expr: Cast) -> _Term:
        value = self.term(expr.operand)
        if expr.kind == "bool":
            return self.apply("ne", value, _Term("Scalar(0)", True))
        if value.is_scalar:
            return self.apply(f"to_{expr.kind}", value) if expr.kind != "T" else value
        if expr.kind == "int":
            raise CodegenError("int(x) has no composition of tensor operators")
        return _Term(f"ops::type_as({value.text}, {self.like})", False)

    def call(self, expr: Call) -> _Term:
        terms = [self.term(arg) for arg in expr.args]
        name, op = expr.function, FUNCTIONS[expr.function].op
        mixed = len({term.is_scalar for term in terms}) == 2
        if mixed and not self.takes_scalar(name, terms):
            tensor = next(term.text for term in terms if not term.is_scalar)
            terms = [_Term(self.lift(term, tensor), False) for term in terms]
        all_scalars = all(term.is_scalar for term in terms)
        if "{" in op and not all_scalars:
            return _Term(op.format(*(term.text for term in terms)), False)
        if name == "polygamma" and not all_scalars:
            return self.polygamma(expr, terms)
        return self.apply(name if all_scalars else op, *terms)

    def takes_scalar(self, name: str, terms: list[_Term]) -> bool:
        if name == "clamp":
            return not terms[0].is_scalar and all(t.is_scalar for t in terms[1:])
        if terms[0].is_scalar:
            return name in _SCALAR_LEFT
        return name in _SCALAR_RIGHT

    def polygamma(self, expr: Call, terms: list[_Term]) -> _Term:
        order = expr.args[0]
        if not isinstance(order, Literal):
            raise CodegenError("polygamma needs a literal order in a composition")
        return _Term(f"ops::polygamma({int(order.value.real)}, {terms[1].text})", False)


def _is_one(expr: Expr) -> bool:
    return isinstance(expr, Literal) and expr.value == 1


def _scalar_literal(value: bool | int | float | complex) -> str:
    if isinstance(value, bool):
        return f"Scalar({str(value).lower()})"
    if isinstance(value, complex):
        return f"Scalar(complex<double>({value.real!r}, {value.imag!r}))"
    return f"Scalar({value!r})"


def _scalar_constant(expr: Constant) -> str:
    value = CONSTANTS[expr.name]
    if value is None:
        raise CodegenError(f"{expr.name} has no value outside a compute type")
    return f"Scalar({_SPECIAL_NUMBERS.get(expr.name, repr(value))})"


def _singular_in(
    arm: Expr, linear: Collection[str], scalars: Collection[str]
) -> tuple[set[str], set[str]]:
    """The tensors that functions and divisors are computed from, and the numbers that
    some of them are computed from alone."""
    tensors: set[str] = set()
    numbers: set[str] = set()
    for node in walk(arm):
        if isinstance(node, Call) and node.function != "conj":
            found = names(node) - set(linear)
        elif isinstance(node, Binary) and node.op == "/":
            found = names(node.right) - set(linear)
        else:
            continue
        alone = found <= set(scalars)
        (numbers if alone else tensors).update(found)
    return tensors - set(scalars), numbers


def compose(
    expr: Expr,
    scalars: Collection[str] = (),
    like: str = "grad",
    differentiable: bool = False,
) -> str:
    """`ops::mul(grad, ops::exp(self))`; a scalar result becomes full_like `like`.

    `differentiable`: its derivatives have no NaN of elements that are not selected.
    """
    composer = _Composer(scalars, like, differentiable)
    return composer.lift(composer.term(expr))
