"""Maxima at random windows, and put back to their places."""

from __future__ import annotations

import numpy as np
import pytest
import taeda
from tolerance import rounding

PLANES = {2: (9, 8), 3: (6, 7, 8)}


@pytest.mark.parametrize("d", [2, 3])
@pytest.mark.parametrize("batch", [(2, 3), (3,)], ids=["batch", "one"])
def test_fractional_windows(same, values, d, batch):
    samples = np.random.default_rng(1).random((batch[0] if len(batch) > 1 else 1, 3, d))

    def program(T, x, samples):
        pool = getattr(T.nn.functional, f"fractional_max_pool{d}d")
        return pool(
            x,
            (2,) * (d - 1) + (3,),
            output_size=(4,) * (d - 1) + (3,),
            _random_samples=samples.detach(),
            return_indices=True,
        )

    same(program, values(*batch, *PLANES[d]), samples)


@pytest.mark.parametrize("d", [1, 2, 3])
def test_unpooling_undoes_the_choice(same, values, d):
    def program(T, x):
        F = T.nn.functional
        y, where = getattr(F, f"max_pool{d}d")(x, 2, stride=2, return_indices=True)
        return getattr(F, f"max_unpool{d}d")(y, where, 2, stride=2)

    same(program, values(2, 3, *(6, 4, 8)[:d]))


def test_invalid_place():
    x, where = taeda.ones(1, 1, 1, 1), taeda.tensor([[[[9]]]])
    with pytest.raises(RuntimeError, match="invalid max index: 9"):
        taeda.nn.functional.max_unpool2d(x, where, 2)


@pytest.mark.parametrize("name", ["max_pool2d", "avg_pool2d"])
def test_channels_last_pools_alike(torch, values, name):
    results = []
    for T in (torch, taeda):
        x = T.from_numpy(values(2, 9, 7, 6)).to(memory_format=T.channels_last)
        x.requires_grad_()
        out = getattr(T.nn.functional, name)(x, 3, 2, 1)
        (out * out).sum().backward()
        results.append((out.stride(), out.detach().numpy(), x.grad.numpy()))
    (strides, *want), (got_strides, *got) = results
    assert got_strides == strides
    for have, right in zip(got, want, strict=True):
        np.testing.assert_allclose(have, right, rtol=0, atol=rounding("float64", 32))


def test_channels_last_keeps_nan_and_places(torch, values):
    image = values(1, 16, 5, 5, dtype="float32")
    image[0, 3, 2, 2] = image[0, 8, 0, 0] = np.nan
    got, want = (
        T.nn.functional.max_pool2d(
            T.from_numpy(image.copy()).to(memory_format=T.channels_last),
            2,
            return_indices=True,
        )
        for T in (taeda, torch)
    )
    for have, right in zip(got, want, strict=True):
        np.testing.assert_array_equal(have.numpy(), right.numpy())


@pytest.mark.parametrize("dtype", [taeda.float32, taeda.float64, taeda.bfloat16])
@pytest.mark.parametrize("sizes", [(2, 24, 19, 22), (2, 17, 6, 9, 11)], ids=str)
def test_many_planes_are_pooled_as_single_ones(sizes, dtype):
    """Many planes are compared side by side; one plane alone is not."""
    F, d = taeda.nn.functional, len(sizes) - 2
    taeda.manual_seed(1)
    x = taeda.randint(-9, 9, sizes).to(dtype)  # with ties
    x.view(-1)[::97] = float("nan")
    x.view(-1)[5::89] = -float("inf")
    max_pool, adaptive = (
        getattr(F, name) for name in (f"max_pool{d}d", f"adaptive_max_pool{d}d")
    )
    for pool in (
        lambda x: max_pool(x, 3, 2, 1, return_indices=True),
        lambda x: max_pool(x, 2, 2, ceil_mode=True, return_indices=True),
        lambda x: max_pool(x, 2, 1, dilation=2, return_indices=True),
        lambda x: adaptive(x, (4,) * d, return_indices=True),
    ):
        values, places = pool(x)
        assert values.is_contiguous()
        assert places.is_contiguous()
        for plane in range(sizes[1]):
            value, place = pool(x[:, plane : plane + 1])
            assert taeda.equal(place, places[:, plane : plane + 1])
            same = values[:, plane : plane + 1]
            taeda.testing.assert_close(same, value, rtol=0, atol=0, equal_nan=True)
