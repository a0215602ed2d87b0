"""Pools of processes, as Python's: their queues write tensors as all others do."""

from __future__ import annotations

from multiprocessing.pool import Pool

__all__ = ["Pool"]
