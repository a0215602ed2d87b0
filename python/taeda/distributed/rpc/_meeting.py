"""How workers find each other, and the secret of their job.

Note [The secret of a job]
Worker 0 draws 32 random bytes and lays them into the store, where every worker of the
job reads them. Who can read the store can thus call functions at the workers: the
store's port belongs behind the same wall as those of the workers. `TAEDA_RPC_SECRET`,
set to the same text at every worker, is mixed in and never stored, so that reading the
store is not enough.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import socket
import struct
import threading
from datetime import timedelta
from urllib.parse import urlparse

from .._rendezvous import rendezvous
from .._types import PrefixStore, TCPStore
from ._agent import Agent
from ._caller import WorkerInfo
from ._listener import Listener
from ._together import all_gather

__all__ = ["join", "meeting_store"]

_MOST_NAME_CHARACTERS = 128
_NAME_CHARACTERS = frozenset(
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_:"
)


class Directory:
    """The workers of a job, by name and number.

    Args:
        store: where they are written.
        me: this worker.
        size: how many there are; None where workers come and go, which are then looked
            up when they are called first.
    """

    def __init__(self, store, me: WorkerInfo, size: int | None) -> None:
        self._store, self._me, self._size = store, me, size
        # Guards the dictionaries, which only grow, and the store.
        self._lock = threading.Lock()
        self._workers: dict[str | int, WorkerInfo] = {}
        self._addresses: dict[int, tuple[str, int]] = {}

    def read(self, number: int) -> None:
        """Reads a worker's entry.

        Raises:
            RuntimeError: it is none, or its name is another's.
        """
        try:
            told = json.loads(self._store.get(f"worker/{number}"))
            worker = WorkerInfo(str(told["name"]), number)
            address = str(told["host"]), int(told["port"])
        except (ValueError, KeyError, TypeError) as error:
            raise RuntimeError(
                f"init_rpc: the store's entry of worker {number} is none: {error!r}"
            ) from None
        if self._workers.setdefault(worker.name, worker) != worker:
            other = self._workers[worker.name].id
            raise RuntimeError(
                f"RPC worker name {worker.name} is not unique: workers {other} and "
                f"{number} have it"
            )
        self._workers[number] = worker
        self._addresses[number] = address

    def read_all(self) -> None:
        keys = [f"worker/{number}" for number in range(self._size)]
        self._store.wait(keys)
        for number in range(self._size):
            self.read(number)

    def find(self, which: str | int | WorkerInfo) -> WorkerInfo:
        """The worker of a name or number.

        Raises:
            RuntimeError: there is none.
        """
        key = which.id if isinstance(which, WorkerInfo) else which
        found = self._workers.get(key)
        if found is None and self._size is None:
            found = self._look_up(key)
        if found is None:
            kind = "name" if isinstance(key, str) else "id"
            raise RuntimeError(
                f"name:{self._me.name},rank:{self._me.id} could not find destination "
                f"{kind} {key}"
            )
        return found

    def _look_up(self, key: str | int) -> WorkerInfo | None:
        with self._lock:
            if isinstance(key, str):
                if not self._store.check([f"name/{key}"]):
                    return None
                key = int(self._store.get(f"name/{key}"))
            if not self._store.check([f"worker/{key}"]):
                return None
            self.read(key)
        return self._workers[key]

    def address(self, number: int) -> tuple[str, int]:
        return self._addresses[self.find(number).id]

    def names(self) -> list[str]:
        """The names of all workers; only this one's where they come and go."""
        if self._size is None:
            return [self._me.name]
        return [self._workers[number].name for number in range(self._size)]


def meeting_store(url: str, rank: int, size: int | None, seconds: float):
    """The store of a URL, and the rank and size that it tells."""
    limit = timedelta(seconds=seconds)
    if size is not None or "world_size" in url:
        return next(rendezvous(url, rank, -1 if size is None else size, timeout=limit))
    parts = urlparse(url)
    host, port = parts.hostname, parts.port
    if parts.scheme == "env":
        if "WORLD_SIZE" in os.environ:
            return next(rendezvous(url, rank, timeout=limit))
        host, port = os.environ.get("MASTER_ADDR"), os.environ.get("MASTER_PORT")
    if parts.scheme not in ("env", "tcp") or not host or not port or rank < 0:
        raise ValueError(
            f"init_rpc: without world_size, {url} must name a host and a port, and "
            f"rank must be given; got {host}, {port}, {rank}"
        )
    store = TCPStore(
        host, int(port), None, rank == 0, limit, wait_for_workers=False,
        multi_tenant=True,
    )  # fmt: skip
    return store, rank, None


def check_name(name: str) -> None:
    """Refuses names that cannot be told apart from other text.

    Raises:
        ValueError: other characters than letters, digits and -_:, or too many.
    """
    if not name or len(name) > _MOST_NAME_CHARACTERS or set(name) - _NAME_CHARACTERS:
        raise ValueError(
            f"Worker name must match ^[A-Za-z0-9-_:]*$ and have 1 to "
            f"{_MOST_NAME_CHARACTERS} characters, got {name!r}"
        )


def join(store, name: str, rank: int, size: int | None, options) -> Agent:
    """Makes this process a worker.

    Args:
        store: of the job.
        name: of this worker.
        rank: its number.
        size: how many workers there are; None where they come and go.
        options: a `TensorPipeRpcBackendOptions`.

    Raises:
        RuntimeError: a name or number is taken, or not all came.
    """
    check_name(name)
    if rank < 0 or (size is not None and rank >= size):
        raise ValueError(f"init_rpc: rank {rank} is none of {size} workers")
    store = PrefixStore("members", store)
    if store.add(f"taken/{rank}", 1) != 1:
        raise RuntimeError(f"init_rpc: rank {rank} is taken by another worker")
    me = WorkerInfo(name, rank)
    listener = Listener(_host(options.init_method))
    try:
        secret = _secret(store, rank)
        host, port = listener.address
        entry = json.dumps({"name": name, "host": host, "port": port})
        if size is None and store.compare_set(f"name/{name}", "", str(rank)) != (
            str(rank).encode()
        ):
            raise RuntimeError(f"RPC worker name {name} is not unique")
        store.set(f"worker/{rank}", entry)
        directory = Directory(store, me, size)
        directory.read_all() if size is not None else directory.read(rank)
    except BaseException:
        listener.close()
        raise
    agent = Agent(
        directory, me, listener, secret, options.num_worker_threads, options.rpc_timeout
    )
    agent.store = store
    return agent


def meet(agent: Agent) -> None:
    """Connects every worker with the one that leads, which so learns who dies."""
    try:
        all_gather(agent, None, agent.directory.names(), max(agent.timeout, 60.0))
    except BaseException:
        agent.close()
        raise


def _secret(store, rank: int) -> bytes:
    if rank == 0:
        store.set("secret", os.urandom(32).hex())
    drawn = bytes.fromhex(store.get("secret").decode())
    own = os.environ.get("TAEDA_RPC_SECRET", "").encode()
    return hmac.digest(drawn, b"taeda rpc" + own, hashlib.sha256)


def _host(url: str) -> str:
    """The address of this machine at which the other workers reach it.

    TP_SOCKET_IFNAME names an interface; else it is the one on the way to the store's
    host, or, where workers meet in a file, that of this machine's name.
    """
    interface = os.environ.get("TP_SOCKET_IFNAME")
    if interface:
        return _address_of(interface)
    parts = urlparse(url)
    host = os.environ.get("MASTER_ADDR") if parts.scheme == "env" else parts.hostname
    try:
        if parts.scheme != "file" and host:
            found = socket.getaddrinfo(host, 1, type=socket.SOCK_DGRAM)[0]
            with socket.socket(found[0], socket.SOCK_DGRAM) as probe:
                probe.connect(found[4])
                return probe.getsockname()[0]
        address = socket.gethostbyname(socket.gethostname())
        with socket.socket() as probe:
            probe.bind((address, 0))
        return address
    except OSError:
        return "127.0.0.1"


def _address_of(interface: str) -> str:
    import fcntl

    get_address = 0x8915  # SIOCGIFADDR of Linux
    request = struct.pack("256s", interface.encode()[:15])
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            answer = fcntl.ioctl(probe.fileno(), get_address, request)
        except OSError as error:
            raise RuntimeError(
                f"init_rpc: TP_SOCKET_IFNAME={interface} has no address: {error}"
            ) from None
    return socket.inet_ntoa(answer[20:24])
