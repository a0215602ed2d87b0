"""Circular frames and shuffled grids."""

from __future__ import annotations

import pytest


@pytest.mark.parametrize("pad", [(1, 2), (2, -1), (-1, 2), (-1, -1)])
@pytest.mark.parametrize("shape", [(3, 4), (2, 3, 4)])
def test_circular_pad_repeats_what_is_kept(same, values, shape, pad):
    same(lambda T, x: T.nn.functional.pad(x, pad, mode="circular"), values(*shape))


@pytest.mark.parametrize("name", ["pixel_shuffle", "pixel_unshuffle"])
def test_shuffled_pixels_are_a_copy(torch, name):
    import taeda

    for T in (torch, taeda):
        x = T.ones(1, 1, 2, 2)
        assert getattr(T, name)(x, 1).data_ptr() != x.data_ptr()
