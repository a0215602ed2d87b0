"""Distributions whose parameters broadcast against each other to the batch shape."""

from __future__ import annotations

from numbers import Number

import taeda
from taeda.distributions.distribution import Distribution
from taeda.distributions.exp_family import ExponentialFamily
from taeda.distributions.utils import (
    broadcast_all,
    lazy_property,
    logits_to_probs,
    probs_to_logits,
)

__all__ = ["Elementwise", "ElementwiseFamily", "ProbsOrLogits"]


def owner_of(kind: type, attribute: str) -> type:
    """The class that a method of an instance's class comes from."""
    return next(base for base in kind.__mro__ if attribute in vars(base))


class Elementwise(Distribution):
    """Base; `_names` lists the parameters."""

    _names: tuple[str, ...] = ()

    def _adopt(self, values: tuple, validate_args) -> None:
        """Broadcast the parameters and keep them."""
        tensors = broadcast_all(*values)
        for name, tensor in zip(self._names, tensors, strict=True):
            setattr(self, name, tensor)
        plain = all(isinstance(value, Number) for value in values)
        shape = taeda.Size() if plain else tensors[0].size()
        Distribution.__init__(self, shape, validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        """The same distribution with a larger batch shape."""
        kind = owner_of(type(self), "_names")
        new = self._get_checked_instance(kind, _instance)
        shape = taeda.Size(batch_shape)
        for name in self._names:
            if name in self.__dict__:
                setattr(new, name, getattr(self, name).expand(shape))
        self._copy_rest(new)
        Distribution.__init__(new, shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    def _copy_rest(self, new) -> None:
        """What else an expanded copy needs."""

    def _checked(self, value) -> None:
        if self._validate_args:
            self._validate_sample(value)


class ElementwiseFamily(Elementwise, ExponentialFamily):
    """Base of those that are exponential families as well."""


class ProbsOrLogits(ElementwiseFamily):
    """Base of those with a probability, given as such or as a logit."""

    _names = ("probs", "logits")

    def _adopt_one(self, probs, logits, validate_args, *others) -> None:
        if (probs is None) == (logits is None):
            raise ValueError(
                "Either `probs` or `logits` must be specified, but not both."
            )
        name, value = ("probs", probs) if logits is None else ("logits", logits)
        if others:
            *rest, value = broadcast_all(*others, value)
            for (other, _), tensor in zip(self._more, rest, strict=True):
                setattr(self, other, tensor)
        elif not isinstance(value, taeda.Tensor):
            (value,) = broadcast_all(value)
        setattr(self, name, value)
        Distribution.__init__(self, value.size(), validate_args=validate_args)

    _more: tuple = ()

    @lazy_property
    def logits(self):
        """The logarithm of p / (1 - p)."""
        return probs_to_logits(self.probs, is_binary=True)

    @lazy_property
    def probs(self):
        """The probability."""
        return logits_to_probs(self.logits, is_binary=True)

    @property
    def _param(self):
        return self.__dict__["probs" if "probs" in self.__dict__ else "logits"]

    @property
    def param_shape(self):
        """The shape of the parameter that was given."""
        return self._param.size()

    def _new(self, *args, **kwargs):
        return self._param.new(*args, **kwargs)
