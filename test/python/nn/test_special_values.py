"""Where PyTorch's derivatives treat NaN, zero and constants in their own way."""

from __future__ import annotations

import numpy
import pytest
import taeda
import torch
from taeda import nn
from tolerance import rounding

NAN = float("nan")


def gradients(lib, call, *values):
    inputs = [lib.tensor(v, dtype=lib.float64, requires_grad=True) for v in values]
    call(lib, *inputs).backward()
    return [t.grad.numpy() for t in inputs]


CALLS = {
    "NaN passes relu": (
        lambda lib, x: (lib.relu(x) * 3).sum(),
        [[NAN, -1.0, 0.0, 2.0]],
    ),
    "no gradient, no NaN": (
        lambda lib, x, y: lib.xlogy(x, y)[2:].sum(),
        [[0.5, 0.0, 1.0], [-1.0, 2.0, 1.0]],
    ),
    "one sixth as a float": (
        lambda lib, x: lib.nn.functional.hardsigmoid(x).sum(),
        [[-4.0, -3.0, 0.5, 3.0]],
    ),
    "lp_pool of negative values": (
        lambda lib, x: lib.nn.functional.lp_pool1d(x, 1.5, 2).sum(),
        [[[-1.0, 2.0, 3.0, 4.0]]],
    ),
}


@pytest.mark.parametrize("name", CALLS)
def test_gradients_of_special_values(name) -> None:
    call, values = CALLS[name]
    for got, want in zip(
        gradients(taeda, call, *values), gradients(torch, call, *values), strict=True
    ):
        numpy.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("batch_first", [False, True])
def test_pad_sequence(side, batch_first) -> None:
    arrays = [numpy.arange(2.0 * n).reshape(n, 2) for n in (2, 4, 0, 1)]

    def padded(lib):
        tensors = [lib.from_numpy(a.copy()).requires_grad_() for a in arrays]
        out = lib.nn.utils.rnn.pad_sequence(tensors, batch_first, -1.0, side)
        (out * out).sum().backward()
        return [out.detach().numpy(), *(t.grad.numpy() for t in tensors)]

    for got, want in zip(padded(taeda), padded(torch), strict=True):
        numpy.testing.assert_array_equal(got, want)


def test_pad_sequence_refuses() -> None:
    pad = nn.utils.rnn.pad_sequence
    with pytest.raises(RuntimeError):
        pad([])
    with pytest.raises(RuntimeError, match="left or right"):
        pad([taeda.ones(1)], padding_side="up")
    with pytest.raises(RuntimeError, match="dims after the first"):
        pad([taeda.ones(1, 2), taeda.ones(1, 3)])


@pytest.mark.parametrize("dim", [0, 1, 2, -1])
def test_norm_except_dim(dim) -> None:
    values = numpy.random.default_rng(0).normal(size=(3, 4, 2))
    got = taeda.norm_except_dim(taeda.from_numpy(values), 2, dim)
    want = torch.norm_except_dim(torch.from_numpy(values), 2, dim)
    numpy.testing.assert_allclose(
        got.numpy(), want.numpy(), rtol=rounding("float64", 24)
    )
    with pytest.raises(IndexError):
        taeda.norm_except_dim(taeda.ones(2), 2, 1)


@pytest.mark.parametrize("batched", [False, True])
@pytest.mark.parametrize("d", [1, 2, 3])
def test_circular_padding_with_and_without_a_batch(d, batched) -> None:
    shape = (2,) * batched + (1, *range(3, 3 + d))
    values = numpy.arange(float(numpy.prod(shape))).reshape(shape)
    got = getattr(nn, f"CircularPad{d}d")(2)(taeda.from_numpy(values))
    want = getattr(torch.nn, f"CircularPad{d}d")(2)(torch.from_numpy(values))
    numpy.testing.assert_array_equal(got.numpy(), want.numpy())


def test_cross_entropy_of_one_weighted_row() -> None:
    scores, weight = taeda.tensor([0.5, 1.0, -1.0]), taeda.tensor([1.0, 2.0, 3.0])
    loss = nn.functional.cross_entropy(scores, taeda.tensor(1), weight, reduction="sum")
    assert taeda.allclose(loss, -2 * scores.log_softmax(0)[1])


@pytest.mark.parametrize("p", [0.0, 1.0, 2.0, 3.0])
def test_distances_of_infinities_are_nan(p):
    same = [[float("inf"), 1.0]]
    for lib in (torch, taeda):
        rows = lib.tensor(same * 2)
        assert lib.nn.functional.pdist(rows, p).isnan().all()
        assert lib.cdist(rows, rows, p).isnan().all()


@pytest.mark.parametrize("kept", ["float16", "float32", "float64"])
@pytest.mark.parametrize("given", ["bfloat16", "float32", "float64"])
def test_instance_norm_by_statistics_of_another_dtype(kept, given) -> None:
    results = []
    for m in (taeda, torch):
        x = m.arange(24.0).reshape(2, 3, 4).to(getattr(m, given))
        mean, spread = (
            m.tensor(numbers, dtype=getattr(m, kept))
            for numbers in ([1.0, 2, 3], [0.5, 2, 4])
        )
        out = m.nn.functional.instance_norm(x, mean, spread, use_input_stats=False)
        assert out.dtype == x.dtype
        results.append(out.double().numpy())
    numpy.testing.assert_allclose(*results, rtol=rounding(given, 4), atol=1e-6)


WRITES = {
    "rrelu_": lambda m, x: m.nn.functional.rrelu_(x),
    "renorm_": lambda m, x: x.renorm_(2, 0, 1.0),
    "mvlgamma_": lambda m, x: x.mvlgamma_(2),
    "addr_": lambda m, x: x.addr_(m.ones(2), m.arange(3.0), beta=2),
}


@pytest.mark.parametrize("name", WRITES)
def test_gradients_of_what_is_written_over_its_input(name) -> None:
    grads = []
    for m in (taeda, torch):
        x = m.tensor([[3.0, 2, 4], [1.5, -1.5, 2.5]], requires_grad=True)
        y = x * 1
        WRITES[name](m, y)
        y.sum().backward()
        grads.append(x.grad.numpy())
    numpy.testing.assert_allclose(*grads, rtol=1e-5)
