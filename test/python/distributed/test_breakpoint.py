"""The debugger in one rank starts when it is asked to."""

from __future__ import annotations

import itertools
import pdb

import taeda.distributed as dist
from taeda.distributed import _collectives, _debug, _join


def test_calls_with_skip_pass_at_first(monkeypatch) -> None:
    stops, waits = [], []

    class Debugger:
        def set_trace(self, frame) -> None:
            stops.append(frame)

    monkeypatch.setattr(pdb, "Pdb", Debugger)
    monkeypatch.setattr(_join, "get_rank", lambda: 0)
    monkeypatch.setattr(_collectives, "barrier", lambda timeout: waits.append(timeout))
    monkeypatch.setattr(_debug, "_skipping_calls", itertools.count(1))
    counts = []
    for _ in range(4):
        dist.breakpoint(skip=2)
        counts.append(len(stops))
    assert counts == [0, 0, 1, 2]
    dist.breakpoint()
    dist.breakpoint(rank=1)
    assert len(stops) == 3 and len(waits) == 4
