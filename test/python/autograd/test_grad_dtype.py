"""Gradients of another dtype than their tensor's."""

from __future__ import annotations

import pytest
import taeda


def leaf(dtype):
    x = taeda.ones(2, requires_grad=True)
    x.grad_dtype = dtype
    return x


@pytest.mark.parametrize("dtype", [taeda.float16, taeda.float64, taeda.complex64])
def test_gradients_come_in_the_dtype_that_was_chosen(dtype):
    x = leaf(dtype)
    seen = []
    x.register_hook(lambda g: seen.append(g.dtype))
    for _ in range(2):
        (x * 3).sum().backward()
    assert x.grad.dtype is dtype and x.grad.tolist() == [6, 6]
    assert seen == [dtype, dtype]
    assert taeda.autograd.grad((x * 3).sum(), x)[0].dtype is dtype


def test_none_takes_the_first_gradient_as_it_is():
    class Rough(taeda.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return (grad * 2).bfloat16()

    x = leaf(None)
    assert x.grad_dtype is None
    Rough.apply(x).sum().backward()
    assert x.grad.dtype is taeda.bfloat16 and x.grad.tolist() == [2, 2]
    (x * 2).sum().backward()
    assert x.grad.dtype is taeda.bfloat16 and x.grad.tolist() == [4, 4]
    x.grad = taeda.ones(2, dtype=taeda.float64)


def test_a_choice_holds_for_graphs_that_are_there():
    x = taeda.ones(2, requires_grad=True)
    y = (x * 2).sum()
    x.grad_dtype = taeda.float16
    y.backward()
    assert x.grad.dtype is taeda.float16
    x.grad = None
    x.data = x.data.double()
    assert x.grad_dtype is taeda.float16
    x.sum().backward()
    assert x.grad.dtype is taeda.float16
    assert x.detach().grad_dtype is taeda.float64


def test_other_dtypes_are_refused():
    x = leaf(taeda.float16)
    with pytest.raises(
        RuntimeError, match="'float32' to a tensor with grad_dtype 'Half'"
    ):
        x.grad = taeda.ones(2)
    x.grad = taeda.ones(2, dtype=taeda.float16)
    with pytest.raises(RuntimeError, match="'Float' because there is already a gradie"):
        x.grad_dtype = taeda.float32
    x.grad_dtype = None  # any
    with pytest.raises(RuntimeError, match="only be set on leaf tensors"):
        (x * 2).grad_dtype = taeda.float16
