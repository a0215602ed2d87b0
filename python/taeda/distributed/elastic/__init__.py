"""What the launcher is made of: processes, their logs and errors, the agent."""

from __future__ import annotations

from taeda._lazy import attributes

__all__: list[str] = []
_SUBMODULES = (
    "agent events meeting metrics multiprocessing rendezvous timer utils".split()
)
__getattr__ = attributes(__name__, {}, _SUBMODULES)
