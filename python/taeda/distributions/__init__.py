"""Probability distributions: samples, densities, entropies and divergences.

Example:
    >>> from taeda.distributions import Categorical
    >>> policy = Categorical(taeda.tensor([0.25, 0.25, 0.25, 0.25]))
    >>> policy.log_prob(taeda.tensor(3))
    tensor(-1.3863)
"""

from __future__ import annotations

import sys
from types import ModuleType

from . import _continuous, _discrete, _gamma_family, _made, _vectors, transforms
from . import constraints as constraints
from .constraint_registry import biject_to as biject_to
from .constraint_registry import transform_to as transform_to
from .distribution import Distribution as Distribution
from .exp_family import ExponentialFamily as ExponentialFamily
from .independent import Independent as Independent
from .kl import _KL_REGISTRY as _KL_REGISTRY
from .kl import kl_divergence as kl_divergence
from .kl import register_kl as register_kl
from .mixture_same_family import MixtureSameFamily as MixtureSameFamily
from .transformed_distribution import TransformedDistribution as TransformedDistribution
from .transforms import *  # noqa: F403

# PyTorch's modules of one or two distributions each, by the file that declares them.
_MODULES = {
    _continuous: """
        cauchy:Cauchy continuous_bernoulli:ContinuousBernoulli exponential:Exponential
        generalized_pareto:GeneralizedPareto laplace:Laplace normal:Normal
        uniform:Uniform von_mises:VonMises""",
    _discrete: """
        bernoulli:Bernoulli binomial:Binomial categorical:Categorical
        geometric:Geometric multinomial:Multinomial negative_binomial:NegativeBinomial
        one_hot_categorical:OneHotCategorical,OneHotCategoricalStraightThrough
        poisson:Poisson""",
    _gamma_family: """
        beta:Beta chi2:Chi2 dirichlet:Dirichlet fishersnedecor:FisherSnedecor
        gamma:Gamma studentT:StudentT""",
    _made: """
        gumbel:Gumbel half_cauchy:HalfCauchy half_normal:HalfNormal
        inverse_gamma:InverseGamma kumaraswamy:Kumaraswamy
        logistic_normal:LogisticNormal log_normal:LogNormal pareto:Pareto
        relaxed_bernoulli:RelaxedBernoulli,LogitRelaxedBernoulli
        relaxed_categorical:RelaxedOneHotCategorical,ExpRelaxedCategorical
        weibull:Weibull""",
    _vectors: """
        lkj_cholesky:LKJCholesky
        lowrank_multivariate_normal:LowRankMultivariateNormal
        multivariate_normal:MultivariateNormal wishart:Wishart""",
}
# What programs import from these modules beside the distributions.
_HELPERS = {
    "gamma": {
        "_standard_gamma": lambda shape: _gamma_family.taeda._standard_gamma(shape)
    },
    "multivariate_normal": {
        name: getattr(_vectors, name)
        for name in ("_batch_mahalanobis", "_batch_mv", "_precision_to_scale_tril")
    },
}
_INNER = {"LogitRelaxedBernoulli", "ExpRelaxedCategorical"}
__all__ = [
    *("Distribution", "ExponentialFamily", "Independent", "MixtureSameFamily"),
    *("TransformedDistribution", "_KL_REGISTRY", "biject_to", "kl_divergence"),
    *("register_kl", "transform_to", *transforms.__all__),
]


def _make_modules() -> None:
    """Each with its classes, which are pickled and shown under its name."""
    for source, listed in _MODULES.items():
        for entry in listed.split():
            name, _, classes = entry.partition(":")
            module = ModuleType(f"{__name__}.{name}", source.__doc__)
            module.__file__, module.__all__ = source.__file__, classes.split(",")
            vars(module).update(_HELPERS.get(name, {}))
            for each in module.__all__:
                kind = getattr(source, each)
                kind.__module__ = module.__name__
                setattr(module, each, kind)
                if each not in _INNER:
                    globals()[each] = kind
                    __all__.append(each)
            sys.modules[module.__name__] = globals()[name] = module


_make_modules()
