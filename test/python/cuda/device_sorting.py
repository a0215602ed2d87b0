"""Sorts on the device: the CPU's stable order, whatever the length and the dtype."""

from __future__ import annotations

import pytest
import taeda

Tensor = taeda.Tensor


def drawn(count: int, dtype: taeda.dtype) -> Tensor:
    """Few values, so that many are equal, with what is special about the dtype."""
    taeda.manual_seed(count)
    if dtype is taeda.bool:
        return taeda.rand(count) > 0.3
    if not dtype.is_floating_point:
        limits = taeda.iinfo(dtype)
        x = taeda.randint(max(-300, limits.min), min(300, limits.max), (count,)).to(
            dtype
        )
        x[:2] = taeda.tensor([limits.max, limits.min], dtype=dtype)
        return x
    x = (taeda.randn(count) * 8).round().to(dtype)
    special = [float("nan"), -0.0, 0.0, float("-inf"), float("inf"), float("nan")]
    x[: min(6, count)] = taeda.tensor(special[:count], dtype=dtype)
    return x


def same_order(x: Tensor, dim: int, descending: bool) -> None:
    got = taeda.sort(x.cuda(), dim=dim, descending=descending, stable=True)
    want = taeda.sort(x, dim=dim, descending=descending, stable=True)
    assert taeda.equal(got.indices.cpu(), want.indices)
    values, expected = got.values.cpu(), want.values
    assert values.dtype is x.dtype
    if x.is_floating_point():
        values, expected = values.nan_to_num(9e4), expected.nan_to_num(9e4)
    assert taeda.equal(values, expected)


DTYPES = [taeda.float32, taeda.float64, taeda.float16, taeda.bfloat16]
DTYPES += [taeda.int64, taeda.int32, taeda.uint8, taeda.int8, taeda.bool]


# Counted; a part of a tile.
@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_one_tile(dtype: taeda.dtype, descending: bool) -> None:
    for count in (7, 300):
        same_order(drawn(count, dtype), 0, descending)


@pytest.mark.parametrize("dtype", [taeda.float32, taeda.int64, taeda.bool], ids=str)
def test_several_tiles_and_rows(dtype: taeda.dtype) -> None:
    same_order(drawn(2 * 4500, dtype).view(2, 4500), 1, True)


def test_other_dims_and_strides() -> None:
    x = drawn(3 * 40 * 2, taeda.float32).view(3, 40, 2)
    same_order(x, 1, False)
    same_order(x.permute(2, 0, 1)[:, :, ::1], -1, True)
    same_order(x[:, ::2], 1, False)
    same_order(x[:0], 1, False)
    same_order(x[0, 0, 0], 0, False)


def test_what_stands_on_sorts() -> None:
    x = drawn(400, taeda.float32)[6:].view(2, 197)
    for largest in (True, False):
        got, want = (taeda.topk(t, 9, largest=largest) for t in (x.cuda(), x))
        assert taeda.equal(got.values.cpu(), want.values)
        assert taeda.equal(x.gather(1, got.indices.cpu()), want.values)
    order = taeda.argsort(x.cuda(), dim=1, stable=True)
    assert taeda.equal(order.cpu(), taeda.argsort(x, dim=1, stable=True))
    assert taeda.equal(taeda.median(x.cuda(), 1).values.cpu(), x.median(1).values)
    got = taeda.unique(x.cuda(), return_inverse=True, return_counts=True)
    want = taeda.unique(x, return_inverse=True, return_counts=True)
    assert all(taeda.equal(a.cpu(), b) for a, b in zip(got, want, strict=True))


@pytest.mark.parametrize("dtype", [taeda.float32, taeda.float16], ids=str)
def test_gradients_of_tables(dtype: taeda.dtype) -> None:
    weight = taeda.linspace(-1, 1, 60).view(10, 6).to(dtype)
    # A row is named by more places than a warp has threads; others by none.
    places = (taeda.arange(90) ** 2 % 7).view(2, 45)
    for scaled in (False, True):

        def gradient(t: Tensor, at: Tensor, scaled: bool = scaled) -> Tensor:
            t = t.detach().requires_grad_()
            out = taeda.nn.functional.embedding(
                at, t, padding_idx=2, scale_grad_by_freq=scaled
            )
            slope = taeda.linspace(-1, 1, out.numel(), dtype=taeda.float64)
            out.backward(slope.view(out.shape).to(t.device, t.dtype))
            return t.grad

        want = gradient(weight.double(), places)
        for at in (places, places.int()):
            got = gradient(weight.cuda(), at.cuda()).cpu()
            bound = 1e-5 if dtype is taeda.float32 else 1e-2
            assert taeda.allclose(got.double(), want, rtol=bound, atol=bound)
    none = gradient(weight.cuda(), places[:0].cuda())
    assert none.dtype is dtype and not none.any()


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_selections_of_long_rows(dtype: taeda.dtype) -> None:
    """The first of a stable sort, without sorting all."""
    x = drawn(2 * 2100, dtype).view(2, 2100)
    largest = dtype.itemsize != 4
    order = x.sort(dim=1, descending=largest, stable=True)
    for k in (1, 50):
        got = x.cuda().topk(k, largest=largest)
        assert taeda.equal(got.indices.cpu(), order.indices[:, :k])
        values, expected = got.values.cpu(), order.values[:, :k]
        if x.is_floating_point():
            values, expected = values.nan_to_num(9e4), expected.nan_to_num(9e4)
        assert taeda.equal(values, expected)


def test_selections_along_other_dims() -> None:
    x = drawn(3 * 2500, taeda.float32).view(2500, 3)
    got = x.cuda().topk(5, dim=0)
    want = x.sort(dim=0, descending=True, stable=True).indices[:5]
    assert taeda.equal(got.indices.cpu(), want)
