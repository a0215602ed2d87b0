"""Records of what happens in a job."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from enum import Enum, StrEnum

__all__ = ["Event", "EventMetadataValue", "EventSource", "NodeState", "RdzvEvent"]

EventMetadataValue = str | int | float | bool | None


class EventSource(StrEnum):
    """Who tells of an event."""

    AGENT = "AGENT"
    WORKER = "WORKER"


class NodeState(StrEnum):
    """How far a node is."""

    INIT = "INIT"
    RUNNING = "RUNNING"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"


class _Record:
    """Fields that can be written as JSON and read again."""

    # Field -> the enumeration that its text belongs to.
    _kinds: dict[str, type[Enum]] = {}

    def __str__(self) -> str:
        return self.serialize()

    def serialize(self) -> str:
        """The fields as JSON."""
        return json.dumps(asdict(self))  # type: ignore[call-overload]

    @classmethod
    def deserialize(cls, data):
        """A record of what `serialize` wrote.

        Args:
            data: the text, or a record, which is returned.

        Raises:
            KeyError: a text that is none of an enumeration's.
        """
        if isinstance(data, cls):
            return data
        fields = json.loads(data)
        for name, kind in cls._kinds.items():
            fields[name] = kind[fields[name]]
        return cls(**fields)


@dataclass
class Event(_Record):
    """Something that happened in a job.

    Args:
        name: what.
        source: who tells it.
        timestamp: when, in milliseconds since 1970.
        metadata: more of it.
    """

    name: str
    source: EventSource
    timestamp: int = 0
    metadata: dict[str, EventMetadataValue] = field(default_factory=dict)

    _kinds = {"source": EventSource}
    __str__ = _Record.__str__


@dataclass
class RdzvEvent(_Record):
    """Something that happened while nodes met.

    Args:
        name: what.
        run_id: of the job.
        message: in words.
        hostname: of the node.
        pid: of its agent.
        node_state: how far the node is.
        master_endpoint: of the store, where it is known.
        rank: of the node, where it is known.
        local_id: its number in the meeting.
        error_trace: of a failure.
    """

    name: str
    run_id: str
    message: str
    hostname: str
    pid: int
    node_state: NodeState
    master_endpoint: str = ""
    rank: int | None = None
    local_id: int | None = None
    error_trace: str = ""

    _kinds = {"node_state": NodeState}
    __str__ = _Record.__str__
