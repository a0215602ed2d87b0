"""What all transforms share: the base, inverses, and compositions."""

from __future__ import annotations

import weakref
from functools import reduce
from math import prod

import taeda
from taeda.distributions import constraints
from taeda.distributions.utils import _sum_rightmost


def region_of(function):
    """A domain or codomain that a function of the transform gives."""
    return constraints.dependent_property(is_discrete=False)(function)


def check_rank(shape, least: int) -> None:
    """Raises ValueError where a shape has fewer dims than an event."""
    if len(shape) < least:
        raise ValueError("Too few dimensions on input")


class Transform:
    """A map y = f(x); a subclass has `_call`, `_inverse`, `log_abs_det_jacobian`.

    Its class states `domain` and `codomain` (constraints), `bijective`, and for maps of
    numbers `sign`: 1 or -1 where they rise or fall.

    Args:
        cache_size: 1 to remember the last pair, so that f's inverse of y is x itself.

    Raises:
        ValueError: another cache size.
    """

    bijective = False
    # Names of the constructor's arguments before cache_size, where a class has any.
    _arguments: tuple[str, ...] | None = None
    domain: constraints.Constraint
    codomain: constraints.Constraint

    def __init__(self, cache_size: int = 0) -> None:
        if cache_size not in (0, 1):
            raise ValueError("cache_size must be 0 or 1")
        self._cache_size = cache_size
        # A weak reference to the inverse, which holds this one.
        self._inv = None
        self._cached_x_y = (None, None)
        super().__init__()

    def __getstate__(self) -> dict:
        return {**vars(self), "_inv": None}

    @property
    def event_dim(self) -> int:
        """Dims of one event, where both sides have the same."""
        dims = {self.domain.event_dim, self.codomain.event_dim}
        if len(dims) == 1:
            return dims.pop()
        raise ValueError("Please use either .domain.event_dim or .codomain.event_dim")

    @property
    def inv(self):
        """The inverse map; its inverse is this one."""
        known = self._inv and self._inv()
        if known is None:
            known = self._make_inverse()
            self._inv = weakref.ref(known)
        return known

    def _make_inverse(self):
        return _InverseTransform(self)

    @property
    def sign(self):
        """1 or -1 where the map rises or falls."""
        raise NotImplementedError

    def with_cache(self, cache_size: int = 1):
        """The same map with another cache."""
        if cache_size == self._cache_size:
            return self
        if self._arguments is None and type(self).__init__ is not Transform.__init__:
            raise NotImplementedError(f"{type(self)}.with_cache is not implemented")
        own = (getattr(self, name) for name in self._arguments or ())
        return type(self)(*own, cache_size=cache_size)

    def __eq__(self, other) -> bool:
        return self is other

    def __ne__(self, other) -> bool:
        return not self == other

    __hash__ = object.__hash__

    def __call__(self, x):
        """f(x)."""
        known_x, known_y = self._cached_x_y
        if self._cache_size and x is known_x:
            return known_y
        return self._remember(x, self._call(x))[1]

    def _inv_call(self, y):
        known_x, known_y = self._cached_x_y
        if self._cache_size and y is known_y:
            return known_x
        return self._remember(self._inverse(y), y)[0]

    def _remember(self, x, y):
        if self._cache_size:
            self._cached_x_y = x, y
        return x, y

    def _call(self, x):
        raise NotImplementedError

    def _inverse(self, y):
        raise NotImplementedError

    def log_abs_det_jacobian(self, x, y):
        """log |dy / dx| of y = f(x), summed over each event."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return type(self).__name__ + "()"

    def forward_shape(self, shape):
        """The shape of f(x), from that of x."""
        return shape

    def inverse_shape(self, shape):
        """The shape of x, from that of f(x)."""
        return shape


class _InverseTransform(Transform):
    """The inverse of a map, held in `_inv`: everything with its two sides exchanged."""

    def __init__(self, transform) -> None:
        super().__init__(transform._cache_size)
        self._inv = transform

    def __getstate__(self) -> dict:
        return dict(vars(self))

    domain = region_of(lambda self: self._inv.codomain)
    codomain = region_of(lambda self: self._inv.domain)
    bijective = property(lambda self: self._inv.bijective)
    sign = property(lambda self: self._inv.sign)
    inv = property(lambda self: self._inv)

    def with_cache(self, cache_size: int = 1):
        return self.inv.with_cache(cache_size).inv

    def __eq__(self, other) -> bool:
        return isinstance(other, _InverseTransform) and self._inv == other._inv

    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._inv!r})"

    def __call__(self, x):
        return self._inv._inv_call(x)

    def log_abs_det_jacobian(self, x, y):
        return -self._inv.log_abs_det_jacobian(y, x)

    def forward_shape(self, shape):
        return self._inv.inverse_shape(shape)

    def inverse_shape(self, shape):
        return self._inv.forward_shape(shape)


def _reached(steps):
    """The last region of a chain of (from, to), with the dims that all steps need."""
    dims = 0
    for near, far in steps:
        dims = far.event_dim + max(dims - near.event_dim, 0)
    region = steps[-1][1] if steps else constraints.real
    more = dims - region.event_dim
    return constraints.independent(region, more) if more > 0 else region


class ComposeTransform(Transform):
    """Several maps, one after the other.

    Args:
        parts: the maps, the first one used first.
        cache_size: as for `Transform`.
    """

    _arguments = ("parts",)

    def __init__(self, parts: list, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.parts = [p.with_cache(cache_size) for p in parts] if cache_size else parts

    domain = region_of(
        lambda self: _reached([(p.codomain, p.domain) for p in self.parts[::-1]])
    )
    codomain = region_of(
        lambda self: _reached([(p.domain, p.codomain) for p in self.parts])
    )
    bijective = property(lambda self: all(part.bijective for part in self.parts))
    sign = property(lambda self: reduce(lambda s, p: s * p.sign, self.parts, 1))

    def __eq__(self, other) -> bool:
        return isinstance(other, ComposeTransform) and self.parts == other.parts

    __hash__ = object.__hash__

    def _make_inverse(self):
        inverse = ComposeTransform([part.inv for part in self.parts[::-1]])
        inverse._inv = weakref.ref(self)
        return inverse

    def __call__(self, x):
        return reduce(lambda value, part: part(value), self.parts, x)

    def log_abs_det_jacobian(self, x, y):
        if not self.parts:
            return taeda.zeros_like(x)
        total, dims = 0, self.domain.event_dim
        for i, part in enumerate(self.parts, 1):
            # The last value is the one given: recomputing it would cost, and round.
            after = y if i == len(self.parts) else part(x)
            slope = part.log_abs_det_jacobian(x, after)
            total = total + _sum_rightmost(slope, dims - part.domain.event_dim)
            dims += part.codomain.event_dim - part.domain.event_dim
            x = after
        return total

    def forward_shape(self, shape):
        return reduce(lambda s, part: part.forward_shape(s), self.parts, shape)

    def inverse_shape(self, shape):
        return reduce(lambda s, part: part.inverse_shape(s), self.parts[::-1], shape)

    def __repr__(self) -> str:
        own = ",\n    ".join(map(repr, self.parts))
        return f"{type(self).__name__}(\n    {own}\n)"


identity_transform = ComposeTransform([])


class IndependentTransform(Transform):
    """A map whose events have more dims.

    Args:
        base_transform: the map.
        reinterpreted_batch_ndims: how many more.
        cache_size: as for `Transform`.
    """

    _arguments = ("base_transform", "reinterpreted_batch_ndims")

    def __init__(
        self, base_transform, reinterpreted_batch_ndims: int, cache_size: int = 0
    ) -> None:
        super().__init__(cache_size)
        self.base_transform = base_transform.with_cache(cache_size)
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims

    domain = region_of(lambda self: self._wider(self.base_transform.domain))
    codomain = region_of(lambda self: self._wider(self.base_transform.codomain))
    bijective = property(lambda self: self.base_transform.bijective)
    sign = property(lambda self: self.base_transform.sign)

    def _wider(self, region):
        return constraints.independent(region, self.reinterpreted_batch_ndims)

    def _call(self, x):
        check_rank(x.shape, self.domain.event_dim)
        return self.base_transform(x)

    def _inverse(self, y):
        check_rank(y.shape, self.codomain.event_dim)
        return self.base_transform.inv(y)

    def log_abs_det_jacobian(self, x, y):
        each = self.base_transform.log_abs_det_jacobian(x, y)
        return _sum_rightmost(each, self.reinterpreted_batch_ndims)

    def __repr__(self) -> str:
        own = f"{self.base_transform!r}, {self.reinterpreted_batch_ndims}"
        return f"{type(self).__name__}({own})"

    def forward_shape(self, shape):
        return self.base_transform.forward_shape(shape)

    def inverse_shape(self, shape):
        return self.base_transform.inverse_shape(shape)


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
