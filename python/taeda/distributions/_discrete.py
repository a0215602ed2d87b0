"""Discrete distributions: counts, categories, and vectors made of them."""

from __future__ import annotations

import taeda
from taeda.nn import functional as F

from . import _gamma_family as _gamma_family
from ._declare import ProbsOrLogits, declare
from .distribution import invalid


def _cross_entropy(p, t):
    """-(p log q + (1 - p) log(1 - q)) of probabilities q with the logits t."""
    t, p = taeda.broadcast_tensors(t, p)
    return F.binary_cross_entropy_with_logits(t, p, reduction="none")


def _adopt_positive(self, validate_args, probs, logits) -> None:
    ProbsOrLogits._adopt(self, validate_args, probs, logits)
    # A constraint open at 0 would change what `biject_to` makes of the parameter.
    if self._validates() and self._given == "probs" and (self.probs <= 0).any():
        bad = self.probs[self.probs <= 0]
        wanted = f"of distribution {self!r} to be positive"
        raise invalid("parameter probs", bad, wanted)


_one_hot = lambda places, like: F.one_hot(places, like.shape[-1]).to(like)

TEXT = """
Bernoulli(ProbsOrLogits, ExponentialFamily) over boolean: 1 with a probability, else 0.
    probs, logits is odds("the probability of 1")
    mean = p
    mode = taeda.where(p == 0.5, math.nan, (p > 0.5).to(p))
    variance = p * (1 - p)
    entropy = _cross_entropy(p, t)
    log_prob = -_cross_entropy(x, t)
    sample = taeda.bernoulli(p.expand(shape))
    enumerate_support = _param.new_tensor([0.0, 1.0])
    _natural_params = p.logit(),
    _mean_carrier_measure = 0
    _log_normalizer(t) = F.softplus(t)

Geometric(ProbsOrLogits) over nonnegative_integer: the number of failures before the
first success.
    probs, logits is odds("the probability of success, in (0, 1]")
    mean = (1 - p) / p
    mode = taeda.zeros_like(p)
    variance = (1 - p) / p**2
    entropy = _cross_entropy(p, t) / p
    log_prob = taeda.special.xlog1py(x, -p) + p.log()
    sample = (u.log() / (-p).log1p()).floor()
        # By the inverse of the distribution function.
        u = p.new_empty(shape).uniform_(taeda.finfo(p.dtype).tiny, 1)
    _adopt is _adopt_positive

Poisson(ExponentialFamily) over nonnegative_integer: counts of independent events.
    rate b in nonnegative: their mean
    mean = variance = b
    mode = b.floor()
    wide log_prob = taeda.xlogy(x, b) - b - (x + 1).lgamma()
    sample = taeda.poisson(b.expand(shape))
    # The measure is 1 / x!.
    _natural_params = b.log(),
    _log_normalizer(t) = taeda.exp(t)

NegativeBinomial(ProbsOrLogits) over nonnegative_integer: the number of successes before
the total_count-th failure.
    total_count n in greater_than_eq(0): the number of failures, perhaps not whole
    probs, logits is odds("the probability of success", half_open_interval(0.0, 1.0))
    mean = n * t.exp()
    mode = ((n - 1) * t.exp()).floor().clamp(min=0)
    variance = mean / (-t).sigmoid()
    # A Poisson number has it whose rate is a gamma number.
    _gamma = Gamma(n, (-t).exp(), validate_args=False)
    sample = taeda.poisson(_gamma.sample(size))
    wide log_prob = new - (x + 1).lgamma() + n * F.logsigmoid(-t) + x * F.logsigmoid(t)
        # C(x + n - 1, x), which is 1 where both are 0
        new = ((x + n).lgamma() - n.lgamma()).where(x + n != 0, 0.0)

Binomial(ProbsOrLogits) over integer_interval(0, n): the number of successes.
    total_count n in nonnegative_integer default 1: the number of trials
    probs, logits is odds("the probability of success")
    mean = n * p
    mode = ((n + 1) * p).floor().clamp(max=n)
    variance = mean * (1 - p)
    # Summed over all counts; they must be equal.
    entropy = -_mean_of(log_prob)
    sample = taeda.binomial(n.expand(shape), p.expand(shape))
    enumerate_support = _counts("enumerate_support")
    wide log_prob = orders + x * t - n * (larger + (-t.abs()).exp().log1p())
        orders = (n + 1).lgamma() - (x + 1).lgamma() - (n - x + 1).lgamma()
        # softplus(t), with half of the gradient of each branch at 0
        larger = 0.5 * (t + t.abs())
    # The mean of a function of the count, summed over all of them.
    _mean_of(function) = (log_prob(counts).exp() * function(counts)).sum(0)
        counts = _counts("entropy")
    _counts(member) = counts.reshape(-1, *(1 for _ in batch_shape))
        most = int(n.max())
        if bool((n != most).any()):
            text = f"Inhomogeneous total count not supported by `{member}`."
            raise NotImplementedError(text)
        counts = taeda.arange(most + 1).to(_param)

Categorical(ProbsOrLogits) over integer_interval(0, _last): one of K numbers from 0 on.
    Example:
        >>> taeda.distributions.Categorical(taeda.tensor([0.25, 0.75])).mode
        tensor(1)
    probs, logits is weights("numbers")
    _binary is False
    _num_events = param_shape[-1]
    _last = _num_events - 1
    mean = variance = p.new_full(batch_shape, math.nan)
    mode = p.argmax(-1)
    # A probability of 0 counts as 0, not as 0 times the infinite logarithm.
    entropy = -(p * t.clamp(min=taeda.finfo(t.dtype).min)).sum(-1)
    enumerate_support = taeda.arange(_num_events, device=_param.device)
    log_prob = t.expand(*shape, -1).gather(-1, places).squeeze(-1)
        # The logarithm that belongs to each value, batches broadcast.
        shape = taeda.broadcast_shapes(x.shape, t.shape[:-1])
        places = x.long().expand(shape).unsqueeze(-1)
    sample = drawn.mT.reshape(shape)
        rows = p.reshape(-1, p.shape[-1])
        drawn = taeda.multinomial(rows, taeda.Size(size).numel(), True)

OfCategorical(ProbsOrLogits): base of vectors made of numbers of a Categorical.
    _nested, _kept is ("_categorical",), ()
    _symbols is {"c": "_categorical"}
    _param = c._param
    _adopt(checked, **given) = Distribution.__init__(self, batch, (count,), checked)
        self._categorical = Categorical(**given)
        *batch, count = self.param_shape

OneHotCategorical(OfCategorical) over one_hot: A vector with a single 1.
    probs, logits is weights("places", "_categorical")
    mean = p
    mode = _one_hot(p.argmax(-1), p)
    variance = p * (1 - p)
    entropy = c.entropy()
    log_prob = c.log_prob(x.argmax(-1))
    sample = _one_hot(c.sample(size), p)
    enumerate_support = taeda.eye(_param.shape[-1]).to(_param)

OneHotCategoricalStraightThrough(OneHotCategorical): the same, whose samples have the
gradient of the probabilities (Y. Bengio, N. Leonard, A. Courville, "Estimating or
propagating gradients through stochastic neurons", 2013).
    rsample = sample(size) + (p - p.detach())

Multinomial(OfCategorical) over multinomial(n): how often each of K numbers was drawn.
    total_count n default 1: the number of draws, a plain int
    probs, logits is weights("numbers", "_categorical")
    # `_binomial` is how often each number by itself was drawn.
    _nested is ("_categorical", "_binomial")
    mean = _binomial.mean
    variance = _binomial.variance
    wide log_prob = (x.sum(-1) + 1).lgamma() + (powers - (x + 1).lgamma()).sum(-1)
        # A probability of 0 to the power 0 counts as 1.
        powers = taeda.where((x == 0) & t.isneginf(), 0.0, x * t)
    entropy = n * _categorical.entropy() - order + repeats
        # That of the draws, without their order.
        order = p.new_tensor(n + 1.0).lgamma()
        repeats = _binomial._mean_of(lambda k: (k + 1).lgamma()).sum(-1)
    sample = p.new_zeros(shape).scatter_add(-1, drawn, ones)
        drawn = _categorical.sample((n, *size)).movedim(0, -1)
        ones = taeda.ones_like(drawn, dtype=p.dtype)
    _adopt(checked, **given) = setattr(self, "_binomial", binomial)
        if not isinstance(n, int):
            raise NotImplementedError("inhomogeneous total_count is not supported")
        OfCategorical._adopt(self, checked, **given)
        binomial = Binomial(n, self.probs)
"""
declare(globals(), TEXT)
