"""Queues of work on GPUs."""

from __future__ import annotations

from taeda.cuda import Event, Stream

__all__ = ["Event", "Stream"]
