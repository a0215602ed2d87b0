"""Writes to places that tensors name, many of them several times: what the CPU gives,
and the same bits each time."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import taeda

Tensor = taeda.Tensor

DTYPES = [taeda.float32, taeda.bfloat16, taeda.float64, taeda.int64]
# One place is named by three chunks of 64, others by one, by a few, by none.
PLACES = taeda.cat([taeda.full((150,), 3), taeda.arange(130) ** 2 % 11 - 6])
COUNT, ROWS = PLACES.numel(), 8


def drawn(shape: tuple[int, ...], dtype: taeda.dtype) -> Tensor:
    taeda.manual_seed(sum(shape))
    if not dtype.is_floating_point:
        return taeda.randint(-9, 9, shape, dtype=dtype)
    return taeda.randn(shape).to(dtype)


def same(call: Callable[..., Tensor], *given: Tensor) -> None:
    """What the CPU gives, in float64 where numbers are floating."""
    floating = given[0].is_floating_point()
    want = call(*[t.double() if t.is_floating_point() else t for t in given])
    got = call(*[t.cuda() for t in given])
    assert got.dtype is given[0].dtype and got.is_contiguous()
    bound = {taeda.float32: 1e-5, taeda.bfloat16: 1e-2}.get(got.dtype, 1e-12)
    taeda.testing.assert_close(
        got.cpu().to(want.dtype), want, rtol=bound * floating, atol=bound * floating
    )
    again = call(*[t.cuda() for t in given])
    assert taeda.equal(again.nan_to_num(9).cpu(), got.nan_to_num(9).cpu())


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_sums(dtype: taeda.dtype) -> None:
    at = PLACES % ROWS
    rows = drawn((COUNT, 5), dtype)
    same(
        lambda t, at, x: t.index_add(0, at, x, alpha=2), drawn((8, 5), dtype), at, rows
    )
    same(
        lambda t, at, x: t.scatter_add(0, at, x),
        drawn((8, 3), dtype),
        taeda.stack([at, at.flip(0)], 1),
        rows,
    )
    same(
        lambda t, at, x: t.index_put((at,), x, accumulate=True),
        drawn((8, 5), dtype),
        PLACES.clamp(-8, 7),
        rows,
    )


def test_sums_along_other_dims() -> None:
    at = PLACES % ROWS
    x = drawn((2, COUNT, 3), taeda.float32)
    same(lambda t, at, x: t.index_add(1, at, x), drawn((2, 8, 3), x.dtype), at, x)
    same(
        lambda t, at, x: t.index_add(1, at, x.transpose(0, 2)),
        drawn((3, 8, 2), x.dtype),
        at,
        x,
    )
    same(
        lambda t, at, x: t.scatter_add(1, at.expand(2, 3, -1).transpose(1, 2), x),
        drawn((2, 8, 3), x.dtype),
        at,
        x,
    )
    same(
        lambda t, at, x: t.put(at, x, accumulate=True),
        drawn((2, 4), x.dtype),
        at,
        x[0, :, 0],
    )


@pytest.mark.parametrize("include_self", [True, False])
def test_other_ways_to_join(include_self: bool) -> None:
    at = (PLACES % ROWS).view(-1, 1).expand(-1, 2)
    x = drawn((COUNT, 2), taeda.float32).sign() * 1.01
    for reduce in ("sum", "prod", "mean", "amax", "amin"):
        same(
            lambda t, at, x, reduce=reduce: t.scatter_reduce(
                0, at, x, reduce, include_self=include_self
            ),
            drawn((9, 2), taeda.float32),
            at,
            x,
        )
    same(
        lambda t, at, x: t.index_reduce(0, at, x, "mean", include_self=include_self),
        drawn((9, 2), taeda.float32),
        at[:, 0],
        x,
    )


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_rows_and_elements_that_are_chosen(dtype: taeda.dtype) -> None:
    at = PLACES % ROWS
    # Words of 16 bytes, of an element, and rows that do not lie behind each other.
    for width in (16, 3):
        x = drawn((2, 8, width), dtype)
        same(lambda t, at: t.index_select(1, at), x, at)
        same(lambda t, at: t.index_select(0, at % 2), x[:, :, 1:], at)
        same(lambda t, at: t[0][at.int()], x, at)
    same(lambda t, at: t.gather(1, at.expand(2, 3, -1).mT.contiguous()), x, at)
    same(lambda t, at: taeda.nn.functional.embedding(at.view(2, -1), t[0]), x, at)


def test_the_last_one_stays() -> None:
    at = PLACES % ROWS
    x = drawn((COUNT, 5), taeda.float32)
    same(lambda t, at, x: t.index_copy(0, at, x), drawn((8, 5), x.dtype), at, x)
    wide = at.view(-1, 1).expand(-1, 5)
    same(lambda t, at, x: t.scatter(0, at, x), drawn((8, 5), x.dtype), wide, x)
    same(lambda t, at: t.scatter(0, at, 7.0), drawn((9, 5), x.dtype), wide)


def test_a_place_outside_ends_the_call() -> None:
    at = PLACES % ROWS
    at[100] = 70
    there = taeda.zeros(8, 5).cuda()
    for call in (
        lambda: there.index_add(0, at.cuda(), taeda.ones(COUNT, 5).cuda()),
        lambda: there.scatter_add(
            0, at.view(-1, 1).cuda(), taeda.ones(COUNT, 1).cuda()
        ),
        lambda: there.scatter(0, at.view(-1, 1).cuda(), 1.0),
    ):
        with pytest.raises(RuntimeError, match="index 70 is out of bounds"):
            call()
            taeda.cuda.synchronize()
    assert not there.any()
