"""Printed C++ compiled over aten/math and compared with the NumPy printer."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest
from tolerance import rounding

from tools.codegen.errors import CodegenError
from tools.codegen.expr import (
    FUNCTIONS,
    backward_expr,
    compose,
    cpp,
    cpp_block,
    cpp_blocks,
    parse,
)

from .conftest import ROOT
from .samples import REAL, evaluate

# Functions of the language that aten/math does not have yet.
MISSING_IN_MATH = {"polygamma"}
EXPRESSIONS = [
    "x if x > 0 else 1.5 * (exp(x) - 1)",
    "0.5 * x * (1 + erf(x * 0.7071067811865476))",
    "x ** 2 + y ** 3 - x ** 4 + x ** -2 + abs(y) ** 0.5",
    "(x > 0) * y + (not x) + (x > 0 and y > 0 or x < -1)",
    "pi * x - e * y if x and y else 3",
    "float(x > y) + int(y) + cast(bool(x))",
    "inf if x > 10 else (1 if is_nan(nan) else 0)",
    "-x - -y - -(2) * (x - (y - 1)) / (x / (y / 3))",
    "1 if x == y or x != y and x <= y <= 5 else 0",
    "conj(x) + real(y) + imag(x)",
]


@pytest.mark.parametrize(
    ("text", "compute", "wanted"),
    [
        ("self + alpha * other", "float", "(self + (alpha * other))"),
        ("self + alpha * other", "int", "T(self + T(alpha * other))"),
        ("self * 2", "complex", "(self * T(2))"),
        ("abs(self) * self", "complex", "(T(math::abs(self)) * self)"),
        ("self if self > 0 else 0", "float", "((self > T(0)) ? self : T(0))"),
        ("self and other", "int", "((self != T(0)) & (other != T(0)))"),
        ("self or other", "bool", "(self | other)"),
        ("floor(self)", "int", "self"),
        ("is_nan(self)", "int", "false"),
        ("self << other", "int", "math::shift_left(self, other)"),
        ("self * (self > 0)", "float", "(self * T((self > T(0))))"),
        ("self - 1.5j", "complex", "(self - T(RealOf<T>(0.0), RealOf<T>(1.5)))"),
        ("lowest if inf > self else nan", "float", None),
    ],
)
def test_spelling(text: str, compute: str, wanted: str | None) -> None:
    wanted = wanted or (
        "((math::kInfinity<T> > self) ? math::kLowest<T> : math::kNan<T>)"
    )
    assert cpp(parse(text), compute) == wanted


def test_a_float_has_no_type_in_integer_compute() -> None:
    with pytest.raises(CodegenError, match="a float value in int compute"):
        cpp(parse("exp(self)"), "int")


def test_repeated_parts_are_named_once() -> None:
    lines, text = cpp_block(parse("exp(x * y) + exp(x * y) ** 2"), "float")
    assert lines == ["const T t0_ = (x * y);", "const T t1_ = math::exp(t0_);"]
    assert text == "(t1_ + (t1_ * t1_))"
    source = parse("x * exp(y)")
    gradients = {v: backward_expr(source, v, result=None) for v in "xy"}
    lines, texts = cpp_blocks(gradients, "float")
    assert lines == ["const T t0_ = math::exp(y);"]
    assert texts == {"x": "(grad * t0_)", "y": "((grad * x) * t0_)"}


def test_composition_spelling() -> None:
    tanh = backward_expr(parse("tanh(self)"), "self")
    assert compose(tanh) == (
        "ops::mul(grad, ops::add(ops::neg(ops::pow(result, Scalar(2))), Scalar(1)))"
    )
    other = backward_expr(parse("self + alpha * other"), "other", is_complex=True)
    assert compose(other, {"alpha"}) == "ops::mul(grad, scalar_math::conj(alpha))"
    zero = backward_expr(parse("floor(self)"), "self")
    assert compose(zero) == "ops::full_like(grad, Scalar(0))"
    with pytest.raises(CodegenError, match="no value outside a compute type"):
        compose(parse("x + lowest"))


def test_arms_of_selects_are_finite_where_they_are_not_selected() -> None:
    """Functions and divisors of an arm get another operand there; products do not."""
    test = "ops::eq(x, Scalar(0))"
    quotient = compose(parse("0 if x == 0 else grad / x * y"), differentiable=True)
    assert quotient == (
        f"ops::where({test}, Scalar(0), [&](const Tensor& x) -> Tensor {{ "
        "return ops::mul(ops::div(grad, x), y); }"
        f"(where_used({test}, x, grad)))"
    )
    for text in ("0 if x == 0 else grad * y", "grad / x"):
        assert compose(parse(text)) == compose(parse(text), differentiable=True)
    first = compose(parse("exp(x) if x < 0 else grad * a"), {"a"}, differentiable=True)
    assert first.count("where_used(ops::logical_not(ops::lt(x, Scalar(0))), x") == 1


def _program(texts: list[str], count: int) -> str:
    """Prints every expression at `count` points read from the command's text."""
    bodies = "\n".join(
        f"  for (int i = 0; i < {count}; ++i) {{\n"
        "    const T x = xs[k][i], y = ys[k][i], z = zs[k][i];\n"
        f'    (void)x; (void)y; (void)z; std::printf("%.17g ", double({text}));\n'
        f"  }}\n  ++k;"
        for text in texts
    )
    return (
        "#include <cstdio>\n#include <cstdint>\n#include <cstdlib>\n"
        "#include <taeda/aten/math/math.h>\n"
        "using namespace taeda;\nusing T = double;\n"
        "void run(const T (*xs)[4], const T (*ys)[4], const T (*zs)[4]) {\n"
        f"  int k = 0;\n{bodies}\n}}\n"
    )


def _table(name: str, rows: list[tuple[float, ...]]) -> str:
    inner = ",\n".join("{" + ", ".join(map(repr, row)) + "}" for row in rows)
    return f"const T {name}[][4] = {{{inner}}};\n"


def test_compiled_expressions_agree_with_numpy(tmp_path: Path) -> None:
    functions = sorted(set(REAL) - MISSING_IN_MATH)
    texts = [
        f"{name}({', '.join('xyz'[: FUNCTIONS[name].arity])})" for name in functions
    ]
    points = [[*REAL[name], *[(0.0,) * 4] * 2][:3] for name in functions]
    texts += EXPRESSIONS
    points += [[(-1.7, 0.6, 2.2, -0.3), (0.9, -1.2, 2.2, -3.6), (0.0,) * 4]] * len(
        EXPRESSIONS
    )
    printed = [cpp(parse(text), "float") for text in texts]
    tables = "".join(
        _table(f"{v}s", [p[i] for p in points]) for i, v in enumerate("xyz")
    )
    source = tmp_path / "expressions.cpp"
    source.write_text(
        _program(printed, 4) + tables + "int main() { run(xs, ys, zs); }\n"
    )
    program = tmp_path / "expressions"
    include = tmp_path / "include"
    (include / "taeda").mkdir(parents=True)
    for folder in ("aten", "c10"):
        (include / "taeda" / folder).symlink_to(Path(ROOT) / folder)
    command = ["g++", "-std=c++20", "-O0", "-I", str(include)]
    built = subprocess.run(
        [*command, str(source), "-o", str(program)], capture_output=True, text=True
    )
    assert built.returncode == 0, built.stderr[:4000]
    output = subprocess.run([str(program)], capture_output=True, text=True, check=True)
    got = np.array(output.stdout.split(), dtype=float).reshape(len(texts), 4)
    for row, text, point in zip(got, texts, points, strict=True):
        values = {v: np.array(p) for v, p in zip("xyz", point, strict=True)}
        with np.errstate(all="ignore"):
            wanted = np.broadcast_to(evaluate(parse(text), values), 4).astype(float)
        np.testing.assert_allclose(
            row, wanted, rtol=rounding("float64", 512), err_msg=text
        )
