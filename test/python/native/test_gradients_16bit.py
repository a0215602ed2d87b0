"""Gradients of 16-bit operands: rounded once, after sums and factors."""

from __future__ import annotations

import pytest
import taeda
import torch

BINARY = {
    "div": taeda.div,
    "true_divide": taeda.true_divide,
    "pow": taeda.pow,
    "atan2": taeda.atan2,
    "hypot": taeda.hypot,
}


@pytest.mark.parametrize("dtype", [taeda.bfloat16, taeda.float16])
@pytest.mark.parametrize("name", BINARY)
def test_the_sum_of_a_broadcast_operand_is_rounded_once(name, dtype) -> None:
    taeda.manual_seed(3)
    rows = (taeda.rand(64, 3) + 0.5).to(dtype)
    row = (taeda.rand(3) + 0.5).to(dtype)
    ways = (taeda.rand(64, 3) - 0.5).to(dtype)

    def gradient(kind):
        a, b = rows.to(kind), row.to(kind).requires_grad_()
        out = BINARY[name](a, b)
        return taeda.autograd.grad(out, b, ways.to(kind))[0].to(taeda.float64)

    got, exact = gradient(dtype), gradient(taeda.float64)
    # pow's derivative starts from the rounded result: 64 terms below 1, each off by
    # half an eps, add up at random.
    allowed = taeda.finfo(dtype).eps * (exact.abs() + (4 if name == "pow" else 0))
    assert ((got - exact).abs() <= allowed).all()


PRODUCTS = {
    "addmm": ((4, 6), (4, 5), (5, 6)),
    "addbmm": ((4, 6), (3, 4, 5), (3, 5, 6)),
    "baddbmm": ((3, 4, 6), (3, 4, 5), (3, 5, 6)),
    "addr": ((4, 6), (4,), (6,)),
}


@pytest.mark.parametrize("dtype", [taeda.bfloat16, taeda.float16])
@pytest.mark.parametrize("name", PRODUCTS)
def test_a_factor_of_a_product_is_no_second_rounding(name, dtype) -> None:
    taeda.manual_seed(4)
    given = [(taeda.rand(*s) - 0.5).to(dtype) for s in PRODUCTS[name]]

    def results(kind):
        operands = [t.to(kind).requires_grad_() for t in given]
        out = getattr(taeda, name)(*operands, alpha=0.6)
        ways = given[0].to(kind)
        found = taeda.autograd.grad(out, operands[1:], ways)
        return [t.detach().to(taeda.float64) for t in (out, *found)]

    for got, exact in zip(results(dtype), results(taeda.float64), strict=True):
        # Half a unit in the last place, and float's roundings under it.
        allowed = taeda.finfo(dtype).eps / 2 * exact.abs() + 1e-6
        assert ((got - exact).abs() <= allowed).all()


@pytest.mark.parametrize("dtype", [taeda.bfloat16, taeda.float16])
def test_both_ways_through_renorm_are_rounded_together(dtype) -> None:
    taeda.manual_seed(5)
    given, ways = ((taeda.rand(4, 6) - 0.5).to(dtype) for _ in range(2))

    def gradient(kind):
        x = given.to(kind).requires_grad_()
        out = taeda.renorm(x, 2, 0, 0.25)
        return taeda.autograd.grad(out, x, ways.to(kind))[0].to(taeda.float64)

    got, exact = gradient(dtype), gradient(taeda.float64)
    assert (
        (got - exact).abs() <= taeda.finfo(dtype).eps / 2 * exact.abs() + 1e-6
    ).all()


@pytest.mark.parametrize("dtype", [taeda.bfloat16, taeda.float16])
def test_weights_of_cov_keep_their_dtype(dtype) -> None:
    taeda.manual_seed(6)
    given = taeda.rand(3, 8).to(dtype)
    weights = taeda.rand(8)

    def result(x):
        return taeda.cov(x, aweights=weights, fweights=taeda.arange(8))

    exact = result(given.float())
    assert result(given).dtype == taeda.float32
    assert taeda.allclose(result(given), exact, rtol=1e-5, atol=1e-7)


# Numbers that are no 16-bit floats bound values as PyTorch rounds them.
BOUNDS = {
    "clamp": lambda m, x: m.clamp(x, -0.3, 0.9),
    "clamp_min": lambda m, x: m.clamp_min(x, -0.3),
    "clamp_max": lambda m, x: m.clamp_max(x, 0.9),
    "hardshrink": lambda m, x: m.nn.functional.hardshrink(x, 0.3),
    "softshrink": lambda m, x: m.nn.functional.softshrink(x, 0.3),
    "maximum": lambda m, x: m._foreach_maximum([x], -0.3)[0],
}


def around(m, dtype):
    """The 16-bit floats next to the bounds, and others."""
    bounds = m.tensor([-0.3, 0.3, 0.9], dtype=getattr(m, dtype))
    bits = (bounds.view(m.int16)[:, None] + m.arange(-2, 3)).to(m.int16)
    return m.cat([bits.flatten().view(bounds.dtype), bounds * 5, bounds / 5])


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("name", BOUNDS)
def test_bounds_are_rounded_in_gradients_too(name: str, dtype: str) -> None:
    def found(m):
        x = around(m, dtype).requires_grad_()
        y = BOUNDS[name](m, x)
        return y.tolist(), m.autograd.grad(y.sum(), x)[0].tolist()

    assert found(taeda) == found(torch)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_what_hardtanh_clamps_has_no_gradient(dtype: str) -> None:
    x = around(taeda, dtype).requires_grad_()
    y = taeda.nn.functional.hardtanh(x, -0.3, 0.9)
    low, high = taeda.tensor([-0.3, 0.9]).to(x.dtype)
    inside = (x > low) & (x < high)
    assert taeda.autograd.grad(y.sum(), x)[0].tolist() == inside.float().tolist()
