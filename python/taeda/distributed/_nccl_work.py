"""Collectives of NCCL that run, and the thread that watches them."""

from __future__ import annotations

import os
import pickle
import signal
import sys
import tempfile
import threading
import time
import weakref
from datetime import timedelta

import taeda
from taeda import _distributed as native
from taeda.futures import Future

from . import _flight
from ._types import DistBackendError
from ._work import Work

__all__ = ["NcclWork", "Watchdog", "switch"]

# Seconds between two looks at what runs.
_PAUSE = 0.05
# Seconds without a look after which the process is ended.
_HEARTBEAT = 480
# What happens to a process one of whose collectives failed.
NOTHING, TEAR_DOWN, CLEAN_UP, SKIP_CLEAN_UP = range(4)


def switch(name: str, otherwise: int) -> int:
    """A number of the environment: TAEDA_NCCL_`name`, or TORCH_NCCL_ or NCCL_ of it."""
    for prefix in ("TAEDA_NCCL_", "TORCH_NCCL_", "NCCL_"):
        value = os.environ.get(prefix + name)
        if value is not None:
            return int(value)
    return otherwise


class NcclWork(Work):
    """A collective on a stream.

    `wait` makes the current stream wait, not the host; with a timeout, or with
    TORCH_NCCL_BLOCKING_WAIT=1, the host.

    Args:
        text: what it is, for errors.
        comm: its communicator.
        event: its end.
        keep: the tensors that it reads and writes.
        outputs: those that it fills.
        limit: its time.
        record: its number in the flight record.
        host: whether `wait` is the host's, as that of a barrier.
    """

    def __init__(self, text, comm, event, keep, outputs, limit, record, host) -> None:
        self.text, self.comm, self.event = text, comm, event
        self._keep, self._outputs, self.limit = keep, outputs, limit
        self._record, self._host = record, host
        self.started = time.monotonic()
        self._error: DistBackendError | None = None

    def has_ended(self) -> bool:
        """Whether the device has passed it."""
        return self.event.query()

    def finish(self, error: DistBackendError | None = None) -> None:
        """Enters its end; only the watchdog calls it."""
        self._error, self._keep = error, None
        native.end_flight(self._record, error is None)

    def wait(self, timeout: timedelta = timedelta(0)) -> bool:
        self._raise()
        if timeout or self._host or switch("BLOCKING_WAIT", 0):
            self._wait_on_host(timeout or self.limit)
        else:
            self.event.wait(taeda.cuda.current_stream(self.comm.stream.device))
        return True

    def _raise(self) -> None:
        if self._error is not None:
            raise self._error

    def _wait_on_host(self, limit: timedelta) -> None:
        end = time.monotonic() + limit.total_seconds()
        while not self.has_ended():
            self._raise()
            if time.monotonic() > end:
                spent = f"{limit / timedelta(milliseconds=1):g} ms"
                raise DistBackendError(f"{self.text}: timed out after {spent}")
            time.sleep(0.0005)
        self._raise()

    def is_completed(self) -> bool:
        return self._error is not None or self.has_ended()

    def is_success(self) -> bool:
        return self._error is None and self.has_ended()

    def exception(self) -> BaseException | None:
        return self._error

    def result(self) -> list:
        return self._outputs

    def get_future(self) -> Future:
        # Callbacks' work is behind it in the current stream.
        future = Future()
        try:
            self.wait()
        except DistBackendError as error:
            future.set_exception(error)
        else:
            future.set_result(self._outputs)
        return future


class Watchdog:
    """A thread that ends what takes too long, and says where the ranks stand.

    A second one, which needs no lock of Python's, watches this one: where it stands
    still for TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC, 480 by default, it tells the last calls
    and ends the process. TORCH_NCCL_ENABLE_MONITORING=0 leaves it out.

    Args:
        group: the backend; the thread ends with it.
    """

    def __init__(self, group) -> None:
        self._group = weakref.ref(group)
        self._place = group.rank(), group.size(), group.group_name
        self._lock = threading.Lock()  # guards the three below
        self._works: list[NcclWork] = []
        self._thread: threading.Thread | None = None
        self._stopped = False
        # Of the thread, while it runs.
        self._heartbeat: native.Heartbeat | None = None
        self.failure: DistBackendError | None = None

    def add(self, work: NcclWork) -> None:
        """Watches a work from now on."""
        with self._lock:
            self._works.append(work)
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._run, name="taeda-nccl-watchdog", daemon=True
                )
                self._thread.start()

    def stop(self) -> None:
        """Ends the thread; what runs is no longer watched."""
        with self._lock:
            self._stopped, thread = True, self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join()

    def _run(self) -> None:
        if switch("ENABLE_MONITORING", 1):
            rank, size, name = self._place
            who = f"the watchdog of rank {rank} of {size} in group {name!r}"
            seconds = switch("HEARTBEAT_TIMEOUT_SEC", _HEARTBEAT)
            self._heartbeat = native.Heartbeat(who, timedelta(seconds=seconds))
        while not self._stopped and self._group() is not None:
            self._look()
            time.sleep(_PAUSE)
            if self._heartbeat is not None:
                self._heartbeat.beat()
        if self._heartbeat is not None:
            self._heartbeat.stop()

    def _look(self) -> None:
        with self._lock:
            works = list(self._works)
        for work in works:
            error = work.comm.error()
            late = time.monotonic() - work.started > work.limit.total_seconds()
            if error is None and work.has_ended():
                self._end(work, None)
            elif error is not None or late:
                self._fail(work, error)
                return

    def _end(self, work: NcclWork, error: DistBackendError | None) -> None:
        work.finish(error)
        with self._lock:
            self._works.remove(work)

    def _fail(self, work: NcclWork, error: str | None) -> None:
        limit = f"timed out after {work.limit / timedelta(milliseconds=1):g} ms"
        text = f"{work.text}: {error or limit}{_flight.added(self._place[2])}"
        self.failure = DistBackendError(text)
        mode = switch("ASYNC_ERROR_HANDLING", SKIP_CLEAN_UP)
        self._dump()
        if mode in (TEAR_DOWN, CLEAN_UP):
            work.comm.abort()
        with self._lock:
            works = list(self._works)
        for each in works:
            self._end(each, self.failure)
        if mode in (TEAR_DOWN, SKIP_CLEAN_UP) and not switch("BLOCKING_WAIT", 0):
            # Tensors hold what nobody computed: the program must not go on.
            print(f"taeda.distributed: {text}", file=sys.stderr, flush=True)
            os.kill(os.getpid(), signal.SIGABRT)

    def _dump(self) -> None:
        if not switch("DUMP_ON_TIMEOUT", 0):
            return
        name = "NCCL_DEBUG_INFO_TEMP_FILE"
        path = os.environ.get(f"TAEDA_{name}") or os.environ.get(f"TORCH_{name}")
        path = path or os.path.join(tempfile.gettempdir(), "nccl_trace_rank_")
        with open(f"{path}{self._place[0]}", "wb") as file:
            pickle.dump({"entries": native.flight_record()}, file)
