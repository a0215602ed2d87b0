"""Machines and models of the literature, in figures, and training on them.

Sources:
- H100 and H200: NVLink at 450 GB/s in one direction (NVIDIA's data sheets).
- Hosts of 8 with 400 Gb/s for each GPU, and the throughputs: torchtitan,
  benchmarks/llama3_h100_202412_torchtitan.md and llama3-8b_h200_202506_*.md.
- Pods of 3,072 GPUs, and 1/7 of the bandwidth between them: The Llama 3 Herd of Models
  (arXiv 2407.21783), 3.3.1; failures: 3.3.4, 419 in 54 days of 16,384 GPUs.
- Latencies of a message: NCCL's own model (src/graph/tuning.cc, ring, Simple).
- 20 of 132 processors of a GPU move bytes meanwhile: DeepSeek-V3 (arXiv 2412.19437).
- Speeds of equal GPUs vary by 8 % (Sinha et al., SC22, arXiv 2208.11035); taken as the
  5.4 standard deviations between the whiskers of a normal distribution's box plot.
"""

from __future__ import annotations

from dataclasses import dataclass

from .engine import Group, Replay
from .events import Event, scaled, total
from .faults import Failures, slowest
from .network import Level, Network

__all__ = ["H100", "PUBLISHED", "Job", "Measured", "weak_scaling"]

H100 = Network(
    (
        Level(8, 3.4e-6, 450e9),
        Level(3072, 14e-6, 50e9),
        Level(3072 * 64, 14e-6, 50e9 / 7),
    ),
    launch=8.4e-6,
    interference=20 / 132,
)
SPREAD = 0.08 / 5.4
DAY = 24 * 3600.0
LLAMA3 = Failures(between=54 * DAY * 16_384 / 419, checkpoint=5.0, restart=600.0)
TOKENS = 2 * 8192  # of a rank in a step: two sequences


@dataclass(frozen=True)
class Measured:
    """Published tokens a second of each GPU, at two numbers of GPUs."""

    name: str
    few: int
    few_rate: float
    many: int
    many_rate: float

    @property
    def efficiency(self) -> float:
        """What was measured of weak scaling."""
        return self.many_rate / self.few_rate


PUBLISHED = (
    Measured("H100, eager", 8, 5762, 128, 5605),
    Measured("H100, compiled", 8, 6667, 128, 6514),
    Measured("H100, compiled, Float8", 8, 8532, 128, 8380),
    Measured("H200, compiled, Float8", 32, 10938, 64, 10753),
)


@dataclass(frozen=True)
class Job:
    """Training of one model, on any number of ranks.

    Args:
        events: a rank's schedule; calls have the group "shard" or "copies".
        shard: ranks that share one set of parameters; 0 for all.
        network: what connects them. spread: standard deviation of ranks' speeds.
    """

    events: list[Event]
    shard: int = 0
    network: Network = H100
    spread: float = SPREAD

    def _replay(self, ranks: int, computing: float) -> Replay:
        shard = self.shard or ranks
        groups = {
            "shard": Group((0,), min(shard, ranks)),
            "copies": Group((0,), max(1, ranks // shard), span=shard),
        }
        events = scaled(self.events, computing / total(self.events))
        return Replay(
            {0: events}, groups, self.network, speeds={0: slowest(ranks, self.spread)}
        )

    def step(self, ranks: int, computing: float) -> float:
        """Seconds of a step.

        Args:
            ranks: how many.
            computing: seconds that a rank of mean speed computes.
        """
        return self._replay(ranks, computing).run()

    def computing(self, ranks: int, step: float) -> float:
        """What a rank computes where a step of so many takes `step` seconds.

        Raises:
            ValueError: the network alone takes longer.
        """
        low, high = 0.0, step
        if self.step(ranks, 1e-9) > step:
            raise ValueError(f"Job: {ranks} ranks need more than {step:g} s to talk")
        for _ in range(30):
            middle = (low + high) / 2
            if self.step(ranks, middle) > step:
                high = middle
            else:
                low = middle
        return low


def weak_scaling(job: Job, found: Measured) -> float:
    """The efficiency that is predicted at `many` from the rate at `few`."""
    before = TOKENS / found.few_rate
    computing = job.computing(found.few, before)
    return before / job.step(found.many, computing)
