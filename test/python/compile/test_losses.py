"""Losses and formulas with numbers of their own are loops like all others."""

from __future__ import annotations

import weakref

import pytest
import taeda
import taeda.nn.functional as F
from test_loops import assert_close, compiled, regions

LOSSES = {
    "mse": lambda x, y, r: F.mse_loss(x, y + 1, reduction=r),
    "smooth_l1": lambda x, y, r: F.smooth_l1_loss(x, y + 1, reduction=r, beta=0.5),
    "smooth_l1 of beta 0": lambda x, y, r: F.smooth_l1_loss(
        x, y + 1, reduction=r, beta=0.0
    ),
    "huber": lambda x, y, r: F.huber_loss(x, y + 1, reduction=r, delta=0.7),
    "logits": lambda x, y, r: F.binary_cross_entropy_with_logits(
        x, y.sigmoid(), reduction=r
    ),
    "logits with weights": lambda x, y, r: F.binary_cross_entropy_with_logits(
        x, y.sigmoid(), y.abs(), reduction=r, pos_weight=taeda.full((7,), 2.5)
    ),
    "poisson": lambda x, y, r: F.poisson_nll_loss(x, y.abs(), reduction=r),
    "soft margin": lambda x, y, r: F.soft_margin_loss(x, y.sign(), reduction=r),
}


def given(dtype=taeda.float32):
    taeda.manual_seed(3)
    x, y = taeda.randn(6, 7, dtype=dtype), taeda.randn(6, 7, dtype=dtype)
    return x.requires_grad_(), y


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("dtype", [taeda.float32, taeda.float64], ids=str)
def test_a_loss_is_one_loop_with_what_it_is_of(name, reduction, dtype):
    def program(x, y):
        return (LOSSES[name](x, y, reduction) * 2,)

    x, y = given(dtype)
    with taeda.no_grad():
        function = compiled(program)
        assert_close(function(x, y), program(x, y), name)
        assert regions(function) == 1


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("name", LOSSES)
def test_gradients_of_losses(name, reduction):
    def program(x, y):
        return (LOSSES[name](x * 1.5, y, reduction),)

    x, y = given()
    function = compiled(program)
    own = program(x, y)[0]
    seed = taeda.ones_like(own)
    expected = taeda.autograd.grad(own, x, seed)
    got = taeda.autograd.grad(function(x, y)[0], x, seed)
    assert_close(got, expected, name)
    assert regions(function) == 2  # forward and backward


NUMBERS = {
    "celu": lambda x: F.celu(x, alpha=0.3) + 1,
    "round": lambda x: taeda.round(x, decimals=2) * 3,
    "nan_to_num": lambda x: taeda.nan_to_num(x / (x > 0), posinf=9.0) + 1,
    "nan_to_num by dtype": lambda x: taeda.nan_to_num(x / (x > 0)) * 0.5,
}


@pytest.mark.parametrize("name", NUMBERS)
@pytest.mark.parametrize("dtype", [taeda.float32, taeda.bfloat16], ids=str)
def test_numbers_that_are_worked_out_of_arguments(name, dtype):
    x = given(dtype)[0].detach()

    def program(x):
        return (NUMBERS[name](x),)

    function = compiled(program)
    assert_close(function(x), program(x), name)
    assert regions(function) == 1


def test_losses_of_sizes_that_are_symbols():
    function = taeda.compile(
        lambda x, y: F.mse_loss(x * 2, y), dynamic=True, options={"blocking": True}
    )
    for rows in (5, 8, 13):
        x = taeda.randn(rows, 4, requires_grad=True)
        y = taeda.randn(rows, 4)
        own = F.mse_loss(x * 2, y)
        loss = function(x, y)
        taeda.testing.assert_close(loss, own)
        got = taeda.autograd.grad(loss, x)
        taeda.testing.assert_close(got, taeda.autograd.grad(own, x))


def test_views_of_all_of_a_tensor_are_no_calls():
    def program(x):
        y = x.exp()
        return (y.expand(6, 7).view(6, 7).sum(),)

    x = given()[0].detach()
    function = compiled(program)
    assert_close(function(x), program(x), "views")
    assert "expand" not in function.graphs()[-1][0]


def test_a_view_that_is_given_out_stays_one():
    def program(x):
        y = x.exp()
        return y, y.view(6, 7)

    x = given()[0].detach()
    y, view = compiled(program)(x)
    assert view._base is y or view.data_ptr() == y.data_ptr()
    view.zero_()
    assert taeda.equal(y, taeda.zeros(6, 7))


def test_a_compiled_call_holds_nothing_that_it_read():
    module = taeda.nn.Linear(3, 3)

    def step(x):
        module.weight.grad = None
        module(x).sum().backward()
        return module.weight.grad

    function = taeda.compile(step, options={"blocking": True})
    x = taeda.randn(2, 3)
    for _ in range(3):
        function(x)
    seen = weakref.ref(module.weight.grad)
    module.weight.grad = None
    assert seen() is None
