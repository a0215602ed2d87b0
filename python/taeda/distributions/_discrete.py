"""Discrete distributions: counts, categories, and vectors made of them."""

from __future__ import annotations

import math

import taeda
from taeda.distributions import constraints
from taeda.distributions._declare import (
    OfCategorical,
    ProbsOrLogits,
    ScalarFamily,
    enumerated,
    exactly_one,
    formula,
    lazy,
    of,
    parameters,
    region,
    wide,
)
from taeda.distributions._gamma_family import Gamma
from taeda.distributions.constraints import (
    nonnegative_integer,
    real,
    real_vector,
    simplex,
    unit_interval,
)
from taeda.distributions.exp_family import ExponentialFamily
from taeda.nn.functional import (
    binary_cross_entropy_with_logits,
    logsigmoid,
    one_hot,
    softplus,
)


def _cross_entropy(p, t):
    """-(p log q + (1 - p) log(1 - q)) of probabilities q with the logits t."""
    t, p = taeda.broadcast_tensors(t, p)
    return binary_cross_entropy_with_logits(t, p, reduction="none")


class Bernoulli(ProbsOrLogits, ExponentialFamily):
    """1 with a probability, else 0.

    Args:
        probs: the probability of 1.
        logits: its logit, in place of it.
    """

    arg_constraints = parameters("p t", probs=unit_interval, logits=real)
    support = constraints.boolean
    has_enumerate_support = True
    mean = formula(lambda p: p)
    mode = formula(lambda p: taeda.where(p == 0.5, math.nan, (p > 0.5).to(p)))
    variance = formula(lambda p: p * (1 - p))
    entropy = formula(_cross_entropy)
    log_prob = formula(lambda x, t: -_cross_entropy(x, t))
    sample = formula(lambda shape, p: taeda.bernoulli(p.expand(shape)))
    _natural_params = formula(lambda p: (p.logit(),))
    _mean_carrier_measure = 0
    _log_normalizer = staticmethod(lambda t: softplus(t))

    def enumerate_support(self, expand: bool = True):
        """0 and 1, along a new first dim."""
        return enumerated(self, self._param.new_tensor([0.0, 1.0]), expand)


def _geometric_sample(shape, p):
    """By the inverse of the distribution function."""
    u = p.new_empty(shape).uniform_(taeda.finfo(p.dtype).tiny, 1)
    return (u.log() / (-p).log1p()).floor()


class Geometric(ProbsOrLogits):
    """The number of failures before the first success.

    Args:
        probs: the probability of success, in (0, 1].
        logits: its logit, in place of it.
    """

    arg_constraints = parameters("p t", probs=unit_interval, logits=real)
    support = nonnegative_integer
    mean = formula(lambda p: (1 - p) / p)
    mode = formula(lambda p: taeda.zeros_like(p))
    variance = formula(lambda p: (1 - p) / p**2)
    entropy = formula(lambda p, t: _cross_entropy(p, t) / p)
    log_prob = formula(lambda x, p: taeda.special.xlog1py(x, -p) + p.log())
    sample = formula(_geometric_sample)

    def _complete(self) -> None:
        # A constraint open at 0 would change what `biject_to` makes of the parameter.
        if self._validate_args and self._given == "probs" and (self.probs <= 0).any():
            bad = self.probs[self.probs <= 0]
            raise ValueError(
                f"Expected parameter probs ({type(self.probs).__name__} of shape "
                f"{tuple(bad.shape)}) of distribution {self!r} to be positive but "
                f"found invalid values:\n{bad}"
            )


class Poisson(ScalarFamily):
    """Counts of independent events.

    Args:
        rate: their mean.
    """

    arg_constraints = parameters("b", rate=constraints.nonnegative)
    support = nonnegative_integer
    mean = variance = formula(lambda b: b)
    mode = formula(lambda b: b.floor())
    log_prob = wide(lambda x, b: taeda.xlogy(x, b) - b - (x + 1).lgamma())
    sample = formula(lambda shape, b: taeda.poisson(b.expand(shape)))
    # The measure is 1 / x!.
    _natural_params = formula(lambda b: (b.log(),))
    _log_normalizer = staticmethod(lambda t: t.exp())


def _negative_binomial(x, n, t):
    # C(x + n - 1, x), which is 1 where both are 0
    orders = ((x + n).lgamma() - n.lgamma()).where(x + n != 0, 0.0) - (x + 1).lgamma()
    return orders + n * logsigmoid(-t) + x * logsigmoid(t)


class NegativeBinomial(ProbsOrLogits):
    """The number of successes before the total_count-th failure.

    Args:
        total_count: the number of failures, at least 0, not necessarily whole.
        probs: the probability of success, in [0, 1).
        logits: its logit, in place of it.
    """

    arg_constraints = parameters(
        "n p t",
        total_count=constraints.greater_than_eq(0),
        probs=constraints.half_open_interval(0.0, 1.0),
        logits=real,
    )
    support = nonnegative_integer
    mean = formula(lambda n, t: n * t.exp())
    mode = formula(lambda n, t: ((n - 1) * t.exp()).floor().clamp(min=0))
    variance = formula(lambda mean, t: mean / (-t).sigmoid())
    log_prob = wide(_negative_binomial)
    # A Poisson number has it whose rate is a gamma number.
    _gamma = lazy(lambda n, t: Gamma(n, (-t).exp(), validate_args=False))

    def sample(self, sample_shape=()):
        """Samples, without gradient."""
        with taeda.no_grad():
            return taeda.poisson(self._gamma.sample(sample_shape))


def _binomial(x, n, t):
    orders = (n + 1).lgamma() - (x + 1).lgamma() - (n - x + 1).lgamma()
    # softplus(t), with half of the gradient of each branch at 0
    larger = (t.clamp(min=0) + t - t.clamp(max=0)) / 2
    return orders + x * t - n * (larger + (-t.abs()).exp().log1p())


class Binomial(ProbsOrLogits):
    """The number of successes.

    Args:
        total_count: the number of trials.
        probs: the probability of success.
        logits: its logit, in place of it.
    """

    _defaults = {"total_count": 1, **ProbsOrLogits._defaults}
    arg_constraints = parameters(
        "n p t", total_count=nonnegative_integer, probs=unit_interval, logits=real
    )
    support = region(
        lambda total_count: constraints.integer_interval(0, total_count), True
    )
    has_enumerate_support = True
    mean = formula(lambda n, p: n * p)
    mode = formula(lambda n, p: ((n + 1) * p).floor().clamp(max=n))
    variance = formula(lambda mean, p: mean * (1 - p))
    log_prob = wide(_binomial)
    sample = formula(
        lambda shape, n, p: taeda.binomial(n.expand(shape), p.expand(shape))
    )

    def _mean_of(self, function, member: str = "entropy"):
        """The mean of a function of the count."""
        counts = self._counts(member)
        return (self.log_prob(counts).exp() * function(counts)).sum(0)

    def _counts(self, member: str):
        most = int(self.total_count.max())
        if bool((self.total_count != most).any()):
            raise NotImplementedError(
                f"Inhomogeneous total count not supported by `{member}`."
            )
        return enumerated(self, taeda.arange(most + 1).to(self._param), False)

    def entropy(self):
        """The entropy, in nats, summed over all counts; they must be equal."""
        return -self._mean_of(self.log_prob)

    def enumerate_support(self, expand: bool = True):
        """0 to total_count, along a new first dim; all counts must be equal."""
        return enumerated(self, self._counts("enumerate_support"), expand)


def _chosen(x, logits):
    """The logarithm that belongs to each value, batches broadcast."""
    shape = taeda.broadcast_shapes(x.shape, logits.shape[:-1])
    places = x.long().expand(shape).unsqueeze(-1)
    return logits.expand(*shape, -1).gather(-1, places).squeeze(-1)


class Categorical(ProbsOrLogits):
    """One of K numbers from 0 on.

    Args:
        probs: weights of the numbers along the last dim; they are normalised.
        logits: logarithms of weights, in place of them.

    Example:
        >>> taeda.distributions.Categorical(taeda.tensor([0.25, 0.75])).mode
        tensor(1)
    """

    arg_constraints = parameters("p t", probs=simplex, logits=real_vector)
    support = region(
        lambda _num_events: constraints.integer_interval(0, _num_events - 1), True
    )
    has_enumerate_support = True
    _binary = False
    _num_events = formula(lambda param_shape: param_shape[-1])
    mean = variance = formula(
        lambda self, p: p.new_full(self._extended_shape(), math.nan)
    )
    mode = formula(lambda p: p.argmax(-1))
    # A probability of 0 counts as 0, not as 0 times the infinite logarithm.
    entropy = formula(lambda p, t: -(p * t.clamp(min=taeda.finfo(t.dtype).min)).sum(-1))
    log_prob = formula(lambda x, t: _chosen(x, t))

    def _adopt(self, validate_args, probs, logits) -> None:
        self._given, weights = exactly_one(probs=probs, logits=logits)
        if weights.dim() < 1:
            raise ValueError(
                f"`{self._given}` parameter must be at least one-dimensional."
            )
        if self._given == "probs":
            self.probs = weights / weights.sum(-1, keepdim=True)
        else:
            self.logits = weights - weights.logsumexp(-1, keepdim=True)
        super(ProbsOrLogits, self).__init__(
            weights.shape[:-1], validate_args=validate_args
        )

    def sample(self, sample_shape=()):
        """Numbers from 0 to K - 1, int64."""
        rows = self.probs.reshape(-1, self._num_events)
        drawn = taeda.multinomial(rows, taeda.Size(sample_shape).numel(), True)
        return drawn.mT.reshape(self._extended_shape(sample_shape))

    def enumerate_support(self, expand: bool = True):
        """0 to K - 1, along a new first dim."""
        values = taeda.arange(self._num_events, device=self._param.device)
        return enumerated(self, values, expand)


class OneHotCategorical(OfCategorical):
    """A vector with a single 1.

    Args:
        probs: weights of the places along the last dim; they are normalised.
        logits: logarithms of weights, in place of them.
    """

    arg_constraints = parameters("p t", probs=simplex, logits=real_vector)
    support = constraints.one_hot
    has_enumerate_support = True
    mean = formula(lambda p: p)
    mode = formula(lambda self, _categorical: self._vectors(_categorical.mode))
    variance = formula(lambda p: p * (1 - p))
    entropy = formula(lambda _categorical: _categorical.entropy())
    log_prob = formula(lambda x, _categorical: _categorical.log_prob(x.argmax(-1)))

    def __init__(
        self, probs=None, logits=None, validate_args: bool | None = None
    ) -> None:
        self._adopt_categorical(Categorical(probs, logits), validate_args)

    def _vectors(self, places):
        return one_hot(places, self._event_shape[0]).to(self.probs)

    def sample(self, sample_shape=()):
        """One-hot vectors, without gradient."""
        return self._vectors(self._categorical.sample(sample_shape)).detach()

    def enumerate_support(self, expand: bool = True):
        """The one-hot vectors, along a new first dim."""
        values = self._vectors(self._categorical.enumerate_support(expand=False))
        return values.expand(-1, *self._batch_shape, -1) if expand else values


class OneHotCategoricalStraightThrough(OneHotCategorical):
    """The same, whose samples have the gradient of the probabilities (Y. Bengio,
    N. Leonard, A. Courville, "Estimating or propagating gradients through stochastic
    neurons", 2013).
    """

    has_rsample = True

    def rsample(self, sample_shape=()):
        """One-hot vectors with the gradient of the probabilities."""
        return self.sample(sample_shape) + (self.probs - self.probs.detach())


def _multinomial(x, t):
    # A probability of 0 to the power 0 counts as 1.
    powers = taeda.where((x == 0) & t.isneginf(), 0.0, x * t)
    return (x.sum(-1) + 1).lgamma() + (powers - (x + 1).lgamma()).sum(-1)


class Multinomial(OfCategorical):
    """How often each of K numbers was drawn.

    Args:
        total_count: the number of draws, a plain int.
        probs: weights of the numbers along the last dim; they are normalised.
        logits: logarithms of weights, in place of them.
    """

    arg_constraints = parameters("p t", probs=simplex, logits=real_vector)
    support = region(lambda total_count: constraints.multinomial(total_count), True, 1)
    # `_binomial` is how often each number by itself was drawn.
    _nested = ("_categorical", "_binomial")
    _kept = ("total_count",)
    mean = of("_binomial", "mean")
    variance = of("_binomial", "variance")
    log_prob = wide(_multinomial)

    def __init__(
        self,
        total_count: int = 1,
        probs=None,
        logits=None,
        validate_args: bool | None = None,
    ) -> None:
        if not isinstance(total_count, int):
            raise NotImplementedError("inhomogeneous total_count is not supported")
        self.total_count = total_count
        categorical = Categorical(probs, logits)
        self._binomial = Binomial(total_count, categorical.probs)
        self._adopt_categorical(categorical, validate_args)

    def sample(self, sample_shape=()):
        """Counts, along the last dim."""
        drawn = self._categorical.sample((self.total_count, *sample_shape))
        counts = self.probs.new_zeros(self._extended_shape(sample_shape))
        ones = taeda.ones_like(drawn, dtype=counts.dtype).movedim(0, -1)
        return counts.scatter_add(-1, drawn.movedim(0, -1), ones)

    def entropy(self):
        """The entropy, in nats: of the draws, without their order."""
        order = self.probs.new_tensor(self.total_count + 1.0).lgamma()
        repeats = self._binomial._mean_of(lambda k: (k + 1).lgamma()).sum(-1)
        return self.total_count * self._categorical.entropy() - order + repeats
