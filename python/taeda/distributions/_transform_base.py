"""What all transforms share: the base, inverses, and compositions."""

from __future__ import annotations

import weakref

import taeda
from taeda.distributions import constraints
from taeda.distributions._declare import KNOWN, construct, declare
from taeda.distributions.utils import _sum_rightmost, absent


def check_rank(shape, least: int):
    """The shape; raises ValueError where it has fewer dims than an event."""
    if len(shape) < least:
        raise ValueError("Too few dimensions on input")
    return shape


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
    # Those that keep the constructor's arguments before cache_size.
    _attributes: tuple[str, ...] = ()
    _symbols: dict[str, str] = {}
    # By which attributes two are equal; without them, one is only equal to itself.
    _compared: tuple[str, ...] | None = None
    domain: constraints.Constraint
    codomain: constraints.Constraint
    sign = absent("1 or -1 where the map rises or falls.", property)
    _call = absent("f(x).")
    _inverse = absent("The x of f(x).")
    log_abs_det_jacobian = absent("log |dy / dx| of y = f(x), summed over each event.")

    def __init__(self, cache_size: int = 0) -> None:
        if cache_size not in (0, 1):
            raise ValueError("cache_size must be 0 or 1")
        self._cache_size = cache_size
        # A weak reference to the inverse, which holds this one.
        self._inv = None
        self._cached_x_y = (None, None)
        super().__init__()

    _adopt = __init__
    __hash__ = object.__hash__
    __repr__ = lambda self: type(self).__name__ + "()"
    __getstate__ = lambda self: {**vars(self), "_inv": None}
    _make_inverse = lambda self: KNOWN["_InverseTransform"](self)

    def __init_subclass__(cls, **kwargs) -> None:
        super().__init_subclass__(**kwargs)
        construct(cls, "cache_size=0", "cache_size: as for `Transform`.")

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

    def with_cache(self, cache_size: int = 1):
        """The same map with another cache."""
        if cache_size == self._cache_size:
            return self
        if not self._attributes and type(self).__init__ is not Transform.__init__:
            raise NotImplementedError(f"{type(self)}.with_cache is not implemented")
        own = (getattr(self, name) for name in self._attributes)
        return type(self)(*own, cache_size=cache_size)

    def __eq__(self, other) -> bool:
        if self._compared is None or not isinstance(other, type(self)):
            return self is other
        pairs = ((getattr(self, n), getattr(other, n)) for n in self._compared)
        return all(bool(taeda.as_tensor(a == b).all()) for a, b in pairs)

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

    def forward_shape(self, shape):
        """The shape of f(x), from that of x."""
        return shape

    def inverse_shape(self, shape):
        """The shape of x, from that of f(x)."""
        return shape


def _reached(parts, near: str, far: str):
    """The last region of a chain of maps, with the dims that all of them need."""
    dims, region = 0, constraints.real
    for part in parts:
        region = getattr(part, far)
        dims = region.event_dim + max(dims - getattr(part, near).event_dim, 0)
    more = dims - region.event_dim
    return constraints.independent(region, more) if more > 0 else region


def _with_parts(self, parts, cache_size: int = 0) -> None:
    Transform.__init__(self, cache_size)
    cached = [part.with_cache(cache_size) for part in parts] if cache_size else parts
    self.parts = cached


def _slope_of_chain(self, x, y):
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


def _with_maps(self, cache_size: int) -> None:
    if not all(isinstance(t, Transform) for t in self.transforms):
        raise AssertionError("All elements of tseq must be Transform instances")
    Transform._adopt(self, cache_size)
    self.transforms = [t.with_cache(cache_size) for t in self.transforms]


def _with_lengths(self, cache_size: int) -> None:
    _with_maps(self, cache_size)
    count = len(self.transforms)
    self.lengths = list(self.lengths or [1] * count)
    if len(self.lengths) != count:
        text = f"lengths ({len(self.lengths)}) must match transforms ({count})"
        raise AssertionError(text)


def _for_each(self, act, *tensors) -> list:
    """What `act` makes of each map and its parts of the tensors."""
    for x in tensors:
        rank, length = x.dim(), self._length
        if not -rank <= self.dim < rank or x.size(self.dim) != length:
            text = f"expected {self._wanted.format(length)} along dim {self.dim}"
            raise AssertionError(f"{text}, got the shape {tuple(x.shape)}")
    parts = map(self._split, tensors)
    return [act(*own) for own in zip(self.transforms, *parts, strict=True)]


_wider = lambda region, dims: constraints.independent(region, dims)

TEXT = """
_InverseTransform: The inverse of a map, held in `_inv`: with its two sides exchanged.
    _compared is ("_inv",)
    __init__(transform) = setattr(self, "_inv", transform)
        Transform.__init__(self, transform._cache_size)
    domain in _inv.codomain
    codomain in _inv.domain
    bijective, sign of _inv
    inv = _inv
    forward_shape(shape) = _inv.inverse_shape(shape)
    inverse_shape(shape) = _inv.forward_shape(shape)
    __getstate__() = dict(vars(self))
    __repr__() = f"{type(self).__name__}({_inv!r})"
    __call__(x) = _inv._inv_call(x)
    log_abs_det_jacobian(x, y) = -_inv.log_abs_det_jacobian(y, x)
    with_cache(cache_size=1) = inv.with_cache(cache_size).inv

ComposeTransform: Several maps, one after the other.
    parts maps: the maps, the first one used first
    __init__ is _with_parts
    _make_inverse() = inverse
        inverse = ComposeTransform([part.inv for part in maps[::-1]])
        inverse._inv = weakref.ref(self)
    _compared is ("parts",)
    domain in _reached(maps[::-1], "codomain", "domain")
    codomain in _reached(maps, "domain", "codomain")
    bijective = all(part.bijective for part in maps)
    sign = reduce(lambda known, part: known * part.sign, maps, 1)
    __call__(x) = reduce(lambda value, part: part(value), maps, x)
    log_abs_det_jacobian is _slope_of_chain
    forward_shape(shape) = reduce(lambda s, part: part.forward_shape(s), maps, shape)
    inverse_shape(shape) = reduce(lambda s, part: part.inverse_shape(s), back, shape)
        back = maps[::-1]
    __repr__() = f"{type(self).__name__}(\\n    {own}\\n)"
        own = ",\\n    ".join(map(repr, maps))

IndependentTransform: A map whose events have more dims.
    base_transform f: the map
    reinterpreted_batch_ndims dims: how many more dims
    domain in _wider(f.domain, dims)
    codomain in _wider(f.codomain, dims)
    bijective, sign of base_transform
    forward_shape(shape) = f.forward_shape(shape)
    inverse_shape(shape) = f.inverse_shape(shape)
    _adopt(cache_size) = Transform._adopt(self, cache_size)
        self.base_transform = self.base_transform.with_cache(cache_size)
    _call(x) = f(x)
        check_rank(x.shape, domain.event_dim)
    _inverse(y) = f.inv(y)
        check_rank(y.shape, codomain.event_dim)
    log_abs_det_jacobian(x, y) = _sum_rightmost(f.log_abs_det_jacobian(x, y), dims)
    __repr__() = f"{type(self).__name__}({f!r}, {dims})"

_Parts: Base of maps that treat parts of the input each by its own map.
A subclass has the region of its parts' regions, how long all parts are along `dim`
together, and how a tensor falls into parts and is joined of them.
    _adopt, _each is _with_maps, _for_each
    bijective = all(t.bijective for t in transforms)
    domain in _span([t.domain for t in transforms])
    codomain in _span([t.codomain for t in transforms])
    _call(x) = _join(_each(lambda t, part: t(part), x))
    _inverse(y) = _join(_each(lambda t, part: t.inv(part), y))
    _slopes(x, y) = _each(lambda t, *pair: t.log_abs_det_jacobian(*pair), x, y)

CatTransform(_Parts): Maps of parts that stand one behind another along a dim.
    tseq as transforms: the maps
    dim at default 0: the dim
    lengths parts default None: of the parts; each 1 when absent
    _adopt is _with_lengths
    event_dim = max(t.event_dim for t in transforms)
    length = _length = sum(parts)
    _wanted is "a tensor of length {}"
    _span(regions) = constraints.cat(regions, at, parts)
    _split(x) = x.split(parts, at)
    _join(found) = taeda.cat(found, at)
    log_abs_det_jacobian(x, y) = taeda.cat(slopes, dim) if dim < 0 else sum(slopes)
        pairs = zip(transforms, _slopes(x, y), strict=True)
        slopes = [_sum_rightmost(slope, event_dim - t.event_dim) for t, slope in pairs]
        dim = at + event_dim - (0 if at < 0 else x.dim())

StackTransform(_Parts): Maps of the slices along a dim.
    tseq as transforms: the maps
    dim at default 0: the dim
    _length = len(transforms)
    _wanted is "{} slices"
    _span(regions) = constraints.stack(regions, at)
    _split(x) = x.unbind(at)
    _join(found) = taeda.stack(found, at)
    log_abs_det_jacobian(x, y) = _join(_slopes(x, y))
"""
declare(globals(), TEXT, Transform)
identity_transform = KNOWN["ComposeTransform"]([])
