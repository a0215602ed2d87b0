"""Gradients and their tensor compositions against real PyTorch's autograd.

Both NumPy text and the C++ composition (read here as Python over torch) are compared,
on ordinary points and on the ties, zeros and NaNs where PyTorch made a choice.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from tolerance import rounding

from tools.codegen.expr import (
    Literal,
    backward_expr,
    compose,
    diff,
    names,
    parse,
    substitute,
)

from .samples import COMPLEX, REAL, evaluate

special = torch.special

# What torch has in torch.special alone.
SPECIAL = {n for n in dir(special) if n[0] != "_" and not hasattr(torch, n)}
TORCH: dict[str, Callable[..., Any]] = {
    "is_nan": torch.isnan,
    "div_trunc": lambda a, b: torch.div(a, b, rounding_mode="trunc"),
    "clamp": lambda x, y, z: torch.clamp(x, y, z),
    "with_imag": lambda a, b: (
        torch.complex(a.real, b.real) if a.is_complex() else a + 0 * b
    ),
    **{name: getattr(special, name) for name in SPECIAL},
}
# torch defines no gradient (igamma: by its shape), no real overload (imag), or wants a
# number (polygamma).
SKIPPED = {"nextafter", "floor_divide", "imag", "polygamma", "igamma", "igammac"} | {
    name for name in REAL if "bessel" in name
}


def _torch_function(name: str) -> Callable[..., Any]:
    return TORCH.get(name) or getattr(torch, name)


def _composition(text: str) -> str:
    """C++ over `ops::` as Python over the namespace below."""
    text = re.sub(r"complex<double>", "complex", text)
    text = re.sub(r"^\((.*) \? (.*) : (.*)\)$", r"(\2 if \1 else \3)", text)
    text = text.replace("Scalar(true)", "True").replace("Scalar(false)", "False")
    return text.replace("::", ".").replace("std.numeric_limits<double>.", "limits.")


def _scalar_math() -> SimpleNamespace:
    def apply(name: str) -> Callable[..., Any]:
        def call(*args: Any) -> Any:
            tensors = [torch.as_tensor(a, dtype=torch.float64) for a in args]
            return getattr(torch, name)(*tensors).item()

        return call

    known = "add sub mul div neg exp pow log eq ne gt ge lt logical_and".split()
    return SimpleNamespace(
        **{name: apply(name) for name in known},
        conj=lambda x: complex(x).conjugate(),
        is_true=bool,
    )


def _ops() -> SimpleNamespace:
    ops = SimpleNamespace(**{n: getattr(torch, n) for n in dir(torch)})
    ops.div = lambda a, b, mode=None: torch.div(a, b, rounding_mode=mode)
    for name in SPECIAL:
        setattr(ops, f"special_{name}", getattr(special, name))
    ops.type_as = lambda a, b: a.type_as(b)
    ops.imag = lambda x: x.imag if x.is_complex() else torch.zeros_like(x)
    return ops


def _run_composition(text: str, values: dict[str, Any]) -> Any:
    space = {
        "ops": _ops(),
        "scalar_math": _scalar_math(),
        "Scalar": lambda x: x,
        "limits": SimpleNamespace(infinity=lambda: np.inf, quiet_NaN=lambda: np.nan),
        **values,
    }
    return eval(_composition(text), space)


def _array(tensor: Any) -> np.ndarray:
    return tensor.detach().resolve_conj().numpy(force=True)


def _compare(
    text: str,
    function: Callable[..., Any],
    points: dict[str, Any],
    is_complex: bool,
) -> None:
    # PyTorch's trigamma, the derivative of digamma, is good to nine digits only.
    rtol = 1e-8 if "digamma" in text else rounding("float64", 1024)
    dtype = torch.complex128 if is_complex else torch.float64
    inputs = {
        n: torch.tensor(p, dtype=dtype, requires_grad=True) for n, p in points.items()
    }
    out = function(*inputs.values())
    size = len(next(iter(points.values())))
    grad = torch.linspace(-1.3, 1.7, size, dtype=out.dtype)
    if out.is_complex():
        grad = grad * (1 - 0.5j)
    theirs = dict.fromkeys(inputs)
    if out.requires_grad:
        out.backward(grad)
        theirs = {n: t.grad for n, t in inputs.items()}
    expr = parse(text, set(points))
    tensors = {n: t.detach() for n, t in inputs.items()}
    tensors |= {"grad": grad, "result": out.detach()}
    arrays = {n: _array(t) for n, t in tensors.items()}
    for var, wanted in theirs.items():
        wanted = torch.zeros(size, dtype=dtype) if wanted is None else wanted
        derived = backward_expr(expr, var, is_complex)
        with np.errstate(all="ignore"):
            got = np.broadcast_to(evaluate(derived, arrays), size)
        np.testing.assert_allclose(got, _array(wanted), rtol=rtol, atol=rtol)
        composed = _run_composition(compose(derived), tensors)
        np.testing.assert_allclose(
            _array(composed), _array(wanted), rtol=rtol, atol=rtol
        )


@pytest.mark.parametrize("name", sorted(set(REAL) - SKIPPED))
def test_real_functions(name: str) -> None:
    points = dict(zip("xyz", REAL[name], strict=False))
    _compare(f"{name}({', '.join(points)})", _torch_function(name), points, False)


@pytest.mark.parametrize("name", sorted(COMPLEX))
def test_complex_functions(name: str) -> None:
    points = dict(zip("xyz", COMPLEX[name], strict=False))
    _compare(f"{name}({', '.join(points)})", _torch_function(name), points, True)


_NAN = float("nan")
SINGULAR: dict[str, tuple[list[float], ...]] = {
    "maximum": ([1.0, 2.0, 1.0, _NAN, 1.0], [1.0, 1.0, 2.0, 1.0, _NAN]),
    "minimum": ([1.0, 2.0, 1.0, _NAN, 1.0], [1.0, 1.0, 2.0, 1.0, _NAN]),
    "fmax": ([1.0, 2.0, 1.0, _NAN, 1.0], [1.0, 1.0, 2.0, 1.0, _NAN]),
    "fmin": ([1.0, 2.0, 1.0, _NAN, 1.0], [1.0, 1.0, 2.0, 1.0, _NAN]),
    "abs": ([0.0, -0.0, _NAN],),
    "sign": ([0.0, -0.0, 3.0],),
    "clamp": (
        [1.0, 2.0, 0.0, 3.0, 1.5, 5.0],
        [1.0, 1.0, 1.0, 4.0, 4.0, 4.0],
        [2.0, 2.0, 2.0, 2.0, 1.0, 1.0],
    ),
    "pow": ([0.0, 0.0, 0.0, -2.0, -2.0, 3.0], [0.0, 1.0, 2.0, 0.0, 2.0, 0.0]),
    "copysign": ([0.0, 1.0, -1.0], [1.0, -1.0, -0.0]),
    "angle": ([0.0, -1.0, 1.0],),
    "sqrt": ([0.0, -1.0],),
    "frac": ([-0.5, 0.0, 2.0],),
    "xlogy": ([0.0, 0.0, 0.0, 2.0], [0.0, -1.0, 2.0, 3.0]),
    "xlog1py": ([0.0, 0.0, 0.0, 2.0], [-1.0, -2.0, 2.0, 3.0]),
    "sinc": ([0.0, 1.0, -2.0],),
    "logaddexp": ([1.0, -800.0, 0.0], [1.0, 800.0, -800.0]),
    "hypot": ([0.0, 3.0], [2.0, 0.0]),
    "atan2": ([0.0, 3.0], [2.0, 0.0]),
}


@pytest.mark.parametrize("name", sorted(SINGULAR))
def test_points_where_pytorch_chose(name: str) -> None:
    points = dict(zip("xyz", SINGULAR[name], strict=False))
    _compare(f"{name}({', '.join(points)})", _torch_function(name), points, False)


@pytest.mark.parametrize("name", ["abs", "sgn", "angle", "exp", "sqrt"])
def test_complex_zero(name: str) -> None:
    points = {"x": [0j, 1 + 0j, -1 + 1j]}
    if name == "sqrt":
        points["x"] = [1 + 0j, -1 + 1j]
    _compare(f"{name}(x)", _torch_function(name), points, True)


SCALARS = [
    ("x + a * y", lambda x, y, a: torch.add(x, y, alpha=a)),
    ("x - a * y", lambda x, y, a: torch.sub(x, y, alpha=a)),
    ("x if x > 0 else a * (exp(x) - 1)", lambda x, y, a: torch.nn.functional.elu(x, a)),
    ("a ** x * (1 - y) / 3", lambda x, y, a: a**x * (1 - y) / 3),
    ("2 / x + a / y - pi", lambda x, y, a: 2 / x + a / y - np.pi),
    ("(a * a + 1) * x * y", lambda x, y, a: (a * a + 1) * x * y),
    ("x if a > 0 else y", lambda x, y, a: x if a > 0 else y),
    ("copysign(a, x) * y + (y if 1 < x else 0)", None),
    ("x * (x > 0) + hypot(y, a)", None),
    (
        "0.5 * x * (1 + erf(x * 0.7071067811865476)) + y",
        lambda x, y, a: torch.nn.functional.gelu(x) + y,
    ),
]


@pytest.mark.parametrize(("text", "function"), SCALARS)
def test_compositions_with_scalars(
    text: str, function: Callable[..., Any] | None
) -> None:
    """A Python scalar stays a scalar; the gradient keeps the tensors' dtype."""
    expr, alpha = parse(text, {"x", "y", "a"}), 1.4
    x = torch.tensor([0.5, -0.8, 1.9], dtype=torch.float64, requires_grad=True)
    y = torch.tensor([1.5, 0.3, -2.0], dtype=torch.float64, requires_grad=True)
    forward = compose(expr, {"a"}, like="x")
    out = _run_composition(forward, {"x": x, "y": y, "a": alpha})
    if function is not None:
        np.testing.assert_allclose(out.detach(), function(x, y, alpha).detach())
    grad = torch.tensor([1.0, -2.0, 0.5], dtype=torch.float64)
    theirs = torch.autograd.grad(out, (x, y), grad, allow_unused=True)
    for var, wanted in zip("xy", theirs, strict=True):
        derived = backward_expr(expr, var)
        values = {"x": x, "y": y, "a": alpha, "grad": grad, "result": out}
        got = _run_composition(compose(derived, {"a"}), values).detach()
        wanted = torch.zeros(3) if wanted is None else wanted
        np.testing.assert_allclose(got, wanted, rtol=0, atol=rounding("float64", 64))
        if names(derived):
            assert got.dtype == torch.float64


def test_polygamma_order_is_a_number_in_a_composition() -> None:
    expr = substitute(parse("polygamma(n, x)"), {"n": Literal(1)})
    derived = diff(expr, "x")
    assert compose(derived) == "ops::polygamma(2, x)"
    x = torch.tensor([0.7, 2.5], dtype=torch.float64)
    got = _run_composition(compose(derived), {"x": x})
    np.testing.assert_allclose(got, special.polygamma(2, x))
