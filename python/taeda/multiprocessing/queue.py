"""Queues between processes, as Python's: they share tensors (`reductions`)."""

from __future__ import annotations

from multiprocessing.queues import JoinableQueue, Queue, SimpleQueue

__all__ = ["JoinableQueue", "Queue", "SimpleQueue"]
