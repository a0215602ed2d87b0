"""Kernels of rows and channels on the device: values and gradients of the CPU."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import taeda
from taeda.nn import functional

Tensor = taeda.Tensor

TOLERANCE = {
    taeda.float64: 1e-12,
    taeda.float32: 2e-5,
    taeda.float16: 4e-3,
    taeda.bfloat16: 3e-2,
}
DTYPES = list(TOLERANCE)


def close(got: Tensor, want: Tensor, dtype: taeda.dtype) -> bool:
    bound = TOLERANCE[dtype]
    return taeda.allclose(
        got.cpu().double(), want.double(), rtol=bound, atol=bound, equal_nan=True
    )


def agrees(function: Callable, dtype: taeda.dtype, *tensors: Tensor) -> None:
    """Results and gradients on the device are those of the CPU in double."""

    def run(device: str, wide: bool) -> list[Tensor]:
        given = []
        for t in tensors:
            here = t.to(dtype) if t.is_floating_point() else t
            if wide and t.is_floating_point():
                here = here.double()
            # The layout is kept: strides are part of what is tried.
            given.append(
                here.to(device).detach().requires_grad_(here.dtype.is_floating_point)
            )
        out = function(*given)
        weights = taeda.linspace(-1, 1, out.numel(), dtype=taeda.float64)
        weights = weights.reshape(out.shape).to(dtype).to(out.dtype).to(device)
        (out * weights).sum().backward()
        return [out.detach(), *(t.grad for t in given if t.requires_grad)]

    for got, want in zip(run("cuda", False), run("cpu", True), strict=True):
        assert got.is_cuda and got.dtype is dtype
        assert close(got, want, dtype), (got.cpu().double() - want).abs().max()


def rows(*shape: int) -> Tensor:
    taeda.manual_seed(sum(shape))
    return taeda.randn(*shape)


# One element, parts of packs at both ends, several rows for a warp, one for a block.
SHAPES = [(1, 1), (3, 5), (7, 33), (5, 130), (2, 515), (2, 2048)]


def shapes_for(dtype: taeda.dtype, shapes: list) -> list:
    """All for float; a part of a pack and more than a warp for the others."""
    return shapes if dtype is taeda.float32 else shapes[1:5:3]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_softmax(dtype: taeda.dtype) -> None:
    for shape in shapes_for(dtype, SHAPES):
        agrees(lambda t: functional.softmax(t, -1), dtype, rows(*shape))
    agrees(lambda t: functional.log_softmax(t, -1), dtype, rows(3, 33))


def test_softmax_of_columns_and_strides() -> None:
    x = rows(3, 7, 5)
    for dim in (0, 1, 2):
        agrees(lambda t, d=dim: functional.softmax(t, d), taeda.float32, x)
        agrees(lambda t, d=dim: functional.log_softmax(t, d), taeda.float32, x)
        turned = x.permute(2, 0, 1)
        agrees(lambda t, d=dim: functional.softmax(t, d), taeda.float32, turned)
    wide = rows(4, 70)
    agrees(lambda t: functional.softmax(t[:, 3:40], 1), taeda.float16, wide)
    # Memory of results and gradients begins elsewhere in 16 bytes than this.
    there = wide.cuda().half().view(-1)[1:71]
    assert close(
        functional.softmax(there, 0), wide.view(-1)[1:71].softmax(0), taeda.float16
    )


PLACES = ("cuda", "cpu")


def gradient(function: Callable, dtype: taeda.dtype, place: str, *tensors) -> Tensor:
    """That of the first tensor, with everything in one dtype at one place."""
    first, *rest = (t.detach().to(place, dtype) for t in tensors)
    first.requires_grad_()
    out = function(first, *rest)
    out.backward(taeda.linspace(-1, 1, out.numel()).reshape(out.shape).to(out))
    return first.grad.cpu().double()


def test_softmax_of_what_is_not_finite() -> None:
    low, high, none = float("-inf"), float("inf"), float("nan")
    x = rows(4, 40)
    x[0, 3], x[1, 7], x[2, :], x[3, ::2] = none, high, low, low
    for dim in (0, 1):
        for function in (functional.softmax, functional.log_softmax):
            assert close(function(x.cuda(), dim), function(x, dim), taeda.float32)


def test_rows_longer_than_a_block_holds() -> None:
    x = rows(2, 70001)
    agrees(lambda t: functional.softmax(t, 1), taeda.float32, x)
    agrees(lambda t: functional.log_softmax(t, 1), taeda.float16, x * 4)
    agrees(lambda t: functional.layer_norm(t, t.shape[1:]), taeda.float32, x + 3)
    target = taeda.tensor([69999, 5])
    agrees(lambda t: functional.cross_entropy(t, target.to(t.device)), taeda.float32, x)


def test_no_rows() -> None:
    empty = taeda.empty(0, 5, device="cuda")
    assert functional.softmax(empty, 1).shape == (0, 5)
    assert functional.softmax(empty.t(), 0).shape == (5, 0)
    weight = taeda.ones(5, device="cuda", requires_grad=True)
    functional.layer_norm(empty, (5,), weight).sum().backward()
    assert weight.grad.tolist() == [0.0] * 5
    for shape in ((0, 5), (0, 5, 3)):
        weight.grad = None
        x = taeda.empty(shape, device="cuda")
        functional.group_norm(x, 1, weight, weight.detach()).sum().backward()
        assert weight.grad.tolist() == [0.0] * 5
    target = taeda.empty(0, device="cuda", dtype=taeda.int64)
    assert functional.cross_entropy(empty, target, reduction="sum").item() == 0
    assert functional.cross_entropy(empty, target).isnan().item()


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_norms_of_rows(dtype: taeda.dtype) -> None:
    for shape in shapes_for(dtype, [(1, 8), (3, 5), (9, 33), (70, 64), (5, 515)]):
        x, w, b = rows(*shape), rows(shape[1]), rows(shape[1], 1)[:, 0]

        def layer(t: Tensor, w: Tensor, b: Tensor) -> Tensor:
            return functional.layer_norm(t, t.shape[1:], w, b, eps=1e-3)

        def rms(t: Tensor, w: Tensor) -> Tensor:
            return functional.rms_norm(t, t.shape[1:], w, eps=1e-3)

        agrees(layer, dtype, x, w, b)
        agrees(rms, dtype, x, w)
    agrees(lambda t: functional.layer_norm(t, (5,), eps=1e-3), dtype, rows(4, 5))


def test_a_large_mean_leaves_the_variance() -> None:
    x = rows(6, 300) + 1e4
    got = functional.layer_norm(x.cuda(), (300,)).cpu().double()
    want = functional.layer_norm(x.double(), (300,))
    # A mean of 1e4 is known to 2^-10; sums of squares would lose the variance.
    assert (got - want).abs().max() < 2**-10
    assert close(got.var(1), want.var(1), taeda.float32)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_group_norm(dtype: taeda.dtype) -> None:
    for shape, groups in (
        ((2, 6, 5), 3),
        ((3, 4, 2, 3), 1),
        ((2, 4), 2),
        ((1, 4, 40), 4),
    ):
        x, w, b = rows(*shape), rows(shape[1]), rows(1, shape[1])[0]

        def norm(t: Tensor, w: Tensor, b: Tensor, groups: int = groups) -> Tensor:
            return functional.group_norm(t, groups, w, b, eps=1e-2)

        if dtype.itemsize == 2 and shape == (2, 4):
            # Means kept in 16 bits tell two elements badly, on the CPU as well.
            there, here = (gradient(norm, dtype, place, x, w, b) for place in PLACES)
            assert close(there, here, dtype)
            continue
        agrees(norm, dtype, x, w, b)
    agrees(lambda t: functional.group_norm(t, 2), dtype, rows(2, 3, 4).mT)


SHAPES_OF_CHANNELS = [(6, 5), (3, 40, 7), (2, 3, 4, 5), (70, 33), (6, 4)]


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_batch_norm(dtype: taeda.dtype, training: bool) -> None:
    for shape in shapes_for(dtype, SHAPES_OF_CHANNELS):
        x, w, b = rows(*shape), rows(shape[1]), rows(1, shape[1])[0]

        def norm(t: Tensor, w: Tensor, b: Tensor) -> Tensor:
            mean = taeda.linspace(-1, 1, len(w), dtype=t.dtype, device=t.device)
            var = mean * mean + 1
            out = functional.batch_norm(t, mean, var, w, b, training, 0.3, 1e-2)
            return out + (mean + var).detach().sum() / len(w)

        agrees(norm, dtype, x, w, b)


def test_batch_norm_of_other_layouts() -> None:
    x = rows(3, 5, 4, 4)
    for given in (x.to(memory_format=taeda.channels_last), x.permute(3, 1, 0, 2)):
        agrees(
            lambda t: functional.batch_norm(t, None, None, None, None, True),
            taeda.float32,
            given,
        )
    image = x.cuda().to(memory_format=taeda.channels_last)
    out = functional.batch_norm(image, None, None, training=True)
    assert out.is_contiguous(memory_format=taeda.channels_last)


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_cross_entropy(dtype: taeda.dtype, reduction: str) -> None:
    for shape in shapes_for(dtype, [(2, 3), (5, 33), (40, 10), (3, 4), (9, 12)]):
        x, weight = rows(*shape), rows(shape[1]).abs() + 0.1
        target = taeda.arange(shape[0]) * 7 % shape[1]
        target[::4] = -100

        def loss(t: Tensor, target: Tensor, w: Tensor) -> Tensor:
            return functional.cross_entropy(t, target, w.detach(), reduction=reduction)

        def plain(t: Tensor, target: Tensor) -> Tensor:
            return functional.cross_entropy(t, target, reduction=reduction)

        agrees(plain, dtype, x, target)
        got = loss(x.cuda().to(dtype), target.cuda(), weight.cuda().to(dtype))
        want = loss(x.to(dtype).double(), target, weight.to(dtype).double())
        assert close(got, want, dtype)


def test_a_class_outside_is_named() -> None:
    x, target = rows(3, 4).cuda(), taeda.tensor([1, 4, 0]).cuda()
    loss = functional.cross_entropy(x, target)
    with pytest.raises(RuntimeError, match="index 4 is out of bounds .* with size 4"):
        loss.item()
    assert close(x + 1, rows(3, 4) + 1, taeda.float32)
