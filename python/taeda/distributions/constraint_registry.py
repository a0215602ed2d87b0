"""Maps from unconstrained numbers to each region."""

from __future__ import annotations

from taeda.distributions import constraints, transforms

__all__ = ["ConstraintRegistry", "biject_to", "transform_to"]


class ConstraintRegistry:
    """A table from classes of constraints to functions that make a transform."""

    def __init__(self) -> None:
        self._registry: dict = {}

    def register(self, constraint, factory=None):
        """Enter a function; without one, a decorator.

        Raises:
            TypeError: the first argument is no constraint.
        """
        if factory is None:
            return lambda factory: self.register(constraint, factory)
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
        """The transform to a region."""
        kind = type(constraint)
        if kind in self._registry:
            return self._registry[kind](constraint)
        raise NotImplementedError(f"Cannot transform {kind.__name__} constraints")


biject_to, transform_to = ConstraintRegistry(), ConstraintRegistry()


def _both(*kinds):
    """A decorator that enters a function in both tables."""

    def enter(factory):
        for kind in kinds:
            biject_to.register(kind, factory)
            transform_to.register(kind, factory)
        return factory

    return enter


@_both(constraints.real)
def _real(constraint):
    return transforms.identity_transform


@_both(constraints.greater_than, constraints.greater_than_eq)
def _above(constraint):
    shift = transforms.AffineTransform(constraint.lower_bound, 1)
    return transforms.ComposeTransform([transforms.ExpTransform(), shift])


@_both(constraints.less_than)
def _below(constraint):
    shift = transforms.AffineTransform(constraint.upper_bound, -1)
    return transforms.ComposeTransform([transforms.ExpTransform(), shift])


@_both(constraints.interval, constraints.half_open_interval)
def _between(constraint):
    low, high = constraint.lower_bound, constraint.upper_bound
    plain = all(isinstance(bound, (int, float)) for bound in (low, high))
    if plain and (low, high) == (0, 1):
        return transforms.SigmoidTransform()
    stretch = transforms.AffineTransform(loc=low, scale=high - low)
    return transforms.ComposeTransform([transforms.SigmoidTransform(), stretch])


@biject_to.register(constraints.simplex)
def _simplex_one_to_one(constraint):
    return transforms.StickBreakingTransform()


@transform_to.register(constraints.simplex)
def _simplex(constraint):
    return transforms.SoftmaxTransform()


@_both(constraints.lower_cholesky)
def _factor(constraint):
    return transforms.LowerCholeskyTransform()


@_both(constraints.positive_definite, constraints.positive_semidefinite)
def _definite(constraint):
    return transforms.PositiveDefiniteTransform()


@_both(constraints.corr_cholesky)
def _correlation(constraint):
    return transforms.CorrCholeskyTransform()


def _joined(table, kind, make):
    def factory(constraint):
        parts = [table(c) for c in constraint.cseq]
        return make(parts, constraint)

    table.register(kind, factory)


def _independent(table) -> None:
    def factory(constraint):
        base = table(constraint.base_constraint)
        count = constraint.reinterpreted_batch_ndims
        return transforms.IndependentTransform(base, count)

    table.register(constraints.independent, factory)


for _table in (biject_to, transform_to):
    _joined(
        _table,
        constraints.cat,
        lambda parts, c: transforms.CatTransform(parts, c.dim, c.lengths),
    )
    _joined(
        _table,
        constraints.stack,
        lambda parts, c: transforms.StackTransform(parts, c.dim),
    )
    _independent(_table)
