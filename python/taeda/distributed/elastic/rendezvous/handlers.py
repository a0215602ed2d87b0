"""The kinds "c10d" and "static": meetings of `elastic/meeting.py` as handlers."""

from __future__ import annotations

from taeda.distributed._types import DistError, DistNetworkError, PrefixStore
from taeda.distributed.elastic.meeting import Meeting, MeetingOptions

from . import api

__all__ = ["MeetingHandler", "register_handlers"]

_CLOSED = "closed"


class MeetingHandler(api.RendezvousHandler):
    """Nodes meet in a TCPStore, in rounds.

    Args:
        parameters: `timeout`, `last_call_timeout` (seconds), `is_host` and, for
            "static", `rank` of this node are known besides.

    Raises:
        RendezvousConnectionError: nobody serves the endpoint.
    """

    def __init__(self, parameters: api.RendezvousParameters) -> None:
        host, _, port = parameters.endpoint.rpartition(":")
        static = parameters.backend == "static"
        options = MeetingOptions(
            backend=parameters.backend,
            run_id=parameters.run_id,
            host=host or parameters.endpoint or "localhost",
            port=int(port) if host else 29400,
            min_nodes=parameters.min_nodes,
            max_nodes=parameters.max_nodes,
            node_rank=parameters.get_as_int("rank") if static else None,
            is_host=parameters.get_as_bool("is_host"),
            timeout=parameters.get_as_int("timeout", 600) or 600,
            last_call=parameters.get_as_int("last_call_timeout", 30) or 30,
            shown_host=parameters.local_addr,
        )
        try:
            self._meeting = Meeting(options)
        except DistNetworkError as error:
            raise api.RendezvousConnectionError(
                f"the store at {parameters.endpoint} cannot be reached: {error}"
            ) from error
        self._parameters = parameters
        self._joined = False

    def get_backend(self) -> str:
        return self._parameters.backend

    @property
    def use_agent_store(self) -> bool:
        return True

    def next_rendezvous(self) -> api.RendezvousInfo:
        if self.is_closed():
            raise api.RendezvousClosedError(f"job {self.get_run_id()!r} is closed")
        if self._joined:
            self._meeting.next_round()
        try:
            agreed = self._meeting.join(local_size=1)
        except DistError as error:
            raise api.RendezvousTimeoutError(str(error)) from error
        self._joined = True
        store = PrefixStore(f"nodes{agreed.number}", self._meeting._job)
        place = api.RendezvousStoreInfo(agreed.host, agreed.port)
        size = len(agreed.local_sizes)
        return api.RendezvousInfo(store, agreed.group_rank, size, place)

    def is_closed(self) -> bool:
        return self._meeting._job.check([_CLOSED])

    def set_closed(self) -> None:
        self._meeting._job.set(_CLOSED, "1")

    def num_nodes_waiting(self) -> int:
        if not self._joined:
            return 0
        keys = self._meeting._mine()
        return max(0, keys.add("joined", 0) - int(keys.get("closed")))

    def get_run_id(self) -> str:
        return self._parameters.run_id

    def shutdown(self) -> bool:
        try:
            self.set_closed()
        except DistError:
            return False
        return True


def register_handlers() -> None:
    """Adds the kinds that are there from the start."""
    for name in ("c10d", "static"):
        api.rendezvous_handler_registry.register(name, MeetingHandler)
