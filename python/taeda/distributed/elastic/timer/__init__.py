"""Limits of time for parts of a worker's program; who passes one is ended."""

from __future__ import annotations

from .api import (
    RequestQueue,
    TimerClient,
    TimerRequest,
    TimerServer,
    configure,
    expires,
)
from .local_timer import LocalTimerClient, LocalTimerServer

__all__ = [
    "LocalTimerClient",
    "LocalTimerServer",
    "RequestQueue",
    "TimerClient",
    "TimerRequest",
    "TimerServer",
    "configure",
    "expires",
]
