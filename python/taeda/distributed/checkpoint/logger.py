"""Reports how long each step of a save or load took, and which failed."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager

from .logging_handlers import DCP_LOGGER_NAME

__all__: list[str] = []

_log = logging.getLogger(DCP_LOGGER_NAME)


@contextmanager
def step(name: str, checkpoint_id: object = None) -> Iterator[None]:
    """Logs a step: at level DEBUG its seconds, at ERROR what it raised.

    Args:
        name (str): of the step. checkpoint_id: of the checkpoint.
    """
    began = time.monotonic()
    try:
        yield
    except BaseException as error:
        _log.error("%s of %s: %s: %s", name, checkpoint_id, type(error).__name__, error)
        raise
    _log.debug("%s of %s: %.3f s", name, checkpoint_id, time.monotonic() - began)
