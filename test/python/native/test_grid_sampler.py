"""Images and volumes at the places of a grid."""

from __future__ import annotations

import numpy as np
import pytest
import taeda

MODES = [
    (mode, beyond, corners, d)
    for d in (2, 3)
    for mode in ("bilinear", "nearest", "bicubic")[: 5 - d]
    for beyond in ("zeros", "border", "reflection")
    for corners in (False, True)
]


@pytest.mark.parametrize(("mode", "beyond", "corners", "d"), MODES)
def test_modes(same, values, mode, beyond, corners, d):
    def program(T, x, grid):
        return T.nn.functional.grid_sample(x, grid, mode, beyond, corners)

    # Places within the image and up to some of its sizes away.
    same(program, values(2, 3, *(5, 4, 6)[:d]), 1.7 * values(2, *(3, 4, 2)[:d], d))


@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
def test_many_channels_and_places(same, values, mode):
    """Whole blocks of places and channels, and what is left of both."""

    def program(T, x, grid):
        return T.nn.functional.grid_sample(x, grid, mode, align_corners=False)

    same(program, values(2, 11, 5, 4), values(2, 9, 8, 2))


@pytest.mark.parametrize("corners", [False, True])
@pytest.mark.parametrize("size", [(2, 1, 4, 3), (2, 1, 2, 4, 3)])
def test_affine_grid(same, values, size, corners):
    d = len(size) - 2

    def program(T, theta):
        return T.nn.functional.affine_grid(theta, size, corners)

    same(program, values(2, d, d + 1))


def test_affine_grid_keeps_nothing():
    theta = taeda.rand(1, 2, 3, dtype=taeda.float64, requires_grad=True)
    grid = taeda.nn.functional.affine_grid(theta, (1, 1, 2, 2), True)
    for times in (1, 2):
        grid.sum().backward()
        assert theta.grad.tolist() == [[[0.0, 0.0, 4.0 * times]] * 2]
    assert taeda.autograd.gradgradcheck(
        lambda t: taeda.nn.functional.affine_grid(t, (1, 1, 2, 3), False), (theta,)
    )


@pytest.mark.parametrize(
    ("mode", "beyond"), [("nearest", "zeros"), ("bilinear", "border")]
)
def test_places_that_are_no_numbers(torch, mode, beyond):
    grid = [float("nan"), float("inf"), -float("inf"), 1e30, 0.0, 0.0]
    got, want = (
        T.nn.functional.grid_sample(
            T.ones(1, 1, 3, 3), T.tensor(grid).view(1, 1, 3, 2), mode, beyond, False
        ).tolist()
        for T in (taeda, torch)
    )
    assert got == want


def test_large_images_keep_places_in_float32(torch):
    """Places are computed in double: far from 0, float ones lose their fractions."""
    rng = np.random.default_rng(0)
    image = rng.standard_normal((1, 1, 300, 400))
    grid = rng.uniform(-1, 1, (1, 50, 50, 2)).astype("float32")
    kinds = ("float64", "float32")
    exact, got = (
        taeda.nn.functional.grid_sample(
            *(taeda.from_numpy(a.astype(kind)) for a in (image, grid)),
            align_corners=False,
        ).numpy()
        for kind in kinds
    )
    inexact = image.astype("float32") - image
    assert np.abs(got - exact).max() < 4e-7 + np.abs(inexact).max()


def test_errors():
    sample = taeda.grid_sampler
    x, grid = taeda.ones(1, 1, 2, 2), taeda.ones(1, 2, 2, 2)
    with pytest.raises(RuntimeError, match="same batch size"):
        sample(x, grid.expand(2, 2, 2, 2), 0, 0, False)
    with pytest.raises(RuntimeError, match="size 2 in last dimension"):
        sample(x, taeda.ones(1, 2, 2, 3), 0, 0, False)
    with pytest.raises(RuntimeError, match="only supports 4D input"):
        sample(taeda.ones(1, 1, 2, 2, 2), taeda.ones(1, 2, 2, 2, 3), 2, 0, False)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("d", [2, 3])
def test_16_bits_are_computed_in_float(dtype, d):
    taeda.manual_seed(0)
    kind = getattr(taeda, dtype)
    image = taeda.randn(2, 3, *(5, 4, 6)[:d]).to(kind)
    grid = (taeda.rand(2, *(3, 4, 2)[:d], d) * 2 - 1).to(kind)

    def results(to):
        x, places = (t.to(to).requires_grad_() for t in (image, grid))
        out = taeda.nn.functional.grid_sample(x, places, align_corners=False)
        slopes = taeda.autograd.grad(out, (x, places), taeda.ones_like(out))
        return [t.detach() for t in (out, *slopes)]

    for got, exact in zip(results(kind), results(taeda.float32), strict=True):
        assert got.dtype == kind
        assert taeda.equal(got, exact.to(kind))
