"""One of each distribution, of a library `t` and its distributions `d`."""

from __future__ import annotations


def covariance(t):
    """A positive-definite matrix."""
    return t.eye(3) * 1.5 + 0.2


def pair(t):
    """Parameters of a batch of two."""
    return t.tensor([0.0, 1.0]), t.tensor([1.0, 2.0])


CASES = {
    "Normal": lambda t, d: d.Normal(*pair(t)),
    "Uniform": lambda t, d: d.Uniform(t.tensor([0.0, 1.0]), t.tensor([1.0, 3.0])),
    "Exponential": lambda t, d: d.Exponential(pair(t)[1]),
    "Laplace": lambda t, d: d.Laplace(*pair(t)),
    "Cauchy": lambda t, d: d.Cauchy(*pair(t)),
    "Bernoulli": lambda t, d: d.Bernoulli(t.tensor([0.3, 0.6])),
    "Bernoulli logits": lambda t, d: d.Bernoulli(logits=t.tensor([0.3, -0.6])),
    "Geometric": lambda t, d: d.Geometric(t.tensor([0.3, 0.6])),
    "Poisson": lambda t, d: d.Poisson(t.tensor([3.0, 6.0])),
    "Categorical": lambda t, d: d.Categorical(t.tensor([[0.3, 0.6], [1, 2]])),
    "Categorical logits": lambda t, d: d.Categorical(logits=t.tensor([0.3, 2.0, 1])),
    "OneHotCategorical": lambda t, d: d.OneHotCategorical(t.tensor([0.3, 0.6, 1])),
    "Multinomial": lambda t, d: d.Multinomial(10, t.tensor([0.3, 0.6, 0.4])),
    "Binomial": lambda t, d: d.Binomial(5, t.tensor([0.3, 0.6])),
    "MultivariateNormal": lambda t, d: d.MultivariateNormal(t.zeros(3), covariance(t)),
    "precision": lambda t, d: d.MultivariateNormal(
        t.zeros(2, 3), precision_matrix=covariance(t)
    ),
    "low rank": lambda t, d: d.LowRankMultivariateNormal(
        t.zeros(3), t.ones(3, 1) * 0.5, t.ones(3)
    ),
    "Independent": lambda t, d: d.Independent(d.Normal(*pair(t)), 1),
    "LogNormal": lambda t, d: d.LogNormal(*pair(t)),
    "HalfNormal": lambda t, d: d.HalfNormal(pair(t)[1]),
    "HalfCauchy": lambda t, d: d.HalfCauchy(pair(t)[1]),
    "Gumbel": lambda t, d: d.Gumbel(*pair(t)),
    "Weibull": lambda t, d: d.Weibull(pair(t)[1], t.tensor([1.0, 1.5])),
    "Pareto": lambda t, d: d.Pareto(pair(t)[1], t.tensor([3.0, 2.5])),
    "Kumaraswamy": lambda t, d: d.Kumaraswamy(t.tensor([2.0, 2]), t.tensor([3, 2.5])),
    "LogisticNormal": lambda t, d: d.LogisticNormal(*pair(t)),
    "RelaxedBernoulli": lambda t, d: d.RelaxedBernoulli(
        t.tensor(0.5), t.tensor([0.3, 0.7])
    ),
    "RelaxedOneHotCategorical": lambda t, d: d.RelaxedOneHotCategorical(
        t.tensor(0.5), t.tensor([0.3, 0.7, 0.4])
    ),
    "MixtureSameFamily": lambda t, d: d.MixtureSameFamily(
        d.Categorical(t.ones(2)), d.Normal(*pair(t))
    ),
    "transformed": lambda t, d: d.TransformedDistribution(
        d.Normal(t.zeros(2), t.ones(2)),
        [d.TanhTransform(), d.AffineTransform(1.0, 2.0)],
    ),
}
CASES |= {
    "Gamma": lambda t, d: d.Gamma(t.tensor([2.0, 0.5]), 2.0),
    "Chi2": lambda t, d: d.Chi2(t.tensor([3.0, 1.0])),
    "Beta": lambda t, d: d.Beta(2.0, t.tensor([3.0, 0.5])),
    "Dirichlet": lambda t, d: d.Dirichlet(t.tensor([1.0, 2, 3])),
    "StudentT": lambda t, d: d.StudentT(t.tensor([3.0, 8.0])),
    "FisherSnedecor": lambda t, d: d.FisherSnedecor(t.tensor([5.0, 3]), 6.0),
    "InverseGamma": lambda t, d: d.InverseGamma(t.tensor([2.0, 3.5]), 3.0),
    "NegativeBinomial": lambda t, d: d.NegativeBinomial(t.tensor([5.0, 2.0]), 0.3),
    "GeneralizedPareto": lambda t, d: d.GeneralizedPareto(
        *pair(t), t.tensor([0.25, -0.5])
    ),
    "ContinuousBernoulli": lambda t, d: d.ContinuousBernoulli(t.tensor([0.3, 0.9])),
    "LKJCholesky": lambda t, d: d.LKJCholesky(3, t.tensor([0.5, 2.0])),
    "VonMises": lambda t, d: d.VonMises(pair(t)[0], t.tensor([1.0, 4.0])),
}
