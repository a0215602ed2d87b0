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


def test_copies_for_devices_and_back() -> None:
    from taeda.cuda import comm

    x = taeda.arange(12.0).reshape(6, 2).requires_grad_()
    copies = comm.broadcast(x, [0, 1])
    assert [str(c.device) for c in copies] == ["cuda:0", "cuda:1"]
    total = comm.reduce_add(copies, 1)
    assert str(total.device) == "cuda:1" and taeda.equal(total.cpu(), 2 * x)
    parts = comm.scatter(x, [0, 1], [4, 2])
    assert [p.shape[0] for p in parts] == [4, 2]
    joined = comm.gather(parts, 0, -1)
    assert taeda.equal(joined, x)
    (joined.sum() + total.cpu().sum()).backward()
    assert taeda.equal(x.grad, taeda.full_like(x, 3))


def test_copies_into_given_tensors() -> None:
    from taeda.cuda import comm

    x = taeda.arange(6.0)
    out = [taeda.zeros(2, device="cuda:0"), taeda.zeros(4, device="cuda:1")]
    assert comm.scatter(x, out=out)[1] is out[1]
    assert out[1].tolist() == [2, 3, 4, 5]
    assert comm.gather(out, out=taeda.zeros(6, device="cuda:1")).tolist() == x.tolist()
    for call in (comm.broadcast, comm.scatter):
        with pytest.raises(RuntimeError, match="Exactly one of"):
            call(x)
    with pytest.raises(ValueError, match="invalid size"):
        comm.reduce_add(out, 0)
    coalesced = comm.broadcast_coalesced([x, 2 * x], [0, 1])
    sums = comm.reduce_add_coalesced(coalesced, 0)
    assert taeda.equal(sums[0].cpu(), 2 * x) and taeda.equal(sums[1].cpu(), 4 * x)


def test_functions_by_pytorchs_names() -> None:
    from taeda.nn.parallel import _functions as functions

    x = taeda.arange(8.0)
    parts = functions.Scatter.apply([0, 1], None, 0, x)
    assert [p.tolist() for p in parts] == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert functions.Gather.apply(-1, 0, *parts).tolist() == x.tolist()
    copies = functions.Broadcast.apply([0, 1], x, 2 * x)
    assert [str(c.device)[-1] for c in copies] == ["0", "0", "1", "1"]
    first, second = functions.ReduceAddCoalesced.apply(0, 2, *copies)
    assert taeda.equal(first.cpu(), 2 * x) and taeda.equal(second.cpu(), 4 * x)
    ones = [p.sum() for p in parts]
    assert functions.Gather.apply(-1, 0, *ones).tolist() == [6, 22]
