"""Divergences of every registered pair against integrals and closed forms."""

from __future__ import annotations

import itertools

import mpmath as mp
import numpy as np
import pytest
import taeda
import taeda.distributions as D
import torch
from references import INF, LINE
from test_accuracy import BARS, DTYPES

PAIRS = {(p.__name__, q.__name__) for p, q in D._KL_REGISTRY}
ON_A_LINE = sorted((p, q) for p, q in PAIRS if p in LINE and q in LINE)


def test_the_pairs_are_pytorch_s() -> None:
    import torch.distributions.kl as theirs

    assert {(p.__name__, q.__name__) for p, q in theirs._KL_REGISTRY} == PAIRS
    assert len(PAIRS) == 87


@DTYPES
@pytest.mark.parametrize(("p", "q"), ON_A_LINE)
def test_by_integration(p, q, dtype) -> None:
    # Each parameter set of p with each of q.
    for i, j in itertools.product(range(LINE[p].count), range(LINE[q].count)):
        got = D.kl_divergence(one(p, i, dtype), one(q, j, dtype))
        close(got, LINE[p].law(i).divergence(LINE[q].law(j)), dtype, f"{p} {i} {q} {j}")


def close(got, want, dtype, what: str) -> None:
    """A number within the bar, or infinity."""
    got = got.item()
    if want == INF:
        assert got == float("inf"), f"KL({what}): {got}, not inf"
        return
    want = mp.mpf(want)
    error = abs(got - want) / max(1, abs(want))
    assert error <= BARS[dtype], f"KL({what}): {got}, not {mp.nstr(want, 17)} ({error})"


@pytest.mark.parametrize(("p", "q"), ON_A_LINE)
def test_batches_broadcast(p, q) -> None:
    left, right = one(p, 0, taeda.float64), one(q, 1, taeda.float64)
    found = D.kl_divergence(left.expand((2, 1)), right.expand((3,)))
    assert found.shape == (2, 3)
    assert (found == D.kl_divergence(left, right)).all()


def one(name: str, i: int, dtype):
    """The distribution of one parameter set."""
    given = LINE[name].parameters.items()
    return getattr(D, name)(**{k: taeda.tensor(v[i], dtype=dtype) for k, v in given})


def numbers(*shape, seed: int = 0):
    """Multiples of 1/64 in (0, 1), exact in both precisions."""
    drawn = np.random.default_rng(seed).integers(8, 56, shape)
    return (drawn / 64.0).tolist()


def vector_pairs(dtype):
    """(name, p, q, exact divergence) of distributions of vectors."""
    t = lambda v: taeda.tensor(v, dtype=dtype)
    a, b = numbers(4), numbers(4, seed=1)
    yield "Dirichlet", D.Dirichlet(t(a)), D.Dirichlet(t(b)), dirichlet(a, b)
    for kind in (D.Categorical, D.OneHotCategorical):
        shares = [[mp.mpf(v) / mp.fsum(w) for v in w] for w in (a, b)]
        want = mp.fsum(p * mp.log(p / q) for p, q in zip(*shares, strict=True))
        yield kind.__name__, kind(t(a)), kind(t(b)), want
    low, low_q = numbers(3, 2), numbers(3, 2, seed=3)
    diagonal, mean, mean_q = numbers(3, seed=4), numbers(3, seed=5), numbers(3, seed=6)
    spread = [mp.matrix(w) * mp.matrix(w).T + mp.diag(diagonal) for w in (low, low_q)]
    want = normal(mp.matrix(mean), spread[0], mp.matrix(mean_q), spread[1])
    exact = [t([[float(v) for v in s[i, :]] for i in range(3)]) for s in spread]
    for name_p, p in normals(t, mean, low, diagonal, exact[0]):
        for name_q, q in normals(t, mean_q, low_q, diagonal, exact[1]):
            yield f"{name_p} {name_q}", p, q, want
    yield (
        "Wishart",
        D.Wishart(t(5.0), exact[0]),
        D.Wishart(t(7.5), exact[1]),
        wishart(5, spread[0], mp.mpf(7.5), spread[1]),
    )
    pair = (D.Independent(one("Normal", i, dtype).expand((3,)), 1) for i in (0, 1))
    want = 3 * LINE["Normal"].law(0).divergence(LINE["Normal"].law(1))
    yield "Independent", *pair, want


def normals(t, mean, factor, diagonal, covariance):
    """One normal distribution of vectors in both classes."""
    yield "full", D.MultivariateNormal(t(mean), covariance)
    yield "low rank", D.LowRankMultivariateNormal(t(mean), t(factor), t(diagonal))


def dirichlet(a, b):
    """Between Dirichlet distributions (W. Penny, 2001)."""
    a, b = ([mp.mpf(v) for v in w] for w in (a, b))
    total = mp.loggamma(mp.fsum(a)) - mp.loggamma(mp.fsum(b))
    orders = mp.fsum(mp.loggamma(v) - mp.loggamma(u) for u, v in zip(a, b, strict=True))
    mean = [mp.digamma(v) - mp.digamma(mp.fsum(a)) for v in a]
    steps = mp.fsum((u - v) * m for u, v, m in zip(a, b, mean, strict=True))
    return total + orders + steps


def normal(m, s, n, r):
    """Between normal distributions of vectors."""
    inverse = mp.inverse(r)
    trace = mp.fsum((inverse * s)[i, i] for i in range(s.rows))
    distance = ((n - m).T * inverse * (n - m))[0]
    return (trace + distance - s.rows + mp.log(mp.det(r) / mp.det(s))) / 2


def wishart(df, s, df_q, r):
    """Between Wishart distributions, by their densities' expectations."""
    n = s.rows
    gamma = lambda a: mp.fsum(mp.loggamma(a - mp.mpf(k) / 2) for k in range(n))
    mean_log = mp.fsum(mp.digamma((df - mp.mpf(k)) / 2) for k in range(n))
    trace = mp.fsum((mp.inverse(r) * s)[i, i] for i in range(n))
    ratio = mp.log(mp.det(r) / mp.det(s))
    value = df_q * ratio + df * (trace - n) + (df - df_q) * mean_log
    return value / 2 + gamma(df_q / mp.mpf(2)) - gamma(df / mp.mpf(2))


@DTYPES
def test_vectors(dtype) -> None:
    found = list(vector_pairs(dtype))
    assert len(found) == 9
    for name, p, q, want in found:
        close(D.kl_divergence(p, q), want, dtype, name)


def test_what_cannot_be_computed() -> None:
    normal, gamma = one("Normal", 0, taeda.float32), one("Gamma", 0, taeda.float32)
    cases = [
        (D.Independent(normal.expand((3,)), 1), D.Independent(normal.expand((3,)), 0)),
        (one("LogNormal", 0, taeda.float32), one("Gumbel", 0, taeda.float32)),
        (gamma, one("Poisson", 0, taeda.float32)),
        (D.Binomial(3, 0.5), D.Binomial(4, 0.5)),
        (one("Cauchy", 0, taeda.float32), normal),
    ]
    for p, q in cases:
        with pytest.raises(NotImplementedError):
            D.kl_divergence(p, q)
    assert D.kl_divergence(D.Binomial(4, 0.5), D.Binomial(3, 0.5)) == float("inf")


def test_impossible_outcomes() -> None:
    for p, q in itertools.product((0.0, 0.25, 1.0), repeat=2):
        got = D.kl_divergence(D.Bernoulli(p), D.Bernoulli(q)).item()
        theirs = torch.distributions
        want = theirs.kl_divergence(theirs.Bernoulli(p), theirs.Bernoulli(q)).item()
        assert got == pytest.approx(want, abs=1e-6)
        weights = [[p, 1 - p], [q, 1 - q]]
        got = D.kl_divergence(*(D.Categorical(taeda.tensor(w)) for w in weights))
        assert got.item() == pytest.approx(want, abs=1e-6)


def test_the_nearest_classes_decide(monkeypatch) -> None:
    class Mine(D.Normal):
        pass

    class Other(D.Normal):
        pass

    monkeypatch.setattr(D.kl, "_KL_REGISTRY", dict(D._KL_REGISTRY))
    monkeypatch.setattr(D.kl, "_KL_MEMOIZE", {})
    mine, other = Mine(0.0, 1.0), Other(0.0, 2.0)
    want = D.kl_divergence(D.Normal(0.0, 1.0), D.Normal(0.0, 2.0))
    assert D.kl_divergence(mine, other) == want
    D.register_kl(Mine, D.Normal)(lambda p, q: "first")
    assert D.kl_divergence(mine, other) == "first"
    D.register_kl(D.Normal, Other)(lambda p, q: "second")
    with pytest.warns(RuntimeWarning, match="Ambiguous kl_divergence"):
        assert D.kl_divergence(mine, other) == "first"
    D.register_kl(Mine, Other)(lambda p, q: "third")
    assert D.kl_divergence(mine, other) == "third"
