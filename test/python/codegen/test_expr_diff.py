"""Derivatives against finite differences, in double and in complex double."""

from __future__ import annotations

import numpy as np
import pytest

from tools.codegen.errors import CodegenError
from tools.codegen.expr import (
    FUNCTIONS,
    Call,
    Expr,
    Name,
    backward_expr,
    diff,
    forward_expr,
    parse,
    to_text,
)

from .samples import COMPLEX, INTEGER, LAST, PREDICATES, REAL, evaluate

VARS = ("x", "y", "z")
STEP = 1e-3
# Eighth-order central differences: error about STEP**8, rounding about 1e-13 / STEP.
_WEIGHTS = {1: 4 / 5, 2: -1 / 5, 3: 4 / 105, 4: -1 / 280}

# What is left of the differences: roundings of f / STEP, and the term in STEP ** 8.
DIFFERENCES = 1e-8


def _differences(
    expr: Expr, values: dict[str, np.ndarray], var: str, direction: np.ndarray
) -> np.ndarray:
    total = 0.0
    for k, weight in _WEIGHTS.items():
        ahead = evaluate(expr, {**values, var: values[var] + k * STEP * direction})
        behind = evaluate(expr, {**values, var: values[var] - k * STEP * direction})
        total = total + weight * (ahead - behind) / STEP
    return np.asarray(total)


def _call(name: str) -> tuple[Expr, tuple[str, ...]]:
    names = VARS[: FUNCTIONS[name].arity]
    return Call(name, tuple(Name(n) for n in names)), names


def test_samples_cover_the_function_table() -> None:
    assert {*REAL, *LAST, *PREDICATES, *INTEGER} == set(FUNCTIONS)
    assert set(COMPLEX) | {"is_nan", "is_inf", "is_finite"} == {
        name for name, function in FUNCTIONS.items() if function.complex_ok
    }


@pytest.mark.parametrize("name", sorted(REAL))
def test_real_derivatives(name: str) -> None:
    expr, names = _call(name)
    values = {n: np.array(p) for n, p in zip(names, REAL[name], strict=True)}
    for i, var in enumerate(names):
        if name == "polygamma" and i == 0:
            continue  # the order is an integer
        wanted = _differences(expr, values, var, np.ones(4))
        got = np.broadcast_to(evaluate(diff(expr, var), values), wanted.shape)
        np.testing.assert_allclose(got, wanted, rtol=DIFFERENCES, atol=DIFFERENCES)
        grad = np.array([0.7, -1.3, 2.1, 0.4])
        backward = backward_expr(expr, var, result=None)
        got = np.broadcast_to(evaluate(backward, {**values, "grad": grad}), 4)
        np.testing.assert_allclose(
            got, grad * wanted, rtol=DIFFERENCES, atol=DIFFERENCES
        )


@pytest.mark.parametrize("name", sorted(REAL))
def test_second_derivatives(name: str) -> None:
    expr, names = _call(name)
    if name == "polygamma":
        names = names[1:]
    values = {n: np.array(p) for n, p in zip(VARS, REAL[name], strict=False)}
    for var in names:
        first = diff(expr, var)
        for again in names:
            wanted = np.broadcast_to(_differences(first, values, again, np.ones(4)), 4)
            got = np.broadcast_to(evaluate(diff(first, again), values), 4)
            np.testing.assert_allclose(
                got, wanted, rtol=10 * DIFFERENCES, atol=10 * DIFFERENCES
            )


def _complex_gradient(
    expr: Expr, values: dict[str, np.ndarray], var: str, grad: np.ndarray
) -> np.ndarray:
    """dL/dx + i dL/dy of L = Re(conj(grad) * expr)."""

    def slope(direction: complex) -> np.ndarray:
        change = _differences(expr, values, var, np.full(4, direction))
        return np.real(np.conj(grad) * change)

    return slope(1) + 1j * slope(1j)


@pytest.mark.parametrize("name", sorted(COMPLEX))
def test_complex_gradients_and_tangents(name: str) -> None:
    expr, names = _call(name)
    values = {n: np.array(p) for n, p in zip(names, COMPLEX[name], strict=True)}
    is_real = not np.iscomplexobj(evaluate(expr, values))
    grad = np.array([0.7 - 0.2j, -1.3 + 0.5j, 0.4 + 2.1j, -0.6 - 0.9j])
    grad = grad.real if is_real else grad
    for var in names:
        wanted = _complex_gradient(expr, values, var, grad)
        backward = backward_expr(expr, var, is_complex=True, result=None)
        got = evaluate(backward, {**values, "grad": grad})
        np.testing.assert_allclose(got, wanted, rtol=DIFFERENCES, atol=DIFFERENCES)
        tangent = 0.8 - 0.6j
        forward = forward_expr(expr, {var: "t"}, is_complex=True, result=None)
        got = evaluate(forward, {**values, "t": np.full(4, tangent)})
        wanted = _differences(expr, values, var, np.full(4, tangent))
        np.testing.assert_allclose(got, wanted, rtol=DIFFERENCES, atol=DIFFERENCES)


COMPOSED = [
    "x * y + y / x",
    "x / (1 + exp(-y))",
    "abs(x) * y",
    "real(x) * x + imag(y)",
    "conj(x * y) / abs(y)",
    "sgn(x) * exp(y) - angle(x * y)",
    "sqrt(x * conj(x) + y ** 2)",
    "tanh(x) if abs(x) > 0.8 else x ** 3 * y",
    "-log(x) * (y - 2 * x)",
]


@pytest.mark.parametrize("text", COMPOSED)
def test_composed_complex_gradients(text: str) -> None:
    expr = parse(text)
    values = {n: np.array(COMPLEX["pow"][i]) for i, n in enumerate("xy")}
    values["x"] = values["x"] * 1.1
    is_real = not np.iscomplexobj(evaluate(expr, values))
    grad = np.array([0.7, -1.3 + 0.5j, 0.4 + 2.1j, -0.6 - 0.9j])
    grad = grad.real if is_real else grad
    for var in "xy":
        wanted = _complex_gradient(expr, values, var, grad)
        backward = backward_expr(expr, var, is_complex=True, result=None)
        got = np.broadcast_to(evaluate(backward, {**values, "grad": grad}), 4)
        np.testing.assert_allclose(got, wanted, rtol=DIFFERENCES, atol=DIFFERENCES)
        forward = forward_expr(expr, {var: "t"}, is_complex=True, result=None)
        got = evaluate(forward, {**values, "t": np.full(4, 0.8 - 0.6j)})
        wanted = _differences(expr, values, var, np.full(4, 0.8 - 0.6j))
        np.testing.assert_allclose(got, wanted, rtol=DIFFERENCES, atol=DIFFERENCES)


@pytest.mark.parametrize("name", (*PREDICATES, *INTEGER))
def test_predicates_and_integers_have_no_gradient(name: str) -> None:
    expr, names = _call(name)
    assert to_text(backward_expr(expr, names[0])) == "0"


@pytest.mark.parametrize(
    ("text", "var", "is_complex", "wanted"),
    [
        ("self + alpha * other", "self", True, "grad"),
        ("self + alpha * other", "other", True, "grad * conj(alpha)"),
        ("self * other", "self", False, "grad * other"),
        ("exp(self)", "self", False, "grad * result"),
        ("tanh(self)", "self", False, "grad * (1 - result ** 2)"),
        ("self / other", "other", False, "-(grad * (result / other))"),
        ("sqrt(self)", "self", False, "grad / (2 * result)"),
        ("self if self > 0 else 0", "self", False, "grad if self > 0 else 0"),
        ("abs(self)", "self", False, "grad * sign(self)"),
        ("abs(self)", "self", True, "grad * sgn(self)"),
        ("self ** 2", "self", False, "grad * (2 * self)"),
        ("floor(self) + 1", "self", False, "0"),
        ("float(self > other)", "self", False, "0"),
    ],
)
def test_gradients_read_as_written_by_hand(
    text: str, var: str, is_complex: bool, wanted: str
) -> None:
    assert to_text(backward_expr(parse(text), var, is_complex)) == wanted


def test_the_saved_result_is_named_only_if_asked() -> None:
    expr = parse("exp(self)")
    assert to_text(backward_expr(expr, "self", result=None)) == "grad * exp(self)"


def test_no_plain_derivative_of_what_is_not_holomorphic() -> None:
    with pytest.raises(CodegenError, match="abs is not holomorphic"):
        diff(parse("abs(z) * z"), "z", {"z": "complex"})
