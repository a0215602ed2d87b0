"""What happens in a job, as records for a log."""

from __future__ import annotations

import logging
import os
import socket
import sys
import traceback

from .api import Event, EventMetadataValue, EventSource, NodeState, RdzvEvent
from .handlers import get_logging_handler

__all__ = [
    "Event",
    "EventMetadataValue",
    "EventSource",
    "NodeState",
    "RdzvEvent",
    "construct_and_record_rdzv_event",
    "get_logging_handler",
    "record",
    "record_rdzv_event",
]


def _logger(destination: str) -> logging.Logger:
    logger = logging.getLogger(f"taeda-elastic-events-{destination}")
    if not logger.handlers:
        logger.setLevel(os.environ.get("LOGLEVEL", "INFO"))
        logger.propagate = False
        logger.addHandler(get_logging_handler(destination))
    return logger


def record(event: Event, destination: str = "null") -> None:
    """Logs an event.

    Args:
        event: what happened.
        destination: "console" or "null", or another of `handlers`.
    """
    _logger(destination).info(event.serialize())


def record_rdzv_event(event: RdzvEvent) -> None:
    """Logs what happened while nodes met, to the destination "dynamic_rendezvous"."""
    _logger("dynamic_rendezvous").info(event.serialize())


def construct_and_record_rdzv_event(
    run_id,
    message,
    node_state,
    name="",
    hostname="",
    pid=None,
    master_endpoint="",
    local_id=None,
    rank=None,
) -> None:
    """Logs an event of this process while nodes meet.

    Args:
        run_id (str): of the job.
        message (str): what happened.
        node_state (NodeState): of this node.
        name: of the event; by default the calling file and function.
        hostname: by default this machine's.
        pid: by default this process's.
        master_endpoint: of the store, where it is known.
        local_id: of the node in the meeting.
        rank: of the node.
    """
    caller = sys._getframe(1).f_code
    failed = node_state is NodeState.FAILED
    event = RdzvEvent(
        name=name or f"{os.path.basename(caller.co_filename)}:{caller.co_name}",
        run_id=run_id,
        message=message,
        hostname=hostname or socket.getfqdn(),
        pid=pid or os.getpid(),
        node_state=node_state,
        master_endpoint=master_endpoint,
        rank=rank,
        local_id=local_id,
        error_trace=traceback.format_exc() if failed else "",
    )
    record_rdzv_event(event)
