"""Poolings are loops over windows; loops read slices where they lie."""

from __future__ import annotations

import pytest
import taeda
import taeda.nn.functional as F
from test_loops import assert_close, compiled, regions

POOLINGS = {
    "two by two": lambda pool, x: pool(x, 2),
    "overlapping": lambda pool, x: pool(x, 3, 1),
    "with gaps": lambda pool, x: pool(x, (1, 2), (3, 4)),
    "wide steps": lambda pool, x: pool(x, 2, 7),
    "one element": lambda pool, x: pool(x, 1),
}
PADDED = {
    "padded": lambda pool, x: pool(x, 3, 2, 1),
    "padded, each element": lambda pool, x: pool(x, 3, 1, 1),
    "wide": lambda pool, x: pool(x, 5, 1, 2),
    "half of a window outside": lambda pool, x: pool(x, (2, 4), (2, 1), (1, 2)),
    "a last window in part": lambda pool, x: pool(x, 2, ceil_mode=True),
    "both": lambda pool, x: pool(x, 3, 2, 1, ceil_mode=True),
}
POOLS = {"avg": F.avg_pool2d, "max": F.max_pool2d}


def image(dtype, channels_last: bool = False) -> taeda.Tensor:
    x = (taeda.randn(2, 5, 9, 34) * 8).to(dtype)
    if not channels_last:
        return x
    return x.contiguous(memory_format=taeda.channels_last)


def check(program, x, loops: int) -> None:
    function = compiled(program)
    assert_close(function(x), program(x), f"{x.dtype} {x.stride()}")
    assert regions(function) == loops


@pytest.mark.parametrize("channels_last", [False, True])
@pytest.mark.parametrize("dtype", [taeda.float32, taeda.bfloat16, taeda.int64], ids=str)
@pytest.mark.parametrize("windows", POOLINGS)
@pytest.mark.parametrize("pool", POOLS)
def test_a_pooling_alone_is_a_loop(pool, windows, dtype, channels_last):
    def program(x):
        return (POOLINGS[windows](POOLS[pool], x),)

    # Steps of seven elements are none that vectors are made of, but for channels.
    jumps = windows == "wide steps" and not channels_last
    one = windows == "one element"
    check(program, image(dtype, channels_last), 0 if jumps or one else 1)


@pytest.mark.parametrize("channels_last", [False, True])
@pytest.mark.parametrize("dtype", [taeda.float32, taeda.bfloat16, taeda.int64], ids=str)
@pytest.mark.parametrize("windows", PADDED)
@pytest.mark.parametrize("pool", POOLS)
def test_windows_that_leave_the_image_are_loops(pool, windows, dtype, channels_last):
    def program(x):
        return (PADDED[windows](POOLS[pool], x),)

    # Means over parts of windows have counts of their own, which are calls.
    counts = pool == "avg" and windows in ("a last window in part", "both")
    function = compiled(program)
    x = image(dtype, channels_last)
    assert_close(function(x), program(x), f"{x.dtype} {x.stride()}")
    assert regions(function) == 1 or counts


def test_the_edges_of_memory():
    """What is read and not chosen is the tensor's, too; beside it are NaN here."""
    memory = taeda.full((40 * 8,), float("nan"))
    for rows in (1, 2, 5):
        x = memory[100 : 100 + rows * 20].view(1, 1, rows, 20)
        x.copy_(taeda.randn(x.shape))
        check(lambda x: (F.max_pool2d(x, 3, 2, 1),), x, 1)
        check(lambda x: (F.avg_pool2d(x, 3, 1, 1),), x, 1)


def test_places_of_maxima():
    def program(x):
        return F.max_pool2d(x, 2, return_indices=True)

    x = image(taeda.float32)
    x[:, :, ::3, ::5] = float("nan")
    x[:, :, ::2, ::4] = 1.0
    check(program, x, 1)
    # Kernels are quicker where places are in a frame.
    check(lambda x: F.max_pool2d(x, 3, 2, 1, return_indices=True), x, 0)


def test_of_several_nan_and_equal_elements():
    x = image(taeda.float32)
    x[:, :, ::3, ::5] = float("nan")
    x[:, :, ::2, ::4] = 1.0
    x[0, 0] = -float("inf")
    check(lambda x: (F.max_pool2d(x, 2), F.max_pool2d(x, (3, 2), (2, 1))), x, 2)


def test_dilated_windows():
    check(lambda x: (F.max_pool2d(x, 3, 2, dilation=2),), image(taeda.float32), 1)


def test_divisors():
    check(lambda x: (F.avg_pool2d(x, 2, divisor_override=3),), image(taeda.float32), 1)


def test_neighbours_join_a_pooling():
    def program(x):
        return (F.avg_pool2d(x, 2).relu() * 2 + F.max_pool2d(x, 2),)

    check(program, image(taeda.float32), 1)


def test_what_a_loop_makes_is_pooled_by_another():
    def program(x):
        return (F.avg_pool2d((x * 2 + 1).relu(), 2),)

    check(program, image(taeda.float32), 2)


@pytest.mark.parametrize("pool", POOLS)
def test_gradients_of_poolings(pool):
    def program(x):
        return (POOLS[pool](x * 2, 2),)

    x = image(taeda.float32).requires_grad_()
    function = compiled(program)
    out, own = function(x)[0], program(x)[0]
    assert_close([out.detach()], [own.detach()], pool)
    seed = taeda.randn_like(own)
    got = taeda.autograd.grad(out, x, seed)
    assert_close(got, taeda.autograd.grad(own, x, seed), pool)


@pytest.mark.parametrize("step", [2, 3, 4])
def test_short_steps_are_read_in_a_loop(step):
    def program(x):
        return (x[:, :, :, ::step] * 2 + x[:, :, :, step - 1 :: step],)

    x = taeda.randn(2, 5, 9, 12 * step)
    check(program, x, 1)


@pytest.mark.parametrize("dims", [[3, 5], [2, 4], [1, 3, 5]])
def test_sums_over_short_dims(dims):
    def program(x):
        return (x.sum(dims) * 2, x.amax(dims) + 1)

    x = taeda.randn(3, 2, 5, 3, 21, 2)
    function = compiled(program)
    assert_close(function(x), program(x), str(dims))
