"""Folds and scans by a record's formula: a thread, a warp, a block or several blocks
for a row give what the CPU gives, ties and NaN among the elements."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import taeda

Tensor = taeda.Tensor

# Rows of a thread, of a warp, of a block, of several blocks.
SHAPES = [(3, 20), (9, 300), (3, 2500), (2, 20_000)]
DTYPES = [taeda.bfloat16, taeda.float64, taeda.int64]


def drawn(shape: tuple[int, ...], dtype: taeda.dtype) -> Tensor:
    """Few values, so that the largest stands at several places."""
    taeda.manual_seed(shape[-1])
    x = taeda.randint(-4, 5, shape)
    return x.to(dtype) if not dtype.is_floating_point else (x / 4).to(dtype)


def same(call: Callable[[Tensor], object], x: Tensor, rtol: float = 0) -> None:
    got, want = call(x.cuda()), call(x)
    pairs = [(got, want)] if isinstance(want, Tensor) else zip(got, want, strict=True)
    for a, b in pairs:
        assert a.dtype is b.dtype
        taeda.testing.assert_close(a.cpu(), b, rtol=rtol, atol=rtol, equal_nan=True)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_sums_before(shape: tuple[int, int]) -> None:
    same(lambda x: x.cumsum(1), drawn(shape, taeda.float32))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_dtypes(dtype: taeda.dtype) -> None:
    same(lambda x: x.cumsum(1), drawn((2, 20_000), dtype))
    same(lambda x: x.max(1), drawn((9, 300), dtype))


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_places_of_the_largest(shape: tuple[int, int]) -> None:
    x = drawn(shape, taeda.float32)
    same(lambda x: x.cummax(1), x)
    same(lambda x: x.argmax(1), x)
    x[0, shape[1] // 2] = float("nan")
    x[1, shape[1] - 1] = float("nan")
    same(lambda x: x.cummax(1), x)
    same(lambda x: x.argmax(1), x)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_numbers_that_are_not_exact(shape: tuple[int, int]) -> None:
    x = taeda.randn(shape)
    same(lambda x: x.var(1), x, 1e-5)
    same(lambda x: x.logcumsumexp(1), x, 1e-5)


def test_other_dims_and_strides() -> None:
    same(lambda x: x.cumsum(0), drawn((300, 5), taeda.float32))
    same(lambda x: x.t().cumsum(1), drawn((300, 5), taeda.int64))
    same(lambda x: x[:, ::2].argmax(1), drawn((3, 900), taeda.float32))
    same(lambda x: x.argmax(0), drawn((40, 4200), taeda.float32))
    same(lambda x: x.var((0, 2)), drawn((30, 3, 30), taeda.float64), 1e-12)
    same(lambda x: x.argmax(), drawn((3, 9000), taeda.float32))
    same(lambda x: x.cumsum(0), drawn((17,), taeda.bool))
    same(lambda x: x[:, :0].cumsum(1), drawn((3, 40), taeda.float32))


def test_gradient_goes_backwards() -> None:
    x = drawn((2, 20_000), taeda.float64).requires_grad_()
    there = x.detach().cuda().requires_grad_()
    weight = drawn((2, 20_000), taeda.float64)
    (x.cumsum(1) * weight).sum().backward()
    (there.cumsum(1) * weight.cuda()).sum().backward()
    assert x.grad is not None and there.grad is not None
    assert taeda.equal(there.grad.cpu(), x.grad)


@pytest.mark.parametrize("count", [20, 5000, 40_000])
def test_inner_products(count: int) -> None:
    x = drawn((count,), taeda.float64)
    same(lambda x: taeda.dot(x, x.flip(0)), x)
