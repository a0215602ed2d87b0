"""The logger of checkpoints' steps."""

from __future__ import annotations

import logging

__all__ = ["DCP_LOGGER_NAME"]

DCP_LOGGER_NAME = "dcp_logger"
logging.getLogger(DCP_LOGGER_NAME).addHandler(logging.NullHandler())
