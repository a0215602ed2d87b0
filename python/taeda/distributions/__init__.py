"""Probability distributions: samples, densities, entropies and divergences.

Example:
    >>> from taeda.distributions import Categorical
    >>> policy = Categorical(taeda.tensor([0.25, 0.25, 0.25, 0.25]))
    >>> policy.log_prob(taeda.tensor(3))
    tensor(-1.3863)
"""

from __future__ import annotations

import re
import sys
from functools import cache
from types import ModuleType

from . import constraints as constraints
from . import transforms
from ._declare import KNOWN
from .constraint_registry import biject_to as biject_to
from .constraint_registry import transform_to as transform_to
from .distribution import Distribution as Distribution
from .kl import _KL_REGISTRY as _KL_REGISTRY
from .kl import kl_divergence as kl_divergence
from .kl import register_kl as register_kl
from .transforms import *  # noqa: F403
from .utils import lazy_property

# PyTorch has a module for each class, which it calls as the class but for these. A name
# behind a + stands only there.
_MODULES = """
ExponentialFamily:exp_family FisherSnedecor:fishersnedecor StudentT:studentT
LKJCholesky:lkj_cholesky LowRankMultivariateNormal:lowrank_multivariate_normal
OneHotCategoricalStraightThrough:one_hot_categorical
RelaxedOneHotCategorical:relaxed_categorical
+ExpRelaxedCategorical:relaxed_categorical +LogitRelaxedBernoulli:relaxed_bernoulli
"""
__all__ = """Distribution _KL_REGISTRY biject_to kl_divergence register_kl
transform_to""".split()
__all__ += transforms.__all__


@cache
def _helpers(file: str) -> dict:
    """What a file says, and its private names, some of which programs import."""
    found = vars(sys.modules[file])
    private = {n: value for n, value in found.items() if n[:1] == "_" != n[1:2]}
    return private | {"__doc__": found["__doc__"], "__file__": found["__file__"]}


def _imported(kind: type) -> dict:
    """A class, its bases, and what modules of distributions are written with."""
    bases = [c for c in kind.__mro__ if issubclass(c, Distribution)]
    with_it = {"constraints": constraints, "lazy_property": lazy_property}
    with_it |= {c.__name__: c for c in bases if "._" not in c.__module__}
    return with_it | {kind.__name__: kind}


def _make_modules() -> None:
    """Each with its classes, which are pickled and shown under its name."""
    called = dict(entry.split(":") for entry in _MODULES.split())
    for name, kind in KNOWN.items():
        if not (name[0].isupper() and hasattr(kind, "_declaring")):
            continue
        words = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()
        short = called.get(name) or called.get(f"+{name}") or words
        module = globals().setdefault(short, ModuleType(f"{__name__}.{short}"))
        vars(module).update(_helpers(kind.__module__) | _imported(kind))
        vars(module).setdefault("__all__", []).append(name)
        kind.__module__, sys.modules[module.__name__] = module.__name__, module
        if f"+{name}" not in called:
            globals()[name] = kind
            __all__.append(name)


_make_modules()
