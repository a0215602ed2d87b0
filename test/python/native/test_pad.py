"""Frames around tensors, and shuffled grids."""

from __future__ import annotations

import math
import random

import pytest
import taeda

DTYPES = ("float32", "int64", "uint8", "bool", "float16", "complex128")


def frames(count):
    """Shapes with a frame that leaves no size negative."""
    draw = random.Random(3)
    while count > 0:
        shape = [draw.randint(0, 6) for _ in range(draw.randint(1, 5))]
        pad = [draw.randint(-3, 4) for _ in range(2 * draw.randint(0, len(shape)))]
        kept = [
            size + min(pad[2 * i], 0) + min(pad[2 * i + 1], 0)
            for i, size in enumerate(shape[::-1][: len(pad) // 2])
        ]
        if min(kept, default=0) >= 0:
            yield shape, pad, draw.choice(DTYPES), draw.random() < 0.3
            count -= 1


def test_constant_frames_of_random_shapes(torch):
    import taeda

    checked = 0
    for shape, pad, dtype, turned in frames(500):
        results = []
        for T in (taeda, torch):
            x = (T.arange(math.prod(shape)) % 7).reshape(shape).to(getattr(T, dtype))
            if turned:
                x = x.transpose(0, -1).contiguous().transpose(0, -1)
            results.append(T.constant_pad_nd(x, pad, 1))
        ours, theirs = results
        assert ours.tolist() == theirs.tolist(), (shape, pad, dtype, turned)
        if theirs.numel():
            assert ours.stride() == theirs.stride(), (shape, pad, turned)
        checked += 1
    assert checked == 500


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


@pytest.mark.parametrize("mode", ["constant", "reflect", "replicate", "circular"])
def test_no_frame_is_a_copy(mode):
    x = taeda.zeros(1, 2, 3, 3)
    taeda.nn.functional.pad(x, (0, 0, 0, 0), mode=mode).fill_(1)
    assert x.count_nonzero() == 0


@pytest.mark.parametrize("mode", ["reflect", "replicate"])
def test_frames_keep_channels_last(mode):
    x = taeda.zeros(2, 3, 4, 5).to(memory_format=taeda.channels_last)
    out = taeda.nn.functional.pad(x, (1, 1, 1, 1), mode=mode)
    assert out.is_contiguous(memory_format=taeda.channels_last)
