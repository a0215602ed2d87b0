"""Copies that keep bits: in wider words, and turned through tiles in shared memory."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import taeda

Tensor = taeda.Tensor

# Of 1, 2, 4, 8 and 16 bytes.
DTYPES = [taeda.bool, taeda.bfloat16, taeda.float32, taeda.int64, taeda.complex128]


def drawn(shape: tuple[int, ...], dtype: taeda.dtype) -> Tensor:
    taeda.manual_seed(len(shape))
    low = 0 if dtype is taeda.bool else -99
    return taeda.randint(low, 99, shape).to(dtype)


def same(view: Callable[[Tensor], Tensor], x: Tensor) -> None:
    """A copy of a view, and a copy into one."""
    want = view(x)
    got = view(x.cuda()).clone(memory_format=taeda.contiguous_format)
    assert got.is_contiguous() and taeda.equal(got.cpu(), want)
    back = taeda.zeros_like(x).cuda()
    view(back).copy_(got)
    expected = taeda.zeros_like(x)
    view(expected).copy_(want)
    assert taeda.equal(back.cpu(), expected)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_turned(dtype: taeda.dtype) -> None:
    # Whole packs on both sides, and parts of tiles in both dims.
    same(lambda x: x.t(), drawn((80, 144), dtype))
    same(lambda x: x.t(), drawn((67, 33), dtype))


@pytest.mark.parametrize("dtype", [taeda.float32, taeda.bfloat16], ids=str)
def test_turned_among_other_dims(dtype: taeda.dtype) -> None:
    x = drawn((2, 3, 24, 40), dtype)
    same(lambda x: x.transpose(-1, -2), x)
    same(lambda x: x.permute(0, 2, 3, 1), x)
    same(lambda x: x.transpose(0, 3), x)
    same(lambda x: x[:, :, 1:, 3:].transpose(-1, -2), x)
    same(lambda x: x[..., ::2].transpose(-1, -2), x)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_words_of_several_elements(dtype: taeda.dtype) -> None:
    x = drawn((3, 5, 4, 16), dtype)
    same(lambda x: x.transpose(1, 2), x)
    # Words of half the size, and single elements.
    same(lambda x: x[..., 8:].transpose(1, 2), x)
    same(lambda x: x[..., 3:10], x)
    same(lambda x: x[:, 1:, :, 2:6], x)


def test_rows_that_are_repeated() -> None:
    x = drawn((4, 1, 32), taeda.float32)
    assert taeda.equal(x.cuda().expand(4, 7, 32).contiguous().cpu(), x.expand(4, 7, 32))
    wide = drawn((1, 40, 1), taeda.float32)
    got = wide.cuda().expand(20, 40, 24).transpose(0, 1).contiguous().cpu()
    assert taeda.equal(got, wide.expand(20, 40, 24).transpose(0, 1))


def test_layouts_of_images() -> None:
    x = drawn((2, 20, 9, 7), taeda.float32)
    last = x.cuda().contiguous(memory_format=taeda.channels_last)
    assert last.stride() == (1260, 1, 140, 20)
    assert taeda.equal(last.cpu(), x)
    assert taeda.equal(last.contiguous().cpu(), x)
