"""Invertible maps of tensors, with the logarithms of their Jacobian determinants."""

from __future__ import annotations

import math

import taeda
from taeda.distributions import constraints
from taeda.distributions._transform_base import (
    ComposeTransform,
    IndependentTransform,
    ReshapeTransform,
    Transform,
    identity_transform,
)
from taeda.distributions._transform_base import (
    _InverseTransform as _InverseTransform,
)
from taeda.distributions.utils import (
    _sum_rightmost,
    broadcast_all,
    tril_matrix_to_vec,
    vec_to_tril_matrix,
)
from taeda.nn.functional import pad, softplus

__all__ = [
    "AbsTransform",
    "AffineTransform",
    "CatTransform",
    "ComposeTransform",
    "CorrCholeskyTransform",
    "CumulativeDistributionTransform",
    "ExpTransform",
    "IndependentTransform",
    "LowerCholeskyTransform",
    "PositiveDefiniteTransform",
    "PowerTransform",
    "ReshapeTransform",
    "SigmoidTransform",
    "SoftmaxTransform",
    "SoftplusTransform",
    "StackTransform",
    "StickBreakingTransform",
    "TanhTransform",
    "Transform",
    "identity_transform",
]


class _Alike(Transform):
    """Base of maps without parameters: those of one class are equal."""

    bijective = True
    sign = 1

    def __eq__(self, other) -> bool:
        return isinstance(other, type(self))

    __hash__ = object.__hash__


class ExpTransform(_Alike):
    """y = exp(x)."""

    domain = constraints.real
    codomain = constraints.positive

    def _call(self, x):
        return x.exp()

    def _inverse(self, y):
        return y.log()

    def log_abs_det_jacobian(self, x, y):
        return x


class PowerTransform(Transform):
    """y = x^exponent of positive numbers.

    Args:
        exponent: the power.
        cache_size: as for `Transform`.
    """

    _kept = ("exponent",)

    domain = constraints.positive
    codomain = constraints.positive
    bijective = True

    def __init__(self, exponent, cache_size: int = 0) -> None:
        (self.exponent,) = broadcast_all(exponent)
        super().__init__(cache_size)

    @property
    def sign(self):
        return self.exponent.sign()

    def __eq__(self, other) -> bool:
        if not isinstance(other, PowerTransform):
            return False
        return self.exponent.eq(other.exponent).all().item()

    __hash__ = object.__hash__

    def _call(self, x):
        return x.pow(self.exponent)

    def _inverse(self, y):
        return y.pow(1 / self.exponent)

    def log_abs_det_jacobian(self, x, y):
        return (self.exponent * y / x).abs().log()

    def forward_shape(self, shape):
        return taeda.broadcast_shapes(shape, getattr(self.exponent, "shape", ()))

    inverse_shape = forward_shape


class SigmoidTransform(_Alike):
    """y = 1 / (1 + exp(-x))."""

    domain = constraints.real
    codomain = constraints.unit_interval

    def _call(self, x):
        finfo = taeda.finfo(x.dtype)
        return taeda.clamp(taeda.sigmoid(x), min=finfo.tiny, max=1.0 - finfo.eps)

    def _inverse(self, y):
        finfo = taeda.finfo(y.dtype)
        y = y.clamp(min=finfo.tiny, max=1.0 - finfo.eps)
        return y.log() - (-y).log1p()

    def log_abs_det_jacobian(self, x, y):
        return -softplus(-x) - softplus(x)


class SoftplusTransform(_Alike):
    """y = log(1 + exp(x))."""

    domain = constraints.real
    codomain = constraints.positive

    def _call(self, x):
        return softplus(x)

    def _inverse(self, y):
        return (-y).expm1().neg().log() + y

    def log_abs_det_jacobian(self, x, y):
        return -softplus(-x)


class TanhTransform(_Alike):
    """y = tanh(x)."""

    domain = constraints.real
    codomain = constraints.interval(-1.0, 1.0)

    def _call(self, x):
        return x.tanh()

    def _inverse(self, y):
        return taeda.atanh(y)

    def log_abs_det_jacobian(self, x, y):
        # log(1 - tanh(x)^2) without cancellation.
        return 2.0 * (math.log(2.0) - x - softplus(-2.0 * x))


class AbsTransform(_Alike):
    """y = |x|; the inverse is the positive x."""

    domain = constraints.real
    codomain = constraints.positive
    bijective = False

    def _call(self, x):
        return x.abs()

    def _inverse(self, y):
        return y


class AffineTransform(Transform):
    """y = loc + scale x.

    Args:
        loc: added.
        scale: multiplied.
        event_dim: dims of one event.
        cache_size: as for `Transform`.
    """

    _kept = ("loc", "scale", "event_dim")

    bijective = True

    def __init__(self, loc, scale, event_dim: int = 0, cache_size: int = 0) -> None:
        super().__init__(cache_size=cache_size)
        self.loc, self.scale, self._event_dim = loc, scale, event_dim

    @property
    def event_dim(self) -> int:
        return self._event_dim

    def _region(self):
        plain, dims = constraints.real, self._event_dim
        return constraints.independent(plain, dims) if dims else plain

    @constraints.dependent_property(is_discrete=False)
    def domain(self):
        return self._region()

    @constraints.dependent_property(is_discrete=False)
    def codomain(self):
        return self._region()

    def __eq__(self, other) -> bool:
        if not isinstance(other, AffineTransform):
            return False
        return all(
            bool(taeda.as_tensor(a == b).all())
            for a, b in ((self.loc, other.loc), (self.scale, other.scale))
        )

    __hash__ = object.__hash__

    @property
    def sign(self):
        if isinstance(self.scale, (int, float)):
            return (self.scale > 0) - (self.scale < 0)
        return self.scale.sign()

    def _call(self, x):
        return self.loc + self.scale * x

    def _inverse(self, y):
        return (y - self.loc) / self.scale

    def log_abs_det_jacobian(self, x, y):
        if isinstance(self.scale, (int, float)):
            found = taeda.full_like(x, math.log(abs(self.scale)))
        else:
            found = taeda.abs(self.scale).log()
        if self.event_dim:
            found = found.view(found.size()[: -self.event_dim] + (-1,)).sum(-1)
            return found.expand(x.shape[: -self.event_dim])
        return found.expand(x.shape)

    def forward_shape(self, shape):
        own = [getattr(part, "shape", ()) for part in (self.loc, self.scale)]
        return taeda.broadcast_shapes(shape, *own)

    inverse_shape = forward_shape


class CorrCholeskyTransform(Transform):
    """A vector of n (n - 1) / 2 numbers to the Cholesky factor of a correlation."""

    domain = constraints.real_vector
    codomain = constraints.corr_cholesky
    bijective = True

    def _call(self, x):
        x = taeda.tanh(x)
        eps = taeda.finfo(x.dtype).eps
        r = vec_to_tril_matrix(x.clamp(min=-1 + eps, max=1 - eps), diag=-1)
        # What a row leaves of its length for the next element.
        left = (1 - r**2).sqrt().cumprod(-1)
        r = r + taeda.eye(r.shape[-1], dtype=r.dtype, device=r.device)
        return r * pad(left[..., :-1], [1, 0], value=1)

    def _inverse(self, y):
        left = pad((1 - taeda.cumsum(y * y, dim=-1))[..., :-1], [1, 0], value=1)
        row = tril_matrix_to_vec(y, diag=-1)
        t = row / tril_matrix_to_vec(left, diag=-1).sqrt()
        return (t.log1p() - t.neg().log1p()) / 2

    def log_abs_det_jacobian(self, x, y, intermediates=None):
        left = 1 - (y * y).cumsum(dim=-1)
        below = tril_matrix_to_vec(left, diag=-2)
        slope = -2 * (x + softplus(-2 * x) - math.log(2.0)).sum(dim=-1)
        return 0.5 * below.log().sum(-1) + slope

    def forward_shape(self, shape):
        if len(shape) < 1:
            raise ValueError("Too few dimensions on input")
        n = round((0.25 + 2 * shape[-1]) ** 0.5 + 0.5)
        if n * (n - 1) // 2 != shape[-1]:
            raise ValueError("Input is not a flattened lower-diagonal number")
        return shape[:-1] + (n, n)

    def inverse_shape(self, shape):
        if len(shape) < 2:
            raise ValueError("Too few dimensions on input")
        if shape[-2] != shape[-1]:
            raise ValueError("Input is not square")
        return shape[:-2] + (shape[-1] * (shape[-1] - 1) // 2,)


class SoftmaxTransform(_Alike):
    """y = softmax(x); the inverse is the logarithm."""

    domain = constraints.real_vector
    codomain = constraints.simplex
    bijective = False

    def _call(self, x):
        probs = (x - x.max(-1, True)[0]).exp()
        return probs / probs.sum(-1, True)

    def _inverse(self, y):
        return y.log()

    def _least(self, shape):
        if len(shape) < 1:
            raise ValueError("Too few dimensions on input")
        return shape

    forward_shape = inverse_shape = _least


class StickBreakingTransform(_Alike):
    """K - 1 numbers to K probabilities, each a part of what is left of a stick."""

    domain = constraints.real_vector
    codomain = constraints.simplex

    def _call(self, x):
        offset = x.shape[-1] + 1 - x.new_ones(x.shape[-1]).cumsum(-1)
        z = SigmoidTransform()._call(x - offset.log())
        left = (1 - z).cumprod(-1)
        return pad(z, [0, 1], value=1) * pad(left, [1, 0], value=1)

    def _inverse(self, y):
        head = y[..., :-1]
        offset = y.shape[-1] - head.new_ones(head.shape[-1]).cumsum(-1)
        left = 1 - head.cumsum(-1)
        left = taeda.clamp(left, min=taeda.finfo(y.dtype).tiny)
        return head.log() - left.log() + offset.log()

    def log_abs_det_jacobian(self, x, y):
        offset = x.shape[-1] + 1 - x.new_ones(x.shape[-1]).cumsum(-1)
        x = x - offset.log()
        slope = -x + taeda.nn.functional.logsigmoid(x)
        return (slope + y[..., :-1].log()).sum(-1)

    def forward_shape(self, shape):
        return self._longer(shape, 1)

    def inverse_shape(self, shape):
        return self._longer(shape, -1)

    @staticmethod
    def _longer(shape, by: int):
        if not shape:
            raise ValueError("Too few dimensions on input")
        return shape[:-1] + (shape[-1] + by,)


class LowerCholeskyTransform(_Alike):
    """A matrix to a lower triangular one with a positive diagonal."""

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.lower_cholesky

    def _call(self, x):
        return x.tril(-1) + x.diagonal(dim1=-2, dim2=-1).exp().diag_embed()

    def _inverse(self, y):
        return y.tril(-1) + y.diagonal(dim1=-2, dim2=-1).log().diag_embed()


class PositiveDefiniteTransform(_Alike):
    """A matrix to a positive-definite one."""

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.positive_definite

    def _call(self, x):
        x = LowerCholeskyTransform()(x)
        return x @ x.mT

    def _inverse(self, y):
        return LowerCholeskyTransform().inv(taeda.linalg.cholesky(y))


class _Parts(Transform):
    """Base of maps that treat parts of the input each by its own map."""

    def __init__(self, tseq, dim: int = 0, cache_size: int = 0) -> None:
        if not all(isinstance(t, Transform) for t in tseq):
            raise AssertionError("All elements of tseq must be Transform instances")
        super().__init__(cache_size=cache_size)
        self.transforms = [t.with_cache(cache_size) for t in tseq]
        self.dim = dim

    def _pieces(self, x) -> list:
        raise NotImplementedError

    def _join(self, pieces):
        raise NotImplementedError

    def _each(self, x, call):
        pairs = zip(self.transforms, self._pieces(x), strict=True)
        return self._join([call(t, piece) for t, piece in pairs])

    def _call(self, x):
        return self._each(x, lambda t, piece: t(piece))

    def _inverse(self, y):
        return self._each(y, lambda t, piece: t.inv(piece))

    @property
    def bijective(self) -> bool:
        return all(t.bijective for t in self.transforms)


class CatTransform(_Parts):
    """Maps of parts that stand one behind another along a dim.

    Args:
        tseq: the maps.
        dim: the dim.
        lengths: of the parts; each 1 when absent.
        cache_size: as for `Transform`.
    """

    _kept = ("transforms", "dim", "lengths")

    def __init__(self, tseq, dim: int = 0, lengths=None, cache_size: int = 0) -> None:
        super().__init__(tseq, dim, cache_size)
        count = len(self.transforms)
        self.lengths = list(lengths) if lengths is not None else [1] * count

    @property
    def event_dim(self) -> int:
        return max(t.event_dim for t in self.transforms)

    @property
    def length(self) -> int:
        """Of all parts."""
        return sum(self.lengths)

    def _pieces(self, x) -> list:
        return x.split(self.lengths, self.dim)

    def _join(self, pieces):
        return taeda.cat(pieces, dim=self.dim)

    def log_abs_det_jacobian(self, x, y):
        parts = zip(self.transforms, self._pieces(x), self._pieces(y), strict=True)
        found = []
        for t, a, b in parts:
            one = t.log_abs_det_jacobian(a, b)
            if t.event_dim < self.event_dim:
                one = _sum_rightmost(one, self.event_dim - t.event_dim)
            found.append(one)
        dim = self.dim if self.dim < 0 else self.dim - x.dim()
        dim += self.event_dim
        return taeda.cat(found, dim=dim) if dim < 0 else sum(found)

    @constraints.dependent_property
    def domain(self):
        regions = [t.domain for t in self.transforms]
        return constraints.cat(regions, self.dim, self.lengths)

    @constraints.dependent_property
    def codomain(self):
        regions = [t.codomain for t in self.transforms]
        return constraints.cat(regions, self.dim, self.lengths)


class StackTransform(_Parts):
    """Maps of the slices along a dim.

    Args:
        tseq: the maps.
        dim: the dim.
        cache_size: as for `Transform`.
    """

    _kept = ("transforms", "dim")

    def _pieces(self, x) -> list:
        return list(x.unbind(self.dim))

    def _join(self, pieces):
        return taeda.stack(pieces, dim=self.dim)

    def log_abs_det_jacobian(self, x, y):
        parts = zip(self.transforms, self._pieces(x), self._pieces(y), strict=True)
        return self._join([t.log_abs_det_jacobian(a, b) for t, a, b in parts])

    @constraints.dependent_property
    def domain(self):
        return constraints.stack([t.domain for t in self.transforms], self.dim)

    @constraints.dependent_property
    def codomain(self):
        return constraints.stack([t.codomain for t in self.transforms], self.dim)


class CumulativeDistributionTransform(Transform):
    """y = F(x) of a distribution.

    Args:
        distribution: with `cdf` and `icdf`.
        cache_size: as for `Transform`.
    """

    _kept = ("distribution",)

    bijective = True
    codomain = constraints.unit_interval
    sign = 1

    def __init__(self, distribution, cache_size: int = 0) -> None:
        self.distribution = distribution
        super().__init__(cache_size)

    @property
    def domain(self):
        return self.distribution.support

    def _call(self, x):
        return self.distribution.cdf(x)

    def _inverse(self, y):
        return self.distribution.icdf(y)

    def log_abs_det_jacobian(self, x, y):
        return self.distribution.log_prob(x)
