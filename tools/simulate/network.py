"""What collectives cost on a network of levels, and on one host.

Formulas, with p ranks, n bytes of the whole, a seconds for a message and b bytes a
second (Thakur, Rabenseifner, Gropp: Optimization of Collective Communication Operations
in MPICH, IJHPCA 2005; the two trees of all_reduce: Sanders, Speck, Traeff: Two-tree
algorithms for full bandwidth broadcast, reduction and scan, Parallel Computing 2009):

| collective | ring | tree |
|---|---|---|
| all_gather, reduce_scatter | (p-1) a + (p-1)/p n/b | - |
| all_reduce | 2 (p-1) a + 2 (p-1)/p n/b | 2 log2(p) a + 2 n/b |
| broadcast, reduce | (p-1) a + n/b | log2(p) a + n/b |
| all_to_all | (p-1) a + (p-1)/p n/b | - |

A ring that passes through hosts carries n (p-1)/p bytes into every host, over all its
ports, and as many into every rank over the links within: the slower of both counts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

__all__ = ["Cost", "Curve", "Host", "Level", "Network"]

# Volumes that go around the ring, in whole tensors.
_RINGS = {"all_reduce": 2, "all_gather": 1, "reduce_scatter": 1, "all_to_all": 1}
_TREES = {"all_reduce": 2, "broadcast": 1, "reduce": 1, "barrier": 2}


@dataclass(frozen=True)
class Cost:
    """Of one collective, from when its last rank has called it.

    Args:
        seconds: that pass, whatever processors do.
        work: seconds of a core that every rank needs.
    """

    seconds: float
    work: float = 0.0


@dataclass(frozen=True)
class Level:
    """Links of one kind.

    Args:
        ranks: how many are within one part of this level: 8 in a host, 4096 in a pod.
        latency: seconds of a message.
        bandwidth: bytes a second of each rank, in one direction; of a level above
            others that each rank can count on when all send.
    """

    ranks: int
    latency: float
    bandwidth: float


@dataclass(frozen=True)
class _Hop:
    """A group's use of a level.

    `links` of its ring are there, `fan` parts of the level below meet, and bytes enter
    each of these at `bandwidth`, over the ports of all the group's ranks in it.
    """

    latency: float
    links: int
    fan: float
    bandwidth: float


@dataclass(frozen=True)
class Network:
    """Levels from the innermost to the outermost, which has all ranks.

    Args:
        levels: links. algorithm: "ring", "tree" or "best" of them.
        launch: seconds until a collective begins.
        interference: share of its speed that a rank's computing loses meanwhile.
        wake, block, spin: as of `Host`.
    """

    levels: tuple[Level, ...]
    algorithm: str = "best"
    launch: float = 0.0
    interference: float = 0.0
    wake: float = 0.0
    block: float = 0.0
    spin: float = math.inf

    def _hops(self, size: int, span: int) -> list[_Hop]:
        """What a group uses of each level, from the innermost."""
        found, units = [], size
        for level in self.levels:
            parts = min(units, math.ceil(size * span / level.ranks))
            if units > parts or parts == 1:
                staying = units if parts == 1 else units - parts
                shared = level.bandwidth * size / units
                found.append(_Hop(level.latency, staying, units / parts, shared))
            units = parts
            if parts == 1:
                return found
        raise ValueError(
            f"Network: a group of {size} ranks, {span} apart, is beyond its "
            f"{self.levels[-1].ranks} ranks"
        )

    def _ring(self, kind: str, size: int, count: int, hops: list[_Hop]) -> float:
        turns, share = _RINGS.get(kind), (size - 1) / size
        volume = share * count if turns else count
        # A ring has `size` links; a message stops one before its start.
        latency = sum(hop.latency * hop.links for hop in hops) * share
        return (turns or 1) * (latency + volume / min(h.bandwidth for h in hops))

    def _tree(self, kind: str, size: int, count: int, hops: list[_Hop]) -> float:
        latency = sum(hop.latency * math.log2(hop.fan) for hop in hops)
        return _TREES[kind] * (latency + count / min(h.bandwidth for h in hops))

    def cost(self, kind: str, size: int, count: int, span: int = 1) -> Cost:
        """Of a collective of `size` ranks and `count` bytes of the whole.

        Args:
            span: how far apart ranks that are next to each other in the group are: 1
                for neighbours, 8 for the first ranks of hosts.

        Raises:
            ValueError: the group is larger than the network.
        """
        if size <= 1:
            return Cost(0.0)
        hops = self._hops(size, span)
        choices = []
        if kind not in _TREES or (kind != "barrier" and self.algorithm != "tree"):
            choices.append(self._ring(kind, size, count, hops))
        if kind in _TREES and (self.algorithm != "ring" or kind == "barrier"):
            choices.append(self._tree(kind, size, count, hops))
        return Cost(self.launch + min(choices))

    def message(self, count: int, distance: int) -> Cost:
        """Of `count` bytes to the rank that is `distance` away."""
        level = next(lv for lv in self.levels if distance < lv.ranks)
        return Cost(self.launch + level.latency + count / level.bandwidth)


@dataclass(frozen=True)
class Curve:
    """Seconds of work on so many bytes, straight between points that were measured.

    Args:
        points: bytes and their seconds, by bytes; beyond the last a byte takes what one
            of it takes. Small tensors lie in nearer caches, so theirs take less.
    """

    points: tuple[tuple[int, float], ...]

    @classmethod
    def per_byte(cls, seconds: float) -> Curve:
        """The same for every byte."""
        return cls(((1, seconds),))

    def __call__(self, count: float) -> float:
        """Seconds of `count` bytes."""
        below = (0, 0.0)
        for point in self.points:
            if count <= point[0]:
                part = (count - below[0]) / (point[0] - below[0])
                return below[1] + part * (point[1] - below[1])
            below = point
        return count * below[1] / below[0]


@dataclass(frozen=True)
class Host:
    """Ranks on one machine, which share cores and move bytes with them.

    A collective of p ranks takes `latency`, and `switch` more for each rank that has
    to wait for a core; every rank works `copy` seconds for bytes that it reads out of
    another's memory, and `reduce` for those that it adds to its own, measured while all
    cores do so. Who has waited for `spin` sleeps, and needs `wake` to go on; waiting
    takes `block` seconds of a core, and a message `post` at both ends beside its bytes.
    """

    cores: int
    latency: float
    copy: Curve
    reduce: Curve
    switch: float = 0.0
    wake: float = 0.0
    block: float = 0.0
    post: float = 0.0
    spin: float = 20e-6
    interference: float = 0.0
    # Of ranks that take turns on cores, and find the others' bytes in the caches.
    copy_in_turns: Curve | None = None
    reduce_in_turns: Curve | None = None

    def cost(self, kind: str, size: int, count: int, span: int = 1) -> Cost:
        """As of `Network`."""
        if size <= 1:
            return Cost(0.0)
        share = count / size
        copied = {
            "all_reduce": count - share,
            "all_gather": count,
            "broadcast": count,
            "all_to_all": count,
            "scatter": share,
            "gather": count,
        }.get(kind, 0.0)
        reduced = count if kind in ("all_reduce", "reduce_scatter", "reduce") else 0.0
        waiting = max(0, size - self.cores)
        copy, reduce = self.copy, self.reduce
        if waiting:
            copy = self.copy_in_turns or copy
            reduce = self.reduce_in_turns or reduce
        work = copy(copied) + reduce(reduced)
        return Cost(self.latency + waiting * self.switch, work)

    def message(self, count: int, distance: int) -> Cost:
        """As of `Network`; both ends copy."""
        return Cost(self.latency, self.post + self.copy(count))
