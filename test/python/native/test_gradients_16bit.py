"""Gradients of 16-bit operands: rounded once, after the sum over broadcast dims."""

from __future__ import annotations

import pytest
import taeda

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
