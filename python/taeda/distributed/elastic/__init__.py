"""What the launcher is made of: processes, their logs and errors, the agent."""

from __future__ import annotations

from taeda._lazy import attributes

__all__: list[str] = []
__getattr__ = attributes(__name__, {}, ("agent", "meeting", "multiprocessing"))
