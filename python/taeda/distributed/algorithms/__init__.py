"""Uneven inputs, communication hooks, averaging of models."""

from __future__ import annotations

from taeda._lazy import attributes

__all__ = ["Join", "JoinHook", "Joinable"]
__getattr__ = attributes(
    __name__,
    {"Join": "join", "JoinHook": "join", "Joinable": "join"},
    ("_checkpoint", "_comm_hooks", "ddp_comm_hooks", "join", "model_averaging"),
)
