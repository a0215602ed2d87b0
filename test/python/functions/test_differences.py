"""Differences, integrals, histograms, hashes and norms that are held."""

import numpy as np
import pytest
import taeda
import torch

BOTH = (taeda, torch)


def _same(got, want, tolerance=1e-6):
    got, want = (list(t) if isinstance(t, (list, tuple)) else [t] for t in (got, want))
    assert len(got) == len(want)
    for a, b in zip(got, want, strict=True):
        assert a.shape == tuple(b.shape)
        assert np.allclose(a.numpy(), b.numpy(), tolerance, tolerance, equal_nan=True)
        assert str(a.dtype)[6:] == str(b.dtype)[6:]


@pytest.mark.parametrize("order", [1, 2])
def test_gradient(order) -> None:
    values = np.random.default_rng(0).normal(size=(4, 5))
    x, y = [0.0, 1.0, 3.0, 4.5], [0.0, 0.5, 2.0, 3.0, 7.0]
    for dtype in ("float32", "int64", "complex64"):
        for options in (
            {},
            {"dim": 1},
            {"dim": (1, 0)},
            {"spacing": 2.0},
            {"spacing": (2.0, 0.5)},
            {"spacing": 0.5, "dim": (0,)},
            {"spacing": (x, y)},
            {"spacing": (y,), "dim": 1},
            {"spacing": (y, x), "dim": (1, 0)},
        ):
            found = []
            for t in BOTH:
                given = dict(options)
                if isinstance(given.get("spacing"), tuple):
                    given["spacing"] = tuple(
                        t.tensor(s) if isinstance(s, list) else s
                        for s in given["spacing"]
                    )
                input = t.tensor(values * 9).to(getattr(t, dtype))
                found.append(t.gradient(input, edge_order=order, **given))
            _same(*found, 1e-5)
    for bad in (
        {"edge_order": 3},
        {"dim": (0, 0)},
        {"spacing": (1.0, 2.0), "dim": (0,)},
    ):
        with pytest.raises(RuntimeError):
            taeda.gradient(taeda.ones(4, 4), **bad)
    with pytest.raises(RuntimeError):
        taeda.gradient(taeda.ones(order), edge_order=order)


def test_cumulative_integrals() -> None:
    y = [[1.0, 2.0, 4.0], [3.0, 1.0, 0.0]]
    for call in (
        lambda t: t.cumulative_trapezoid(t.tensor(y)),
        lambda t: t.cumulative_trapezoid(t.tensor(y), dx=0.5, dim=0),
        lambda t: t.cumulative_trapezoid(t.tensor(y), t.tensor([0.0, 1.0, 5.0])),
        lambda t: t.cumulative_trapezoid(t.tensor(y), t.tensor(y) * 2, dim=0),
    ):
        _same(call(taeda), call(torch))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_histograms(dtype) -> None:
    values = np.random.default_rng(0).normal(size=(50, 2))
    for call in (
        lambda t, x: t.histogram(x, 7),
        lambda t, x: t.histogram(x, 7, range=(-0.5, 1.0), density=True),
        lambda t, x: t.histogram(x, t.tensor([-1.0, 0.0, 0.25, 2.0]).to(x.dtype)),
        lambda t, x: t.histogram(x, 3, weight=x * 2),
        lambda t, x: t.histogram(x[:0], 3),
        lambda t, x: t.histogram(x * 0, 3),
        lambda t, x: [
            r for e in [t.histogramdd(x, [3, 4], density=True)] for r in (e[0], *e[1])
        ],
        lambda t, x: [r for e in [t.histogramdd(x, 3)] for r in (e.hist, *e.bin_edges)],
        lambda t, x: [
            t.histogramdd(x, [t.tensor([-1.0, 1.0]).to(x.dtype)] * 2, weight=x[:, 0])[0]
        ],
    ):
        _same(*(call(t, t.tensor(values, dtype=getattr(t, dtype))) for t in BOTH))
    counted = taeda.histogram(taeda.ones(2**24 + 3), taeda.tensor([0.0, 2.0])).hist
    assert counted.item() == 2**24 + 4  # float32's neighbour of 2^24 + 3
    for bad in (
        lambda t: t.histogram(t.ones(2), 0),
        lambda t: t.histogram(t.ones(2), 2, range=(2.0, 1.0)),
        lambda t: t.histogram(t.ones(2, dtype=t.int64), 2),
        lambda t: t.histogram(t.tensor([1.0, float("nan")]), 2),
        lambda t: t.histogramdd(t.ones(2, 2), [2]),
        lambda t: t.histogramdd(t.ones(2), [2]),
    ):
        for t in BOTH:
            with pytest.raises(RuntimeError):
                bad(t)


@pytest.mark.parametrize(
    "dtype", ["float32", "float16", "bfloat16", "int64", "int8", "uint8", "bool"]
)
def test_hashes(dtype) -> None:
    values = np.random.default_rng(0).integers(-9, 9, size=(3, 4, 5))
    for options in ({}, {"dim": 1}, {"dim": (0, 2)}, {"dim": -1, "keepdim": True}):
        found = [
            t.hash_tensor(t.tensor(values).to(getattr(t, dtype)), **options)
            for t in BOTH
        ]
        assert found[0].tolist() == found[1].tolist()
        assert found[0].dtype == taeda.uint64
    assert taeda.hash_tensor(taeda.tensor(2.0)).item() == 2**62
    with pytest.raises(RuntimeError):
        taeda.hash_tensor(taeda.ones(0))


def test_small_functions() -> None:
    values = [[3.0, 4.0], [0.1, 0.2]]
    _same(*(t.renorm(t.tensor(values), 2, 0, 1.0) for t in BOTH))
    x = taeda.tensor(values, dtype=taeda.float64, requires_grad=True)
    assert taeda.autograd.gradcheck(lambda t: taeda.renorm(t, 2, 0, 1.0), x)
    assert x.detach().renorm_(1, 1, 0.5).abs().sum(0).max() <= 0.5
    for p in (1, 3):
        _same(*(t.mvlgamma(t.tensor([2.0, 5.5]), p) for t in BOTH))
    assert taeda.isreal(taeda.tensor([1, 1j, 2 + 0j])).tolist() == [True, False, True]
    assert taeda.isreal(taeda.tensor([1])).tolist() == [True]
    assert taeda.tensor([2.0, 4.0]).__rdiv__(8).tolist() == [4.0, 2.0]
    for bad in ((-1, 0, 1.0), (2, 0, -1.0), (2, 2, 1.0)):
        with pytest.raises((RuntimeError, IndexError)):
            taeda.renorm(taeda.ones(2, 2), *bad)
    with pytest.raises(RuntimeError):
        taeda.mvlgamma(taeda.ones(2), 0)


def test_histograms_without_sides() -> None:
    for density in (False, True):
        results = [t.histogramdd(t.ones(3, 0), [], density=density) for t in BOTH]
        _same(*(r.hist for r in results))
        assert [len(r.bin_edges) for r in results] == [0, 0]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_counts_of_numbers_beside_which_one_is_nothing(dtype) -> None:
    def count(t, value):
        kind = getattr(t, dtype)
        ends = {"min": t.finfo(kind).min, "max": t.finfo(kind).max}
        return t.histc(t.full((3,), ends.get(value, value), dtype=kind), 4)

    for value in ("min", "max", 1e20, -1e30, 0.0):
        _same(*(count(t, value) for t in BOTH))


def test_histograms_that_cannot_be() -> None:
    x = taeda.ones(3)
    with pytest.raises(RuntimeError, match="should have the same dtype"):
        taeda.histogram(x, taeda.ones((), dtype=taeda.float64))
    with pytest.raises(RuntimeError, match="should have at least 1 element"):
        taeda.histogram(x, taeda.ones(0))
    for dtype in ("float32", "int32"):
        with pytest.raises(RuntimeError, match="max must be larger than min"):
            taeda.histc(x.to(getattr(taeda, dtype)), min=3, max=1)


@pytest.mark.parametrize("order", [float("inf"), -float("inf"), -1, -2.5])
def test_norms_of_no_elements(order) -> None:
    for call in ("norm(t.ones(0), o)", "linalg.vector_norm(t.ones(5, 0), o, 1)"):
        for t in BOTH:
            with pytest.raises(RuntimeError, match="does not have an identity"):
                eval(f"t.{call}", {"t": t, "o": order})
    assert taeda.linalg.vector_norm(taeda.ones(5, 0), order, 0).shape == (0,)
    with pytest.raises(RuntimeError, match="non-complex scalar"):
        taeda.linalg.vector_norm(taeda.ones(2), 1j)
    with pytest.raises(RuntimeError, match="non-complex scalar"):
        taeda.linalg.matrix_norm(taeda.ones(2, 2), 1j)


def test_smallest_of_no_elements() -> None:
    for t in BOTH:
        with pytest.raises(IndexError, match="non-zero size"):
            t.kthvalue(t.ones(2, 0), 1, 1)
    with pytest.raises(RuntimeError, match="up to 64 dims"):
        taeda.argmax(taeda.ones([1] * 65), 0)
