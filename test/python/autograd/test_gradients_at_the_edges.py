"""Gradients of odd inputs: NaN, other dtypes, unused inputs, early hooks."""

from __future__ import annotations

import subprocess
import sys

import pytest
import taeda


@pytest.mark.parametrize("name", ["max", "min", "median", "nanmedian"])
def test_the_gradient_of_an_extremum_that_is_nan_goes_to_the_nans(name):
    x = taeda.tensor([float("nan")] * 3, requires_grad=True)
    getattr(taeda, name)(x).backward()
    assert x.grad.tolist() == pytest.approx([1 / 3] * 3)


@pytest.mark.parametrize("name", ["max", "min", "median"])
def test_numbers_beside_nans_get_no_gradient_of_an_extremum(name):
    x = taeda.tensor([float("nan"), 1.0, float("nan"), 1.0], requires_grad=True)
    getattr(taeda, name)(x).backward()
    assert x.grad.tolist() == [0.5, 0.0, 0.5, 0.0]


def test_a_gradient_of_integers_takes_the_outputs_dtype():
    x = taeda.ones(2, requires_grad=True)
    (grad,) = taeda.autograd.grad(x.sum(), x, taeda.tensor(3))
    assert grad.dtype == taeda.float32
    assert grad.tolist() == [3.0, 3.0]


def test_materialized_gradients_can_be_differentiated_again():
    x = taeda.tensor(0.5, requires_grad=True)
    a = taeda.tensor(1.0, requires_grad=True)
    first = taeda.autograd.grad(x * a, x, create_graph=True)
    second = taeda.autograd.grad(first, x, create_graph=True, materialize_grads=True)
    assert second[0].requires_grad
    (third,) = taeda.autograd.grad(second, x, materialize_grads=True)
    assert third.item() == 0
    assert not third.requires_grad


def test_nodes_take_hooks_before_anything_else_of_autograd_is_imported():
    program = (
        "import taeda\n"
        "y = taeda.ones(2, requires_grad=True) * 2\n"
        "y.grad_fn.register_prehook(lambda g: print('before'))\n"
        "y.grad_fn.register_hook(lambda a, b: print('after'))\n"
        "y.sum().backward()\n"
    )
    command = [sys.executable, "-c", program]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    assert result.stdout.split() == ["before", "after"]


def test_a_pack_hook_that_writes_to_what_it_gets_is_an_error():
    x = taeda.ones(3, requires_grad=True)
    hooks = taeda.autograd.graph.saved_tensors_hooks
    with (
        hooks(lambda t: t.add_(1), lambda t: t),
        pytest.raises(RuntimeError, match="pack hook is modifying its input in place"),
    ):
        x.exp()


def test_the_edge_of_a_single_number_needs_no_gradient():
    x = taeda.ones(3, requires_grad=True)
    edge = taeda.autograd.graph.get_gradient_edge((x * 2).sum())
    taeda.autograd.backward(edge)
    assert x.grad.tolist() == [2.0, 2.0, 2.0]
