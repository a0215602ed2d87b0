"""The base of all distributions."""

from __future__ import annotations

import warnings

import taeda
from taeda.distributions import constraints
from taeda.distributions.utils import lazy_property

__all__ = ["Distribution"]


class Distribution:
    """A probability distribution over tensors.

    Args:
        batch_shape: the shape of independent, differently parameterised copies.
        event_shape: the shape of one sample.
        validate_args: check parameters and values; the class's default when absent.

    Raises:
        ValueError: a parameter lies outside of its constraint.
    """

    has_rsample = False
    has_enumerate_support = False
    _validate_args = __debug__

    @staticmethod
    def set_default_validate_args(value: bool) -> None:
        """Whether distributions check their arguments where nothing else is said."""
        if value not in (True, False):
            raise ValueError(f"set_default_validate_args: not a bool: {value!r}")
        Distribution._validate_args = value

    def __init__(
        self,
        batch_shape=(),
        event_shape=(),
        validate_args: bool | None = None,
    ) -> None:
        self._batch_shape = taeda.Size(batch_shape)
        self._event_shape = taeda.Size(event_shape)
        if validate_args is not None:
            self._validate_args = validate_args
        if self._validate_args:
            self._check_parameters()
        super().__init__()

    def _check_parameters(self) -> None:
        try:
            table = self.arg_constraints
        except NotImplementedError:
            warnings.warn(
                f"{type(self)} does not define `arg_constraints`. Please set "
                "`arg_constraints = {}` or initialize the distribution with "
                "`validate_args=False` to turn off validation.",
                stacklevel=3,
            )
            return
        for name, constraint in table.items():
            if constraints.is_dependent(constraint):
                continue
            lazy = isinstance(getattr(type(self), name, None), lazy_property)
            if name not in self.__dict__ and lazy:
                continue
            value = getattr(self, name)
            if not constraint.check(value).all():
                raise ValueError(
                    f"Expected parameter {name} ({type(value).__name__} of shape "
                    f"{tuple(value.shape)}) of distribution {self!r} to satisfy the "
                    f"constraint {constraint!r}, but found invalid values:\n{value}"
                )

    def _absent(self, name: str) -> NotImplementedError:
        return NotImplementedError(f"{type(self).__name__} does not implement {name}")

    def expand(self, batch_shape, _instance=None):
        """The same distribution with a larger batch shape."""
        raise self._absent("expand")

    @property
    def batch_shape(self):
        """The shape over which parameters differ."""
        return self._batch_shape

    @property
    def event_shape(self):
        """The shape of one sample."""
        return self._event_shape

    @property
    def arg_constraints(self) -> dict:
        """Constraints by parameter."""
        raise self._absent("arg_constraints")

    @property
    def support(self):
        """Where samples lie."""
        raise self._absent("support")

    @property
    def mean(self):
        """The mean."""
        raise self._absent("mean")

    @property
    def mode(self):
        """The most probable value."""
        raise NotImplementedError(f"{self.__class__} does not implement mode")

    @property
    def variance(self):
        """The variance."""
        raise self._absent("variance")

    @property
    def stddev(self):
        """The standard deviation."""
        return self.variance.sqrt()

    def sample(self, sample_shape=()):
        """A sample, or a tensor of them, without gradient."""
        with taeda.no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape=()):
        """A sample that is differentiable by the parameters."""
        raise self._absent("rsample")

    def sample_n(self, n: int):
        """n samples; the old name."""
        warnings.warn(
            "sample_n will be deprecated. Use .sample((n,)) instead",
            FutureWarning,
            stacklevel=2,
        )
        return self.sample(taeda.Size((n,)))

    def log_prob(self, value):
        """The logarithm of the density or probability of a value."""
        raise self._absent("log_prob")

    def cdf(self, value):
        """The probability of values up to this one."""
        raise self._absent("cdf")

    def icdf(self, value):
        """The inverse of `cdf`."""
        raise self._absent("icdf")

    def enumerate_support(self, expand: bool = True):
        """All values of a discrete distribution along a new first dim."""
        raise self._absent("enumerate_support")

    def entropy(self):
        """The entropy, in nats."""
        raise self._absent("entropy")

    def perplexity(self):
        """The exponential of the entropy."""
        return taeda.exp(self.entropy())

    def _extended_shape(self, sample_shape=()):
        if not isinstance(sample_shape, taeda.Size):
            sample_shape = taeda.Size(sample_shape)
        return taeda.Size(sample_shape + self._batch_shape + self._event_shape)

    def _validate_sample(self, value) -> None:
        if not isinstance(value, taeda.Tensor):
            raise ValueError("The value argument to log_prob must be a Tensor")
        start = len(value.size()) - len(self._event_shape)
        if value.size()[max(start, 0) :] != self._event_shape:
            raise ValueError(
                "The right-most size of value must match event_shape: "
                f"{value.size()} vs {self._event_shape}."
            )
        expected = self._batch_shape + self._event_shape
        pairs = zip(reversed(value.size()), reversed(expected), strict=False)
        for i, j in pairs:
            if i != 1 and j != 1 and i != j:
                raise ValueError(
                    "Value is not broadcastable with batch_shape+event_shape: "
                    f"{value.size()} vs {expected}."
                )
        self._check_support(value)

    def _check_support(self, value) -> None:
        try:
            support = self.support
        except NotImplementedError:
            warnings.warn(
                f"{type(self)} does not define `support` to enable sample validation. "
                "Please initialize the distribution with `validate_args=False` to turn "
                "off validation.",
                stacklevel=4,
            )
            return
        if support is None:
            raise AssertionError("support is unexpectedly None")
        if not support.check(value).all():
            raise ValueError(
                "Expected value argument "
                f"({type(value).__name__} of shape {tuple(value.shape)}) "
                f"to be within the support ({support!r}) "
                f"of the distribution {self!r}, "
                f"but found invalid values:\n{value}"
            )

    def _get_checked_instance(self, cls, _instance=None):
        if _instance is None and type(self).__init__ != cls.__init__:
            raise NotImplementedError(
                f"Subclass {type(self).__name__} of {cls.__name__} that defines a "
                "custom __init__ method must also define a custom .expand() method."
            )
        return self.__new__(type(self)) if _instance is None else _instance

    def __repr__(self) -> str:
        names = [n for n in self.arg_constraints if n in self.__dict__]
        shown = []
        for name in names:
            value = self.__dict__[name]
            text = value if value.numel() == 1 else value.size()
            shown.append(f"{name}: {text}")
        return type(self).__name__ + "(" + ", ".join(shown) + ")"
