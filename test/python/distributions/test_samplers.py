"""Samples follow their law, and their gradients are those of the quantiles.

Continuous numbers by Kolmogorov and Smirnov's test of F(x), with F by SciPy or mpmath,
discrete ones by Pearson's; each with a fixed seed, at a level of 1e-4.
"""

from __future__ import annotations

import mpmath as mp
import numpy as np
import pytest
import taeda
import taeda.distributions as D
from references import LINE
from scipy import integrate, stats
from test_accuracy import made

COUNT, LEVEL = 4000, 1e-4
CONTINUOUS = sorted(name for name in LINE if not LINE[name].discrete)
DISCRETE = sorted(name for name in LINE if LINE[name].discrete)


def frozen(name: str, i: int):
    """SciPy's distribution function, for the i-th parameters."""
    p = {k: v[i] for k, v in LINE[name].parameters.items()}
    loc_scale = {k: p[k] for k in ("loc", "scale") if k in p}
    table = {
        "Normal": lambda: stats.norm(**loc_scale),
        "Laplace": lambda: stats.laplace(**loc_scale),
        "Cauchy": lambda: stats.cauchy(**loc_scale),
        "Gumbel": lambda: stats.gumbel_r(**loc_scale),
        "StudentT": lambda: stats.t(p["df"], **loc_scale),
        "VonMises": lambda: stats.vonmises(p["concentration"], loc=p["loc"]),
        "Uniform": lambda: stats.uniform(p["low"], p["high"] - p["low"]),
        "Exponential": lambda: stats.expon(scale=1 / p["rate"]),
        "Gamma": lambda: stats.gamma(p["concentration"], scale=1 / p["rate"]),
        "Chi2": lambda: stats.chi2(p["df"]),
        "InverseGamma": lambda: stats.invgamma(p["concentration"], scale=p["rate"]),
        "FisherSnedecor": lambda: stats.f(p["df1"], p["df2"]),
        "HalfNormal": lambda: stats.halfnorm(scale=p["scale"]),
        "HalfCauchy": lambda: stats.halfcauchy(scale=p["scale"]),
        "LogNormal": lambda: stats.lognorm(p["scale"], scale=np.exp(p["loc"])),
        "Weibull": lambda: stats.weibull_min(p["concentration"], scale=p["scale"]),
        "Pareto": lambda: stats.pareto(p["alpha"], scale=p["scale"]),
        "GeneralizedPareto": lambda: stats.genpareto(p["concentration"], **loc_scale),
        "Beta": lambda: stats.beta(p["concentration1"], p["concentration0"]),
        "Poisson": lambda: stats.poisson(p["rate"]),
        "Bernoulli": lambda: stats.bernoulli(p["probs"]),
        "Binomial": lambda: stats.binom(p["total_count"], p["probs"]),
        "Geometric": lambda: stats.geom(p["probs"], loc=-1),
        "NegativeBinomial": lambda: stats.nbinom(p["total_count"], 1 - p["probs"]),
    }
    return table[name]().cdf if name in table else by_integration(LINE[name].law(i))


def by_integration(law):
    """The distribution function from the density, on a fine grid."""
    low, high = (float(end) for end in law.ends)
    grid = low + (high - low) * (0.5 - 0.5 * np.cos(np.linspace(0, np.pi, 801)))
    density = [float(mp.exp(law.log(mp.mpf(x)))) for x in grid[1:-1]]
    values = integrate.cumulative_simpson([0.0, *density, 0.0], x=grid, initial=0)
    return lambda x: np.interp(x, grid, values / values[-1])


@pytest.mark.parametrize("dtype", [taeda.float32, taeda.float64], ids=str)
@pytest.mark.parametrize("name", CONTINUOUS)
def test_continuous(name, dtype) -> None:
    taeda.manual_seed(3)
    drawn = made(name, dtype).sample((COUNT,))
    assert drawn.dtype == dtype and not drawn.requires_grad
    for i in range(LINE[name].count):
        values = drawn[:, i].double().numpy()
        cdf = frozen(name, i)
        if name == "VonMises":
            # SciPy's counts turns; so from one turn's start on.
            loc = LINE[name].parameters["loc"][i]
            values = np.mod(values - loc + np.pi, 2 * np.pi) - np.pi + loc
        found = stats.kstest(values, cdf)
        assert found.pvalue > LEVEL, f"{name} {i}: {found}"


@pytest.mark.parametrize("name", DISCRETE)
def test_discrete(name) -> None:
    taeda.manual_seed(4)
    drawn = made(name, taeda.float32).sample((COUNT,))
    for i in range(LINE[name].count):
        check_counts(drawn[:, i].numpy(), frozen(name, i), f"{name} {i}")


def check_counts(values, cdf, what: str) -> None:
    """Pearson's test, classes with fewer than 10 expected values put together."""
    last = int(values.max()) + 1
    edges = np.append(cdf(np.arange(last)), 1.0)
    expected = np.diff(edges, prepend=0.0) * len(values)
    observed = np.bincount(values.astype(int), minlength=last + 1)
    small = expected < 10
    expected = np.append(expected[~small], expected[small].sum() + 1e-9)
    observed = np.append(observed[~small], observed[small].sum())
    found = stats.chisquare(observed, expected * observed.sum() / expected.sum())
    assert found.pvalue > LEVEL, f"{what}: {found}"


def test_categories() -> None:
    taeda.manual_seed(5)
    weights = taeda.tensor([1.0, 2.0, 5.0])
    cdf = lambda k: np.cumsum([1 / 8, 2 / 8, 5 / 8])[np.asarray(k, int)]
    check_counts(D.Categorical(weights).sample((COUNT,)).numpy(), cdf, "Categorical")
    hot = D.OneHotCategorical(weights).sample((COUNT,))
    assert (hot.sum(-1) == 1).all()
    check_counts(hot.argmax(-1).numpy(), cdf, "OneHotCategorical")
    counts = D.Multinomial(6, weights).sample((COUNT,))
    assert (counts.sum(-1) == 6).all()
    for k, p in enumerate([1 / 8, 2 / 8, 5 / 8]):
        check_counts(counts[:, k].numpy(), stats.binom(6, p).cdf, f"Multinomial {k}")
    relaxed = D.RelaxedOneHotCategorical(taeda.tensor(0.5), weights).sample((COUNT,))
    # Whatever the temperature, the largest place is that of the categories.
    check_counts(relaxed.argmax(-1).numpy(), cdf, "RelaxedOneHotCategorical")


def same_law(values, cdf, what: str) -> None:
    """Kolmogorov and Smirnov's test."""
    found = stats.kstest(values.double().numpy(), cdf)
    assert found.pvalue > LEVEL, f"{what}: {found}"


def test_vectors() -> None:
    taeda.manual_seed(6)
    drawn = D.Dirichlet(taeda.tensor([0.5, 2.0, 4.0])).sample((COUNT,))
    for k, a in enumerate([0.5, 2.0, 4.0]):
        same_law(drawn[:, k], stats.beta(a, 6.5 - a).cdf, f"Dirichlet {k}")
    matrix = taeda.tensor([[2.0, 0.5, 0.1], [0.5, 1.0, -0.3], [0.1, -0.3, 1.5]])
    along = taeda.tensor([1.0, -2.0, 0.5])
    width = float((along @ matrix @ along) ** 0.5)
    forms = {"covariance_matrix": matrix, "precision_matrix": taeda.linalg.inv(matrix)}
    forms["scale_tril"] = taeda.linalg.cholesky(matrix)
    for form, given in forms.items():
        vectors = D.MultivariateNormal(taeda.ones(3), **{form: given}).sample((COUNT,))
        same_law(vectors @ along, stats.norm(-0.5, width).cdf, form)
    factor, diagonal = taeda.tensor([[1.0], [0.5], [-1.0]]), taeda.tensor([1.0, 2, 0.5])
    low = D.LowRankMultivariateNormal(taeda.ones(3), factor, diagonal).sample((COUNT,))
    width = float(((along @ factor) ** 2).sum() + (along**2 * diagonal).sum()) ** 0.5
    same_law(low @ along, stats.norm(-0.5, width).cdf, "low rank")


def test_matrices() -> None:
    taeda.manual_seed(7)
    matrix = taeda.tensor([[2.0, 0.5], [0.5, 1.0]])
    drawn = D.Wishart(taeda.tensor(4.5), matrix).sample((COUNT,))
    along = taeda.tensor([1.0, -2.0])
    # a^T X a / a^T S a is chi-squared.
    scale = float(along @ matrix @ along)
    same_law(drawn @ along @ along / scale, stats.chi2(4.5).cdf, "Wishart")
    for n, eta in ((2, 0.75), (3, 0.75), (4, 2.0)):
        factor = D.LKJCholesky(n, eta).sample((COUNT,))
        correlation = factor @ factor.mT
        beta = eta + 0.5 * (n - 2)
        for i in range(n):
            for j in range(i):
                # Each correlation is a beta number of (-1, 1) (the paper, section 1).
                law = stats.beta(beta, beta, loc=-1, scale=2).cdf
                same_law(correlation[:, i, j], law, f"LKJCholesky {n} {i} {j}")


def test_mixtures() -> None:
    taeda.manual_seed(8)
    mixture = D.MixtureSameFamily(
        D.Categorical(taeda.tensor([0.25, 0.75])),
        D.Normal(taeda.tensor([-2.0, 1.0]), taeda.tensor([0.5, 1.0])),
    )
    parts = stats.norm(-2, 0.5).cdf, stats.norm(1, 1).cdf
    cdf = lambda x: 0.25 * parts[0](x) + 0.75 * parts[1](x)
    same_law(mixture.sample((COUNT,)), cdf, "MixtureSameFamily")
    numbers = D.LogisticNormal(taeda.tensor([0.5, -1.0]), taeda.tensor([1.0, 0.5]))
    back = D.StickBreakingTransform().inv(numbers.sample((COUNT,)))
    same_law(back[:, 0], stats.norm(0.5, 1).cdf, "LogisticNormal")
    same_law(back[:, 1], stats.norm(-1, 0.5).cdf, "LogisticNormal")
