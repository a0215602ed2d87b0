"""The log of collectives: who failed in which call, and how long calls took."""

from __future__ import annotations

import functools
import logging
import time
from collections.abc import Callable
from typing import Any

from . import is_initialized
from .logging_handlers import _log_handlers

__all__: list[str] = []


def _get_logging_handler(destination: str = "default") -> tuple[logging.Handler, str]:
    """A destination's handler and the name of its logger."""
    handler = _log_handlers[destination]
    return handler, f"{type(handler).__name__}-{destination}"


def _get_or_create_logger(destination: str = "default") -> logging.Logger:
    """The logger of a destination."""
    handler, name = _get_logging_handler(destination)
    logger = logging.getLogger(f"c10d-{name}")
    logger.setLevel(logging.DEBUG)
    logger.propagate = False
    if handler not in logger.handlers:
        logger.addHandler(handler)
    return logger


_c10d_logger = _get_or_create_logger()


def _get_msg_dict(func_name: str, *args, **kwargs) -> dict[str, Any]:
    """What the log tells of a call."""
    told = {"func_name": func_name}
    if is_initialized():
        from . import get_backend, get_rank, get_world_size

        group = kwargs.get("group") or kwargs.get("process_group")
        told |= {
            "backend": str(get_backend(group)),
            "world_size": str(get_world_size()),
            "group_size": str(get_world_size(group)),
            "global_rank": str(get_rank()),
            "local_rank": str(get_rank(group)),
        }
    return told


def _exception_logger(func: Callable) -> Callable:
    """A function whose failures are logged."""

    @functools.wraps(func)
    def logged(*args, **kwargs):
        try:
            return func(*args, **kwargs)
        except Exception as error:
            told = _get_msg_dict(func.__name__, *args, **kwargs)
            _c10d_logger.debug({**told, "error": f"{error}"})
            raise

    return logged


def _time_logger(func: Callable) -> Callable:
    """A function whose time is logged, in nanoseconds."""

    @functools.wraps(func)
    def logged(*args, **kwargs):
        started = time.time_ns()
        result = func(*args, **kwargs)
        spent = time.time_ns() - started
        told = _get_msg_dict(func.__name__, *args, **kwargs)
        _c10d_logger.debug({**told, "time_spent": f"{spent}ns"})
        return result

    return logged
