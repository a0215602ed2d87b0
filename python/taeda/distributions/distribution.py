"""The base of all distributions."""

from __future__ import annotations

import warnings

import taeda
from taeda.distributions import constraints
from taeda.distributions.utils import _compatible, absent, lazy_property

__all__ = ["Distribution"]


def _described(value) -> str:
    return f"{type(value).__name__} of shape {tuple(value.shape)}"


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
        self, batch_shape=(), event_shape=(), validate_args: bool | None = None
    ) -> None:
        self._batch_shape = taeda.Size(batch_shape)
        self._event_shape = taeda.Size(event_shape)
        if validate_args is not None:
            self._validate_args = validate_args
        if self._validate_args:
            self._validate_parameters()
        super().__init__()

    expand = absent(
        "Distribution.expand", "The same distribution with a larger batch shape."
    )
    arg_constraints = absent(
        "Distribution.arg_constraints", "Constraints by parameter.", False
    )
    support = absent(
        "Distribution.support", "The constraint that samples satisfy.", False
    )
    mean = absent("Distribution.mean", "The mean.", False)
    mode = absent("Distribution.mode", "The most probable value.", False)
    variance = absent("Distribution.variance", "The variance.", False)
    rsample = absent(
        "Distribution.rsample", "A sample that is differentiable by the parameters."
    )
    log_prob = absent(
        "Distribution.log_prob", "The logarithm of the density of a value."
    )
    cdf = absent("Distribution.cdf", "The probability of values up to this one.")
    icdf = absent("Distribution.icdf", "The inverse of `cdf`.")
    enumerate_support = absent(
        "Distribution.enumerate_support",
        "All values of a discrete distribution, along a new dim.",
    )
    entropy = absent("Distribution.entropy", "The entropy, in nats.")
    batch_shape = property(
        lambda self: self._batch_shape, doc="The shape over which parameters differ."
    )
    event_shape = property(
        lambda self: self._event_shape, doc="The shape of one sample."
    )

    @property
    def stddev(self):
        """The standard deviation."""
        return self.variance.sqrt()

    def sample(self, sample_shape=()):
        """A sample, or a tensor of them, without gradient."""
        with taeda.no_grad():
            return self.rsample(sample_shape)

    def sample_n(self, n: int):
        """n samples; the old name."""
        warnings.warn(
            "sample_n(n): this name is deprecated; call .sample((n,))",
            FutureWarning,
            stacklevel=2,
        )
        return self.sample((n,))

    def perplexity(self):
        """The exponential of the entropy."""
        return self.entropy().exp()

    def _extended_shape(self, sample_shape=()):
        """The shape of samples, as many as `sample_shape` says."""
        return taeda.Size((*sample_shape, *self._batch_shape, *self._event_shape))

    def _stated(self, name: str, remedy: str):
        """A member, or a warning that there is none and so nothing is checked."""
        try:
            return getattr(self, name)
        except NotImplementedError:
            warnings.warn(
                f"{type(self)} does not define `{name}`{remedy} with "
                "`validate_args=False` to turn off validation.",
                stacklevel=5,
            )
            return None

    def _validate_parameters(self) -> None:
        remedy = ". Please set `arg_constraints = {}` or initialize the distribution"
        for name, constraint in (self._stated("arg_constraints", remedy) or {}).items():
            derived = isinstance(getattr(type(self), name, None), lazy_property)
            absent = derived and name not in vars(self)
            if absent or constraints.is_dependent(constraint):
                continue
            value = getattr(self, name)
            if not constraint.check(value).all():
                raise ValueError(
                    f"Expected parameter {name} ({_described(value)}) of distribution "
                    f"{self!r} to satisfy the constraint {constraint!r}, but found "
                    f"invalid values:\n{value}"
                )

    def _validate_sample(self, value) -> None:
        """Check a value's shape and that it lies in the support.

        Raises:
            ValueError: it is no tensor, or its shape or an element does not fit.
        """
        if not isinstance(value, taeda.Tensor):
            raise ValueError("The value argument to log_prob must be a Tensor")
        shape, event = value.shape, self._event_shape
        if event and shape[-len(event) :] != event:
            raise ValueError(
                f"The right-most size of value must match event_shape: {shape} vs "
                f"{event}."
            )
        whole = self._batch_shape + event
        if not _compatible(shape, whole):
            raise ValueError(
                "Value is not broadcastable with batch_shape+event_shape: "
                f"{shape} vs {whole}."
            )
        remedy = " to enable sample validation. Please initialize the distribution"
        support = self._stated("support", remedy)
        if support is not None and not support.check(value).all():
            raise ValueError(
                f"Expected value argument ({_described(value)}) to be within the "
                f"support ({support!r}) of the distribution {self!r}, but found "
                f"invalid values:\n{value}"
            )

    def _get_checked_instance(self, cls, _instance=None):
        """What `expand` of `cls` fills: an empty object unless a subclass gave one."""
        if _instance is not None:
            return _instance
        if type(self).__init__ is not cls.__init__:
            raise NotImplementedError(
                f"Subclass {type(self).__name__} of {cls.__name__} that defines a "
                "custom __init__ method must also define a custom .expand() method."
            )
        return self.__new__(type(self))

    def __repr__(self) -> str:
        held = ((name, vars(self).get(name)) for name in self.arg_constraints)
        shown = (
            f"{name}: {value if value.numel() == 1 else value.size()}"
            for name, value in held
            if value is not None
        )
        return f"{type(self).__name__}({', '.join(shown)})"
