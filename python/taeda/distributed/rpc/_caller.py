"""Workers, and the calls that this one sends."""

from __future__ import annotations

import contextlib
import itertools
import threading
import time
from typing import NamedTuple

from ._call import CallFuture, failure_from
from ._link import Link
from ._listener import connect
from ._messages import Message, encode
from ._pool import Clock, Pool, thread
from ._wire import CALL, ERROR, RESULT, WireError

__all__ = ["Caller", "WorkerInfo"]


class WorkerInfo:
    """A worker's name and number; functions take it in place of the name.

    Args:
        name: of the worker.
        id: its number.
    """

    __slots__ = ("_id", "_name")

    def __init__(self, name: str, id: int) -> None:
        self._name, self._id = name, id

    @property
    def name(self) -> str:
        return self._name

    @property
    def id(self) -> int:
        return self._id

    def __eq__(self, other) -> bool:
        if not isinstance(other, WorkerInfo):
            return NotImplemented
        return (self.name, self.id) == (other.name, other.id)

    def __hash__(self) -> int:
        return self.id

    def __repr__(self) -> str:
        return f"WorkerInfo(id={self.id}, name={self.name})"

    def __reduce__(self):
        return WorkerInfo, (self.name, self.id)


class _Pending(NamedTuple):
    """A call without an answer."""

    future: CallFuture
    deadline: float
    seconds: float
    worker: int


class _Route:
    """The way to one worker; it is connected by the first call.

    Calls that come while it connects wait in `backlog`, so that no caller waits.
    """

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.link: Link | None = None
        self.backlog: list[tuple] | None = None


class Caller:
    """The calls of a worker that wait for answers, and the ways to others.

    Args:
        directory: knows the workers: `find(name or number)` is a `WorkerInfo` and
            `address(number)` where it listens.
        worker: this one.
        secret: of the job.
        threads: how many calls run at once.
        timeout: seconds for a call that says none; 0 for no limit.
    """

    def __init__(
        self, directory, worker: WorkerInfo, secret: bytes, threads: int, timeout: float
    ) -> None:
        self.directory, self.worker = directory, worker
        self.timeout = timeout
        self.pool = Pool(threads)
        self._secret = secret
        # Guards the fields below.
        self._lock = threading.Lock()
        self._pending: dict[int, _Pending] = {}
        self._routes: dict[int, _Route] = {}
        self._numbers = itertools.count()
        self.issued = 0
        self.closed = False
        self.clock = Clock(self._expire)

    def call(
        self, to: WorkerInfo, function, args=(), kwargs=None, timeout: float = -1,
        *, kind: int = CALL, extra=None, record: bool = True, counted: bool = True,
    ) -> CallFuture:  # fmt: skip
        """Calls a function at another worker, or at this one.

        Args:
            to: the worker.
            function: with `args` and `kwargs`; found there by its module and name.
            timeout: seconds; negative for the agent's own, 0 for no limit.
            kind: CALL, or REMOTE whose `extra` names the reference to its result.
            record: whether tensors enter the current context of autograd.
            counted: whether `shutdown` looks at it.
        """
        kwargs = kwargs or {}
        plain = (*args, *kwargs.values())
        value = (function, tuple(args), kwargs)
        parts = encode(value, self, to.id, extra=extra, plain=plain, record=record)
        seconds = self.timeout if timeout < 0 else timeout
        deadline = time.monotonic() + seconds if seconds else float("inf")
        future = CallFuture(self.pool)
        with self._lock:
            if self.closed:
                raise RuntimeError("RPC has been shut down")
            number = next(self._numbers)
            self.issued += counted
            self._pending[number] = _Pending(future, deadline, seconds, to.id)
        self.clock.expect(deadline)
        self._dispatch(to, kind, number, parts)
        return future

    def _dispatch(self, to: WorkerInfo, kind: int, number: int, parts) -> None:
        with self._lock:
            route = self._routes.setdefault(to.id, _Route())
        with route.lock:
            if route.link is None:
                if route.backlog is None:
                    route.backlog = []
                    thread(lambda: self._connect(to, route), f"rpc-connect-{to.id}")
                route.backlog.append((kind, number, parts))
                return
            link = route.link
        try:
            link.send(kind, number, parts)
        except OSError as error:
            self._fail(number, self._lost_text(to.id, error))

    def _connect(self, to: WorkerInfo, route: _Route) -> None:
        try:
            address = self.directory.address(to.id)
            limit = min(self.timeout or 30.0, 30.0)
            connection, keys = connect(
                address, self._secret, self.worker.id, to.id, limit
            )
            link = Link(connection, keys, self._answered, self._route_lost, to.id)
        except Exception as error:
            with route.lock:
                waiting, route.backlog = route.backlog, None
            for _, number, _ in waiting:
                self._fail(number, self._lost_text(to.id, error))
            return
        with route.lock:
            waiting, route.backlog = route.backlog, None
            route.link = link
            for frame in waiting:
                with contextlib.suppress(OSError):
                    link.send(*frame)
            link.start()
            if self.closed:
                link.close()

    def _lost_text(self, worker: int, error: BaseException) -> str:
        to = self.directory.find(worker)
        return (
            f"RPC from worker {self.worker.name} to worker {to.name} (id {worker}) "
            f"failed, since that worker cannot be reached: {error}"
        )

    def _take(self, number: int) -> _Pending | None:
        with self._lock:
            return self._pending.pop(number, None)

    def _fail(self, number: int, text: str) -> None:
        pending = self._take(number)
        if pending is not None:
            pending.future.set_exception(RuntimeError(text))

    def _answered(self, link: Link, kind: int, number: int, body: bytearray) -> None:
        """A frame on a connection that this worker made; in its reading thread."""
        if kind not in (RESULT, ERROR):
            raise WireError(f"an answer of the unknown kind {kind} came")
        pending = self._take(number)
        if pending is None:
            return  # Its time had run out.
        try:
            value = Message(body, self, link.worker).value()
        except Exception as error:
            pending.future.set_exception(error)
            return
        if kind == ERROR:
            pending.future.set_exception(failure_from(value))
        else:
            pending.future.set_result(value)

    def _route_lost(self, link: Link, error: Exception) -> None:
        with self._lock:
            route = self._routes.get(link.worker)
        if route is not None:
            with route.lock:
                if route.link is link:
                    route.link = None
        with self._lock:
            over = [n for n, p in self._pending.items() if p.worker == link.worker]
        for number in over:
            self._fail(number, self._lost_text(link.worker, error))

    def _expire(self, now: float) -> float | None:
        """Fails calls whose time is over; the next deadline."""
        with self._lock:
            over = [n for n, p in self._pending.items() if p.deadline <= now]
            taken = [self._pending.pop(number) for number in over]
            following = min((p.deadline for p in self._pending.values()), default=None)
        for pending in taken:
            to = self.directory.find(pending.worker)
            pending.future.set_exception(
                RuntimeError(
                    f"RPC ran for more than set timeout ({pending.seconds * 1e3:.0f} "
                    f"ms) and will now be marked with an error: worker {to.name} (id "
                    f"{to.id}) did not answer worker {self.worker.name}"
                )
            )
        return None if following == float("inf") else following
