"""Composites that read numbers have rules under vmap, which equal PyTorch's."""

from __future__ import annotations

import numpy
import pytest
import taeda
import torch


def real(library, *shape: int):
    random = numpy.random.default_rng(len(shape) + sum(shape))
    return library.from_numpy(random.normal(size=shape))


def check_same(got, want) -> None:
    assert len(got) == len(want)
    for g, w in zip(got, want, strict=True):
        assert tuple(g.shape) == tuple(w.shape)
        numpy.testing.assert_allclose(g.numpy(), w.numpy(), rtol=1e-7, atol=1e-9)


DRIVERS = ("gels", "gelsy", "gelsd", "gelss")
SYSTEMS = {
    "both": ((0, 0), (3, 4, 2), (3, 4, 5)),
    "one matrix": ((None, 0), (4, 2), (3, 4, 5)),
    "one right side": ((0, None), (3, 4, 2), (4, 5)),
    "batches inside": ((0, 0), (3, 2, 4, 2), (3, 2, 4, 1)),
    "wide": ((0, 0), (3, 2, 4), (3, 2, 1)),
}


@pytest.mark.parametrize("driver", DRIVERS)
@pytest.mark.parametrize("name", SYSTEMS)
def test_lstsq(name: str, driver: str) -> None:
    dims, *shapes = SYSTEMS[name]

    def solve(t):
        found = t.vmap(lambda a, b: tuple(t.linalg.lstsq(a, b, driver=driver)), dims)
        return found(*(real(t, *shape) for shape in shapes))

    check_same(solve(taeda), solve(torch))


@pytest.mark.parametrize("driver", ["gelsd", "gelss"])
def test_lstsq_has_no_residuals_where_a_rank_is_low(driver: str) -> None:
    def solve(t):
        a = real(t, 3, 4, 2) * t.tensor([1.0, 0.0, 1.0])[:, None, None]
        found = t.vmap(lambda a, b: tuple(t.linalg.lstsq(a, b, driver=driver)))
        return found(a, real(t, 3, 4, 5))

    check_same(solve(taeda), solve(torch))


@pytest.mark.parametrize("driver", DRIVERS)
def test_lstsq_of_vectors(driver: str) -> None:
    """PyTorch refuses vectors under vmap; each system by itself it solves."""
    a, b = real(taeda, 3, 4, 2), real(taeda, 3, 4)
    got = taeda.vmap(lambda a, b: tuple(taeda.linalg.lstsq(a, b, driver=driver)))(a, b)
    each = [
        torch.linalg.lstsq(
            torch.from_numpy(m.numpy()), torch.from_numpy(v.numpy()), driver=driver
        )
        for m, v in zip(a, b, strict=True)
    ]
    check_same(got, [torch.stack(part) for part in zip(*each, strict=True)])


def test_gradients_of_lstsq() -> None:
    def slopes(t):
        def loss(a, b):
            x, residuals, *_ = t.linalg.lstsq(a, b, driver="gelsd")
            return x.cos().sum() + residuals.sum()

        return t.vmap(t.func.grad(loss, argnums=(0, 1)))(
            real(t, 3, 4, 2), real(t, 3, 4, 5)
        )

    check_same(slopes(taeda), slopes(torch))


HISTOGRAMS = {
    "number of bins": lambda t, x, w: t.vmap(lambda x: t.histogram(x, 4))(x),
    "range": lambda t, x, w: t.vmap(lambda x: t.histogram(x, 3, range=(-1, 2)))(x),
    "weights": lambda t, x, w: t.vmap(lambda w: t.histogram(x, 4, weight=w), 1)(
        w.reshape(-1, 1).expand(-1, 2).reshape(*x.shape, 2).movedim(-1, 1)
    ),
    "density": lambda t, x, w: t.vmap(
        lambda x, w: t.histogram(x, 4, weight=w, density=True)
    )(x, w),
    "edges": lambda t, x, w: t.vmap(t.histogram)(x, w.flatten(1)[:, :4].sort(1)[0]),
    "one number": lambda t, x, w: t.vmap(lambda x: t.histogram(x, 2))(x[:, 0, 0]),
}


@pytest.mark.parametrize("name", HISTOGRAMS)
def test_histogram(name: str) -> None:
    def count(t):
        return HISTOGRAMS[name](t, real(t, 3, 5, 4), real(t, 3, 5, 4).exp())

    check_same(count(taeda), count(torch))


def test_histogramdd() -> None:
    x = real(taeda, 3, 9, 2)
    counts, edges = taeda.vmap(lambda x: taeda.histogramdd(x, [2, 3]))(x)
    for i in range(3):
        want, sides = torch.histogramdd(torch.from_numpy(x[i].numpy()), [2, 3])
        check_same([counts[i], *(e[i] for e in edges)], [want, *sides])
