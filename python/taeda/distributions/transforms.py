"""Maps with inverses and the logarithms of their Jacobians."""

from __future__ import annotations

from math import log, prod
from numbers import Number

import taeda
from taeda.distributions import constraints
from taeda.distributions._declare import of
from taeda.distributions._transform_base import *  # noqa: F403
from taeda.distributions._transform_base import Transform, check_rank, region_of
from taeda.distributions.utils import (
    _sum_rightmost,
    broadcast_all,
    tril_matrix_to_vec,
    vec_to_tril_matrix,
)
from taeda.nn.functional import logsigmoid, pad, softplus

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


def _with_diagonal(matrix, change):
    diagonal = matrix.diagonal(dim1=-2, dim2=-1)
    return matrix.tril(-1) + change(diagonal).diag_embed()


class LowerCholeskyTransform(_Alike):
    """A matrix to a lower triangular one with a positive diagonal."""

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.lower_cholesky
    _call = staticmethod(lambda x: _with_diagonal(x, lambda d: d.exp()))
    _inverse = staticmethod(lambda y: _with_diagonal(y, lambda d: d.log()))


class PositiveDefiniteTransform(_Alike):
    """A matrix to a positive-definite one, through its Cholesky factor."""

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.positive_definite
    _inverse = staticmethod(
        lambda y: LowerCholeskyTransform._inverse(taeda.linalg.cholesky(y))
    )

    def _call(self, x):
        factor = LowerCholeskyTransform._call(x)
        return factor @ factor.mT


def _broadcast(self, shape):
    """A shape with those of the parameters."""
    own = (getattr(getattr(self, n), "shape", ()) for n in self._compared)
    return taeda.broadcast_shapes(shape, *own)


class PowerTransform(Transform):
    """y = x^exponent of positive numbers.

    Args:
        exponent: the power.
        cache_size: as for `Transform`.
    """

    _arguments = _compared = ("exponent",)
    domain = codomain = constraints.positive
    bijective = True

    def __init__(self, exponent, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        (self.exponent,) = broadcast_all(exponent)

    sign = property(lambda self: self.exponent.sign())
    _call = lambda self, x: x**self.exponent
    _inverse = lambda self, y: y ** (1 / self.exponent)
    log_abs_det_jacobian = lambda self, x, y: (y / x * self.exponent).abs().log()
    forward_shape = inverse_shape = _broadcast


class AffineTransform(Transform):
    """y = loc + scale x.

    Args:
        loc: added, a number or tensor.
        scale: multiplied, a number or tensor.
        event_dim: dims of one event.
        cache_size: as for `Transform`.
    """

    _arguments = ("loc", "scale", "event_dim")
    _compared = ("loc", "scale")
    bijective = True

    def __init__(self, loc, scale, event_dim: int = 0, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.loc, self.scale, self._event_dim = loc, scale, event_dim

    event_dim = property(lambda self: self._event_dim)
    domain = codomain = region_of(
        lambda self: (
            constraints.independent(constraints.real, self._event_dim)
            if self._event_dim
            else constraints.real
        )
    )
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

    @staticmethod
    def _left(squares):
        """The squared length that is left of a row before each of its elements."""
        return pad((1 - squares.cumsum(-1))[..., :-1], [1, 0], value=1)

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
    """Another shape of the last dims.

    Args:
        in_shape: before.
        out_shape: after, with as many elements.
        cache_size: as for `Transform`.
    """

    bijective = True
    _arguments = ("in_shape", "out_shape")

    def __init__(self, in_shape, out_shape, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.in_shape, self.out_shape = map(taeda.Size, (in_shape, out_shape))
        if prod(self.in_shape) != prod(self.out_shape):
            raise ValueError("in_shape, out_shape have different numbers of elements")

    domain = region_of(
        lambda self: constraints.independent(constraints.real, len(self.in_shape))
    )
    codomain = region_of(
        lambda self: constraints.independent(constraints.real, len(self.out_shape))
    )

    @staticmethod
    def _swapped(shape, old, new):
        check_rank(shape, len(old))
        cut = len(shape) - len(old)
        if shape[cut:] != old:
            raise ValueError(f"Shape mismatch: expected {shape[cut:]} but got {old}")
        return shape[:cut] + new

    def forward_shape(self, shape):
        return self._swapped(shape, self.in_shape, self.out_shape)

    def inverse_shape(self, shape):
        return self._swapped(shape, self.out_shape, self.in_shape)

    def _call(self, x):
        return x.reshape(self.forward_shape(x.shape))

    def _inverse(self, y):
        return y.reshape(self.inverse_shape(y.shape))

    def log_abs_det_jacobian(self, x, y):
        return x.new_zeros(x.shape[: x.dim() - len(self.in_shape)])


class CumulativeDistributionTransform(Transform):
    """y = F(x) of a distribution.

    Args:
        distribution: with `cdf` and `icdf`.
        cache_size: as for `Transform`.
    """

    bijective = True
    codomain = constraints.unit_interval
    sign = 1
    _arguments = ("distribution",)

    def __init__(self, distribution, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.distribution = distribution

    domain = of("distribution", "support")
    _call = of("distribution", "cdf")
    _inverse = of("distribution", "icdf")
    log_abs_det_jacobian = lambda self, x, y: self.distribution.log_prob(x)
