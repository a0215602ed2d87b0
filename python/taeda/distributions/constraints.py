"""Where parameters and samples may lie."""

from __future__ import annotations

from functools import partial

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

    _shown = lambda self: ""
    __repr__ = lambda self: f"{type(self).__name__[1:]}({self._shown()})"


class _Dependent(Constraint):
    """A region that depends on other parameters.

    Args:
        is_discrete: whether its points are isolated; unknown when absent.
        event_dim: dims of an event; unknown when absent.
    """

    def __init__(self, *, is_discrete=NotImplemented, event_dim=NotImplemented):
        self._facts = {"is_discrete": is_discrete, "event_dim": event_dim}

    is_discrete = property(lambda self: self._known("is_discrete"))
    event_dim = property(lambda self: self._known("event_dim"))
    __call__ = lambda self, **facts: _Dependent(**self._facts | facts)

    def _known(self, name: str):
        if self._facts[name] is not NotImplemented:
            return self._facts[name]
        raise NotImplementedError(f".{name} cannot be determined statically")

    def check(self, x):
        raise ValueError("Cannot determine validity of dependent constraint")


def is_dependent(constraint) -> bool:
    """Whether a region depends on other parameters."""
    return isinstance(constraint, _Dependent)


class _DependentProperty(property, _Dependent):
    """A property of a distribution that is a region; on the class, a dependent one."""

    def __init__(self, fn=None, **facts):
        property.__init__(self, fn)
        _Dependent.__init__(self, **facts)

    __call__ = lambda self, fn: _DependentProperty(fn, **self._facts)


class _Derived(Constraint):
    """Base of regions of values whose parts lie in another region."""

    def __init__(self, base_constraint) -> None:
        self.base_constraint = base_constraint

    is_discrete = property(lambda self: self.base_constraint.is_discrete)
    event_dim = property(lambda self: self.base_constraint.event_dim)

    def _all(self, result, count: int, value):
        """Whether a test holds for all of its last `count` dims."""
        wanted, rank = self.event_dim, value.dim()
        if result.dim() < count or rank < wanted:
            raise ValueError(f"Expected value.dim() >= {wanted} but got {rank}")
        return result.flatten(-count).all(-1) if count else result


class _IndependentConstraint(_Derived):
    """Several values of a region together as one event."""

    def __init__(self, base_constraint, reinterpreted_batch_ndims: int) -> None:
        super().__init__(base_constraint)
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims

    event_dim = property(
        lambda self: self.base_constraint.event_dim + self.reinterpreted_batch_ndims
    )

    def check(self, value):
        result = self.base_constraint.check(value)
        return self._all(result, self.reinterpreted_batch_ndims, value)

    _shown = lambda self: f"{self.base_constraint!r}, {self.reinterpreted_batch_ndims}"


class MixtureSameFamilyConstraint(_Derived):
    """The region of a mixture: a value lies in that of every component."""

    def check(self, value):
        each = self.base_constraint.check(value.unsqueeze(-1 - self.event_dim))
        return self._all(each, 1, value)

    __repr__ = lambda self: f"{type(self).__name__}({self.base_constraint!r})"


class _Joined(Constraint):
    """Regions one behind another (`cat`) or side by side (`stack`) along a dim."""

    def __init__(self, cseq, dim: int = 0, lengths=None) -> None:
        self.cseq, self.dim = list(cseq), dim
        self.lengths = list(lengths) if lengths is not None else [1] * len(self.cseq)

    is_discrete = property(lambda self: any(c.is_discrete for c in self.cseq))
    event_dim = property(lambda self: max(c.event_dim for c in self.cseq))

    def check(self, value):
        parts = zip(self.cseq, self._parts(value), strict=True)
        return self._join([c.check(part) for c, part in parts])


class _Cat(_Joined):
    """Regions of parts one behind another."""

    _parts = lambda self, value: value.split(self.lengths, self.dim)
    _join = lambda self, checks: taeda.cat(checks, self.dim)


class _Stack(_Joined):
    """Regions of parts side by side."""

    _parts = lambda self, value: value.unbind(self.dim)
    _join = lambda self, checks: taeda.stack(checks, self.dim)

    @property
    def event_dim(self) -> int:
        dim = max(c.event_dim for c in self.cseq)
        return dim + 1 if self.dim + dim < 0 else dim


class _Bounded(Constraint):
    """Base of regions with bounds; those of numbers are shown with them."""

    def __init__(self, lower_bound, upper_bound) -> None:
        self.lower_bound, self.upper_bound = lower_bound, upper_bound

    def _shown(self) -> str:
        bounds = vars(self).items() if self.event_dim == 0 else ()
        return ", ".join(f"{name}={bound}" for name, bound in bounds)


class _Above(_Bounded):
    def __init__(self, lower_bound) -> None:
        self.lower_bound = lower_bound


class _Below(_Bounded):
    def __init__(self, upper_bound) -> None:
        self.upper_bound = upper_bound


# By whether there is a lower and an upper bound.
_BASES = {(True, True): _Bounded, (True, False): _Above, (False, True): _Below}


def _region(row: str, test, is_discrete: bool = False, event_dim: int = 0):
    """A class of regions, or its only one if they have no bounds.

    Args:
        row: the class's name and what lies there.
        test: of a value; or of a region and a value, and names the region's bounds.
    """
    name, _, text = row.partition(": ")
    space = {"is_discrete": is_discrete, "event_dim": event_dim}
    space |= {"__module__": __name__, "__doc__": f"{text}."}
    used = test.__code__.co_names
    base = _BASES.get(("lower_bound" in used, "upper_bound" in used))
    space["check"] = test if base else lambda self, value: test(value)
    globals()[f"_{name}"] = kind = type(f"_{name}", (base or Constraint,), space)
    return kind if base else kind()


_is_lower = lambda value: (value.tril() == value).flatten(-2).all(-1)
_positive_diagonal = lambda value: (value.diagonal(dim1=-2, dim2=-1) > 0).all(-1)


def _unit_rows(value):
    rounding = taeda.finfo(value.dtype).eps * value.size(-1) * 10
    norms = taeda.linalg.norm(value.detach(), dim=-1)
    return ((norms - 1).abs() < rounding).all(-1)


def _is_square(value):
    fits = value.shape[-2] == value.shape[-1]
    return taeda.full(value.shape[:-2], fits, dtype=taeda.bool, device=value.device)


def _then(first, second):
    """A test that needs all values to pass another one before."""

    def test(value):
        fits = first(value)
        return second(value) if fits.all() else fits

    return test


_is_symmetric = _then(
    _is_square, lambda v: taeda.isclose(v, v.mT, atol=1e-6).all(-2).all(-1)
)
dependent, dependent_property = _Dependent(), _DependentProperty
independent, cat, stack = _IndependentConstraint, _Cat, _Stack
_numbers, _whole = _region, partial(_region, is_discrete=True)
_vectors, _counts = (partial(kind, event_dim=1) for kind in (_numbers, _whole))
_matrices = partial(_region, event_dim=2)
real = _numbers("Real: All numbers but NaN", lambda v: v == v)
greater_than = _numbers(
    "GreaterThan: Numbers above a bound", lambda r, value: r.lower_bound < value
)
greater_than_eq = _numbers(
    "GreaterThanEq: Numbers from a bound on", lambda r, value: r.lower_bound <= value
)
less_than = _numbers(
    "LessThan: Numbers below a bound", lambda r, value: value < r.upper_bound
)
interval = _numbers(
    "Interval: Numbers between two bounds, with them",
    lambda r, value: (r.lower_bound <= value) & (value <= r.upper_bound),
)
half_open_interval = _numbers(
    "HalfOpenInterval: Numbers between two bounds, with the lower one",
    lambda r, value: (r.lower_bound <= value) & (value < r.upper_bound),
)
positive, nonnegative = greater_than(0.0), greater_than_eq(0.0)
unit_interval = interval(0.0, 1.0)
boolean = _whole("Boolean: 0 and 1", lambda v: (v == 0) | (v == 1))
integer_interval = _whole(
    "IntegerInterval: Whole numbers from lower_bound to upper_bound",
    lambda r, value: (
        (value % 1 == 0) & (r.lower_bound <= value) & (value <= r.upper_bound)
    ),
)
_whole(
    "IntegerLessThan: Whole numbers up to a bound",
    lambda r, value: (value % 1 == 0) & (value <= r.upper_bound),
)
_whole_from = _whole(
    "IntegerGreaterThan: Whole numbers from a bound on",
    lambda r, value: (value % 1 == 0) & (r.lower_bound <= value),
)
nonnegative_integer, positive_integer = _whole_from(0), _whole_from(1)
real_vector = independent(real, 1)
simplex = _vectors(
    "Simplex: Probabilities that sum to 1",
    lambda v: (v >= 0).all(-1) & ((v.sum(-1) - 1).abs() < 1e-6),
)
one_hot = _counts(
    "OneHot: A single 1 among zeros",
    lambda v: ((v == 0) | (v == 1)).all(-1) & v.sum(-1).eq(1),
)
multinomial = _counts(
    "Multinomial: Counts that sum to at most a number",
    lambda r, x: (x.sum(-1) <= r.upper_bound) & (x.amin(-1) >= 0),
)
lower_triangular = _matrices("LowerTriangular: With 0 above the diagonal", _is_lower)
lower_cholesky = _matrices(
    "LowerCholesky: Lower triangular with a positive diagonal",
    lambda v: _is_lower(v) & _positive_diagonal(v),
)
corr_cholesky = _matrices(
    "CorrCholesky: The same with rows of the length 1",
    lambda v: _unit_rows(v) & _is_lower(v) & _positive_diagonal(v),
)
square = _matrices("Square: Square matrices", _is_square)
symmetric = _matrices("Symmetric: Symmetric matrices", _is_symmetric)
positive_semidefinite = _matrices(
    "PositiveSemidefinite: Symmetric, without negative eigenvalues",
    _then(_is_symmetric, lambda v: taeda.linalg.eigvalsh(v).ge(0).all(-1)),
)
positive_definite = _matrices(
    "PositiveDefinite: Symmetric with a Cholesky factor",
    _then(_is_symmetric, lambda v: taeda.linalg.cholesky_ex(v).info.eq(0)),
)
