"""The fused path of multi-head attention in inference."""

from __future__ import annotations

_state = {"fastpath": True}


def get_fastpath_enabled() -> bool:
    """Whether it may be used."""
    return _state["fastpath"]


def set_fastpath_enabled(value: bool) -> None:
    """Allow or forbid it."""
    _state["fastpath"] = bool(value)
