"""An agent: the worker that this process is, its connections and its calls."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from typing import Any

import taeda

from ..autograd import _contexts
from ._call import failure_of
from ._caller import Caller, WorkerInfo
from ._link import Link
from ._listener import Listener
from ._messages import Message, encode
from ._pool import lent
from ._references import Later, References
from ._together import Gatherings
from ._wire import CALL, ERROR, GOODBYE, REMOTE, RESULT, WireError

__all__ = ["Agent"]


class Agent(Caller):
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
        super().__init__(directory, worker, secret, threads, timeout)
        self.references = References(self)
        # Guarded by `_lock`: connections of others, and workers that died.
        self._incoming: set[Link] = set()
        self.lost: set[int] = set()
        self._watchers: list = []
        self.gatherings = Gatherings(self)
        self._listener = listener
        listener.start(secret, worker.id, self._came)

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
                        f"{taeda.__name__}.futures.Future object, but got "
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
        told = failure_of(error, self.worker).told()
        parts = encode(told, self, link.worker, record=False)
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
        with self._lock:
            left = list(self._pending)
        for number in left:
            self._fail(number, "RPC was shut down before the answer came")
        for link in links:
            with contextlib.suppress(OSError):
                link.send(GOODBYE, 0, [b""])
        for link in [*links, *incoming]:
            link.close()
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
