"""Index maps are loads of loops: in the place that the record's formula says."""

from __future__ import annotations

import pytest
import taeda
import taeda.nn.functional as F
from test_loops import assert_close, compiled, regions

DTYPES = [taeda.float32, taeda.bfloat16, taeda.float64, taeda.int64, taeda.uint8]

# Each map beside a neighbour: one loop, and what it reads.
MAPS = {
    "pad": lambda x: F.pad(x, (1, 2, 3, 1)) * 2,
    "pad with a number": lambda x: F.pad(x, (2, 0, 0, 0, 1, 3), value=3) * 2,
    "pad and crop": lambda x: F.pad(x, (-2, 1, 3, -1)) * 2,
    "crop": lambda x: F.pad(x, (-2, -1)) * 2,
    "tril": lambda x: x.tril() * 2,
    "triu of what is made": lambda x: (x * 2).triu(1) + x,
    "flip": lambda x: x.flip(0, 1) * 2,
    "roll by whole dims": lambda x: x.roll(0, 1) * 2,
    "repeat rows": lambda x: x.repeat(1, 3, 1, 1) * 2,
    "repeat_interleave": lambda x: x.repeat_interleave(2, 1) * 2,
    "pixel_unshuffle": lambda x: F.pixel_unshuffle(x, 4)[:, :7] * 2,
    "channel_shuffle": lambda x: F.channel_shuffle(x, 2) * 2,
    "pixel_shuffle": lambda x: F.pixel_shuffle(x, 2) * 2,
    "repeat_interleave of rows": lambda x: x.repeat_interleave(3, -1) * 2,
}
# Whose loops would jump through memory, or whose index is not linear.
CALLS = {
    "flip of rows": lambda x: x.flip(-1) * 2,
    "roll": lambda x: x.roll(1, 1) * 2,
    "nearest by other factors": lambda x: F.interpolate(x, scale_factor=5) * 2,
    "replicate": lambda x: F.pad(x, (1, 1, 0, 2), mode="replicate") * 2,
    "reflect": lambda x: F.pad(x, (1, 1, 0, 2), mode="reflect") * 2,
}


def image(dtype) -> taeda.Tensor:
    return (taeda.randn(2, 4, 12, 40) * 8).abs().to(dtype)


def check(program, *inputs, loops: int | None = None) -> None:
    def listed(*tensors):
        return (program(*tensors),)

    function = compiled(listed)
    # Twice: programs keep nothing of a call.
    for _ in range(2):
        assert_close(function(*inputs), listed(*inputs), str([x.dtype for x in inputs]))
    if loops is not None:
        assert regions(function) == loops


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", MAPS)
def test_a_map_and_its_neighbour_are_a_loop(name, dtype):
    check(MAPS[name], image(dtype), loops=1)


@pytest.mark.parametrize("name", CALLS)
def test_maps_that_loops_would_read_badly_are_calls(name):
    check(CALLS[name], image(taeda.float32), loops=0)


@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("padding", [0, 1, 2])
@pytest.mark.parametrize("dtype", [taeda.float32, taeda.bfloat16], ids=str)
def test_windows_as_columns_are_a_loop_by_themselves(dtype, padding, stride):
    check(lambda x: F.unfold(x, 3, 1, padding, stride), image(dtype), loops=1)


# Results that lie between each other: Note [Passes], woven.
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("factor", [2, 3, 4])
def test_finer_grids_are_a_loop_by_themselves(dtype, factor):
    x = taeda.arange(factor**2 * 5 * 17).view(1, factor**2, 5, 17).to(dtype)
    fine = taeda.ones(1, 1, 5 * factor, 17 * factor, dtype=dtype)
    check(lambda x: F.pixel_shuffle(x, factor), x, loops=1)
    check(lambda x, y: F.pixel_shuffle(x, factor) * 2 + y, x, fine, loops=1)
    check(lambda x, y: F.pixel_shuffle(x, factor) * 2 + y, x, fine.mT.contiguous().mT)
    check(lambda x: x.repeat_interleave(factor, -1) * 2, x, loops=1)
    if taeda.is_floating_point(x):
        check(lambda x: F.interpolate(x, scale_factor=2), x, loops=1)


def test_finer_grids_leave_their_neighbours_a_loop():
    x = taeda.randn(2, 4, 12, 40)
    check(lambda x: (F.pixel_shuffle(x, 2).relu() * 2).softmax(-1), x, loops=2)
    check(lambda x: F.interpolate(x, scale_factor=2).relu().softmax(1), x, loops=2)
    check(lambda x: F.layer_norm(F.pixel_shuffle(x, 2).relu(), (80,)), x, loops=2)
    check(lambda x: (F.pixel_shuffle(x, 2) * 2).sum((2, 3)), x, loops=1)
    check(lambda x: F.pad(F.pixel_shuffle(x, 2).relu(), (1, 1)) * 2, x)


def test_finer_grids_of_symbols():
    def program(x):
        return F.pixel_shuffle(x, 2).relu() + 1, x.repeat_interleave(3, -1) * 2

    function = taeda.compile(program, dynamic=True, options={"blocking": True})
    for rows in (9, 12, 30):
        x = taeda.randn(rows, 4, rows, rows + 3)
        for got, expected in zip(function(x), program(x), strict=True):
            assert taeda.equal(got, expected)


def test_a_map_reads_strided_tensors_where_they_lie():
    x = taeda.randn(3, 40, 30, 4)
    check(lambda x: F.pad(x, (1, 2, 3, 1)) * 2, x.permute(0, 3, 2, 1))
    check(lambda x: x.tril() * 2, x[..., 1].transpose(1, 2))
    check(lambda x: F.pad(x, (0, 5), value=1.5) * 2, x[:, 3:37, :, 2])


@pytest.mark.parametrize("dtype", [taeda.int64, taeda.int32, taeda.uint8], ids=str)
def test_sequences_and_tests_of_places(dtype):
    x = image(dtype)[0, 0]
    check(lambda x: x + taeda.arange(40, dtype=dtype) * 2, x, loops=1)
    check(lambda x: x + taeda.arange(3, 83, 2, dtype=dtype), x, loops=1)
    check(lambda x: x * taeda.eye(12, 40, dtype=dtype), x, loops=1)
    check(lambda x: x * taeda.zeros(40, dtype=dtype) + taeda.ones(40, dtype=dtype), x)


@pytest.mark.parametrize(
    "program",
    [
        lambda x: F.pad(x, (1, 2), value=300) * 2,
        lambda x: taeda.full((2, 20), 300, dtype=taeda.uint8) + x,
    ],
)
def test_numbers_that_the_dtype_does_not_have_are_refused(program):
    x = taeda.ones(2, 20, dtype=taeda.uint8)
    for function in (program, taeda.compile(program, options={"blocking": True})):
        with pytest.raises(RuntimeError, match="without overflow"):
            function(x)


def test_a_causal_mask_is_made_where_it_is_used():
    def program(x):
        mask = taeda.ones(40, 40, dtype=taeda.bool).tril()
        return x.masked_fill(~mask, float("-inf")).exp()

    check(program, taeda.randn(2, 40, 40), loops=1)


def test_formulas_compute_with_what_they_read():
    check(lambda x: F.glu(x) * 2, taeda.randn(6, 80), loops=1)
    check(lambda x: taeda.outer(x, x) + 1, taeda.randn(50), loops=1)
    check(lambda x: taeda.cross(x, x + 1, dim=0) * 2, taeda.randn(3, 40))
    check(lambda x: F.one_hot(x, 40) * 3, taeda.arange(12), loops=1)


def test_reductions_of_maps():
    check(lambda x: F.pad(x, (1, 1)).sum(-1) * 2, taeda.randn(30, 50))
    check(lambda x: (x.tril() * 2).sum(0), taeda.randn(50, 50))
    check(lambda x: F.pad(x, (1, 3), value=-2.0).softmax(-1), taeda.randn(30, 50))


def test_sizes_that_are_symbols():
    function = taeda.compile(
        lambda x: F.pad(x, (1, 2)).relu() + 1, dynamic=True, options={"blocking": True}
    )
    for rows in (3, 7, 30):
        x = taeda.randn(rows, 40)
        assert taeda.equal(function(x), F.pad(x, (1, 2)).relu() + 1)
    # A bound is a number.
    framed = taeda.compile(
        lambda x: F.pad(x, (1, 2, 1, -1)).relu() + 1,
        dynamic=True,
        options={"blocking": True},
    )
    for rows in (3, 7, 30):
        x = taeda.randn(rows, rows + 8)
        assert taeda.equal(framed(x), F.pad(x, (1, 2, 1, -1)).relu() + 1)


def test_gradients_through_maps():
    def loss(x):
        framed = F.pad(x.sin(), (2, 1, 1, 0))
        return (F.unfold(framed, 3).exp() * 0.1).sum() + framed.tril().cos().sum()

    expected, x = taeda.randn(2, 3, 9, 20).requires_grad_(), None
    x = expected.detach().clone().requires_grad_()
    loss(expected).backward()
    taeda.compile(loss, options={"blocking": True})(x).backward()
    assert taeda.allclose(x.grad, expected.grad, rtol=1e-5, atol=1e-6)


def test_axes_that_other_calls_part_by_symbols():
    """A reshape parts the flipped rows by a size that is a symbol."""

    def program(x):
        rows = taeda.outer((x * 2).reshape(-1), x[0, :3]).flip(-1, 0)
        return rows.cos().view(*x.shape, 3) + x.sin()[..., None]

    function = taeda.compile(program, dynamic=True, options={"blocking": True})
    for rows in (3, 5, 8):
        x = taeda.randn(rows, rows + 3)
        assert taeda.allclose(function(x), program(x), rtol=1e-5, atol=1e-6)
