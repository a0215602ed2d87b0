"""Tensors that go from stage to stage.

A message is a head, a tensor of whole numbers that says what follows, and the tensors.
So shapes may change from one micro-batch to the next. Every rank knows all ranks'
actions, so it knows in which order another sends to it: messages are received in that
order, and kept until their stage is due.
"""

from __future__ import annotations

import functools
from collections import deque
from collections.abc import Sequence
from typing import Any

import taeda
import taeda.distributed as dist

from ._table import Kind, Table

__all__ = ["Exchange"]

_HEAD = 64
_NOTHING = -1


@functools.cache
def _dtypes() -> list:
    """All dtypes in an order that is the same at every rank."""
    found = {str(v): v for v in vars(taeda).values() if isinstance(v, taeda.dtype)}
    return [found[name] for name in sorted(found)]


def _describe(tensors: Sequence) -> list[int]:
    """[entries, tensors, then of each: dtype, requires_grad, dimensions, sizes]."""
    dtypes, numbers = _dtypes(), [len(tensors)]
    for tensor in tensors:
        if tensor is None:
            numbers.append(_NOTHING)
            continue
        numbers += [dtypes.index(tensor.dtype), int(tensor.requires_grad)]
        numbers += [tensor.dim(), *tensor.shape]
    return [len(numbers) + 1, *numbers]


def _room(head: list[int], device: Any) -> tuple[list, list[bool]]:
    """Tensors for what a head announces, and which of them require gradients."""
    dtypes, numbers = _dtypes(), iter(head[1:])
    tensors: list = []
    flags = []
    for _ in range(next(numbers)):
        kind = next(numbers)
        if kind == _NOTHING:
            tensors.append(None)
            flags.append(False)
            continue
        flags.append(bool(next(numbers)))
        size = [next(numbers) for _ in range(next(numbers))]
        tensors.append(taeda.empty(size, dtype=dtypes[kind], device=device))
    return tensors, flags


class Exchange:
    """The messages of one rank during one step.

    Args:
        group: of the pipeline. table: of all ranks. rank_of: stage -> rank.
        device: where received tensors are.
    """

    def __init__(
        self, group: Any, table: Table, rank_of: dict[int, int], device: Any
    ) -> None:
        self.group, self.device, self.rank_of = group, device, rank_of
        self.rank = dist.get_rank(group)
        self.works: list = []
        self.arrived: dict[tuple, tuple] = {}
        self.coming = {
            peer: deque(self._sent_here(row))
            for peer, row in table.items()
            if peer != self.rank
        }

    def _sent_here(self, row: list):
        """(what, stage, micro-batch) that a rank sends to this one, in its order."""
        for action in row:
            for part in action.parts() if action else ():
                stage, batch = part.stage_index, part.microbatch_index
                if part.computation_type is Kind.FORWARD:
                    target, what = stage + 1, "F"
                elif part.computation_type is not Kind.BACKWARD_WEIGHT:
                    target, what = stage - 1, "B"
                else:
                    continue
                if self.rank_of.get(target) == self.rank:
                    yield what, target, batch

    def send(self, target: int, tensors: Sequence) -> None:
        """Sends tensors to the rank of a stage, without waiting."""
        peer = self.rank_of[target]
        numbers = _describe(tensors)
        numbers += [0] * (_HEAD - len(numbers))
        head = taeda.tensor(numbers, dtype=taeda.int64, device=self.device)
        parts = [head[:_HEAD], head[_HEAD:], *tensors]
        for part in parts:
            if part is not None and part.numel():
                part = part.detach().contiguous()
                work = dist.isend(part, group=self.group, group_dst=peer)
                self.works.append((work, part))  # it must live until it is sent

    def receive(self, what: str, stage: int, batch: int) -> tuple[list, list[bool]]:
        """The tensors for a stage, and which of them require gradients.

        Args:
            what: "F", inputs out of the stage before; "B", gradients of its outputs.
        """
        source = self.rank_of[stage - 1 if what == "F" else stage + 1]
        wanted = what, stage, batch
        while wanted not in self.arrived:
            key = self.coming[source].popleft()
            self.arrived[key] = self._next(source)
        return self.arrived.pop(wanted)

    def _next(self, source: int) -> tuple[list, list[bool]]:
        numbers = self._take([_HEAD], taeda.int64, source).tolist()
        if numbers[0] > _HEAD:
            numbers += self._take([numbers[0] - _HEAD], taeda.int64, source).tolist()
        tensors, flags = _room(numbers, self.device)
        for tensor in tensors:
            if tensor is not None and tensor.numel():
                dist.recv(tensor, group=self.group, group_src=source)
        return tensors, flags

    def _take(self, size: list[int], dtype: Any, source: int) -> taeda.Tensor:
        tensor = taeda.empty(size, dtype=dtype, device=self.device)
        dist.recv(tensor, group=self.group, group_src=source)
        return tensor

    def tidy(self) -> None:
        """Forgets what has been sent by now."""
        self.works = [pair for pair in self.works if not pair[0].is_completed()]

    def finish(self) -> None:
        """Waits until all has been sent."""
        for work, _ in self.works:
            work.wait()
        self.works.clear()
