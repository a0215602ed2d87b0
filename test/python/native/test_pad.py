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


def borders(count):
    """Shapes with borders that reflection takes, cut at times."""
    draw = random.Random(5)
    while count > 0:
        dims = draw.randint(1, 3)
        batch = [draw.randint(1, 3) for _ in range(draw.randint(1, 2))]
        sizes = [draw.randint(1, 6) for _ in range(dims)]
        pad = [draw.randint(-3, n - 1) for n in sizes[::-1] for _ in range(2)]
        wide = [n + pad[2 * i] + pad[2 * i + 1] for i, n in enumerate(sizes[::-1])]
        if min(wide) >= 1:
            yield dims, [*batch, *sizes], pad
            count -= 1


@pytest.mark.parametrize("name", ["reflection", "replication"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128"])
def test_borders_of_random_shapes(torch, name, dtype):
    import taeda

    last = {4: "channels_last", 5: "channels_last_3d"}
    for index, (dims, shape, pad) in enumerate(borders(60)):
        results = []
        for T in (taeda, torch):
            x = T.arange(math.prod(shape)).reshape(shape).to(getattr(T, dtype))
            if len(shape) in last and index % 2:
                order = getattr(T, last[len(shape)])
                x = x.contiguous(memory_format=order)
            x.requires_grad_()
            call = getattr(T._C._nn, f"{name}_pad{dims}d")
            out = call(x.conj() if x.is_complex() else x, pad)
            grad = T.arange(out.numel()).reshape(out.shape).to(out.dtype)
            out.backward(grad)
            results.append((out.tolist(), out.stride(), x.grad.tolist()))
        assert results[0] == results[1], (dims, shape, pad)


@pytest.mark.parametrize("mode", ["reflect", "replicate"])
def test_borders_have_second_derivatives_and_batches(mode):
    x = taeda.randn(2, 3, 4, 5, dtype=taeda.float64, requires_grad=True)

    def call(t):
        return taeda.nn.functional.pad(t, (2, 1, 1, 2), mode=mode)

    assert taeda.autograd.gradgradcheck(call, (x,))
    many = taeda.randn(6, 2, 3, 4, 5)
    each = taeda.stack([call(t) for t in many])
    assert taeda.equal(taeda.vmap(call)(many), each)
    out = taeda.empty(2, 3, 7, 16)[..., ::2]
    kind = {"reflect": "reflection", "replicate": "replication"}[mode]
    getattr(taeda._C._nn, f"{kind}_pad2d")(many[0], (2, 1, 1, 2), out=out)
    assert taeda.equal(out, each[0])
