"""The order of dims in memory: of results, of resized `out`, of what overlaps."""

from __future__ import annotations

import pytest
import taeda
import torch


def test_dims_without_a_common_operand_are_ordered_through_the_others() -> None:
    low = taeda.zeros(16).as_strided((4, 4), (1, 4))
    high = taeda.ones(128).as_strided((4, 4, 1), (2, 8, 32))
    out = taeda.clamp(taeda.tensor(0.5), low, high)
    assert out.stride() == (1, 16, 4)


def test_of_equal_strides_the_shorter_dim_is_inner() -> None:
    x = taeda.arange(24.0).as_strided((5, 6, 2), (1, 1, 7))
    for y in (taeda.exp(x), taeda.square(x), x.int(), taeda.empty_like(x)):
        assert y.stride() == (1, 5, 30)


def test_a_resized_out_has_the_memory_order_of_the_operands() -> None:
    x = taeda.rand(3, 4).t()
    for op in (taeda.sin, taeda.square, taeda.logical_not):
        out = taeda.empty(0)
        op(x, out=out)
        assert out.stride() == (1, 4)
    kept = taeda.empty(4, 3)
    taeda.sin(x, out=kept)
    assert kept.stride() == (3, 1)


def test_masked_fill_is_row_major() -> None:
    x, mask = taeda.rand(2, 3).t(), taeda.rand(2, 3).t() > 0.5
    value = taeda.tensor(1.0)
    for y in (x.masked_fill(mask, 1), x.masked_fill(mask[:1], value)):
        assert y.stride() == (2, 1)
    assert x.contiguous().masked_fill(mask, 1).stride() == (2, 1)


# Of `x`, four axes, `i`, three positions, and `k`, a mask.
INDEXED = """
    x[i]; x[k]; x[:, i]; x[:, :, i]; x[i, i]; x[i, :, i]; x[:, :, i, i]; x[..., i];
    x[i[:, None], i]; x[i[:1]]; x[0, i]; x[:, 1:][i]; x[i][:, i]; x[i, None]; x[i[:0]]
"""
ORDERS = [(0, 1, 2, 3), (0, 2, 3, 1), (1, 3, 0, 2), (3, 1, 0, 2)]


@pytest.mark.parametrize("text", [t.strip() for t in INDEXED.split(";")])
@pytest.mark.parametrize("order", ORDERS)
def test_what_positions_pick_keeps_the_order_of_the_others(text, order) -> None:
    seen = []
    for m in (taeda, torch):
        back = [order.index(d) for d in range(4)]
        x = m.arange(4.0 * 3 * 5 * 6).reshape(4, 3, 5, 6)
        x = x.permute(order).contiguous().permute(back)
        given = {"x": x, "i": m.tensor([2, 0, 1]), "k": m.tensor([True, False] * 2)}
        y = eval(text, given)
        steps = [y.stride(d) for d in range(y.dim()) if y.size(d) > 1]
        seen.append((steps if y.numel() else None, y.tolist()))
    assert seen[0] == seen[1]


def test_an_overlapping_window_sees_what_was_written_before() -> None:
    x = taeda.ones(4)
    taeda.neg_(x.as_strided((3, 2), (1, 1)))  # rows [0 1], [1 2], [2 3]
    assert x.tolist() == [-1.0, 1.0, 1.0, -1.0]
    z = taeda.full((6,), 2.0)
    z.as_strided((2, 4), (2, 1)).mul_(3)
    assert z.tolist() == [6.0, 6.0, 18.0, 18.0, 6.0, 6.0]
    for mode in (None, "floor", "trunc"):
        z = taeda.full((6,), 8.0)
        z.as_strided((2, 4), (2, 1)).div_(2, rounding_mode=mode)
        assert z.tolist() == [4.0, 4.0, 2.0, 2.0, 4.0, 4.0]


def test_fill_takes_expanded_tensors() -> None:
    x = taeda.zeros(1)
    x.expand(3).fill_(2)
    assert x.tolist() == [2.0]
    with pytest.raises(RuntimeError, match="more than one element"):
        x.expand(3).fill_(taeda.tensor(3.0))


def test_unique_slices_lie_one_after_the_other() -> None:
    x = taeda.tensor([[1, 0, 1, 2], [3, 3, 3, 0], [0, 0, 0, 1]])
    y = taeda.unique(x, dim=1)
    assert y.tolist() == [[0, 1, 2], [3, 3, 0], [0, 0, 1]]
    assert y.stride() == (1, 3)


def test_attention_keeps_the_memory_order_of_the_query() -> None:
    attend = taeda.nn.functional.scaled_dot_product_attention
    q, k = taeda.rand(2, 4, 3, 8), taeda.rand(2, 4, 6, 8)
    plain = attend(q, k, k)
    assert plain.is_contiguous()
    split = q.transpose(1, 2).contiguous().transpose(1, 2)
    joined = attend(split, k, k)
    assert joined.stride() == split.stride()
    assert taeda.allclose(plain, joined)


@pytest.mark.parametrize("to", [taeda.float32, taeda.int64, taeda.complex64])
@pytest.mark.parametrize("short", [1, 2, 3, 8, 31])
def test_copies_of_short_rows(short: int, to: taeda.dtype) -> None:
    """Whatever order a copy goes in, elements keep their places."""
    x = taeda.arange(3 * 1030 * short).float()
    rows = x.view(3, 1030, short)
    windows = x.as_strided((1030, short), (2, 1))
    for y in (
        rows.expand(2, 3, 1030, short),
        rows.transpose(1, 2)[:, :, ::2],
        windows,
        x[:1030, None].expand(1030, short),
        x[:short].expand(3, 9, short),
    ):
        found = taeda.empty(y.shape, dtype=to).copy_(y)
        indices = taeda.arange(y.numel())
        places = taeda.zeros_like(indices) + y.storage_offset()
        for size, stride in zip(reversed(y.shape), reversed(y.stride()), strict=True):
            places += indices % size * stride
            indices = indices // size
        assert found.flatten().tolist() == x[places].to(to).tolist()


def test_rows_that_overlap_are_written_in_order() -> None:
    x = taeda.zeros(21)
    x.as_strided((10, 3), (2, 1)).copy_(taeda.arange(30.0).view(10, 3))
    wanted = [v for row in range(10) for v in (3 * row, 3 * row + 1)]
    assert x.tolist() == [*wanted, 29]
