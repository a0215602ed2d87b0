"""The rules of the known schedules.

Sources: GPipe, arXiv:1811.06965; 1F1B, arXiv:2006.15704 (PipeDream-flush,
arXiv:2006.09503); interleaved, arXiv:2104.04473; looped breadth-first,
arXiv:2211.05953; zero bubble and ZB-V, arXiv:2401.10241; DualPipe, arXiv:2412.19437,
in its V form.
"""

from __future__ import annotations

from ._table import Action, Kind, Rules, Table, arrange, make

__all__ = ["MAKERS", "forward_only", "looped", "v_shaped"]


def looped(ranks: int, stages: int) -> dict[int, int]:
    """Stage -> rank, round and round."""
    return {stage: stage % ranks for stage in range(stages)}


def v_shaped(ranks: int, stages: int) -> dict[int, int]:
    """Stage -> rank, there and back.

    Raises:
        ValueError: ranks would have different numbers of stages.
    """
    if stages % ranks:
        raise ValueError(
            f"num_stages {stages} must be evenly divisible by pp_size {ranks} for V "
            "schedules"
        )
    there, found = list(range(ranks)), {}
    for stage in range(stages):
        turn, place = divmod(stage, ranks)
        found[stage] = there[place] if turn % 2 == 0 else there[-1 - place]
    return found


def _of_rank(rank_of: dict[int, int], rank: int) -> list[int]:
    return [stage for stage, owner in sorted(rank_of.items()) if owner == rank]


def _grid(stages: list[int], batches: list[int]) -> list[tuple[int, int]]:
    return [(stage, batch) for stage in stages for batch in batches]


def forward_only(ranks: int, rank_of: dict[int, int], batches: int) -> Table:
    """No backward, later stages first."""
    everything = list(range(batches))
    rules = []
    for rank in range(ranks):
        queues = [_grid([s], everything) for s in reversed(_of_rank(rank_of, rank))]
        rules.append(Rules(queues, limits=[None] * len(queues)))
    return make(rules, len(rank_of))


def gpipe(ranks: int, rank_of: dict[int, int], batches: int) -> Table:
    """All forwards, then all backwards."""
    order = list(range(batches))
    rules = [
        Rules([_grid([r], order)], [_grid([r], order)], forwards_first=True)
        for r in range(ranks)
    ]
    return make(rules, len(rank_of))


def one_forward_one_backward(
    ranks: int, rank_of: dict[int, int], batches: int
) -> Table:
    """As soon as a backward is ready it is done: few micro-batches are in memory."""
    order = list(range(batches))
    rules = [
        Rules([_grid([r], order)], [_grid([r], order)], [ranks - r])
        for r in range(ranks)
    ]
    return make(rules, len(rank_of))


def breadth_first(ranks: int, rank_of: dict[int, int], batches: int) -> Table:
    """All micro-batches through a stage before the rank's next stage."""
    order = list(range(batches))
    rules = []
    for rank in range(ranks):
        own = _of_rank(rank_of, rank)
        back = _grid(own[::-1], order[::-1])
        rules.append(Rules([_grid(own, order)], [back], forwards_first=True))
    return make(rules, len(rank_of))


def _rounds(ranks: int, batches: int, name: str) -> list[list[int]]:
    """Micro-batches that go together through a rank's stages, about one per rank."""
    count = max(1, batches // ranks)
    if batches % count:
        raise ValueError(
            f"{name} requires the number of microbatches to be a multiple of the "
            f"number of rounds ({count}), but got {batches}."
        )
    size = batches // count
    return [list(range(i * size, (i + 1) * size)) for i in range(count)]


def _interleaved(
    ranks: int, rank_of: dict[int, int], batches: int, name: str, per_hop: int, **more
) -> list[Rules]:
    rounds = _rounds(ranks, batches, name)
    rules = []
    for rank in range(ranks):
        own = _of_rank(rank_of, rank)
        there = [x for group in rounds for x in _grid(own, group)]
        back = [x for group in rounds for x in _grid(own[::-1], group)]
        # Until the first backward comes back: other stages of the round, and slots for
        # each rank that lies behind. Weights' parts that are left count as well.
        ahead = (len(own) - 1) * len(rounds[0]) + per_hop * (ranks - 1 - rank)
        delay = rank if more else 0
        limit = ahead + 1 + delay
        rules.append(Rules([there], [back], [limit], delay=ranks, **more))
    return rules


def interleaved(ranks: int, rank_of: dict[int, int], batches: int) -> Table:
    """1F1B with several stages on each rank."""
    rules = _interleaved(ranks, rank_of, batches, "Interleaved 1F1B", 2)
    return make(rules, len(rank_of))


def zero_bubble(ranks: int, rank_of: dict[int, int], batches: int) -> Table:
    """Interleaved, with weights' gradients where a rank would wait (ZB-H1)."""
    rules = _interleaved(ranks, rank_of, batches, "Zero bubble", 1, split=True)
    return make(rules, len(rank_of))


def zero_bubble_v(ranks: int, rank_of: dict[int, int], batches: int) -> Table:
    """Two stages on each rank, in a V, with split backwards."""
    order = list(range(batches))
    rules = []
    for rank in range(ranks):
        near, far = _of_rank(rank_of, rank)
        # There is room for one more on the way back than on the way there, so that
        # what has begun can end.
        forwards = [_grid([far], order), _grid([near], order)]
        backwards = [_grid([near], order), _grid([far], order)]
        limits: list = [2 * ranks + 1, 2 * ranks]
        rules.append(Rules(forwards, backwards, limits, split=True, delay=ranks))
    return make(rules, len(rank_of))


class _Counted:
    """A rank's order of actions, written without numbers of micro-batches.

    Args:
        stages: the near one (0) and the far one (1).
    """

    def __init__(self, stages: list[int]) -> None:
        self.stages = stages
        self.order: list[Action] = []
        self.next: dict[tuple, int] = {}
        self.weights: list[Action] = []

    def add(self, text: str) -> None:
        """Adds e.g. "F0", "B1", "F0B1", or "W": the oldest weights that are left."""
        if text == "W":
            self.order += [self.weights.pop(0)] if self.weights else []
            return
        parts = tuple(self._one(text[i : i + 2]) for i in range(0, len(text), 2))
        if len(parts) > 1:
            self.order.append(Action(-1, Kind.OVERLAP_F_B, None, parts))
        else:
            self.order += parts

    def _one(self, text: str) -> Action:
        kind, stage = Kind(text[0]), self.stages[int(text[1])]
        count = stage, kind is Kind.FORWARD
        number = self.next[count] = self.next.get(count, -1) + 1
        if kind is Kind.BACKWARD_INPUT:
            self.weights.append(Action(stage, Kind.BACKWARD_WEIGHT, number))
        return Action(stage, kind, number)


def _dual_order(ranks: int, rank: int, batches: int, stages: list[int]) -> list[Action]:
    """The phases that the paper and its repository (deepseek-ai/DualPipe) describe."""
    behind, half = ranks - 1 - rank, (rank + 1) // 2
    turn = ["I1", "I0"] if rank % 2 else ["B1", "I0"]
    ending = ["B1", "B0"] * half + turn + ["I1", "I0"] * (rank - half)
    phases = [
        (2 * behind, ["F0"]),
        (rank + 1, ["F0", "F1"]),
        (behind, ["I1", "W", "F1"]),
        (batches - 2 * ranks + rank + 1, ["F0B1", "F1B0"]),
        (behind, ["B1", "F1B0"]),
        (1, ending),
        (behind, ["W", "I0"]),
        (rank + 1, ["W"]),
    ]
    counted = _Counted(stages)
    for times, steps in phases:
        for step in steps * times:
            counted.add(step)
    return counted.order


def dual_pipe_v(ranks: int, rank_of: dict[int, int], batches: int) -> Table:
    """Two stages on each rank, in a V; a forward and a backward are done at once.

    Raises:
        ValueError: fewer micro-batches than stages.
    """
    if batches < len(rank_of):
        raise ValueError(
            "DualPipeV requires at least as many microbatches as stages, but got "
            f"{batches} microbatches and {len(rank_of)} stages."
        )
    orders = [
        _dual_order(ranks, rank, batches, _of_rank(rank_of, rank))
        for rank in range(ranks)
    ]
    return arrange(orders, len(rank_of))


MAKERS = {
    "GPipe": gpipe,
    "1F1B": one_forward_one_backward,
    "LoopedBFS": breadth_first,
    "Interleaved1F1B": interleaved,
    "InterleavedZeroBubble": zero_bubble,
    "ZBVZeroBubble": zero_bubble_v,
    "DualPipeV": dual_pipe_v,
}
