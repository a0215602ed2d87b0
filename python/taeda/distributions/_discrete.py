"""Discrete distributions: counts, categories, and vectors made of them."""

from __future__ import annotations

import math

import taeda
from taeda.nn import functional as F

from . import constraints
from ._declare import Expanding, ProbsOrLogits, odds, parameter, region, weights, wide
from ._gamma_family import Gamma
from .constraints import half_open_interval, nonnegative_integer
from .distribution import Distribution, ExponentialFamily, invalid


def _cross_entropy(p, t):
    """-(p log q + (1 - p) log(1 - q)) of probabilities q with the logits t."""
    t, p = taeda.broadcast_tensors(t, p)
    return F.binary_cross_entropy_with_logits(t, p, reduction="none")


class Bernoulli(ProbsOrLogits, ExponentialFamily, support=constraints.boolean):
    """1 with a probability, else 0."""

    probs, logits = odds("the probability of 1")
    mean = lambda p: p
    mode = lambda p: taeda.where(p == 0.5, math.nan, (p > 0.5).to(p))
    variance = lambda p: p * (1 - p)
    entropy = _cross_entropy
    log_prob = lambda x, t: -_cross_entropy(x, t)
    sample = lambda shape, p: taeda.bernoulli(p.expand(shape))
    enumerate_support = lambda _param: _param.new_tensor([0.0, 1.0])
    _natural_params = lambda p: (p.logit(),)
    _mean_carrier_measure = 0
    _log_normalizer = staticmethod(F.softplus)


class Geometric(ProbsOrLogits, support=nonnegative_integer):
    """The number of failures before the first success."""

    probs, logits = odds("the probability of success, in (0, 1]")
    mean = lambda p: (1 - p) / p
    mode = lambda p: taeda.zeros_like(p)
    variance = lambda p: (1 - p) / p**2
    entropy = lambda p, t: _cross_entropy(p, t) / p
    log_prob = lambda x, p: taeda.special.xlog1py(x, -p) + p.log()

    def sample(shape, p):
        # By the inverse of the distribution function.
        u = p.new_empty(shape).uniform_(taeda.finfo(p.dtype).tiny, 1)
        return (u.log() / (-p).log1p()).floor()

    def _adopt(self, validate_args, probs, logits) -> None:
        super()._adopt(validate_args, probs, logits)
        # A constraint open at 0 would change what `biject_to` makes of the parameter.
        if self._validate_args and self._given == "probs" and (self.probs <= 0).any():
            bad = self.probs[self.probs <= 0]
            wanted = f"of distribution {self!r} to be positive"
            raise invalid("parameter probs", bad, wanted)


class Poisson(Expanding, ExponentialFamily, support=nonnegative_integer):
    """Counts of independent events."""

    rate = parameter("b", constraints.nonnegative, "their mean")
    mean = variance = lambda b: b
    mode = lambda b: b.floor()
    log_prob = wide(lambda x, b: taeda.xlogy(x, b) - b - (x + 1).lgamma())
    sample = lambda shape, b: taeda.poisson(b.expand(shape))
    # The measure is 1 / x!.
    _natural_params = lambda b: (b.log(),)
    _log_normalizer = staticmethod(taeda.exp)


class NegativeBinomial(ProbsOrLogits, support=nonnegative_integer):
    """The number of successes before the total_count-th failure."""

    total_count = parameter(
        "n", constraints.greater_than_eq(0), "the number of failures, perhaps not whole"
    )
    probs, logits = odds("the probability of success", half_open_interval(0.0, 1.0))
    mean = lambda n, t: n * t.exp()
    mode = lambda n, t: ((n - 1) * t.exp()).floor().clamp(min=0)
    variance = lambda mean, t: mean / (-t).sigmoid()
    # A Poisson number has it whose rate is a gamma number.
    _gamma = lambda n, t: Gamma(n, (-t).exp(), validate_args=False)
    sample = lambda size, _gamma: taeda.poisson(_gamma.sample(size))

    @wide
    def log_prob(x, n, t):
        # C(x + n - 1, x), which is 1 where both are 0
        new = ((x + n).lgamma() - n.lgamma()).where(x + n != 0, 0.0)
        return new - (x + 1).lgamma() + n * F.logsigmoid(-t) + x * F.logsigmoid(t)


class Binomial(ProbsOrLogits):
    """The number of successes."""

    total_count = parameter("n", nonnegative_integer, "the number of trials", default=1)
    probs, logits = odds("the probability of success")
    support = region(lambda n: constraints.integer_interval(0, n), True)
    mean = lambda n, p: n * p
    mode = lambda n, p: ((n + 1) * p).floor().clamp(max=n)
    variance = lambda mean, p: mean * (1 - p)
    # Summed over all counts; they must be equal.
    entropy = lambda log_prob, _mean_of: -_mean_of(log_prob)
    sample = lambda shape, n, p: taeda.binomial(n.expand(shape), p.expand(shape))
    enumerate_support = lambda _counts: _counts("enumerate_support")

    @wide
    def log_prob(x, n, t):
        orders = (n + 1).lgamma() - (x + 1).lgamma() - (n - x + 1).lgamma()
        # softplus(t), with half of the gradient of each branch at 0
        larger = 0.5 * (t + t.abs())
        return orders + x * t - n * (larger + (-t.abs()).exp().log1p())

    def _mean_of(self, function):
        """The mean of a function of the count, summed over all of them."""
        counts = self._counts("entropy")
        return (self.log_prob(counts).exp() * function(counts)).sum(0)

    def _counts(self, member: str):
        most = int(self.total_count.max())
        if bool((self.total_count != most).any()):
            raise NotImplementedError(
                f"Inhomogeneous total count not supported by `{member}`."
            )
        counts = taeda.arange(most + 1).to(self._param)
        return counts.reshape(-1, *(1 for _ in self.batch_shape))


class Categorical(ProbsOrLogits):
    """One of K numbers from 0 on.

    Example:
        >>> taeda.distributions.Categorical(taeda.tensor([0.25, 0.75])).mode
        tensor(1)
    """

    probs, logits = weights("numbers")
    support = region(lambda _last: constraints.integer_interval(0, _last), True)
    _binary = False
    _num_events = lambda param_shape: param_shape[-1]
    _last = lambda _num_events: _num_events - 1
    mean = variance = lambda p, batch_shape: p.new_full(batch_shape, math.nan)
    mode = lambda p: p.argmax(-1)
    # A probability of 0 counts as 0, not as 0 times the infinite logarithm.
    entropy = lambda p, t: -(p * t.clamp(min=taeda.finfo(t.dtype).min)).sum(-1)
    enumerate_support = lambda p: taeda.arange(p.shape[-1], device=p.device)

    def log_prob(x, t):
        # The logarithm that belongs to each value, batches broadcast.
        shape = taeda.broadcast_shapes(x.shape, t.shape[:-1])
        places = x.long().expand(shape).unsqueeze(-1)
        return t.expand(*shape, -1).gather(-1, places).squeeze(-1)

    def sample(shape, size, p):
        rows = p.reshape(-1, p.shape[-1])
        drawn = taeda.multinomial(rows, taeda.Size(size).numel(), True)
        return drawn.mT.reshape(shape)


class OfCategorical(ProbsOrLogits):
    """Base of vectors made of a categorical distribution's numbers."""

    _nested, _kept = ("_categorical",), ()
    _symbols = {"c": "_categorical"}
    _param = property(lambda self: self._categorical._param)

    def _adopt(self, validate_args, probs, logits) -> None:
        self._categorical = Categorical(probs, logits)
        *batch, count = self.param_shape
        Distribution.__init__(self, batch, (count,), validate_args)


_one_hot = lambda places, like: F.one_hot(places, like.shape[-1]).to(like)


class OneHotCategorical(OfCategorical, support=constraints.one_hot):
    """A vector with a single 1."""

    probs, logits = weights("places", "_categorical")
    mean = lambda p: p
    mode = lambda p: _one_hot(p.argmax(-1), p)
    variance = lambda p: p * (1 - p)
    entropy = lambda c: c.entropy()
    log_prob = lambda x, c: c.log_prob(x.argmax(-1))
    sample = lambda size, p, c: _one_hot(c.sample(size), p)
    enumerate_support = lambda p: taeda.eye(p.shape[-1]).to(p)


class OneHotCategoricalStraightThrough(OneHotCategorical):
    """The same, whose samples have the gradient of the probabilities (Y. Bengio,
    N. Leonard, A. Courville, "Estimating or propagating gradients through stochastic
    neurons", 2013).
    """

    has_rsample = True

    def rsample(self, sample_shape=()):
        """One-hot vectors with the gradient of the probabilities."""
        return self.sample(sample_shape) + (self.probs - self.probs.detach())


class Multinomial(OfCategorical):
    """How often each of K numbers was drawn."""

    total_count = parameter("n", None, "the number of draws, a plain int", default=1)
    probs, logits = weights("numbers", "_categorical")
    support = region(lambda n: constraints.multinomial(n), True, 1)
    # `_binomial` is how often each number by itself was drawn.
    _nested = ("_categorical", "_binomial")
    mean = lambda _binomial: _binomial.mean
    variance = lambda _binomial: _binomial.variance

    @wide
    def log_prob(x, t):
        # A probability of 0 to the power 0 counts as 1.
        powers = taeda.where((x == 0) & t.isneginf(), 0.0, x * t)
        return (x.sum(-1) + 1).lgamma() + (powers - (x + 1).lgamma()).sum(-1)

    def entropy(n, p, _categorical, _binomial):
        # That of the draws, without their order.
        order = p.new_tensor(n + 1.0).lgamma()
        repeats = _binomial._mean_of(lambda k: (k + 1).lgamma()).sum(-1)
        return n * _categorical.entropy() - order + repeats

    def sample(shape, size, n, p, _categorical):
        drawn = _categorical.sample((n, *size)).movedim(0, -1)
        ones = taeda.ones_like(drawn, dtype=p.dtype)
        return p.new_zeros(shape).scatter_add(-1, drawn, ones)

    def _adopt(self, validate_args, probs, logits) -> None:
        if not isinstance(self.total_count, int):
            raise NotImplementedError("inhomogeneous total_count is not supported")
        super()._adopt(validate_args, probs, logits)
        self._binomial = Binomial(self.total_count, self.probs)
