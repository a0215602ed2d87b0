"""What all transforms share: the base, inverses, and compositions."""

from __future__ import annotations

import weakref
from functools import reduce

import taeda
from taeda.distributions import constraints
from taeda.distributions.utils import _sum_rightmost

__all__ = [
    "ComposeTransform",
    "IndependentTransform",
    "ReshapeTransform",
    "Transform",
    "identity_transform",
]


class Transform:
    """A map y = f(x); a subclass has `_call`, `_inverse`, `log_abs_det_jacobian`.

    Args:
        cache_size: 1 to remember the last pair, so that f's inverse of y is x itself.
    """

    bijective = False
    # The constructor's arguments before cache_size, where a subclass has any.
    _kept: tuple[str, ...] | None = None
    domain: constraints.Constraint
    codomain: constraints.Constraint

    def __init__(self, cache_size: int = 0) -> None:
        self._cache_size, self._inv = cache_size, None
        if cache_size not in (0, 1):
            raise ValueError("cache_size must be 0 or 1")
        if cache_size:
            self._cached_x_y = None, None
        super().__init__()

    def __getstate__(self) -> dict:
        return {**self.__dict__, "_inv": None}

    @property
    def event_dim(self) -> int:
        """Dims of one event, where both sides have the same."""
        if self.domain.event_dim == self.codomain.event_dim:
            return self.domain.event_dim
        raise ValueError("Please use either .domain.event_dim or .codomain.event_dim")

    @property
    def inv(self):
        """The inverse map; its inverse is this one."""
        inverse = None if self._inv is None else self._inv()
        if inverse is None:
            inverse = _InverseTransform(self)
            self._inv = weakref.ref(inverse)
        return inverse

    @property
    def sign(self):
        """1 or -1 where the map rises or falls."""
        raise NotImplementedError

    def with_cache(self, cache_size: int = 1):
        """The same map with another cache."""
        if cache_size == self._cache_size:
            return self
        if type(self).__init__ is not Transform.__init__ and self._kept is None:
            raise NotImplementedError(f"{type(self)}.with_cache is not implemented")
        own = [getattr(self, name) for name in self._kept or ()]
        return type(self)(*own, cache_size=cache_size)

    def __eq__(self, other) -> bool:
        return self is other

    def __ne__(self, other) -> bool:
        return not self.__eq__(other)

    __hash__ = object.__hash__

    def __call__(self, x):
        """f(x)."""
        if self._cache_size == 0:
            return self._call(x)
        known, y = self._cached_x_y
        if x is not known:
            y = self._call(x)
            self._cached_x_y = x, y
        return y

    def _inv_call(self, y):
        if self._cache_size == 0:
            return self._inverse(y)
        x, known = self._cached_x_y
        if y is not known:
            x = self._inverse(y)
            self._cached_x_y = x, y
        return x

    def _call(self, x):
        raise NotImplementedError

    def _inverse(self, y):
        raise NotImplementedError

    def log_abs_det_jacobian(self, x, y):
        """log |dy / dx|, summed over each event."""
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
    """The inverse of a map."""

    def __init__(self, transform) -> None:
        super().__init__(cache_size=transform._cache_size)
        self._inv = transform

    @constraints.dependent_property(is_discrete=False)
    def domain(self):
        return self._inv.codomain

    @constraints.dependent_property(is_discrete=False)
    def codomain(self):
        return self._inv.domain

    @property
    def bijective(self) -> bool:
        return self._inv.bijective

    @property
    def sign(self):
        return self._inv.sign

    @property
    def inv(self):
        return self._inv

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


class ComposeTransform(Transform):
    """Several maps, one after the other.

    Args:
        parts: the maps, the first one used first.
        cache_size: as for `Transform`.
    """

    _kept = ("parts",)

    def __init__(self, parts: list, cache_size: int = 0) -> None:
        if cache_size:
            parts = [part.with_cache(cache_size) for part in parts]
        super().__init__(cache_size=cache_size)
        self.parts = parts

    def __eq__(self, other) -> bool:
        return isinstance(other, ComposeTransform) and self.parts == other.parts

    __hash__ = object.__hash__

    @constraints.dependent_property(is_discrete=False)
    def domain(self):
        if not self.parts:
            return constraints.real
        region = self.parts[0].domain
        dims = self.parts[-1].codomain.event_dim
        for part in reversed(self.parts):
            dims += part.domain.event_dim - part.codomain.event_dim
            dims = max(dims, part.domain.event_dim)
        more = dims - region.event_dim
        return constraints.independent(region, more) if more > 0 else region

    @constraints.dependent_property(is_discrete=False)
    def codomain(self):
        if not self.parts:
            return constraints.real
        region = self.parts[-1].codomain
        dims = self.parts[0].domain.event_dim
        for part in self.parts:
            dims += part.codomain.event_dim - part.domain.event_dim
            dims = max(dims, part.codomain.event_dim)
        more = dims - region.event_dim
        return constraints.independent(region, more) if more > 0 else region

    @property
    def bijective(self) -> bool:
        return all(part.bijective for part in self.parts)

    @property
    def sign(self):
        sign = 1
        for part in self.parts:
            sign = sign * part.sign
        return sign

    @property
    def inv(self):
        inverse = None if self._inv is None else self._inv()
        if inverse is None:
            inverse = ComposeTransform([part.inv for part in reversed(self.parts)])
            self._inv = weakref.ref(inverse)
            inverse._inv = weakref.ref(self)
        return inverse

    def __call__(self, x):
        for part in self.parts:
            x = part(x)
        return x

    def log_abs_det_jacobian(self, x, y):
        if not self.parts:
            return taeda.zeros_like(x)
        points = [x]
        for part in self.parts[:-1]:
            points.append(part(points[-1]))
        points.append(y)
        total, dims = 0, self.domain.event_dim
        for part, a, b in zip(self.parts, points[:-1], points[1:], strict=True):
            found = part.log_abs_det_jacobian(a, b)
            total = total + _sum_rightmost(found, dims - part.domain.event_dim)
            dims += part.codomain.event_dim - part.domain.event_dim
        return total

    def forward_shape(self, shape):
        return reduce(lambda s, part: part.forward_shape(s), self.parts, shape)

    def inverse_shape(self, shape):
        return reduce(lambda s, part: part.inverse_shape(s), self.parts[::-1], shape)

    def __repr__(self) -> str:
        own = ",\n    ".join(repr(part) for part in self.parts)
        return f"{type(self).__name__}(\n    {own}\n)"


identity_transform = ComposeTransform([])


class IndependentTransform(Transform):
    """A map whose events have more dims.

    Args:
        base_transform: the map.
        reinterpreted_batch_ndims: how many more.
        cache_size: as for `Transform`.
    """

    _kept = ("base_transform", "reinterpreted_batch_ndims")

    def __init__(
        self, base_transform, reinterpreted_batch_ndims: int, cache_size: int = 0
    ) -> None:
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims
        self.base_transform = base_transform.with_cache(cache_size)
        super().__init__(cache_size)

    @constraints.dependent_property(is_discrete=False)
    def domain(self):
        base = self.base_transform.domain
        return constraints.independent(base, self.reinterpreted_batch_ndims)

    @constraints.dependent_property(is_discrete=False)
    def codomain(self):
        base = self.base_transform.codomain
        return constraints.independent(base, self.reinterpreted_batch_ndims)

    @property
    def bijective(self) -> bool:
        return self.base_transform.bijective

    @property
    def sign(self):
        return self.base_transform.sign

    def _call(self, x):
        if x.dim() < self.domain.event_dim:
            raise ValueError("Too few dimensions on input")
        return self.base_transform(x)

    def _inverse(self, y):
        if y.dim() < self.codomain.event_dim:
            raise ValueError("Too few dimensions on input")
        return self.base_transform.inv(y)

    def log_abs_det_jacobian(self, x, y):
        found = self.base_transform.log_abs_det_jacobian(x, y)
        return _sum_rightmost(found, self.reinterpreted_batch_ndims)

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
        out_shape: after.
        cache_size: as for `Transform`.
    """

    bijective = True
    _kept = ("in_shape", "out_shape")

    def __init__(self, in_shape, out_shape, cache_size: int = 0) -> None:
        self.in_shape, self.out_shape = taeda.Size(in_shape), taeda.Size(out_shape)
        if self.in_shape.numel() != self.out_shape.numel():
            raise ValueError("in_shape, out_shape have different numbers of elements")
        super().__init__(cache_size=cache_size)

    @constraints.dependent_property
    def domain(self):
        return constraints.independent(constraints.real, len(self.in_shape))

    @constraints.dependent_property
    def codomain(self):
        return constraints.independent(constraints.real, len(self.out_shape))

    def _call(self, x):
        return x.reshape(x.shape[: x.dim() - len(self.in_shape)] + self.out_shape)

    def _inverse(self, y):
        return y.reshape(y.shape[: y.dim() - len(self.out_shape)] + self.in_shape)

    def log_abs_det_jacobian(self, x, y):
        return x.new_zeros(x.size()[: x.dim() - len(self.in_shape)])

    def _swap(self, shape, old, new):
        cut = len(shape) - len(old)
        if cut < 0:
            raise ValueError("Too few dimensions on input")
        if shape[cut:] != old:
            raise ValueError(f"Shape mismatch: expected {shape[cut:]} but got {old}")
        return shape[:cut] + new

    def forward_shape(self, shape):
        return self._swap(shape, self.in_shape, self.out_shape)

    def inverse_shape(self, shape):
        return self._swap(shape, self.out_shape, self.in_shape)
