"""Calls of functions in other processes: not in this build, and they say so."""

from __future__ import annotations

from taeda._absent import absent_function

_FUNCTIONS = "init_rpc shutdown rpc_sync rpc_async remote get_worker_info".split()
__all__ = ["is_available", *_FUNCTIONS]
globals().update(
    (name, absent_function(f"distributed.rpc.{name}")) for name in _FUNCTIONS
)


def is_available() -> bool:
    """Whether the build has remote calls: no."""
    return False


def _is_current_rpc_agent_set() -> bool:
    """Whether this process takes part: no."""
    return False
