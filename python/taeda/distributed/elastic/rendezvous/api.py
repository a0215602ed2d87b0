"""What a handler of meetings does, and what it is made from."""

from __future__ import annotations

import socket
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple

from taeda.distributed._types import Store
from taeda.distributed.elastic.utils import get_socket_with_port

__all__ = [
    "RendezvousClosedError",
    "RendezvousConnectionError",
    "RendezvousError",
    "RendezvousGracefulExitError",
    "RendezvousHandler",
    "RendezvousHandlerCreator",
    "RendezvousHandlerRegistry",
    "RendezvousInfo",
    "RendezvousParameters",
    "RendezvousStateError",
    "RendezvousStoreInfo",
    "RendezvousTimeoutError",
    "rendezvous_handler_registry",
]


class RendezvousError(Exception):
    """Nodes did not meet."""


class RendezvousClosedError(RendezvousError):
    """The meeting takes nobody any more."""


class RendezvousTimeoutError(RendezvousError):
    """Too few came in time."""


class RendezvousConnectionError(RendezvousError):
    """The store cannot be reached."""


class RendezvousStateError(RendezvousError):
    """What the store says makes no sense."""


class RendezvousGracefulExitError(RendezvousError):
    """This node is not needed, and ends well."""


class RendezvousStoreInfo(NamedTuple):
    """Where workers find their store.

    Args:
        master_addr: the host.
        master_port: the port.
    """

    master_addr: str
    master_port: int

    @staticmethod
    def build(
        rank: int,
        store: Store,
        local_addr: str | None = None,
        server_port: int | None = None,
    ) -> RendezvousStoreInfo:
        """The place that node 0 tells all others through the nodes' store.

        Args:
            rank: of this node.
            store: of the nodes.
            local_addr: where others reach this node; by default its name.
            server_port: by default a free one.
        """
        address, port = "MASTER_ADDR", "MASTER_PORT"
        if rank == 0:
            if server_port is None:
                with get_socket_with_port() as free:
                    server_port = free.getsockname()[1]
            store.set(address, local_addr or socket.getfqdn())
            store.set(port, str(server_port))
        return RendezvousStoreInfo(store.get(address).decode(), int(store.get(port)))


class RendezvousInfo:
    """What the nodes agreed on.

    Args:
        store: of the nodes in this round.
        rank: of this node.
        world_size: how many nodes there are.
        bootstrap_store_info: where workers find theirs.
    """

    def __init__(
        self,
        store: Store,
        rank: int,
        world_size: int,
        bootstrap_store_info: RendezvousStoreInfo,
    ) -> None:
        self._store, self._rank, self._size = store, rank, world_size
        self._place = bootstrap_store_info

    @property
    def store(self) -> Store:
        """The store of the nodes in this round."""
        return self._store

    @property
    def rank(self) -> int:
        """This node's number."""
        return self._rank

    @property
    def world_size(self) -> int:
        """How many nodes there are."""
        return self._size

    @property
    def bootstrap_store_info(self) -> RendezvousStoreInfo | None:
        """Where workers find their store."""
        return self._place


class RendezvousHandler(ABC):
    """A node's place in the meetings of a job."""

    @abstractmethod
    def get_backend(self) -> str:
        """The name of the kind of handler."""

    @property
    def use_agent_store(self) -> bool:
        """Whether workers use the nodes' store rather than one of rank 0."""
        return False

    @abstractmethod
    def next_rendezvous(self) -> RendezvousInfo:
        """Waits for the other nodes.

        Raises:
            RendezvousClosedError: the job takes nobody any more.
            RendezvousTimeoutError: too few came.
            RendezvousConnectionError: the store cannot be reached.
        """

    @abstractmethod
    def is_closed(self) -> bool:
        """Whether the job takes nobody any more."""

    @abstractmethod
    def set_closed(self) -> None:
        """From now on the job takes nobody."""

    @abstractmethod
    def num_nodes_waiting(self) -> int:
        """How many nodes came late and wait for the next round."""

    @abstractmethod
    def get_run_id(self) -> str:
        """The job's name."""

    @abstractmethod
    def shutdown(self) -> bool:
        """Ends the meetings; whether that went well."""


class RendezvousParameters:
    """What a handler is made from.

    Args:
        backend (str): the name of the kind.
        endpoint (str): HOST:PORT where nodes meet.
        run_id (str): the job's name.
        min_nodes (int): that a round needs.
        max_nodes (int): that it takes.
        local_addr: where others reach this node.
        kwargs: what else the kind knows.

    Raises:
        ValueError: no name of a kind, or numbers of nodes that make no sense.
    """

    def __init__(
        self, backend, endpoint, run_id, min_nodes, max_nodes, local_addr=None, **kwargs
    ) -> None:
        if not backend:
            raise ValueError("The rendezvous backend name must be a non-empty string.")
        if not 1 <= min_nodes <= max_nodes:
            raise ValueError(
                f"The rendezvous takes {min_nodes} to {max_nodes} nodes; the first "
                "must be greater than zero and at most the second."
            )
        self.backend, self.endpoint, self.run_id = backend, endpoint, run_id
        self.min_nodes, self.max_nodes = min_nodes, max_nodes
        self.local_addr, self.config = local_addr, kwargs

    def get(self, key: str, default: Any = None) -> Any:
        """What else was given, by name."""
        return self.config.get(key, default)

    def get_as_bool(self, key: str, default: bool | None = None) -> bool | None:
        """The same as a truth value: 1, true, t, yes, y, and their contraries.

        Raises:
            ValueError: another text.
        """
        value = self.get(key, default)
        if value is None or isinstance(value, bool):
            return value
        word = str(value).lower()
        if word in ("1", "true", "t", "yes", "y"):
            return True
        if word in ("0", "false", "f", "no", "n"):
            return False
        raise ValueError(f"{key}={value!r} does not represent a valid boolean value.")

    def get_as_int(self, key: str, default: int | None = None) -> int | None:
        """The same as a number.

        Raises:
            ValueError: it is none.
        """
        value = self.get(key, default)
        try:
            return value if value is None else int(value)
        except ValueError:
            raise ValueError(
                f"{key}={value!r} does not represent a valid integer value."
            ) from None


RendezvousHandlerCreator = Callable[[RendezvousParameters], RendezvousHandler]


class RendezvousHandlerRegistry:
    """Kinds of handlers by name."""

    def __init__(self) -> None:
        self._creators: dict[str, RendezvousHandlerCreator] = {}

    def register(self, backend: str, creator: RendezvousHandlerCreator) -> None:
        """Adds a kind.

        Raises:
            ValueError: no name, or one that another function has.
        """
        if not backend:
            raise ValueError("The rendezvous backend name must be a non-empty string.")
        if self._creators.setdefault(backend, creator) is not creator:
            raise ValueError(
                f"The rendezvous backend '{backend}' cannot be registered with "
                f"'{creator}' as it is already registered with "
                f"'{self._creators[backend]}'."
            )

    def create_handler(self, params: RendezvousParameters) -> RendezvousHandler:
        """A handler of the kind that the parameters name.

        Raises:
            ValueError: there is no such kind.
            RuntimeError: the function made one of another kind.
        """
        creator = self._creators.get(params.backend)
        if creator is None:
            raise ValueError(
                f"The rendezvous backend '{params.backend}' is not registered; there "
                f"are {sorted(self._creators)}."
            )
        handler = creator(params)
        if handler.get_backend() != params.backend:
            raise RuntimeError(
                f"The rendezvous backend '{handler.get_backend()}' does not match the "
                f"requested backend '{params.backend}'."
            )
        return handler


# Kinds are added by `register` alone.
rendezvous_handler_registry = RendezvousHandlerRegistry()
