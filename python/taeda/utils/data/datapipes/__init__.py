"""Pipelines of samples.

All pipes are imported at once, so that each is found by its functional name.
"""

from __future__ import annotations

from . import datapipe, iter, map

__all__ = ["datapipe", "iter", "map"]
