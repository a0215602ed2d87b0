"""Maps from unconstrained numbers to regions."""

from __future__ import annotations

from functools import partial
from itertools import product
from numbers import Number

from . import constraints
from . import transforms as maps

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


def _then(first, loc, scale):
    return maps.ComposeTransform([first, maps.AffineTransform(loc, scale)])


def _between(low, high):
    if isinstance(low, Number) and isinstance(high, Number) and (low, high) == (0, 1):
        return maps.SigmoidTransform()
    return _then(maps.SigmoidTransform(), low, high - low)


# What both tables make of regions, and `transform_to`: `r` is one, `to` the table.
_BIJECTIVE = """
real: identity_transform
greater_than greater_than_eq: _then(ExpTransform(), r.lower_bound, 1)
less_than: _then(ExpTransform(), r.upper_bound, -1)
interval half_open_interval: _between(r.lower_bound, r.upper_bound)
independent: IndependentTransform(to(r.base_constraint), r.reinterpreted_batch_ndims)
cat: CatTransform([*map(to, r.cseq)], r.dim, r.lengths)
stack: StackTransform([*map(to, r.cseq)], r.dim)
corr_cholesky: CorrCholeskyTransform()
simplex: StickBreakingTransform()
"""
_ONTO = """
simplex: SoftmaxTransform()
lower_cholesky: LowerCholeskyTransform()
positive_definite positive_semidefinite: PositiveDefiniteTransform()
"""
biject_to, transform_to = ConstraintRegistry(), ConstraintRegistry()


def _fill(tables, text: str) -> None:
    for names, made in (row.split(": ") for row in text.strip().split("\n")):
        make = eval(f"lambda to, r: {made}", vars(maps) | globals())
        for name, table in product(names.split(), tables):
            table.register(getattr(constraints, name), partial(make, table))


_fill((biject_to, transform_to), _BIJECTIVE)
_fill((transform_to,), _ONTO)
