"""Where parameters and samples may lie."""

from __future__ import annotations

import taeda

__all__ = """Constraint MixtureSameFamilyConstraint boolean cat corr_cholesky dependent
dependent_property greater_than greater_than_eq half_open_interval independent
integer_interval interval is_dependent less_than lower_cholesky lower_triangular
multinomial nonnegative nonnegative_integer one_hot positive positive_definite
positive_integer positive_semidefinite real real_vector simplex square stack symmetric
unit_interval""".split()


class Constraint:
    """A region; `check` tells for each event whether it lies there."""

    is_discrete = False
    event_dim = 0

    def check(self, value):
        """Booleans of the value's shape without the last `event_dim` dims."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return type(self).__name__[1:] + "()"


class _Dependent(Constraint):
    """A region that depends on other parameters.

    Args:
        is_discrete: whether its points are isolated; unknown when absent.
        event_dim: dims of an event; unknown when absent.
    """

    def __init__(self, *, is_discrete=NotImplemented, event_dim=NotImplemented):
        self._is_discrete, self._event_dim = is_discrete, event_dim
        super().__init__()

    @property
    def is_discrete(self):
        """Whether its points are isolated."""
        return self._known("is_discrete")

    @property
    def event_dim(self):
        """Dims of an event."""
        return self._known("event_dim")

    def _known(self, name: str):
        value = getattr(self, f"_{name}")
        if value is not NotImplemented:
            return value
        raise NotImplementedError(f".{name} cannot be determined statically")

    def __call__(self, *, is_discrete=NotImplemented, event_dim=NotImplemented):
        given = {"is_discrete": is_discrete, "event_dim": event_dim}
        for name, value in given.items():
            if value is NotImplemented:
                given[name] = getattr(self, f"_{name}")
        return _Dependent(**given)

    def check(self, x):
        raise ValueError("Cannot determine validity of dependent constraint")


def is_dependent(constraint) -> bool:
    """Whether a region depends on other parameters."""
    return isinstance(constraint, _Dependent)


class _DependentProperty(property, _Dependent):
    """A property of a distribution that is a region; on the class, a dependent one."""

    def __init__(
        self, fn=None, *, is_discrete=NotImplemented, event_dim=NotImplemented
    ):
        property.__init__(self, fn)
        self._is_discrete, self._event_dim = is_discrete, event_dim

    def __call__(self, fn):
        return _DependentProperty(
            fn, is_discrete=self._is_discrete, event_dim=self._event_dim
        )


class _Derived(Constraint):
    """Base of regions of values whose parts lie in another region."""

    def __init__(self, base_constraint) -> None:
        self.base_constraint = base_constraint

    @property
    def is_discrete(self) -> bool:
        """Whether the other region's points are isolated."""
        return self.base_constraint.is_discrete

    @property
    def event_dim(self) -> int:
        """Dims of an event."""
        return self.base_constraint.event_dim

    def _all(self, result, count: int, value):
        """Whether a test holds for all of its last `count` dims."""
        if result.dim() < count or value.dim() < self.event_dim:
            raise ValueError(
                f"Expected value.dim() >= {self.event_dim} but got {value.dim()}"
            )
        return result.flatten(-count).all(-1) if count else result


class _IndependentConstraint(_Derived):
    """Several values of a region together as one event."""

    def __init__(self, base_constraint, reinterpreted_batch_ndims: int) -> None:
        super().__init__(base_constraint)
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims

    @property
    def event_dim(self) -> int:
        return self.base_constraint.event_dim + self.reinterpreted_batch_ndims

    def check(self, value):
        result = self.base_constraint.check(value)
        return self._all(result, self.reinterpreted_batch_ndims, value)

    def __repr__(self) -> str:
        own = f"{self.base_constraint!r}, {self.reinterpreted_batch_ndims}"
        return f"{type(self).__name__[1:]}({own})"


class MixtureSameFamilyConstraint(_Derived):
    """The region of a mixture: a value lies in that of every component."""

    def check(self, value):
        each = self.base_constraint.check(value.unsqueeze(-1 - self.event_dim))
        return self._all(each, 1, value)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.base_constraint!r})"


def _simple(name: str, test, is_discrete: bool = False, event_dim: int = 0):
    """A region without parameters; its class has its name here with an underscore."""
    space = {
        "is_discrete": is_discrete,
        "event_dim": event_dim,
        "check": lambda self, value: test(value),
        "__module__": __name__,
        "__doc__": "A region without parameters.",
    }
    globals()[name] = type(name, (Constraint,), space)
    return globals()[name]()


class _Bounded(Constraint):
    """Base of regions with bounds; they are shown with them."""

    def __init__(self, lower_bound, upper_bound) -> None:
        self.lower_bound, self.upper_bound = lower_bound, upper_bound

    def __repr__(self) -> str:
        bounds = ", ".join(f"{name}={bound}" for name, bound in vars(self).items())
        return f"{type(self).__name__[1:]}({bounds})"


class _Above(_Bounded):
    def __init__(self, lower_bound) -> None:
        self.lower_bound = lower_bound


class _Below(_Bounded):
    def __init__(self, upper_bound) -> None:
        self.upper_bound = upper_bound


class _GreaterThan(_Above):
    """Numbers above a bound."""

    check = lambda self, value: self.lower_bound < value


class _GreaterThanEq(_Above):
    """Numbers from a bound on."""

    check = lambda self, value: self.lower_bound <= value


class _LessThan(_Below):
    """Numbers below a bound."""

    check = lambda self, value: value < self.upper_bound


class _Interval(_Bounded):
    """Numbers between two bounds, with them."""

    check = lambda self, x: (self.lower_bound <= x) & (x <= self.upper_bound)


class _HalfOpenInterval(_Bounded):
    """Numbers between two bounds, with the lower one."""

    check = lambda self, x: (self.lower_bound <= x) & (x < self.upper_bound)


class _IntegerInterval(_Bounded):
    """Whole numbers from lower_bound to upper_bound."""

    is_discrete = True
    check = lambda self, value: (value % 1 == 0) & _Interval.check(self, value)


class _IntegerLessThan(_Below):
    """Whole numbers up to a bound."""

    is_discrete = True
    check = lambda self, value: (value % 1 == 0) & (value <= self.upper_bound)


class _IntegerGreaterThan(_Above):
    """Whole numbers from a bound on."""

    is_discrete = True
    check = lambda self, value: (value % 1 == 0) & (value >= self.lower_bound)


class _Multinomial(_Below):
    """Counts that sum to at most a number."""

    is_discrete, event_dim = True, 1
    __repr__ = Constraint.__repr__

    def check(self, value):
        most = value.sum(-1) <= self.upper_bound
        return most & (value.amin(-1) >= 0)


class _Joined(Constraint):
    """Regions one behind another (`cat`) or side by side (`stack`) along a dim."""

    def __init__(self, cseq, dim: int = 0, lengths=None) -> None:
        self.cseq, self.dim = list(cseq), dim
        self.lengths = list(lengths) if lengths is not None else [1] * len(self.cseq)

    @property
    def is_discrete(self) -> bool:
        return any(c.is_discrete for c in self.cseq)


class _Cat(_Joined):
    """Regions of parts one behind another."""

    @property
    def event_dim(self) -> int:
        return max(c.event_dim for c in self.cseq)

    def check(self, value):
        parts = value.split(self.lengths, self.dim)
        checks = [c.check(part) for c, part in zip(self.cseq, parts, strict=True)]
        return taeda.cat(checks, self.dim)


class _Stack(_Joined):
    """Regions of parts side by side."""

    @property
    def event_dim(self) -> int:
        dim = max(c.event_dim for c in self.cseq)
        return dim + 1 if self.dim + dim < 0 else dim

    def check(self, value):
        parts = value.unbind(self.dim)
        checks = [c.check(part) for c, part in zip(self.cseq, parts, strict=True)]
        return taeda.stack(checks, self.dim)


def _is_lower(value):
    return (value.tril() == value).flatten(-2).all(-1)


def _positive_diagonal(value):
    return (value.diagonal(dim1=-2, dim2=-1) > 0).all(-1)


def _is_corr_cholesky(value):
    rounding = taeda.finfo(value.dtype).eps * value.size(-1) * 10
    norms = taeda.linalg.norm(value.detach(), dim=-1)
    unit = ((norms - 1).abs() < rounding).all(-1)
    return _is_lower(value) & _positive_diagonal(value) & unit


def _is_square(value):
    fits = value.shape[-2] == value.shape[-1]
    return taeda.full(value.shape[:-2], fits, dtype=taeda.bool, device=value.device)


def _is_symmetric(value):
    if not _is_square(value).all():
        return _is_square(value)
    return taeda.isclose(value, value.mT, atol=1e-6).all(-2).all(-1)


def _is_semidefinite(value):
    fits = _is_symmetric(value)
    if not fits.all():
        return fits
    return taeda.linalg.eigvalsh(value).ge(0).all(-1)


def _is_definite(value):
    fits = _is_symmetric(value)
    if not fits.all():
        return fits
    return taeda.linalg.cholesky_ex(value).info.eq(0)


def _is_simplex(value):
    return (value >= 0).all(-1) & ((value.sum(-1) - 1).abs() < 1e-6)


def _is_one_hot(value):
    return ((value == 0) | (value == 1)).all(-1) & value.sum(-1).eq(1)


dependent = _Dependent()
dependent_property = _DependentProperty
independent = _IndependentConstraint
boolean = _simple("_Boolean", lambda v: (v == 0) | (v == 1), True)
one_hot = _simple("_OneHot", _is_one_hot, True, 1)
real = _simple("_Real", lambda v: v == v)
real_vector = independent(real, 1)
simplex = _simple("_Simplex", _is_simplex, event_dim=1)
lower_triangular = _simple("_LowerTriangular", _is_lower, event_dim=2)
lower_cholesky = _simple(
    "_LowerCholesky", lambda v: _is_lower(v) & _positive_diagonal(v), event_dim=2
)
corr_cholesky = _simple("_CorrCholesky", _is_corr_cholesky, event_dim=2)
square = _simple("_Square", _is_square, event_dim=2)
symmetric = _simple("_Symmetric", _is_symmetric, event_dim=2)
positive_semidefinite = _simple("_PositiveSemidefinite", _is_semidefinite, event_dim=2)
positive_definite = _simple("_PositiveDefinite", _is_definite, event_dim=2)
nonnegative_integer = _IntegerGreaterThan(0)
positive_integer = _IntegerGreaterThan(1)
integer_interval = _IntegerInterval
greater_than, greater_than_eq, less_than = _GreaterThan, _GreaterThanEq, _LessThan
positive, nonnegative = greater_than(0.0), greater_than_eq(0.0)
interval = _Interval
unit_interval = _Interval(0.0, 1.0)
half_open_interval = _HalfOpenInterval
multinomial = _Multinomial
cat = _Cat
stack = _Stack
