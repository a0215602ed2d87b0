"""Differentiable collectives: there is no process group in this build."""

from __future__ import annotations

from taeda import distributed

_COLLECTIVES = """
all_gather all_reduce all_to_all all_to_all_single broadcast gather reduce
reduce_scatter scatter
""".split()
__all__ = _COLLECTIVES
globals().update((name, getattr(distributed, name)) for name in _COLLECTIVES)
