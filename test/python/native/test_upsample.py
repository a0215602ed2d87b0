"""Resized planes: every mode, by sizes and by factors, up and down."""

from __future__ import annotations

import numpy as np
import pytest
import taeda
from tolerance import rounding

PLANES = {1: (7,), 2: (7, 5), 3: (4, 5, 3)}
MODES = [
    *(("nearest", d, {}) for d in (1, 2, 3)),
    *(("nearest-exact", d, {}) for d in (1, 2, 3)),
    *(
        (mode, d, {"align_corners": corners})
        for mode, d in (
            ("linear", 1),
            ("bilinear", 2),
            ("bicubic", 2),
            ("trilinear", 3),
        )
        for corners in (False, True)
    ),
    *((mode, 2, {"antialias": True}) for mode in ("bilinear", "bicubic", "lanczos")),
]
WAYS = [{"scale_factor": 1.7}, {"scale_factor": 0.6}, {"scale_factor": 2}, {"size": 4}]


@pytest.mark.parametrize("way", WAYS, ids=str)
@pytest.mark.parametrize(("mode", "d", "options"), MODES, ids=str)
def test_modes(same, values, mode, d, options, way):
    def program(T, x):
        return T.nn.functional.interpolate(x, mode=mode, **way, **options)

    same(program, values(2, 3, *PLANES[d]))


@pytest.mark.parametrize("mode", ["nearest", "bilinear", "bicubic"])
def test_channels_last_stays(torch, values, mode):
    results = []
    for T in (torch, taeda):
        x = T.from_numpy(values(2, 3, 6, 5)).to(memory_format=T.channels_last)
        out = T.nn.functional.interpolate(x, size=(9, 4), mode=mode)
        results.append((out.stride(), out.numpy()))
    assert results[0][0] == results[1][0]
    np.testing.assert_allclose(
        results[1][1], results[0][1], rtol=0, atol=rounding("float64", 64)
    )


@pytest.mark.parametrize("antialias", [False, True])
@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
def test_bytes_are_rounded_alike(torch, mode, antialias):
    image = np.random.default_rng(0).integers(0, 256, (1, 3, 17, 23), dtype=np.uint8)
    got, want = (
        T.nn.functional.interpolate(
            T.from_numpy(image.copy()), size=(11, 30), mode=mode, antialias=antialias
        ).numpy()
        for T in (taeda, torch)
    )
    np.testing.assert_array_equal(got, want)


def test_second_derivative():
    x = taeda.randn(1, 2, 4, 3, dtype=taeda.float64, requires_grad=True)

    def resize(t):
        return taeda.nn.functional.interpolate(t, size=(6, 5), mode="bicubic") ** 2

    assert taeda.autograd.gradcheck(resize, (x,))
    assert taeda.autograd.gradgradcheck(resize, (x,))


def test_errors():
    f = taeda._C._nn.upsample_nearest2d
    x = taeda.ones(1, 1, 2, 2)
    with pytest.raises(RuntimeError, match="exactly one of output_size"):
        f(x, [2, 2], [1.0, 1.0])
    with pytest.raises(RuntimeError, match="greater than 0"):
        f(x, [0, 2])
    with pytest.raises(NotImplementedError, match="not implemented for 'Long'"):
        f(x.long(), [3, 3])


@pytest.mark.parametrize("factor", [1e-10, 1e-30, 1e-200])
@pytest.mark.parametrize("line", ["upsample_nearest1d", "_upsample_nearest_exact1d"])
def test_tiny_factors_lead_to_the_last_element(line: str, factor: float) -> None:
    x = taeda.arange(8.0).view(1, 2, 4)
    found = getattr(taeda.ops.aten, line)(x, [3], factor)
    assert found[0, :, 1:].tolist() == [[3.0, 3.0], [7.0, 7.0]]
    linear = taeda.ops.aten.upsample_linear1d(x, [3], False, factor)
    assert linear.tolist() == [[[3.0] * 3, [7.0] * 3]]
    cubic = taeda.ops.aten.upsample_bicubic2d(x[None], [2, 2], False, 1.0, factor)
    assert cubic.isfinite().all()
