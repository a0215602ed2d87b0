"""Maps with inverses and the logarithms of their Jacobians."""

from __future__ import annotations

from math import log
from numbers import Number

import taeda
from taeda.distributions import constraints
from taeda.distributions._transform_base import (
    ComposeTransform as ComposeTransform,
)
from taeda.distributions._transform_base import (
    IndependentTransform as IndependentTransform,
)
from taeda.distributions._transform_base import (
    ReshapeTransform as ReshapeTransform,
)
from taeda.distributions._transform_base import (
    Transform,
    check_rank,
    region_of,
)
from taeda.distributions._transform_base import (
    _InverseTransform as _InverseTransform,
)
from taeda.distributions._transform_base import (
    identity_transform as identity_transform,
)
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

    Each is stated by three functions: f, its inverse, and log |f'| of (x, f(x)).
    """

    bijective = True

    def __eq__(self, other) -> bool:
        return isinstance(other, type(self))

    __hash__ = object.__hash__


class ExpTransform(_Alike):
    """y = exp(x)."""

    domain, codomain = constraints.real, constraints.positive
    sign = 1
    _call = staticmethod(lambda x: x.exp())
    _inverse = staticmethod(lambda y: y.log())
    log_abs_det_jacobian = staticmethod(lambda x, y: x)


class SigmoidTransform(_Alike):
    """y = 1 / (1 + exp(-x)), kept off 0 and 1 by a rounding."""

    domain, codomain = constraints.real, constraints.unit_interval
    sign = 1
    _call = staticmethod(lambda x: _inside(x.sigmoid()))
    _inverse = staticmethod(lambda y: taeda.logit(_inside(y)))
    log_abs_det_jacobian = staticmethod(lambda x, y: logsigmoid(x) + logsigmoid(-x))


def _inside(y):
    limits = taeda.finfo(y.dtype)
    return y.clamp(limits.tiny, 1.0 - limits.eps)


class SoftplusTransform(_Alike):
    """y = log(1 + exp(x))."""

    domain, codomain = constraints.real, constraints.positive
    sign = 1
    _call = staticmethod(lambda x: softplus(x))
    _inverse = staticmethod(lambda y: y + (-(-y).expm1()).log())
    log_abs_det_jacobian = staticmethod(lambda x, y: logsigmoid(x))


class TanhTransform(_Alike):
    """y = tanh(x)."""

    domain, codomain = constraints.real, constraints.interval(-1.0, 1.0)
    sign = 1
    _call = staticmethod(lambda x: x.tanh())
    _inverse = staticmethod(lambda y: y.atanh())
    # 1 - tanh(x)^2 = 4 sigmoid(2 x) sigmoid(-2 x)
    log_abs_det_jacobian = staticmethod(
        lambda x, y: log(4.0) + logsigmoid(2.0 * x) + logsigmoid(-2.0 * x)
    )


class AbsTransform(_Alike):
    """y = |x|; the inverse is the positive x."""

    domain, codomain = constraints.real, constraints.positive
    bijective = False
    _call = staticmethod(lambda x: x.abs())
    _inverse = staticmethod(lambda y: y)


class SoftmaxTransform(_Alike):
    """y = softmax(x); the inverse is the logarithm."""

    domain, codomain = constraints.real_vector, constraints.simplex
    bijective = False
    _call = staticmethod(lambda x: x.softmax(-1))
    _inverse = staticmethod(lambda y: y.log())

    def forward_shape(self, shape):
        check_rank(shape, 1)
        return shape

    inverse_shape = forward_shape


class LowerCholeskyTransform(_Alike):
    """A matrix to a lower triangular one with a positive diagonal."""

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.lower_cholesky
    bijective = False
    _call = staticmethod(lambda x: _with_diagonal(x, lambda d: d.exp()))
    _inverse = staticmethod(lambda y: _with_diagonal(y, lambda d: d.log()))


def _with_diagonal(matrix, change):
    diagonal = matrix.diagonal(dim1=-2, dim2=-1)
    return matrix.tril(-1) + change(diagonal).diag_embed()


class PositiveDefiniteTransform(_Alike):
    """A matrix to a positive-definite one, through its Cholesky factor."""

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.positive_definite
    bijective = False

    def _call(self, x):
        factor = LowerCholeskyTransform._call(x)
        return factor @ factor.mT

    def _inverse(self, y):
        return LowerCholeskyTransform._inverse(taeda.linalg.cholesky(y))


class PowerTransform(Transform):
    """y = x^exponent of positive numbers.

    Args:
        exponent: the power.
        cache_size: as for `Transform`.
    """

    domain = codomain = constraints.positive
    bijective = True
    _arguments = ("exponent",)

    def __init__(self, exponent, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        (self.exponent,) = broadcast_all(exponent)

    sign = property(lambda self: self.exponent.sign())

    def __eq__(self, other) -> bool:
        known = isinstance(other, PowerTransform)
        return known and bool((self.exponent == other.exponent).all())

    __hash__ = object.__hash__

    def _call(self, x):
        return x**self.exponent

    def _inverse(self, y):
        return y ** (1 / self.exponent)

    def log_abs_det_jacobian(self, x, y):
        return (y / x * self.exponent).abs().log()

    def forward_shape(self, shape):
        return taeda.broadcast_shapes(shape, self.exponent.shape)

    inverse_shape = forward_shape


class AffineTransform(Transform):
    """y = loc + scale x.

    Args:
        loc: added, a number or tensor.
        scale: multiplied, a number or tensor.
        event_dim: dims of one event.
        cache_size: as for `Transform`.
    """

    bijective = True
    _arguments = ("loc", "scale", "event_dim")

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

    def __eq__(self, other) -> bool:
        if not isinstance(other, AffineTransform):
            return False
        same = (self.loc == other.loc, self.scale == other.scale)
        return all(bool(taeda.as_tensor(each).all()) for each in same)

    __hash__ = object.__hash__

    @property
    def sign(self):
        if isinstance(self.scale, Number):
            return (self.scale > 0) - (self.scale < 0)
        return self.scale.sign()

    def _call(self, x):
        return self.scale * x + self.loc

    def _inverse(self, y):
        return (y - self.loc) / self.scale

    def log_abs_det_jacobian(self, x, y):
        scale = self.scale
        if isinstance(scale, Number):
            scale = x.new_full((), scale)
        return _sum_rightmost(scale.abs().log().expand(x.shape), self._event_dim)

    def forward_shape(self, shape):
        own = (getattr(part, "shape", ()) for part in (self.loc, self.scale))
        return taeda.broadcast_shapes(shape, *own)

    inverse_shape = forward_shape


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

    def _longer(self, shape, by: int):
        check_rank(shape, 1)
        return shape[:-1] + (shape[-1] + by,)

    def forward_shape(self, shape):
        return self._longer(shape, 1)

    def inverse_shape(self, shape):
        return self._longer(shape, -1)


class _Parts(Transform):
    """Base of maps that treat parts of the input each by its own map."""

    def __init__(self, tseq, dim: int = 0, cache_size: int = 0) -> None:
        if not all(isinstance(t, Transform) for t in tseq):
            raise AssertionError("All elements of tseq must be Transform instances")
        super().__init__(cache_size)
        self.transforms = [t.with_cache(cache_size) for t in tseq]
        self.dim = dim

    bijective = property(lambda self: all(t.bijective for t in self.transforms))

    def _each(self, act, *tensors) -> list:
        """What `act` makes of each map and its parts of the tensors."""
        parts = (self._split(tensor) for tensor in tensors)
        return [act(*own) for own in zip(self.transforms, *parts, strict=True)]

    def _call(self, x):
        return self._join(self._each(lambda t, part: t(part), x), self.dim)

    def _inverse(self, y):
        return self._join(self._each(lambda t, part: t.inv(part), y), self.dim)


def _slope(transform, x, y):
    return transform.log_abs_det_jacobian(x, y)


class CatTransform(_Parts):
    """Maps of parts that stand one behind another along a dim.

    Args:
        tseq: the maps.
        dim: the dim.
        lengths: of the parts; each 1 when absent.
        cache_size: as for `Transform`.
    """

    _arguments = ("transforms", "dim", "lengths")

    def __init__(self, tseq, dim: int = 0, lengths=None, cache_size: int = 0) -> None:
        super().__init__(tseq, dim, cache_size)
        self.lengths = list(lengths or [1] * len(self.transforms))
        if len(self.lengths) != len(self.transforms):
            raise AssertionError(
                f"lengths ({len(self.lengths)}) must match transforms "
                f"({len(self.transforms)})"
            )

    event_dim = property(lambda self: max(t.event_dim for t in self.transforms))
    length = property(lambda self: sum(self.lengths), doc="Of all parts.")
    domain = region_of(lambda self: self._region([t.domain for t in self.transforms]))
    codomain = region_of(
        lambda self: self._region([t.codomain for t in self.transforms])
    )
    _join = staticmethod(lambda parts, dim: taeda.cat(parts, dim))

    def _region(self, regions):
        return constraints.cat(regions, self.dim, self.lengths)

    def _split(self, x):
        rank = x.dim()
        if not -rank <= self.dim < rank or x.size(self.dim) != self.length:
            raise AssertionError(
                f"expected a tensor of length {self.length} along dim {self.dim}, got "
                f"the shape {tuple(x.shape)}"
            )
        return x.split(self.lengths, self.dim)

    def log_abs_det_jacobian(self, x, y):
        slopes = [
            _sum_rightmost(slope, self.event_dim - t.event_dim)
            for t, slope in zip(self.transforms, self._each(_slope, x, y), strict=True)
        ]
        dim = self.dim + self.event_dim - (0 if self.dim < 0 else x.dim())
        return taeda.cat(slopes, dim) if dim < 0 else sum(slopes)


class StackTransform(_Parts):
    """Maps of the slices along a dim.

    Args:
        tseq: the maps.
        dim: the dim.
        cache_size: as for `Transform`.
    """

    _arguments = ("transforms", "dim")
    domain = region_of(lambda self: self._region([t.domain for t in self.transforms]))
    codomain = region_of(
        lambda self: self._region([t.codomain for t in self.transforms])
    )
    _join = staticmethod(lambda parts, dim: taeda.stack(parts, dim))

    def _region(self, regions):
        return constraints.stack(regions, self.dim)

    def _split(self, x):
        rank = x.dim()
        if not -rank <= self.dim < rank or x.size(self.dim) != len(self.transforms):
            raise AssertionError(
                f"expected {len(self.transforms)} slices along dim {self.dim}, got the "
                f"shape {tuple(x.shape)}"
            )
        return x.unbind(self.dim)

    def log_abs_det_jacobian(self, x, y):
        return self._join(self._each(_slope, x, y), self.dim)


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

    domain = property(lambda self: self.distribution.support)

    def _call(self, x):
        return self.distribution.cdf(x)

    def _inverse(self, y):
        return self.distribution.icdf(y)

    def log_abs_det_jacobian(self, x, y):
        return self.distribution.log_prob(x)
