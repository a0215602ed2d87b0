"""What the compiler has done so far, in numbers."""

from __future__ import annotations

import threading
from collections import Counter, defaultdict

__all__ = ["count", "counters", "is_compile_supported"]

# Kinds of events, each with how often which one happened. Written by `count` alone,
# under the lock; programs read and clear it.
counters: defaultdict[str, Counter] = defaultdict(Counter)
_lock = threading.Lock()


def count(table: str, key: str, by: int = 1) -> None:
    """Adds to a counter.

    Args:
        table: "stats" (unique_graphs, calls_captured), "frames" (total, ok,
            as_written) or "graph_break" (reasons).
        key: what happened.
        by: how often.
    """
    with _lock:
        counters[table][key] += by


def is_compile_supported(device_type) -> bool:
    """Whether `taeda.compile` makes kernels for a device, given by type or object."""
    import taeda

    return taeda.device(device_type).type == "cpu"
