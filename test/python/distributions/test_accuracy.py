"""Densities, distribution functions, moments and entropies against mpmath.

An error is relative to the value where that is above 1 in magnitude, else absolute: a
logarithm that crosses 0 has no relative accuracy.
"""

from __future__ import annotations

import math

import mpmath as mp
import pytest
import taeda
import taeda.distributions as D
from references import INF, LINE

# At most 1e-6 in float32 and 1e-12 in float64.
BARS = {taeda.float32: 1e-6, taeda.float64: 1e-12}
DTYPES = pytest.mark.parametrize("dtype", BARS, ids=str)


def made(name: str, dtype):
    """The distribution of a case."""
    given = LINE[name].parameters
    tensors = {key: taeda.tensor(value, dtype=dtype) for key, value in given.items()}
    return getattr(D, name)(**tensors)


def check(got, want, dtype, what: str) -> None:
    """One number against an exact one."""
    got = got.item()
    if not mp.isfinite(want):
        assert got == want, f"{what}: {got}, not {want}"
        return
    error = abs(mp.mpf(got) - want) / max(1, abs(want))
    assert error <= BARS[dtype], f"{what}: {got}, not {mp.nstr(want, 17)} ({error})"


@DTYPES
@pytest.mark.parametrize("name", LINE)
def test_density(name, dtype) -> None:
    case, distribution = LINE[name], made(name, dtype)
    for x in case.values:
        found = distribution.log_prob(taeda.tensor(x, dtype=dtype))
        for i in range(case.count):
            want = case.law(i).log(mp.mpf(x))
            check(found[i], want, dtype, f"log_prob of {name} {i} at {x}")


# Their `cdf` is not there, as in PyTorch.
WITHOUT_CDF = {"Bernoulli", "Beta", "Binomial", "FisherSnedecor", "Geometric"}
WITHOUT_CDF |= {"NegativeBinomial", "Poisson", "StudentT", "VonMises"}
WITHOUT_CDF |= {"RelaxedBernoulli"}
WITHOUT_ICDF = {"Chi2", "Gamma", "InverseGamma", *WITHOUT_CDF}


@DTYPES
@pytest.mark.parametrize("name", LINE)
def test_distribution_function(name, dtype) -> None:
    case, distribution = LINE[name], made(name, dtype)
    if name in WITHOUT_CDF:
        with pytest.raises(NotImplementedError):
            distribution.cdf(taeda.tensor(0.5, dtype=dtype))
        return
    for x in case.values:
        found = distribution.cdf(taeda.tensor(x, dtype=dtype))
        for i in range(case.count):
            check(found[i], case.law(i).cdf(x), dtype, f"cdf of {name} {i} at {x}")


@DTYPES
@pytest.mark.parametrize("name", LINE)
def test_quantiles(name, dtype) -> None:
    case, distribution = LINE[name], made(name, dtype)
    if name in WITHOUT_ICDF:
        with pytest.raises(NotImplementedError):
            distribution.icdf(taeda.tensor(0.5, dtype=dtype))
        return
    for u in (0.0625, 0.5, 0.875):
        found = distribution.icdf(taeda.tensor(u, dtype=dtype))
        for i in range(case.count):
            law, x = case.law(i), mp.mpf(found[i].item())
            # Newton's step from what was found to the quantile.
            want = x - (law.cdf(x) - u) / mp.exp(law.log(x))
            check(found[i], want, dtype, f"icdf of {name} {i} at {u}")


# Known in closed form, or circular.
INFINITE = {"Cauchy": (mp.nan, INF), "HalfCauchy": (INF, INF)}


def circular(law) -> tuple:
    """The mean and variance of angles."""
    k = law.p["concentration"]
    return law.p["loc"], 1 - mp.besseli(1, k) / mp.besseli(0, k)


@DTYPES
@pytest.mark.parametrize("name", LINE)
def test_moments(name, dtype) -> None:
    case, distribution = LINE[name], made(name, dtype)
    if name in {*INFINITE, "RelaxedBernoulli"}:
        return check_no_moments(name, distribution)
    for i in range(case.count):
        law = case.law(i)
        mean, variance = (
            circular(law)
            if name == "VonMises"
            else (
                law.mean,
                law.variance,
            )
        )
        check(distribution.mean[i], mean, dtype, f"mean of {name} {i}")
        check(distribution.variance[i], variance, dtype, f"variance of {name} {i}")
        check(distribution.stddev[i], mp.sqrt(variance), dtype, f"stddev of {name} {i}")


def check_no_moments(name, distribution) -> None:
    """Where there are none: what PyTorch has in their place."""
    if name == "RelaxedBernoulli":
        with pytest.raises(NotImplementedError):
            _ = distribution.mean
        return
    for got, want in zip(
        (distribution.mean, distribution.variance), INFINITE[name], strict=True
    ):
        assert [str(v) for v in got.tolist()] == [str(float(want))] * 2


# Without an entropy in PyTorch.
WITHOUT_ENTROPY = {"FisherSnedecor", "NegativeBinomial", "Poisson", "VonMises"}
WITHOUT_ENTROPY |= {"RelaxedBernoulli"}


@DTYPES
@pytest.mark.parametrize("name", LINE)
def test_entropy(name, dtype) -> None:
    case, distribution = LINE[name], made(name, dtype)
    if name in WITHOUT_ENTROPY:
        with pytest.raises(NotImplementedError):
            distribution.entropy()
        return
    found = distribution.entropy()
    for i in range(case.count):
        check(found[i], case.law(i).entropy, dtype, f"entropy of {name} {i}")


MODES = {
    *("Normal", "Laplace", "Cauchy", "Gumbel", "StudentT", "VonMises", "Exponential"),
    *("InverseGamma", "FisherSnedecor", "HalfNormal", "HalfCauchy", "LogNormal"),
    *("Weibull", "Pareto", "Kumaraswamy", "Binomial", "Poisson", "NegativeBinomial"),
}


@pytest.mark.parametrize("name", sorted(MODES))
def test_the_density_is_highest_at_the_mode(name) -> None:
    case, distribution = LINE[name], made(name, taeda.float64)
    for i in range(case.count):
        law, mode = case.law(i), mp.mpf(distribution.mode[i].item())
        step = 1 if case.discrete else mp.mpf(10) ** -4
        low, high = law.ends
        near = [v for v in (mode - step, mode + step) if low < v < high]
        if low < mode:
            # Two whole numbers may share the mode.
            assert all(law.log(mode) >= law.log(v) - mp.mpf(10) ** -20 for v in near)
        elif len(near) == 1:
            assert law.log(near[0]) >= law.log(near[0] + step)


def test_how_many_cases_there_are() -> None:
    assert len(LINE) == 27
    assert sum(case.count for case in LINE.values()) == 62
    assert sum(case.count * len(case.values) for case in LINE.values()) == 184


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_continuous_bernoulli_of_large_logits(sign):
    """The density at the end is |t| to the last digit, where e^t is infinite."""
    for size in (1e4, 1e38):
        t = taeda.tensor([sign * size], requires_grad=True)
        made = taeda.distributions.ContinuousBernoulli(logits=t)
        density = made.log_prob(taeda.tensor([(1 + sign) / 2]))
        density.sum().backward()
        assert density.item() == pytest.approx(math.log(size), rel=1e-6)
        assert t.grad.item() == pytest.approx(sign / size, rel=1e-3, abs=1e-12)


def test_values_of_folded_distributions_are_tensors():
    for made in (D.HalfNormal(1.0), D.HalfCauchy(1.0)):
        with pytest.raises(ValueError, match="must be a Tensor"):
            made.log_prob(1)


def test_numbers_are_values_of_gamma_distributions():
    assert D.Gamma(1.0, 1.0).log_prob(0).item() == 0
    assert D.Chi2(4.0).log_prob(0).item() == -math.inf


def test_logits_are_not_turned_into_probabilities_without_need():
    made = D.Categorical(logits=taeda.tensor([0.1, 0.9]))
    assert made.enumerate_support().shape[0] == 2
    assert "probs" not in made.__dict__
