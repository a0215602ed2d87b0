"""Where the agents of a job's nodes meet, and meet again after a failure.

A round begins when an agent joins and ends when its workers have. Its keys lie below
the job's id and the round's number: `joined` counts agents, `node/r` is what agent r
brings, `failed` is set by whoever sees a failure, `beat/r` counts while agent r lives.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import time
from dataclasses import dataclass
from datetime import timedelta

from .._types import DistError, PrefixStore, TCPStore

__all__ = ["Meeting", "MeetingOptions", "Round"]

_POLL = 0.02
# An agent that has not counted for so long is lost.
_SILENCE = 30.0


@dataclass
class MeetingOptions:
    """How agents find each other.

    `backend` is "static" (`node_rank` says who is who) or "c10d" (who comes first);
    `address` is of the store's server, port 0 for one that the system chooses.
    """

    backend: str
    run_id: str
    host: str
    port: int
    min_nodes: int
    max_nodes: int
    node_rank: int | None = None
    is_host: bool | None = None
    timeout: float = 600.0
    last_call: float = 30.0
    shown_host: str | None = None


@dataclass
class Round:
    """What the agents agreed on: who is there, in order, with how many workers each."""

    number: int
    group_rank: int
    local_sizes: list[int]
    host: str
    port: int


def _is_own_address(host: str) -> bool:
    if host in ("localhost", "127.0.0.1", "::1", "", socket.gethostname()):
        return True
    with contextlib.suppress(OSError):
        found = {a[4][0] for a in socket.getaddrinfo(host, None)}
        for address in found:
            with contextlib.suppress(OSError), socket.socket() as s:
                s.bind((address, 0))
                return True
    return False


class Meeting:
    """An agent's place where the others are.

    Args:
        options: how they find each other.

    Raises:
        DistNetworkError: nobody serves the address.
    """

    def __init__(self, options: MeetingOptions) -> None:
        self.options = options
        limit = timedelta(seconds=options.timeout)
        serves = options.is_host
        if serves is None:
            serves = (
                options.node_rank == 0
                if options.backend == "static"
                else _is_own_address(options.host)
            )
        self._server = None
        if serves:
            # Of several agents on one machine the first serves.
            with contextlib.suppress(DistError):
                self._server = TCPStore(
                    options.host,
                    options.port,
                    None,
                    True,
                    limit,
                    wait_for_workers=False,
                    multi_tenant=options.port != 0,
                )
        port = self._server.port if self._server else options.port
        self._port = port
        self._store = self._server or TCPStore(
            options.host, port, None, False, limit, wait_for_workers=False
        )
        self._job = PrefixStore(options.run_id, self._store)
        self._round: Round | None = None
        self._seen: dict[int, tuple[int, float]] = {}

    def _keys(self, number: int) -> PrefixStore:
        return PrefixStore(f"round{number}", self._job)

    def join(self, local_size: int) -> Round:
        """Waits for the other agents.

        Args:
            local_size: workers of this node.

        Raises:
            DistError: too few come in time.
        """
        options = self.options
        end = time.monotonic() + options.timeout
        while True:
            number = self._job.add("round", 0)
            keys = self._keys(number)
            # Asked before we are counted: the others close the round once all are.
            late = keys.check(["closed"])
            if options.backend == "static":
                rank = options.node_rank or 0
                keys.add("joined", 1)
            else:
                rank = keys.add("joined", 1) - 1
            if late or rank >= options.max_nodes:
                self._await_next(number, end)
                continue
            told = {"size": local_size, "host": options.shown_host or ""}
            keys.set(f"node/{rank}", json.dumps(told))
            count = self._await_all(keys, end)
            if rank < count:
                return self._agreed(number, rank, count)
            self._await_next(number, end)

    def _await_next(self, number: int, end: float) -> None:
        while self._job.add("round", 0) == number:
            if time.monotonic() > end:
                raise DistError("rendezvous: the job is full and goes on without us")
            time.sleep(_POLL * 5)

    def _await_all(self, keys: PrefixStore, end: float) -> int:
        """How many nodes take part, once that is settled."""
        options, first_call = self.options, None
        while True:
            if keys.check(["closed"]):
                return int(keys.get("closed"))
            joined = min(keys.add("joined", 0), options.max_nodes)
            if joined >= options.min_nodes and first_call is None:
                first_call = time.monotonic()
            late = first_call and time.monotonic() - first_call > options.last_call
            if joined == options.max_nodes or late:
                return int(keys.compare_set("closed", "", str(joined)))
            if time.monotonic() > end:
                raise DistError(
                    f"rendezvous: timed out after {options.timeout:g} s: {joined} of "
                    f"at least {options.min_nodes} nodes joined job {options.run_id!r}"
                )
            time.sleep(_POLL)

    def _agreed(self, number: int, rank: int, count: int) -> Round:
        keys = self._keys(number)
        names = [f"node/{r}" for r in range(count)]
        keys.wait(names, timedelta(seconds=self.options.timeout))
        nodes = [json.loads(keys.get(name)) for name in names]
        host = self.options.host
        if self._server is not None and self.options.port == 0:
            host = self.options.shown_host or "localhost"
        sizes = [node["size"] for node in nodes]
        self._round = Round(number, rank, sizes, host, self._port)
        self._seen = {}
        return self._round

    # While workers run.

    def _mine(self) -> PrefixStore:
        assert self._round is not None
        return self._keys(self._round.number)

    def alone(self) -> bool:
        """Whether there is no other node to look after."""
        return self._round is not None and len(self._round.local_sizes) == 1

    def others_failed(self) -> bool:
        """Whether another agent saw a failure, or is lost."""
        if self.alone():
            return False
        assert self._round is not None
        keys = self._mine()
        keys.add(f"beat/{self._round.group_rank}", 1)
        if keys.check(["failed"]) or self._job.add("round", 0) != self._round.number:
            return True
        now = time.monotonic()
        for rank in range(len(self._round.local_sizes)):
            if rank == self._round.group_rank or keys.check([f"done/{rank}"]):
                continue
            count = keys.add(f"beat/{rank}", 0)
            before = self._seen.get(rank)
            if before is None or before[0] != count:
                self._seen[rank] = count, now
            elif now - before[1] > _SILENCE:
                return True
        return False

    def tell_failure(self) -> None:
        """Has all agents stop their workers."""
        if not self.alone():
            self._mine().set("failed", "1")

    def next_round(self) -> None:
        """Opens the next round, once."""
        assert self._round is not None
        number = self._round.number
        if (
            self._job.compare_set(f"after{number}", "", str(os.getpid()))
            == str(os.getpid()).encode()
        ):
            self._job.add("round", 1)
        while self._job.add("round", 0) == number:
            time.sleep(_POLL)

    def leave(self, timeout: float = 300.0) -> bool:
        """Waits until all nodes' workers have ended well.

        Returns:
            Whether they have; else another round is needed.
        """
        if self.alone():
            return True
        assert self._round is not None
        keys = self._mine()
        keys.set(f"done/{self._round.group_rank}", "1")
        names = [f"done/{r}" for r in range(len(self._round.local_sizes))]
        end = time.monotonic() + timeout
        while not keys.check(names):
            if self.others_failed():
                return False
            if time.monotonic() > end:
                break
            time.sleep(_POLL)
        # The server leaves last, when the others need it no more.
        keys.add("left", 1)
        while self._server is not None and keys.add("left", 0) < len(names):
            if time.monotonic() > end:
                break
            time.sleep(_POLL)
        return True
