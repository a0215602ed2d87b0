"""Where events go, by destination."""

from __future__ import annotations

import logging

__all__ = ["get_logging_handler"]

# Programs add theirs before the first event of the destination.
_log_handlers: dict[str, logging.Handler] = {
    "console": logging.StreamHandler(),
    "dynamic_rendezvous": logging.NullHandler(),
    "null": logging.NullHandler(),
}


def get_logging_handler(destination: str = "null") -> logging.Handler:
    """The handler of a destination.

    Raises:
        KeyError: there is none.
    """
    return _log_handlers[destination]
