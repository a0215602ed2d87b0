"""An agent: the worker that this process is, its connections and its calls."""

from __future__ import annotations

import contextlib
import itertools
import pickle
import socket
import threading
import time
from typing import Any, NamedTuple

from ..autograd import _contexts
from . import _wire
from ._call import CallFuture, RemoteException, failure_of, raise_again
from ._link import Link
from ._listener import Listener, connect
from ._messages import Message, encode
from ._pool import Clock, Pool, lent, thread
from ._references import Later, References
from ._together import Gatherings
from ._wire import CALL, ERROR, GOODBYE, REMOTE, RESULT, WireError

__all__ = ["Agent", "WorkerInfo"]


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


class Agent:
    """Sends calls and runs those of others.

    Args:
        directory: knows the workers: `find(name or number)` is a `WorkerInfo` and
            `address(number)` where it listens.
        worker: this one.
        listener: that other workers were told of.
        secret: of the job.
        threads: how many calls run at once.
        timeout: seconds for a call that says none; 0 for no limit.
    """

    def __init__(
        self, directory, worker: WorkerInfo, listener: Listener, secret: bytes,
        threads: int, timeout: float,
    ) -> None:  # fmt: skip
        self.directory, self.worker = directory, worker
        self.timeout = timeout
        self.pool = Pool(threads)
        self.references = References(self)
        self._secret = secret
        # Guards the fields below.
        self._lock = threading.Lock()
        self._pending: dict[int, _Pending] = {}
        self._routes: dict[int, _Route] = {}
        self._incoming: set[Link] = set()
        self.lost: set[int] = set()
        self._numbers = itertools.count()
        self.issued = 0
        self.closed = False
        self._watchers: list = []
        self.gatherings = Gatherings(self)
        self.clock = Clock(self._expire)
        self._listener = listener
        listener.start(secret, worker.id, self._came)

    # Calls of this worker

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
            pending.future.set_exception(raise_again(RemoteException(*value)))
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

    # Calls of others

    def _came(self, connection: socket.socket, keys, caller: int) -> None:
        link = Link(connection, keys, self._asked, self._caller_lost, caller)
        with self._lock:
            self._incoming.add(link)
            closed = self.closed
        link.start()
        if closed:
            link.close()

    def _asked(self, link: Link, kind: int, number: int, body: bytearray) -> None:
        """A frame on a connection that another made; in its reading thread."""
        if kind == GOODBYE:
            link.said_goodbye = True
        elif kind in (CALL, REMOTE):
            self.pool.submit(self._serve, link, kind, number, body)
        else:
            raise WireError(f"a call of the unknown kind {kind} came")

    def _caller_lost(self, link: Link, error: Exception) -> None:
        with self._lock:
            self._incoming.discard(link)
            if link.said_goodbye or self.closed:
                return
            self.lost.add(link.worker)
            watchers = list(self._watchers)
        self.references.lost(link.worker)
        for watcher in watchers:
            self.pool.submit(watcher)

    def watch(self, watcher) -> None:
        """Calls `watcher()` whenever a worker is lost."""
        with self._lock:
            self._watchers.append(watcher)

    def _serve(self, link: Link, kind: int, number: int, body: bytearray) -> None:
        """Runs a call of another worker; in a thread of the pool."""
        try:
            message = Message(body, self, link.worker)
            del body
            if kind == REMOTE:
                reference = message.note.extra
                self.references.created(reference, link.worker)
                self._reply(link, number, None, record=False)
                self._run(
                    message,
                    lambda value: self.references.fulfil(reference[0], value),
                    lambda error: self.references.fail(reference[0], error),
                )
                return
            self._run(
                message,
                lambda value: self._reply(link, number, value),
                lambda error: self._reply_error(link, number, error),
            )
        except Exception as error:
            self._reply_error(link, number, error)

    def _run(self, message: Message, done, failed) -> None:
        """Calls `done(value)` or `failed(error)` in the call's context of autograd."""
        context = message.note.context
        with _contexts.within(context):
            try:
                function, args, kwargs = message.value()
                value = function(*args, **kwargs)
                later = _is_asynchronous(function) or type(value) is Later
                value = value.future if type(value) is Later else value
                if later and not hasattr(value, "add_done_callback"):
                    raise RuntimeError(
                        "Functions decorated with @rpc.async_function must return a "
                        "taeda.futures.Future object, but got "
                        f"{type(value).__module__}.{type(value).__qualname__}"
                    )
            except Exception as error:
                failed(error)
                return
            if not later:
                _deliver(done, failed, value)
                return

        def finish(future) -> None:
            with _contexts.within(context):
                try:
                    value = future.value()
                except Exception as error:
                    failed(error)
                else:
                    _deliver(done, failed, value)

        value.add_done_callback(finish)

    def _reply(self, link: Link, number: int, value: Any, record: bool = True) -> None:
        parts = encode(value, self, link.worker, plain=(value,), record=record)
        with contextlib.suppress(OSError):  # The caller is gone.
            link.send(RESULT, number, parts)

    def _reply_error(self, link: Link, number: int, error: BaseException) -> None:
        told = failure_of(error, self.worker)
        try:
            pickle.loads(pickle.dumps(told.exception_type))
        except Exception:
            told = told._replace(exception_type=type(error).__qualname__)
        parts = encode(tuple(told), self, link.worker, record=False)
        with contextlib.suppress(OSError):
            link.send(ERROR, number, parts)

    # The end

    def get_worker_info(self, worker_name: str | None = None) -> WorkerInfo:
        return self.worker if worker_name is None else self.directory.find(worker_name)

    def get_worker_infos(self) -> list[WorkerInfo]:
        return [self.directory.find(name) for name in self.directory.names()]

    def counts(self) -> tuple[int, int]:
        """Calls without an answer, and all calls so far."""
        with self._lock:
            return len(self._pending), self.issued

    def get_debug_info(self) -> dict[str, str]:
        threads, idle, running = self.pool.counts()
        return {
            "agent.client_active_calls": str(self.counts()[0]),
            "agent.server_active_calls": str(running),
            "agent.thread_pool_size": str(threads),
            "agent.num_idle_threads": str(idle),
        }

    def wait_for_calls(self, deadline: float) -> None:
        """Waits until every call of this worker has its answer, and it serves none.

        Raises:
            RuntimeError: the time is over.
        """
        # References whose end the clock has still to tell.
        told = threading.Event()
        self.clock.later(told.set)
        told.wait(1.0)
        with lent():
            while self.counts()[0] or self.pool.counts()[2]:
                if time.monotonic() > deadline:
                    with self._lock:
                        workers = sorted({p.worker for p in self._pending.values()})
                    names = [self.directory.find(w).name for w in workers]
                    raise RuntimeError(
                        f"shutdown: worker {self.worker.name} waits for answers of "
                        f"{names} and runs {self.pool.counts()[2]} calls"
                    )
                time.sleep(0.001)

    def all_left(self) -> bool:
        """Whether every other worker said goodbye or is gone."""
        with self._lock:
            here = [link for link in self._incoming if link.worker != self.worker.id]
            return all(link.said_goodbye for link in here)

    def close(self) -> None:
        """Says goodbye and ends every connection and thread."""
        with self._lock:
            if self.closed:
                return
            self.closed = True
            links = [r.link for r in self._routes.values() if r.link is not None]
            incoming = list(self._incoming)
        self._listener.close()
        for link in links:
            with contextlib.suppress(OSError):
                link.send(GOODBYE, 0, [b""])
        for link in [*links, *incoming]:
            link.close()
        with self._lock:
            left = list(self._pending)
        for number in left:
            self._fail(number, "RPC was shut down before the answer came")
        self.clock.close()
        self.pool.close()


def _is_asynchronous(function) -> bool:
    return getattr(function, "_wrapped_async_rpc_function", None) is not None


def _deliver(done, failed, value) -> None:
    """Results that cannot be sent are failures of the call."""
    try:
        done(value)
    except Exception as error:
        failed(error)
