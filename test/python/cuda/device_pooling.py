"""Gradients of pooling and of bags on the device, held to the CPU's in double."""

from __future__ import annotations

import pytest
import taeda
from taeda.nn import functional

Tensor = taeda.Tensor


def same(compute, *tensors: Tensor, dtype: taeda.dtype = taeda.float32) -> list[Tensor]:
    """Results and gradients; those of the device, twice the same bits."""
    found = []
    for device, kind in (("cuda", dtype), ("cuda", dtype), ("cpu", taeda.float64)):
        given = [t.to(dtype).to(device, kind).requires_grad_() for t in tensors]
        out = compute(device, *given)
        weights = taeda.linspace(-1, 1, out.numel()).reshape(out.shape).to(dtype)
        (out * weights.to(device, kind)).sum().backward()
        found.append([out.detach(), *(t.grad for t in given)])
    bound = 1e-5 if dtype is taeda.float32 else 4e-3
    for got, again, want in zip(*found, strict=True):
        assert taeda.equal(got, again)
        assert taeda.allclose(got.cpu().double(), want, rtol=bound, atol=bound)
    return found[0]


# Kernel, stride, padding, dilation.
SHAPES = [(3, 1, 1, 1), (2, 3, 0, 1), (3, 2, 1, 2), (5, 2, 2, 1)]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("ceil", [False, True])
def test_maxima(shape: tuple, ceil: bool) -> None:
    taeda.manual_seed(1)
    options = {"ceil_mode": ceil}
    # Few values: the first of equal ones is chosen, by several windows.
    plane = taeda.randint(0, 4, (2, 3, 11, 13)).float()
    same(lambda _, x: functional.max_pool2d(x, *shape, **options), plane)
    volume = taeda.randn(1, 2, 7, 9, 8)
    same(lambda _, x: functional.max_pool3d(x, *shape, **options), volume)
    same(lambda _, x: functional.max_pool1d(x, *shape, **options), plane[0])


def test_maxima_of_half_and_of_other_strides() -> None:
    x = taeda.randn(2, 4, 12, 10)
    same(lambda _, x: functional.max_pool2d(x, 3, 2, 1), x, dtype=taeda.float16)
    last = x.to(memory_format=taeda.channels_last)
    same(lambda _, x: functional.max_pool2d(x, 3, 2, 1), last)


@pytest.mark.parametrize("size", [(1, 1), (3, 5), (7, 4), (16, 15)])
def test_adaptive_pools(size: tuple) -> None:
    x = taeda.randn(2, 3, 9, 12)
    same(lambda _, x: functional.adaptive_max_pool2d(x, size), x)
    same(lambda _, x: functional.adaptive_avg_pool2d(x, size), x)
    volume = taeda.randn(2, 5, 6, 7)
    same(lambda _, x: functional.adaptive_max_pool3d(x, (2, *size)), volume)
    same(lambda _, x: functional.adaptive_avg_pool3d(x, (2, *size)), volume)


@pytest.mark.parametrize("counts", [False, True])
@pytest.mark.parametrize("ceil", [False, True])
def test_means(counts: bool, ceil: bool) -> None:
    options = {"ceil_mode": ceil, "count_include_pad": counts}
    x, volume = taeda.randn(2, 3, 11, 13), taeda.randn(1, 2, 7, 9, 8)
    for kernel, stride, padding in ((3, 1, 1), (2, 3, 0), (5, 2, 2)):
        given = (kernel, stride, padding)
        same(lambda _, x, g=given: functional.avg_pool2d(x, *g, **options), x)
        same(lambda _, x, g=given: functional.avg_pool3d(x, *g, **options), volume)
    same(lambda _, x: functional.avg_pool2d(x, (2, 3), divisor_override=5), x)


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
@pytest.mark.parametrize("dtype", [taeda.float32, taeda.float16], ids=str)
def test_bags(mode: str, dtype: taeda.dtype) -> None:
    taeda.manual_seed(2)
    table = taeda.randn(50, 6)
    indices = taeda.randint(0, 9, (300,))
    offsets = taeda.tensor([0, 4, 4, 90, 300])
    for options in ({}, {"padding_idx": 3}, {"scale_grad_by_freq": True}):
        if mode == "max" and "scale_grad_by_freq" in options:
            continue

        def compute(device, weight, options=options):
            places = indices.to(device), offsets.to(device)
            return functional.embedding_bag(
                places[0], weight, places[1], mode=mode, **options
            )

        same(compute, table, dtype=dtype)


def test_bags_with_factors() -> None:
    table, factors = taeda.randn(20, 5), taeda.rand(40)
    indices, offsets = taeda.randint(0, 20, (40,)), taeda.tensor([0, 10, 33])

    def compute(device, weight, given):
        places = indices.to(device), offsets.to(device)
        return functional.embedding_bag(
            places[0], weight, places[1], mode="sum", per_sample_weights=given
        )

    same(compute, table, factors)
