"""Ranks that are slow, and ranks that fail.

- The slowest of k ranks whose speeds are spread normally with deviation s is, in the
  median, s q(0.5 ** (1 / k)) below the mean; q is the normal quantile. A step with
  collectives over all of them goes at its pace.
- Failures of N ranks with a mean time M between those of one arrive every M / N. With
  checkpoints that cost d after every t of work, and R until training goes on, a share

      t / [(M/N) exp(R N/M) (exp((t + d) N/M) - 1)]

  of the time is of use, and with x = d N/(2M) the best t is nearly

      sqrt(2 d M/N) (1 + sqrt(x)/3 + x/9) - d

  (Daly: A higher order estimate of the optimum checkpoint interval for restart dumps,
  Future Generation Computer Systems 22, 2006).
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from statistics import NormalDist

__all__ = ["Failures", "slowest"]


def slowest(ranks: int, spread: float, chance: float = 0.5) -> float:
    """The speed of the slowest of so many, where the mean is 1.

    Args:
        spread: standard deviation of speeds.
        chance: of a slower one; 0.5 gives the median.
    """
    below = chance ** (1.0 / ranks)
    return 1.0 - spread * NormalDist().inv_cdf(below)


@dataclass(frozen=True)
class Failures:
    """How often a job fails and what that costs.

    Args:
        between: mean seconds between failures of one rank.
        checkpoint: seconds that writing one holds training up.
        restart: seconds from a failure until training goes on.
    """

    between: float
    checkpoint: float
    restart: float

    def interval(self, ranks: int) -> float:
        """Seconds of work between checkpoints that are best for so many ranks."""
        mean = self.between / ranks
        if self.checkpoint >= 2.0 * mean:
            return mean
        x = self.checkpoint / (2.0 * mean)
        first = math.sqrt(2.0 * self.checkpoint * mean)
        return first * (1.0 + math.sqrt(x) / 3.0 + x / 9.0) - self.checkpoint

    def useful(self, ranks: int, interval: float | None = None) -> float:
        """The share of the time that is of use."""
        mean = self.between / ranks
        work = interval or self.interval(ranks)
        try:
            lost = math.expm1((work + self.checkpoint) / mean)
            return work / (mean * math.exp(self.restart / mean) * lost)
        except OverflowError:
            return 0.0

    def drawn(self, ranks: int, work: float, seed: int) -> float:
        """The same share of one job of `work` seconds whose failures are drawn."""
        draw, mean = random.Random(seed), self.between / ranks
        interval, passed, saved = self.interval(ranks), 0.0, 0.0
        failure = draw.expovariate(1.0 / mean)
        while saved < work:
            end = passed + interval + self.checkpoint
            if end <= failure:
                passed, saved = end, saved + interval
                continue
            # Of a failure while restarting, restarting begins again.
            passed = failure + self.restart
            failure += draw.expovariate(1.0 / mean)
            while failure < passed:
                passed = failure + self.restart
                failure += draw.expovariate(1.0 / mean)
        return saved / passed
