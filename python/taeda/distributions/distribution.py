"""The bases of all distributions, and of those of an exponential family."""

from __future__ import annotations

import warnings

import taeda
from taeda.distributions import constraints
from taeda.distributions.utils import _compatible, _sum_rightmost, absent, lazy_property


def invalid(what: str, value, wanted: str) -> ValueError:
    """The error of a tensor that does not lie where it must."""
    shown = f"{type(value).__name__} of shape {tuple(value.shape)}"
    found = f"but found invalid values:\n{value}"
    return ValueError(f"Expected {what} ({shown}) {wanted} {found}")


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
    _asked_to_validate = False

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
            self._validate_args = self._asked_to_validate = validate_args
        if self._validates():
            self._validate_parameters()
        super().__init__()

    def _validates(self) -> bool:
        """Whether arguments are checked: in compiled code where it was asked for.

        A check reads values, which no graph can hold.
        """
        asked = self._asked_to_validate or not taeda.compiler.is_compiling()
        return self._validate_args and asked

    expand = absent("The same distribution with a larger batch shape.")
    arg_constraints = absent("Constraints by parameter.", property)
    support = absent("The constraint that samples satisfy.", property)
    mean = absent("The mean.", property)
    mode = absent("The most probable value.", property)
    variance = absent("The variance.", property)
    rsample = absent("A sample that is differentiable by the parameters.")
    log_prob = absent("The logarithm of the density of a value.")
    cdf = absent("The probability of values up to this one.")
    icdf = absent("The inverse of `cdf`.")
    enumerate_support = absent("All values if they are discrete, along a new dim.")
    entropy = absent("The entropy, in nats.")
    stddev = property(lambda self: self.variance.sqrt(), doc="The standard deviation.")
    batch_shape = property(lambda self: self._batch_shape, doc="Shape of parameters.")
    event_shape = property(lambda self: self._event_shape, doc="Shape of one sample.")

    def sample(self, sample_shape=()):
        """A sample, or a tensor of them, without gradient."""
        with taeda.no_grad():
            return self.rsample(sample_shape)

    def sample_n(self, n: int):
        """n samples; the old name."""
        text = "sample_n(n): this name is deprecated; call .sample((n,))"
        warnings.warn(text, FutureWarning, stacklevel=2)
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
                wanted = f"of distribution {self!r} to satisfy the constraint"
                raise invalid(f"parameter {name}", value, f"{wanted} {constraint!r},")

    def _validate_sample(self, value) -> None:
        """Check a value's shape and that it lies in the support.

        Raises:
            ValueError: it is no tensor, or its shape or an element does not fit.
        """
        if not isinstance(value, taeda.Tensor):
            raise ValueError("The value argument to log_prob must be a Tensor")
        shape, event = value.shape, self._event_shape
        if event and shape[-len(event) :] != event:
            text = "The right-most size of value must match event_shape"
            raise ValueError(f"{text}: {shape} vs {event}.")
        whole = self._batch_shape + event
        if not _compatible(shape, whole):
            text = "Value is not broadcastable with batch_shape+event_shape"
            raise ValueError(f"{text}: {shape} vs {whole}.")
        remedy = " to enable sample validation. Please initialize the distribution"
        support = self._stated("support", remedy)
        if support is not None and not support.check(value).all():
            wanted = f"to be within the support ({support!r}) of the distribution"
            raise invalid("value argument", value, f"{wanted} {self!r},")

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


def tangent(family, at):
    """A(t) + <u - t, A'(t)>: the tangent plane of A at t, over other parameters u."""
    natural = [t.detach().requires_grad_() for t in family._natural_params]
    with taeda.enable_grad():
        value = family._log_normalizer(*natural)
        slopes = taeda.autograd.grad(value.sum(), natural, create_graph=True)
    for t, u, slope in zip(natural, at, slopes, strict=True):
        own = max(t.dim() - len(family.batch_shape), 0)
        value = value + _sum_rightmost((u - t) * slope, own)
    return value


class ExponentialFamily(Distribution):
    """Densities p(x; t) = exp(<T(x), t> - A(t) + k(x)) of natural parameters t.

    A subclass has `_natural_params`, `_log_normalizer` (A) and `_mean_carrier_measure`
    (E k(x)). The gradient of A is the mean of T; entropy and divergences follow
    (M. Wainwright, M. Jordan, "Graphical Models, Exponential Families, and
    Variational Inference", 2008, section 3).
    """

    _declaring = None  # It is no base only, although it has no parameters.
    _natural_params = absent("t, a tuple.", property)
    _log_normalizer = absent("A(t).")
    _mean_carrier_measure = absent("E k(x).", property)

    def entropy(self):
        """A(t) - <t, A'(t)> - E k(x), in nats."""
        origin = [0.0] * len(self._natural_params)
        return tangent(self, origin) - self._mean_carrier_measure
