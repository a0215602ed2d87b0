"""Maps from unconstrained numbers to each region."""

from __future__ import annotations

from functools import partial
from numbers import Number

from taeda.distributions import constraints, transforms

__all__ = ["ConstraintRegistry", "biject_to", "transform_to"]


class ConstraintRegistry:
    """A table from classes of constraints to functions that make a transform."""

    def __init__(self) -> None:
        self._registry: dict = {}

    def register(self, constraint, factory=None):
        """Enter a function of a constraint; without one, a decorator.

        Raises:
            TypeError: the first argument is no constraint.
        """
        if factory is None:
            return lambda function: self.register(constraint, function)
        base = constraints.Constraint
        kind = type(constraint) if isinstance(constraint, base) else constraint
        if not (isinstance(kind, type) and issubclass(kind, base)):
            raise TypeError(
                "Expected constraint to be either a Constraint subclass or instance, "
                f"but got {constraint}"
            )
        self._registry[kind] = factory
        return factory

    def __call__(self, constraint):
        """The transform to a region.

        Raises:
            NotImplementedError: nothing is entered for its class.
        """
        factory = self._registry.get(type(constraint))
        if factory is None:
            name = type(constraint).__name__
            raise NotImplementedError(f"Cannot transform {name} constraints")
        return factory(constraint)


biject_to, transform_to = ConstraintRegistry(), ConstraintRegistry()


def _exp_then(loc, scale):
    shift = transforms.AffineTransform(loc, scale)
    return transforms.ComposeTransform([transforms.ExpTransform(), shift])


def _between(to, region):
    low, high = region.lower_bound, region.upper_bound
    sigmoid = transforms.SigmoidTransform()
    if isinstance(low, Number) and isinstance(high, Number) and (low, high) == (0, 1):
        return sigmoid
    stretch = transforms.AffineTransform(low, high - low)
    return transforms.ComposeTransform([sigmoid, stretch])


# For each class of regions, what both tables make of one; `to` is the table.
_FACTORIES = {
    constraints.real: lambda to, r: transforms.identity_transform,
    constraints.greater_than: lambda to, r: _exp_then(r.lower_bound, 1),
    constraints.greater_than_eq: lambda to, r: _exp_then(r.lower_bound, 1),
    constraints.less_than: lambda to, r: _exp_then(r.upper_bound, -1),
    constraints.interval: _between,
    constraints.half_open_interval: _between,
    constraints.independent: lambda to, r: transforms.IndependentTransform(
        to(r.base_constraint), r.reinterpreted_batch_ndims
    ),
    constraints.cat: lambda to, r: transforms.CatTransform(
        [to(part) for part in r.cseq], r.dim, r.lengths
    ),
    constraints.stack: lambda to, r: transforms.StackTransform(
        [to(part) for part in r.cseq], r.dim
    ),
}
# The maps without parameters. A simplex has one for each table: `transform_to` takes
# the last, `biject_to` only those that are bijective.
_MAPS = [
    (constraints.simplex, transforms.StickBreakingTransform),
    (constraints.simplex, transforms.SoftmaxTransform),
    (constraints.lower_cholesky, transforms.LowerCholeskyTransform),
    (constraints.positive_definite, transforms.PositiveDefiniteTransform),
    (constraints.positive_semidefinite, transforms.PositiveDefiniteTransform),
    (constraints.corr_cholesky, transforms.CorrCholeskyTransform),
]
for _table in (biject_to, transform_to):
    for _region, _make in _FACTORIES.items():
        _table.register(_region, partial(_make, _table))
    for _region, _kind in _MAPS:
        if _table is transform_to or _kind.bijective:
            _table.register(_region, lambda _, kind=_kind: kind())
