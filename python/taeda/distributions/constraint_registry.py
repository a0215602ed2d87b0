"""Maps from unconstrained numbers to regions."""

from __future__ import annotations

from functools import partial
from numbers import Number

from . import constraints
from . import transforms as maps

__all__ = ["biject_to", "transform_to"]


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


def _then(first, loc, scale):
    return maps.ComposeTransform([first, maps.AffineTransform(loc, scale)])


def _between(to, region):
    low, high = region.lower_bound, region.upper_bound
    if isinstance(low, Number) and isinstance(high, Number) and (low, high) == (0, 1):
        return maps.SigmoidTransform()
    return _then(maps.SigmoidTransform(), low, high - low)


# For each class of regions, what both tables make of one; `to` is the table.
_above = lambda to, r: _then(maps.ExpTransform(), r.lower_bound, 1)
_FACTORIES = {
    constraints.real: lambda to, r: maps.identity_transform,
    constraints.greater_than: _above,
    constraints.greater_than_eq: _above,
    constraints.less_than: lambda to, r: _then(maps.ExpTransform(), r.upper_bound, -1),
    constraints.interval: _between,
    constraints.half_open_interval: _between,
    constraints.independent: lambda to, r: maps.IndependentTransform(
        to(r.base_constraint), r.reinterpreted_batch_ndims
    ),
    constraints.cat: lambda to, r: maps.CatTransform(
        [*map(to, r.cseq)], r.dim, r.lengths
    ),
    constraints.stack: lambda to, r: maps.StackTransform([*map(to, r.cseq)], r.dim),
}
# Those to their codomains: `biject_to` takes only what is bijective, `transform_to` the
# last of two.
_MAPS = """StickBreakingTransform SoftmaxTransform CorrCholeskyTransform
LowerCholeskyTransform PositiveDefiniteTransform""".split()
for _table in (biject_to, transform_to):
    for _region, _make in _FACTORIES.items():
        _table.register(_region, partial(_make, _table))
    for _kind in (getattr(maps, name) for name in _MAPS):
        if _table is transform_to or _kind.bijective:
            _table.register(_kind.codomain, lambda _, kind=_kind: kind())
transform_to.register(
    constraints.positive_semidefinite, lambda _: maps.PositiveDefiniteTransform()
)
