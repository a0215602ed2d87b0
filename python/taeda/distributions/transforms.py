"""Maps with inverses and the logarithms of their Jacobians."""

from __future__ import annotations

from math import log

import taeda
from taeda.nn.functional import logsigmoid, pad

from . import constraints
from ._declare import declare
from ._transform_base import *  # noqa: F403
from ._transform_base import Transform, _InverseTransform, check_rank  # noqa: F401

__all__ = """AbsTransform AffineTransform CatTransform ComposeTransform
CorrCholeskyTransform CumulativeDistributionTransform ExpTransform IndependentTransform
LowerCholeskyTransform PositiveDefiniteTransform PowerTransform ReshapeTransform
SigmoidTransform SoftmaxTransform SoftplusTransform StackTransform
StickBreakingTransform TanhTransform Transform identity_transform""".split()


def _inside(y):
    """Numbers off 0 and 1 by a rounding."""
    limits = taeda.finfo(y.dtype)
    return y.clamp(limits.tiny, 1.0 - limits.eps)


def _clipped_sigmoid(x):
    """A sigmoid off 0 and 1; libraries build transforms of their own with it."""
    return _inside(x.sigmoid())


def _with_diagonal(matrix, change):
    diagonal = matrix.diagonal(dim1=-2, dim2=-1)
    return matrix.tril(-1) + change(diagonal).diag_embed()


def _reals(rank: int):
    """All tensors of this rank."""
    return constraints.independent(constraints.real, rank) if rank else constraints.real


# What is left before each element, of what is left behind it.
_before = lambda left: pad(left[..., :-1], [1, 0], value=1)
_falling = lambda x: taeda.arange(x.shape[-1], 0, -1, dtype=x.dtype, device=x.device)
_log_slope = lambda x: logsigmoid(x) + logsigmoid(-x)
# 1 - tanh(x)^2 = 4 sigmoid(2 x) sigmoid(-2 x)
_log_slope_of_tanh = lambda x: log(4.0) + _log_slope(2.0 * x)
_is_tensor = lambda value: isinstance(value, taeda.Tensor)


def _swap(shape, old, new):
    """The shape with other last dims."""
    check_rank(shape, len(old))
    cut = len(shape) - len(old)
    if shape[cut:] != old:
        raise ValueError(f"Shape mismatch: expected {shape[cut:]} but got {old}")
    return shape[:cut] + new


TEXT = """
_Alike: Base of maps without parameters: those of one class are equal.
    _compared is ()
    domain is real

_Rising(_Alike): Base of those of numbers that rise, so that they have one inverse.
    bijective, sign is True, 1

ExpTransform(_Rising): y = exp(x).
    codomain is positive
    _call(x) = x.exp()
    _inverse(y) = y.log()
    log_abs_det_jacobian(x, y) = x

SigmoidTransform(_Rising): y = 1 / (1 + exp(-x)), kept off 0 and 1 by a rounding.
    codomain is unit_interval
    _call(x) = _clipped_sigmoid(x)
    _inverse(y) = taeda.logit(_inside(y))
    log_abs_det_jacobian(x, y) = _log_slope(x)

SoftplusTransform(_Rising): y = log(1 + exp(x)).
    codomain is positive
    _call(x) = F.softplus(x)
    _inverse(y) = y + (-(-y).expm1()).log()
    log_abs_det_jacobian(x, y) = logsigmoid(x)

TanhTransform(_Rising): y = tanh(x).
    codomain is interval(-1.0, 1.0)
    _call(x) = x.tanh()
    _inverse(y) = y.atanh()
    log_abs_det_jacobian(x, y) = _log_slope_of_tanh(x)

AbsTransform(_Alike): y = |x|; the inverse is the positive x.
    codomain is positive
    _call(x) = x.abs()
    _inverse(y) = y

SoftmaxTransform(_Alike): y = softmax(x); the inverse is the logarithm.
    domain, codomain is real_vector, simplex
    _call(x) = x.softmax(-1)
    _inverse(y) = y.log()
    forward_shape(shape) = check_rank(shape, 1)
    inverse_shape(shape) = check_rank(shape, 1)

LowerCholeskyTransform(_Alike): A matrix to a lower triangular one with a positive
diagonal.
    domain, codomain is independent(real, 2), lower_cholesky
    _call(x) = _with_diagonal(x, taeda.exp)
    _inverse(y) = _with_diagonal(y, taeda.log)

PositiveDefiniteTransform(_Alike): A matrix to a positive-definite one, through its
Cholesky factor.
    domain, codomain is independent(real, 2), positive_definite
    _call(x) = factor @ factor.mT
        factor = _with_diagonal(x, taeda.exp)
    _inverse(y) = _with_diagonal(taeda.linalg.cholesky(y), taeda.log)

_Fitting: Base of maps that broadcast with their parameters.
    bijective is True
    forward_shape(shape) = taeda.broadcast_shapes(shape, *_shapes)
    inverse_shape(shape) = taeda.broadcast_shapes(shape, *_shapes)
    _shapes = [getattr(getattr(self, n), "shape", ()) for n in _compared]

PowerTransform(_Fitting): y = x^exponent of positive numbers.
    exponent e: the power
    _compared is ("exponent",)
    domain, codomain is positive, positive
    sign = e.sign()
    _adopt(cache_size) = Transform._adopt(self, cache_size)
        (self.exponent,) = broadcast_all(self.exponent)
    _call(x) = x**e
    _inverse(y) = y ** (1 / e)
    log_abs_det_jacobian(x, y) = (y / x * e).abs().log()

AffineTransform(_Fitting): y = loc + scale x.
    loc m: added, a number or tensor
    scale s: multiplied, a number or tensor
    event_dim as _event_dim default 0: dims of one event
    _compared is "loc", "scale"
    domain, codomain in _reals(_event_dim)
    sign = s.sign() if _is_tensor(s) else (s > 0) - (s < 0)
    _call(x) = s * x + m
    _inverse(y) = (y - m) / s
    log_abs_det_jacobian(x, y) = _sum_rightmost(slope.expand(x.shape), _event_dim)
        slope = (s if _is_tensor(s) else x.new_full((), s)).abs().log()

CorrCholeskyTransform: n (n - 1) / 2 numbers to the Cholesky factor of a correlation
matrix, n x n.
The hyperbolic tangents of the numbers are partial correlations: each row of the
factor, a unit vector, gives its next element that part of the length that is left
(D. Lewandowski, D. Kurowicka, H. Joe, "Generating random correlation matrices based
on vines and extended onion method", 2009).
    domain, codomain is real_vector, corr_cholesky
    bijective is True
    _call(x) = left * (part + taeda.eye(part.shape[-1]).to(part))
        limit = 1 - taeda.finfo(x.dtype).eps
        part = vec_to_tril_matrix(x.tanh().clamp(-limit, limit), diag=-1)
        left = _before((1 - part * part).cumprod(-1)).sqrt()
    # The squared length that is left of a row before each of its elements.
    _left(y) = tril_matrix_to_vec(_before(1 - (y * y).cumsum(-1)), diag=-1)
    _inverse(y) = (tril_matrix_to_vec(y, diag=-1) / _left(y).sqrt()).atanh()
    log_abs_det_jacobian(x, y, intermediates=None) = slopes.sum(-1)
        slopes = _log_slope_of_tanh(x) + 0.5 * _left(y).log()
    forward_shape(shape) = shape[:-1] + (n, n)
        count = check_rank(shape, 1)[-1]
        n = round((1 + (1 + 8 * count) ** 0.5) / 2)
        if n * (n - 1) != 2 * count:
            raise ValueError("Input is not a flattened lower-diagonal number")
    inverse_shape(shape) = shape[:-2] + (n * (n - 1) // 2,)
        n, columns = check_rank(shape, 2)[-2:]
        if n != columns:
            raise ValueError("Input is not square")

StickBreakingTransform(_Alike): K - 1 numbers to K probabilities, each a part of what is
left of a stick.
The number that breaks off one of k equal parts is 0: x is shifted by log(k - 1).
    domain, codomain is real_vector, simplex
    bijective is True
    _longer(shape, by) = check_rank(shape, 1)[:-1] + (shape[-1] + by,)
    forward_shape(shape) = _longer(shape, 1)
    inverse_shape(shape) = _longer(shape, -1)
    _call(x) = pad(part, [0, 1], value=1) * pad((1 - part).cumprod(-1), [1, 0], value=1)
        part = _clipped_sigmoid(x - _falling(x).log())
    _inverse(y) = (pieces / left).log() + _falling(pieces).log()
        pieces = y[..., :-1]
        left = (1 - pieces.cumsum(-1)).clamp(min=taeda.finfo(y.dtype).tiny)
    log_abs_det_jacobian(x, y) = (y[..., :-1].log() + rest).sum(-1)
        rest = logsigmoid(_falling(x).log() - x)

ReshapeTransform: Another shape of the last dims.
    in_shape old: the shape before
    out_shape new: the shape after, with as many elements
    bijective is True
    domain in _reals(len(old))
    codomain in _reals(len(new))
    _adopt(cache_size) = Transform._adopt(self, cache_size)
        self.in_shape, self.out_shape = taeda.Size(old), taeda.Size(new)
        if math.prod(old) != math.prod(new):
            raise ValueError("in_shape, out_shape have different numbers of elements")
    _call(x) = x.reshape(forward_shape(x.shape))
    _inverse(y) = y.reshape(inverse_shape(y.shape))
    forward_shape(shape) = _swap(shape, old, new)
    inverse_shape(shape) = _swap(shape, new, old)
    log_abs_det_jacobian(x, y) = x.new_zeros(x.shape[: x.dim() - len(old)])

CumulativeDistributionTransform: y = F(x) of a distribution.
    distribution d: with `cdf` and `icdf`
    bijective, sign, codomain is True, 1, unit_interval
    domain = d.support
    _call(x) = d.cdf(x)
    _inverse(y) = d.icdf(y)
    log_abs_det_jacobian(x, y) = d.log_prob(x)
"""
declare(globals(), TEXT, Transform)
