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

from . import constraints as constraints
from . import transforms
from .constraint_registry import biject_to as biject_to
from .constraint_registry import transform_to as transform_to
from .distribution import Distribution as Distribution
from .kl import _KL_REGISTRY as _KL_REGISTRY
from .kl import kl_divergence as kl_divergence
from .kl import register_kl as register_kl
from .transforms import *  # noqa: F403

# PyTorch's modules of one or two distributions each, by the file that declares them.
# The name behind a + stands only in its module.
_MODULES = {
    "_continuous": """
        cauchy:Cauchy continuous_bernoulli:ContinuousBernoulli exponential:Exponential
        generalized_pareto:GeneralizedPareto laplace:Laplace normal:Normal
        uniform:Uniform von_mises:VonMises""",
    "_discrete": """
        bernoulli:Bernoulli binomial:Binomial categorical:Categorical
        geometric:Geometric multinomial:Multinomial negative_binomial:NegativeBinomial
        one_hot_categorical:OneHotCategorical,OneHotCategoricalStraightThrough
        poisson:Poisson""",
    "_gamma_family": """
        beta:Beta chi2:Chi2 dirichlet:Dirichlet fishersnedecor:FisherSnedecor
        gamma:Gamma studentT:StudentT""",
    "_made": """
        gumbel:Gumbel half_cauchy:HalfCauchy half_normal:HalfNormal
        inverse_gamma:InverseGamma kumaraswamy:Kumaraswamy
        logistic_normal:LogisticNormal log_normal:LogNormal pareto:Pareto
        relaxed_bernoulli:RelaxedBernoulli+LogitRelaxedBernoulli
        relaxed_categorical:RelaxedOneHotCategorical+ExpRelaxedCategorical
        weibull:Weibull""",
    "_vectors": """
        lkj_cholesky:LKJCholesky
        lowrank_multivariate_normal:LowRankMultivariateNormal
        multivariate_normal:MultivariateNormal wishart:Wishart""",
    "_wrappers": """
        independent:Independent mixture_same_family:MixtureSameFamily
        transformed_distribution:TransformedDistribution""",
    "distribution": "exp_family:ExponentialFamily",
}
__all__ = ["Distribution", "_KL_REGISTRY", "kl_divergence", "biject_to"]
__all__ += ["register_kl", "transform_to"]
__all__ += transforms.__all__


def _make_modules() -> None:
    """Each with its classes, which are pickled and shown under its name, and with the
    private helpers of the file, some of which programs import."""
    for file, listed in _MODULES.items():
        source = sys.modules[f"{__name__}.{file}"]
        helpers = {n: v for n, v in vars(source).items() if n[:1] == "_" != n[1:2]}
        for entry in listed.split():
            name, _, members = entry.partition(":")
            shared, _, own = members.partition("+")
            module = ModuleType(f"{__name__}.{name}", source.__doc__)
            vars(module).update(helpers, __file__=source.__file__)
            module.__all__ = members.replace("+", ",").split(",")
            for each in module.__all__:
                kind = getattr(source, each)
                kind.__module__ = module.__name__
                setattr(module, each, kind)
                if each != own:
                    globals()[each] = kind
                    __all__.append(each)
            sys.modules[module.__name__] = globals()[name] = module


_make_modules()
