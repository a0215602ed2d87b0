"""Where the log of collectives goes, by destination."""

from __future__ import annotations

import logging

__all__: list[str] = []

# Destination -> handler. Programs add theirs before the first group is made.
_log_handlers: dict[str, logging.Handler] = {"default": logging.NullHandler()}
