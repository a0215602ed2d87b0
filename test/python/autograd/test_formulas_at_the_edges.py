"""Derivatives of complex numbers, at zeros, at NaN, and of batches of one."""

from __future__ import annotations

import math

import numpy as np
import pytest
import taeda
from taeda.autograd import gradcheck, gradgradcheck

C = taeda.complex128


def random(*shape: int, dtype: taeda.dtype = taeda.float64) -> taeda.Tensor:
    return taeda.randn(*shape, dtype=dtype).requires_grad_()


@pytest.mark.parametrize("name", ["conv1d", "conv2d", "conv_transpose2d"])
def test_complex_convolutions_have_conjugated_gradients(name: str) -> None:
    taeda.manual_seed(1)
    dims = int(name[-2])
    x = random(2, 4, *[4] * dims, dtype=C)
    w = random(4, 2, *[2] * dims, dtype=C)
    conv = getattr(taeda.nn.functional, name)
    # As training runs it: without a graph of the gradient.
    y = conv(x, w, groups=2)
    g = taeda.randn(*y.shape, dtype=C)
    plain = taeda.autograd.grad(y, (x, w), g)
    derived = taeda.autograd.grad(conv(x, w, groups=2), (x, w), g, create_graph=True)
    for a, b in zip(plain, derived, strict=True):
        assert taeda.allclose(a, b)
    assert gradcheck(lambda x, w: conv(x, w, groups=2), (x, w))


def test_complex_logsumexp() -> None:
    taeda.manual_seed(2)
    x = random(3, 4, dtype=C)
    far = (x.detach() + 1000.0).logsumexp(1)
    near = x.detach().exp().sum(1).log()
    assert taeda.allclose(far, near + 1000.0)
    assert gradcheck(lambda x: x.logsumexp(1), (x,))


@pytest.mark.parametrize("op", [lambda x: x.cumprod(1), lambda x: x.prod(1)])
def test_products_with_zeros_have_second_derivatives(op) -> None:
    x = taeda.tensor(
        [[2.0, 0.0, 3.0], [0.0, 0.0, 5.0], [1.0, 2.0, 3.0]], dtype=taeda.float64
    ).requires_grad_()
    assert gradcheck(op, (x,))
    assert gradgradcheck(op, (x,))


@pytest.mark.parametrize("name", ["elu", "celu", "selu"])
def test_the_gradient_at_nan_is_nan(name: str) -> None:
    x = taeda.full((128,), math.nan).requires_grad_()
    getattr(taeda.nn.functional, name)(x).sum().backward()
    assert x.grad.isnan().all()


def test_nextafter_has_no_gradient_where_it_stays() -> None:
    x = taeda.tensor([1.0, 2.0, 3.0, 0.0], requires_grad=True)
    y = taeda.tensor([1.0, 3.0, 2.0, -0.0], requires_grad=True)
    taeda.nextafter(x, y).sum().backward()
    assert x.grad.tolist() == [0, 1, 1, 0] and y.grad.tolist() == [0] * 4


@pytest.mark.parametrize("dtype", [taeda.float16, taeda.bfloat16])
@pytest.mark.parametrize("flip", [False, True])
def test_the_gradient_of_a_batch_of_one_is_rounded_once(dtype, flip: bool) -> None:
    taeda.manual_seed(3)
    many, one = taeda.randn(16, 5, 5).to(dtype), taeda.randn(1, 5, 5).to(dtype)
    g = taeda.randn(16, 5, 5).to(dtype)

    def gradient(kind: taeda.dtype) -> taeda.Tensor:
        a, b = many.to(kind), one.to(kind).requires_grad_()
        y = b @ a if flip else a @ b
        return taeda.autograd.grad(y, b, g.to(kind))[0]

    exact = gradient(taeda.float64)
    assert gradient(dtype).shape == (1, 5, 5)
    assert taeda.allclose(
        gradient(dtype).double(), exact, rtol=taeda.finfo(dtype).eps * 0.51, atol=1e-4
    )


@pytest.mark.parametrize("order", [float("inf"), -float("inf")])
def test_extreme_elements_of_complex_vectors_are_found(order) -> None:
    """The magnitudes that a norm compares may differ from abs in the last digit."""
    generator = np.random.default_rng(0)
    values = generator.normal(size=(200, 3)) + 1j * generator.normal(size=(200, 3))
    x = taeda.from_numpy(values).requires_grad_()
    taeda.linalg.vector_norm(x, order, dim=1).sum().backward()
    found = (x.grad.abs() > 0).sum(1)
    assert x.grad.isfinite().all() and (found == 1).all()


@pytest.mark.parametrize("order", [-1, 0.5, 1, 1.5, 2, 2.5, 3, math.inf])
@pytest.mark.parametrize("name", ["norm", "vector_norm"])
def test_norms_at_zero_have_no_slope_in_forward_mode(name: str, order: float) -> None:
    norm = taeda.norm if name == "norm" else taeda.linalg.vector_norm
    zero, one = (make(3, dtype=taeda.float64) for make in (taeda.zeros, taeda.ones))
    value, slope = taeda.func.jvp(lambda x: norm(x, order), (zero,), (one,))
    assert value.item() == 0 and slope.item() == 0
    zero.requires_grad_()
    norm(zero, order).backward()
    assert zero.grad.tolist() == [0, 0, 0]
