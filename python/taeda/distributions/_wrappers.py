"""Distributions made of others: with more event dims, transformed, or mixed."""

from __future__ import annotations

from . import constraints
from ._declare import KNOWN, Expanding, declare
from ._discrete import Categorical
from ._transform_base import ComposeTransform, Transform
from .distribution import Distribution
from .utils import _compatible, _sum_rightmost


def _reinterpret(self, validate_args) -> None:
    batch, count = self.base_dist.batch_shape, self.reinterpreted_batch_ndims
    cut = len(batch) - count
    if cut < 0:
        raise ValueError(
            "Expected reinterpreted_batch_ndims <= "
            f"len(base_distribution.batch_shape), actual {count} vs {len(batch)}"
        )
    event = batch[cut:] + self.base_dist.event_shape
    Distribution.__init__(self, batch[:cut], event, validate_args)


def _fitted(distribution, shape, rank: int):
    """A distribution of this whole shape whose events have at least `rank` dims."""
    batch = shape[: len(shape) - len(distribution.event_shape)]
    if batch != distribution.batch_shape:
        distribution = distribution.expand(batch)
    more = rank - len(distribution.event_shape)
    return KNOWN["Independent"](distribution, more) if more > 0 else distribution


def _adopt_maps(self, validate_args) -> None:
    if isinstance(self.transforms, Transform):
        self.transforms = [self.transforms]
    chain, base = self._chain(), self.base_dist
    inner, outer = chain.domain.event_dim, chain.codomain.event_dim
    shape = base.batch_shape + base.event_shape
    if len(shape) < inner:
        text = f"base_distribution needs to have shape with size at least {inner}"
        raise ValueError(f"{text}, but got {shape}.")
    whole = chain.forward_shape(shape)
    self.base_dist = _fitted(base, chain.inverse_shape(whole), inner)
    # Event dims beyond those that the transforms take pass through them.
    cut = len(whole) - outer - (len(self.base_dist.event_shape) - inner)
    Distribution.__init__(self, whole[:cut], whole[cut:], validate_args)


def _composed(given) -> ComposeTransform:
    if not isinstance(given, list):
        raise ValueError(f"transforms must be a Transform or list, but was {given}")
    if not all(isinstance(each, Transform) for each in given):
        raise ValueError("transforms must be a Transform or a list of Transforms")
    return ComposeTransform(given)


def _reached(given, base, event_shape):
    """Where the last of these maps leads."""
    if not given:
        return base.support
    inner = given[-1].codomain
    more = len(event_shape) - inner.event_dim
    return constraints.independent(inner, more) if more > 0 else inner


def _expand_maps(self, new, batch) -> None:
    Expanding._expand_into(self, new, batch)
    whole = self._chain().inverse_shape(batch + self.event_shape)
    new.base_dist = _fitted(self.base_dist, whole, 0)


def _log_prob_of_maps(self, value):
    """The base's density over the Jacobians of the transforms."""
    if self._validates():
        self._validate_sample(value)
    rank, slopes, x = len(self.event_shape), [], value
    for transform in reversed(self.transforms):
        x, y = transform.inv(x), x
        inner = transform.domain.event_dim
        rank += inner - transform.codomain.event_dim
        slope = transform.log_abs_det_jacobian(x, y)
        slopes.append(_sum_rightmost(slope, rank - inner))
    density = self.base_dist.log_prob(x)
    density = _sum_rightmost(density, rank - len(self.base_dist.event_shape))
    return density - sum(slopes)


def _check(mixture, parts) -> None:
    if not isinstance(mixture, Categorical):
        raise ValueError(
            " The Mixture distribution needs to be an  instance of "
            "torch.distributions.Categorical"
        )
    if not isinstance(parts, Distribution):
        raise ValueError(
            "The Component distribution need to be an instance of "
            "torch.distributions.Distribution"
        )
    mixed, batch = mixture.batch_shape, parts.batch_shape[:-1]
    if not _compatible(mixed, batch):
        raise ValueError(
            f"`mixture_distribution.batch_shape` ({mixed}) is not compatible "
            f"with `component_distribution.batch_shape`({batch})"
        )
    count, wanted = mixture.logits.shape[-1], parts.batch_shape[-1]
    if count != wanted:
        raise ValueError(
            f"`mixture_distribution component` ({count}) does not equal "
            f"`component_distribution.batch_shape[-1]` ({wanted})"
        )


TEXT = """
Independent: a distribution whose last batch dims count as dims of one event.
Logarithms of densities and entropies are sums over these dims.
    Raises:
        ValueError: there are not that many batch dims.
    base_distribution as base_dist: the distribution
    reinterpreted_batch_ndims dims: how many dims
    _nested is ("base_dist",)
    _adopt is _reinterpret
    mean, mode, variance is of("base_dist", "mean", "mode", "variance")
    has_rsample = base_dist.has_rsample
    has_enumerate_support = bool(base_dist.has_enumerate_support) and not dims
    support in independent(base_dist.support, dims) if dims else base_dist.support
    sample(sample_shape=()) = base_dist.sample(sample_shape)
    rsample(sample_shape=()) = base_dist.rsample(sample_shape)
    log_prob(value) = _sum_rightmost(base_dist.log_prob(value), dims)
    entropy = _sum_rightmost(base_dist.entropy(), dims)
    enumerate_support(expand=True) = base_dist.enumerate_support(expand=expand)
        if dims:
            text = "Enumeration over cartesian product is not implemented"
            raise NotImplementedError(text)
    __repr__() = f"{type(self).__name__}({base_dist}, {dims})"

TransformedDistribution over _reached(maps, base_dist, event_shape): what transforms
make of a distribution's samples.
    Raises:
        ValueError: no transforms, or the samples have too few dims for them.
    base_distribution as base_dist: the distribution of the samples
    transforms maps: one transform, or a list in order of use
    has_rsample of base_dist
    _adopt, _expand_into, log_prob is _adopt_maps, _expand_maps, _log_prob_of_maps
    _chain() = _composed(maps)
    sample = _forward(base_dist.sample(size))
    rsample(sample_shape=()) = _forward(base_dist.rsample(sample_shape))
    _forward(x) = reduce(lambda value, transform: transform(value), maps, x)
    # A falling transform turns the distribution function around.
    _monotonize_cdf(value) = value if rises else 0.5 + sign * (value - 0.5)
        sign = _chain().sign
        rises = isinstance(sign, int) and sign == 1
    cdf(value) = _monotonize_cdf(base_dist.cdf(x))
        x = reduce(lambda y, transform: transform.inv(y), maps[::-1], value)
        _validate_args and base_dist._validate_sample(x)
    icdf(value) = _forward(base_dist.icdf(_monotonize_cdf(value)))

MixtureSameFamily over MixtureSameFamilyConstraint(parts.support): one of several
components, drawn by a Categorical.
    Raises:
        ValueError: the two do not fit.
    mixture_distribution as _mixture_distribution: the Categorical
    component_distribution as _component_distribution: components, along the last dim of
        their batch
    has_rsample is False
    _nested is "_mixture_distribution", "_component_distribution"
    _symbols is {"mixture": "_mixture_distribution", "parts": "_component_distribution"}
    _adopt(validate_args) = Distribution.__init__(self, batch, event, validate_args)
        _check(mixture, parts)
        batch, event = parts.batch_shape[:-1], parts.event_shape
    lazy _num_component = parts.batch_shape[-1]
    lazy _event_ndims = len(event_shape)
    mean = _mean_of(parts.mean)
    # That within components, and that of their means.
    variance = _mean_of(parts.variance + (parts.mean - _pad(mean)) ** 2)
    cdf(x) = (parts.cdf(_pad(x)) * mixture.probs).sum(-1)
    log_prob(x) = (each + mixture.logits.log_softmax(-1)).logsumexp(-1)
        if self._validates():
            self._validate_sample(x)
        each = parts.log_prob(_pad(x))
    # A dim for the components, before those of the event.
    _pad(x) = x.unsqueeze(-1 - _event_ndims)
    # The weights with dims for the batch and the event.
    _pad_mixture_dimensions(x) = x.reshape(*x.shape[:-1], *ones, x.shape[-1], *event)
        ones = (1,) * (len(batch_shape) - len(mixture.batch_shape))
        event = (1,) * _event_ndims
    # Over the components.
    _mean_of(values) = (weights * values).sum(-1 - _event_ndims)
        weights = _pad_mixture_dimensions(mixture.probs)
    sample = drawn.gather(at, which).squeeze(at)
        which, drawn = mixture.sample(size), parts.sample(size)
        at = drawn.dim() - 1 - _event_ndims
        which = which.reshape(*which.shape, *(1,) * (1 + _event_ndims))
        which = which.expand(*drawn.shape[:at], 1, *event_shape)
    __repr__() = f"MixtureSameFamily(\\n  {mixture},\\n  {parts})"
"""
declare(globals(), TEXT)
