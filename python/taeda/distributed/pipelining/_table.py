"""What each rank does in each slot of a schedule.

A schedule is a table, for each rank a list of actions; None is a slot in which the rank
waits. Tables are made by simulating the ranks slot by slot: each takes, of what is
ready, what its Rules prefer (`make`), or the next of a given order (`arrange`). So a
table always can be run, in its own order, without deadlock: nothing is done before what
it needs. All actions take one slot.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

__all__ = ["Action", "Kind", "Rules", "Table", "arrange", "check", "make", "parse"]


class Kind(StrEnum):
    """What an action computes.

    A backward can be done in two parts, first gradients of inputs, which another stage
    waits for, and at any later time those of weights.
    """

    FORWARD = "F"
    BACKWARD_INPUT = "I"
    BACKWARD_WEIGHT = "W"
    FULL_BACKWARD = "B"
    OVERLAP_F_B = "OVERLAP_F_B"


class Action(NamedTuple):
    """One computation of a stage for a micro-batch.

    OVERLAP_F_B has a forward and a backward in `sub_actions`, and no stage of its own.
    """

    stage_index: int
    computation_type: Kind
    microbatch_index: int | None = None
    sub_actions: tuple[Action, ...] | None = None

    def __str__(self) -> str:
        if self.sub_actions is not None:
            parts = ";".join(map(str, self.sub_actions))
            return f"({parts}){self.computation_type.value}"
        number = "" if self.microbatch_index is None else self.microbatch_index
        return f"{self.stage_index}{self.computation_type.value}{number}"

    __repr__ = __str__

    def parts(self) -> tuple[Action, ...]:
        """The actions that it consists of."""
        return self.sub_actions or (self,)


Table = dict[int, list[Action | None]]
_TEXT = re.compile(r"(\d+)([FIWB])(\d+)")


def parse(text: str) -> Action | None:
    """The action of a text such as "1F0" or "(0F1;1B0)OVERLAP_F_B".

    Raises:
        RuntimeError: it is none.
    """
    text = text.strip()
    if text in ("", "None"):
        return None
    if text.endswith(Kind.OVERLAP_F_B.value):
        inner = text[: -len(Kind.OVERLAP_F_B.value)].strip("()").split(";")
        parts = tuple(action for action in map(parse, inner) if action)
        return Action(-1, Kind.OVERLAP_F_B, None, parts)
    found = _TEXT.fullmatch(text)
    if found is None:
        raise RuntimeError(f"Invalid action string: {text}")
    return Action(int(found[1]), Kind(found[2]), int(found[3]))


@dataclass
class Rules:
    """What one rank prefers.

    Attributes:
        forwards, backwards: queues of (stage, micro-batch). Each is done in its order;
            the first queue whose next one is ready is preferred.
        limits: for each queue of forwards, how many micro-batches of the rank may be in
            memory before it is used, until their last backward; None means any number.
        forwards_first (bool): no backward before the last forward.
        split (bool): backwards in two parts; the weights' part fills waiting slots.
        delay (int): how many weights' parts may be left for later.
    """

    forwards: list[list[tuple[int, int]]]
    backwards: list[list[tuple[int, int]]] = field(default_factory=list)
    limits: list[int | None] = field(default_factory=lambda: [None])
    forwards_first: bool = False
    split: bool = False
    delay: int = 0


class _Rank:
    """A rank while a table is made."""

    def __init__(self, rules: Rules) -> None:
        self.rules = rules
        self.forwards = [deque(queue) for queue in rules.forwards]
        self.backwards = [deque(queue) for queue in rules.backwards]
        self.weights: deque = deque()
        self.turned = False
        self.kept = 0  # micro-batches whose last backward is not done

    def left(self) -> bool:
        return any((*self.forwards, *self.backwards, self.weights))

    def choose(self, done: set, last: int) -> Action | None:
        """What the rank does, given what all have done before."""
        rules = self.rules
        backward = self._backward(done, last)
        if rules.forwards_first and any(self.forwards):
            backward = None
        forward = self._forward(done)
        if backward and not (forward and self.turned):
            return backward
        if len(self.weights) > rules.delay or (self.weights and not forward):
            return Action(self.weights[0][0], Kind.BACKWARD_WEIGHT, self.weights[0][1])
        return forward

    def _forward(self, done: set) -> Action | None:
        for i, queue in enumerate(self.forwards):
            limit = self.rules.limits[i]
            if not queue or (limit is not None and self.kept >= limit):
                continue
            stage, batch = queue[0]
            if stage == 0 or (stage - 1, "F", batch) in done:
                return Action(stage, Kind.FORWARD, batch)
        return None

    def _backward(self, done: set, last: int) -> Action | None:
        kind = Kind.BACKWARD_INPUT if self.rules.split else Kind.FULL_BACKWARD
        for queue in self.backwards:
            if not queue:
                continue
            stage, batch = queue[0]
            needs = {(stage, "F", batch)}
            if stage != last:
                needs.add((stage + 1, "B", batch))
            if needs <= done:
                return Action(stage, kind, batch)
        return None

    def take(self, action: Action) -> None:
        """Notes that an action of this rank is done."""
        place = action.stage_index, action.microbatch_index
        if action.computation_type is not Kind.BACKWARD_WEIGHT:
            # Forwards and backwards take turns.
            self.turned = action.computation_type is not Kind.FORWARD
        if action.computation_type is Kind.BACKWARD_WEIGHT:
            self.weights.popleft()
            self.kept -= 1
            return
        forward = action.computation_type is Kind.FORWARD
        for queue in self.forwards if forward else self.backwards:
            if queue and queue[0] == place:
                queue.popleft()
        if forward:
            self.kept += 1
        elif action.computation_type is Kind.BACKWARD_INPUT:
            self.weights.append(place)
        else:
            self.kept -= 1


def make(rules: list[Rules], stages: int) -> Table:
    """The table of ranks with these rules.

    Args:
        rules: of each rank. stages (int): how many there are in all.

    Raises:
        RuntimeError: a slot in which nobody can do anything; the rules are wrong.
    """
    ranks = [_Rank(one) for one in rules]
    table: Table = {rank: [] for rank in range(len(ranks))}
    done: set = set()
    while any(rank.left() for rank in ranks):
        chosen = [rank.choose(done, stages - 1) for rank in ranks]
        if not any(chosen):
            raise RuntimeError(f"pipeline: the schedule comes to a stop after {table}")
        for number, action in enumerate(chosen):
            table[number].append(action)
            for part in action.parts() if action else ():
                ranks[number].take(part)
                done.update(results(part))
    return table


def arrange(orders: list[list[Action]], stages: int) -> Table:
    """The table of ranks that do their actions in these orders, as soon as they can.

    Raises:
        RuntimeError: ranks wait for each other.
    """
    left = [deque(order) for order in orders]
    table: Table = {rank: [] for rank in range(len(orders))}
    done: set = set()
    while any(left):
        ready = [bool(q) and _is_ready(q[0], done, stages - 1) for q in left]
        if not any(ready):
            raise RuntimeError(f"pipeline: the schedule comes to a stop after {table}")
        made: set = set()
        for number, queue in enumerate(left):
            action = queue.popleft() if ready[number] else None
            table[number].append(action)
            for part in action.parts() if action else ():
                made.update(results(part))
        done |= made
    return table


def _is_ready(action: Action, done: set, last: int) -> bool:
    return all(needs <= done for needs in _needs(action, last))


def results(action: Action) -> Iterable[tuple[int, str, int]]:
    """What another stage may wait for: outputs ("F") or gradients ("B")."""
    kind = action.computation_type
    if kind is not Kind.BACKWARD_WEIGHT:
        made = "F" if kind is Kind.FORWARD else "B"
        yield action.stage_index, made, action.microbatch_index


def check(table: Table, stages: int, batches: int, rank_of: dict[int, int]) -> None:
    """Refuses a table that does not compute everything once, or would not end.

    Ranks need not keep to slots, only to their order.

    Args:
        batches (int): micro-batches. rank_of: stage -> rank.

    Raises:
        ValueError: what is wrong.
    """
    _check_complete(table, stages, batches, rank_of)
    left = {rank: deque(a for a in row if a) for rank, row in table.items()}
    done: set = set()
    while any(left.values()):
        moved = False
        for queue in left.values():
            while queue and _is_ready(queue[0], done, stages - 1):
                for part in queue.popleft().parts():
                    done.update(results(part))
                moved = True
        if not moved:
            stuck = {rank: queue[0] for rank, queue in left.items() if queue}
            raise ValueError(f"the schedule would not end: ranks wait at {stuck}")


def _needs(action: Action, last: int) -> Iterable[set]:
    own: set = set()
    for part in action.parts():
        stage, batch = part.stage_index, part.microbatch_index
        needs = set()
        if part.computation_type is Kind.FORWARD:
            needs = {(stage - 1, "F", batch)} if stage else set()
        elif part.computation_type is Kind.BACKWARD_WEIGHT:
            needs = {(stage, "B", batch)}
        else:
            needs = {(stage, "F", batch)}
            needs |= {(stage + 1, "B", batch)} if stage != last else set()
        yield needs - own
        own.update(results(part))


def _check_complete(
    table: Table, stages: int, batches: int, rank_of: dict[int, int]
) -> None:
    seen: dict[tuple, list[Kind]] = {}
    for rank, row in table.items():
        for action in row:
            for part in action.parts() if action else ():
                if rank_of[part.stage_index] != rank:
                    raise ValueError(f"rank {rank} has no stage for {part}")
                place = part.stage_index, part.microbatch_index
                seen.setdefault(place, []).append(part.computation_type)
    backward = {*sum(seen.values(), [])} != {Kind.FORWARD}
    whole = (["B", "F"], ["F", "I", "W"]) if backward else (["F"],)
    for stage in range(stages):
        for batch in range(batches):
            kinds = sorted(kind.value for kind in seen.get((stage, batch), []))
            if kinds not in whole:
                raise ValueError(f"stage {stage} does {kinds} for micro-batch {batch}")
