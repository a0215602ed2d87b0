"""Maps with inverses and the logarithms of their Jacobians, and those to regions."""

from __future__ import annotations

from functools import partial
from math import log, prod
from numbers import Number

import taeda
from taeda.nn.functional import logsigmoid, pad, softplus

from . import constraints
from ._declare import argument, of
from ._transform_base import (
    CatTransform,
    ComposeTransform,
    IndependentTransform,
    StackTransform,
    Transform,
    _InverseTransform,  # noqa: F401
    check_rank,
    identity_transform,
    region_of,
)
from .utils import _sum_rightmost, broadcast_all, tril_matrix_to_vec, vec_to_tril_matrix

__all__ = """AbsTransform AffineTransform CatTransform ComposeTransform
CorrCholeskyTransform CumulativeDistributionTransform ExpTransform IndependentTransform
LowerCholeskyTransform PositiveDefiniteTransform PowerTransform ReshapeTransform
SigmoidTransform SoftmaxTransform SoftplusTransform StackTransform
StickBreakingTransform TanhTransform Transform identity_transform""".split()


class _Alike(Transform):
    """Base of maps without parameters: those of one class are equal.

    Each is stated by functions: f, its inverse, and log |f'| of (x, f(x)).
    """

    _compared = ()
    domain = constraints.real


class _Rising(_Alike):
    """Base of those of numbers that rise, so that they have one inverse."""

    bijective, sign = True, 1


class ExpTransform(_Rising):
    """y = exp(x)."""

    codomain = constraints.positive
    _call = staticmethod(lambda x: x.exp())
    _inverse = staticmethod(lambda y: y.log())
    log_abs_det_jacobian = staticmethod(lambda x, y: x)


def _inside(y):
    limits = taeda.finfo(y.dtype)
    return y.clamp(limits.tiny, 1.0 - limits.eps)


class SigmoidTransform(_Rising):
    """y = 1 / (1 + exp(-x)), kept off 0 and 1 by a rounding."""

    codomain = constraints.unit_interval
    _call = staticmethod(lambda x: _inside(x.sigmoid()))
    _inverse = staticmethod(lambda y: taeda.logit(_inside(y)))
    log_abs_det_jacobian = staticmethod(lambda x, y: logsigmoid(x) + logsigmoid(-x))


class SoftplusTransform(_Rising):
    """y = log(1 + exp(x))."""

    codomain = constraints.positive
    _call = staticmethod(lambda x: softplus(x))
    _inverse = staticmethod(lambda y: y + (-(-y).expm1()).log())
    log_abs_det_jacobian = staticmethod(lambda x, y: logsigmoid(x))


class TanhTransform(_Rising):
    """y = tanh(x)."""

    codomain = constraints.interval(-1.0, 1.0)
    _call = staticmethod(lambda x: x.tanh())
    _inverse = staticmethod(lambda y: y.atanh())
    # 1 - tanh(x)^2 = 4 sigmoid(2 x) sigmoid(-2 x)
    log_abs_det_jacobian = staticmethod(
        lambda x, y: log(4.0) + logsigmoid(2.0 * x) + logsigmoid(-2.0 * x)
    )


class AbsTransform(_Alike):
    """y = |x|; the inverse is the positive x."""

    codomain = constraints.positive
    _call = staticmethod(lambda x: x.abs())
    _inverse = staticmethod(lambda y: y)


class SoftmaxTransform(_Alike):
    """y = softmax(x); the inverse is the logarithm."""

    domain, codomain = constraints.real_vector, constraints.simplex
    _call = staticmethod(lambda x: x.softmax(-1))
    _inverse = staticmethod(lambda y: y.log())
    forward_shape = inverse_shape = lambda self, shape: check_rank(shape, 1)


_MATRICES = constraints.independent(constraints.real, 2)


def _with_diagonal(matrix, change):
    diagonal = matrix.diagonal(dim1=-2, dim2=-1)
    return matrix.tril(-1) + change(diagonal).diag_embed()


class LowerCholeskyTransform(_Alike):
    """A matrix to a lower triangular one with a positive diagonal."""

    domain, codomain = _MATRICES, constraints.lower_cholesky
    _call = staticmethod(lambda x: _with_diagonal(x, lambda d: d.exp()))
    _inverse = staticmethod(lambda y: _with_diagonal(y, lambda d: d.log()))


class PositiveDefiniteTransform(_Alike):
    """A matrix to a positive-definite one, through its Cholesky factor."""

    domain, codomain = _MATRICES, constraints.positive_definite
    _inverse = staticmethod(
        lambda y: LowerCholeskyTransform._inverse(taeda.linalg.cholesky(y))
    )

    def _call(self, x):
        factor = LowerCholeskyTransform._call(x)
        return factor @ factor.mT


def _reals(rank: int):
    """All tensors of this rank."""
    return constraints.independent(constraints.real, rank) if rank else constraints.real


def _broadcast(self, shape):
    """A shape with those of the parameters."""
    own = (getattr(getattr(self, n), "shape", ()) for n in self._compared)
    return taeda.broadcast_shapes(shape, *own)


class PowerTransform(Transform):
    """y = x^exponent of positive numbers."""

    exponent = argument("the power")
    _compared = ("exponent",)
    domain = codomain = constraints.positive
    bijective = True
    sign = property(lambda self: self.exponent.sign())
    _call = lambda self, x: x**self.exponent
    _inverse = lambda self, y: y ** (1 / self.exponent)
    log_abs_det_jacobian = lambda self, x, y: (y / x * self.exponent).abs().log()
    forward_shape = inverse_shape = _broadcast

    def _adopt(self, cache_size: int) -> None:
        super()._adopt(cache_size)
        (self.exponent,) = broadcast_all(self.exponent)


class AffineTransform(Transform):
    """y = loc + scale x."""

    loc = argument("added, a number or tensor")
    scale = argument("multiplied, a number or tensor")
    event_dim = argument("dims of one event", held="_event_dim", default="0")
    _compared = ("loc", "scale")
    bijective = True
    domain = codomain = region_of(lambda self: _reals(self._event_dim))
    _call = lambda self, x: self.scale * x + self.loc
    _inverse = lambda self, y: (y - self.loc) / self.scale
    forward_shape = inverse_shape = _broadcast

    @property
    def sign(self):
        if isinstance(self.scale, Number):
            return (self.scale > 0) - (self.scale < 0)
        return self.scale.sign()

    def log_abs_det_jacobian(self, x, y):
        scale = self.scale
        if isinstance(scale, Number):
            scale = x.new_full((), scale)
        return _sum_rightmost(scale.abs().log().expand(x.shape), self._event_dim)


class CorrCholeskyTransform(Transform):
    """n (n - 1) / 2 numbers to the Cholesky factor of a correlation matrix.

    The hyperbolic tangents of the numbers are partial correlations: each row of the
    factor, a unit vector, gives its next element that part of the length that is left
    (D. Lewandowski, D. Kurowicka, H. Joe, "Generating random correlation matrices based
    on vines and extended onion method", 2009).
    """

    domain, codomain = constraints.real_vector, constraints.corr_cholesky
    bijective = True

    # The squared length that is left of a row before each of its elements.
    _left = staticmethod(
        lambda squares: pad((1 - squares.cumsum(-1))[..., :-1], [1, 0], value=1)
    )

    def _call(self, x):
        limit = 1 - taeda.finfo(x.dtype).eps
        part = vec_to_tril_matrix(x.tanh().clamp(-limit, limit), diag=-1)
        left = pad((1 - part * part).cumprod(-1)[..., :-1], [1, 0], value=1).sqrt()
        return left * (part + taeda.eye(part.shape[-1]).to(part))

    def _inverse(self, y):
        left = tril_matrix_to_vec(self._left(y * y), diag=-1)
        return (tril_matrix_to_vec(y, diag=-1) / left.sqrt()).atanh()

    def log_abs_det_jacobian(self, x, y, intermediates=None):
        left = tril_matrix_to_vec(self._left(y * y), diag=-1)
        slopes = TanhTransform.log_abs_det_jacobian(x, None)
        return (slopes + 0.5 * left.log()).sum(-1)

    def forward_shape(self, shape):
        check_rank(shape, 1)
        n = round((1 + (1 + 8 * shape[-1]) ** 0.5) / 2)
        if n * (n - 1) != 2 * shape[-1]:
            raise ValueError("Input is not a flattened lower-diagonal number")
        return shape[:-1] + (n, n)

    def inverse_shape(self, shape):
        check_rank(shape, 2)
        n, columns = shape[-2:]
        if n != columns:
            raise ValueError("Input is not square")
        return shape[:-2] + (n * (n - 1) // 2,)


class StickBreakingTransform(_Alike):
    """K - 1 numbers to K probabilities, each a part of what is left of a stick.

    The number that breaks off one of k equal parts is 0: x is shifted by log(k - 1).
    """

    domain, codomain = constraints.real_vector, constraints.simplex
    bijective = True
    _longer = lambda self, shape, by: check_rank(shape, 1)[:-1] + (shape[-1] + by,)
    forward_shape = lambda self, shape: self._longer(shape, 1)
    inverse_shape = lambda self, shape: self._longer(shape, -1)

    @staticmethod
    def _shift(x):
        return taeda.arange(x.shape[-1], 0, -1, dtype=x.dtype, device=x.device).log()

    def _call(self, x):
        part = SigmoidTransform._call(x - self._shift(x))
        left = pad((1 - part).cumprod(-1), [1, 0], value=1)
        return pad(part, [0, 1], value=1) * left

    def _inverse(self, y):
        pieces = y[..., :-1]
        left = (1 - pieces.cumsum(-1)).clamp(min=taeda.finfo(y.dtype).tiny)
        return (pieces / left).log() + self._shift(pieces)

    def log_abs_det_jacobian(self, x, y):
        rest = logsigmoid(self._shift(x) - x)
        return (y[..., :-1].log() + rest).sum(-1)


class ReshapeTransform(Transform):
    """Another shape of the last dims."""

    in_shape = argument("the shape before")
    out_shape = argument("the shape after, with as many elements")
    bijective = True
    domain = region_of(lambda self: _reals(len(self.in_shape)))
    codomain = region_of(lambda self: _reals(len(self.out_shape)))
    _call = lambda self, x: x.reshape(self.forward_shape(x.shape))
    _inverse = lambda self, y: y.reshape(self.inverse_shape(y.shape))
    forward_shape = lambda self, shape: self._swap(shape, self.in_shape, self.out_shape)
    inverse_shape = lambda self, shape: self._swap(shape, self.out_shape, self.in_shape)

    def _adopt(self, cache_size: int) -> None:
        super()._adopt(cache_size)
        self.in_shape, self.out_shape = map(taeda.Size, (self.in_shape, self.out_shape))
        if prod(self.in_shape) != prod(self.out_shape):
            raise ValueError("in_shape, out_shape have different numbers of elements")

    @staticmethod
    def _swap(shape, old, new):
        check_rank(shape, len(old))
        cut = len(shape) - len(old)
        if shape[cut:] != old:
            raise ValueError(f"Shape mismatch: expected {shape[cut:]} but got {old}")
        return shape[:cut] + new

    def log_abs_det_jacobian(self, x, y):
        return x.new_zeros(x.shape[: x.dim() - len(self.in_shape)])


class CumulativeDistributionTransform(Transform):
    """y = F(x) of a distribution."""

    distribution = argument("with `cdf` and `icdf`")
    bijective, sign, codomain = True, 1, constraints.unit_interval
    domain, _call, _inverse = of("distribution", "support", "cdf", "icdf")
    log_abs_det_jacobian = lambda self, x, y: self.distribution.log_prob(x)


# Maps from unconstrained numbers to each region -------------------------------


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
    return ComposeTransform([first, AffineTransform(loc, scale)])


def _between(to, region):
    low, high = region.lower_bound, region.upper_bound
    if isinstance(low, Number) and isinstance(high, Number) and (low, high) == (0, 1):
        return SigmoidTransform()
    return _then(SigmoidTransform(), low, high - low)


# For each class of regions, what both tables make of one; `to` is the table.
_FACTORIES = {
    constraints.real: lambda to, r: identity_transform,
    constraints.greater_than: lambda to, r: _then(ExpTransform(), r.lower_bound, 1),
    constraints.greater_than_eq: lambda to, r: _then(ExpTransform(), r.lower_bound, 1),
    constraints.less_than: lambda to, r: _then(ExpTransform(), r.upper_bound, -1),
    constraints.interval: _between,
    constraints.half_open_interval: _between,
    constraints.independent: lambda to, r: IndependentTransform(
        to(r.base_constraint), r.reinterpreted_batch_ndims
    ),
    constraints.cat: lambda to, r: CatTransform([*map(to, r.cseq)], r.dim, r.lengths),
    constraints.stack: lambda to, r: StackTransform([*map(to, r.cseq)], r.dim),
}
# Those to their codomains: `biject_to` takes only what is bijective, `transform_to` the
# last of two.
_MAPS = (
    *(StickBreakingTransform, SoftmaxTransform, CorrCholeskyTransform),
    *(LowerCholeskyTransform, PositiveDefiniteTransform),
)
for _table in (biject_to, transform_to):
    for _region, _make in _FACTORIES.items():
        _table.register(_region, partial(_make, _table))
    for _kind in _MAPS:
        if _table is transform_to or _kind.bijective:
            _table.register(_kind.codomain, lambda _, kind=_kind: kind())
transform_to.register(
    constraints.positive_semidefinite, lambda _: PositiveDefiniteTransform()
)
