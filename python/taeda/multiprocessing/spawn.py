"""Processes that run one function with their number as first argument."""

from __future__ import annotations

import contextlib
import ctypes
import logging
import multiprocessing
import os
import signal
import sys
import time
from multiprocessing import connection

ENV_VAR_PARALLEL_START = "TORCH_MP_PARALLEL_START"

_PR_SET_PDEATHSIG = 1
_log = logging.getLogger(__name__)

__all__ = [
    "ENV_VAR_PARALLEL_START",
    "ProcessContext",
    "ProcessException",
    "ProcessExitedException",
    "ProcessRaisedException",
    "SpawnContext",
    "spawn",
    "start_processes",
]


class ProcessException(Exception):
    """A process failed; base of the two ways.

    Args:
        msg: what happened.
        error_index: the process's number.
        pid: its id.
    """

    def __init__(self, msg: str, error_index: int, pid: int) -> None:
        super().__init__(msg)
        self.msg, self.error_index, self.pid = msg, error_index, pid

    def __reduce__(self):
        return type(self), (self.msg, self.error_index, self.pid)


class ProcessRaisedException(ProcessException):
    """The function raised in a process; the text holds its traceback."""

    def __init__(self, msg: str, error_index: int, error_pid: int) -> None:
        super().__init__(msg, error_index, error_pid)


class ProcessExitedException(ProcessException):
    """A process ended with another status than 0, or by a signal."""

    def __init__(self, msg, error_index, error_pid, exit_code, signal_name=None):
        super().__init__(msg, error_index, error_pid)
        self.exit_code, self.signal_name = exit_code, signal_name

    def __reduce__(self):
        first = (self.msg, self.error_index, self.pid)
        return type(self), (*first, self.exit_code, self.signal_name)


def _run(function, index: int, args: tuple, errors) -> None:
    _end_with_parent()
    try:
        function(index, *args)
    except KeyboardInterrupt:
        pass
    except Exception:
        import traceback

        errors.send(traceback.format_exc())
        sys.exit(1)


def _end_with_parent() -> None:
    """Have the system interrupt this process when the one that started it ends."""
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGINT)
    parent = multiprocessing.parent_process()
    if parent is not None and not parent.is_alive():
        os.kill(os.getpid(), signal.SIGINT)


class ProcessContext:
    """The processes that `start_processes` started.

    Args:
        processes: the processes.
        error_pipes: for each, the end of a pipe from which its traceback comes.
    """

    def __init__(self, processes: list, error_pipes: list) -> None:
        self.processes = processes
        self.sentinels = {p.sentinel: i for i, p in enumerate(processes)}
        self._pipes = {pipe: i for i, pipe in enumerate(error_pipes)}
        self._errors: dict[int, str] = {}

    def pids(self) -> list[int]:
        """The processes' ids."""
        return [int(process.pid) for process in self.processes]

    def _join_all(self, seconds: float) -> list:
        """Waits for the processes so long; gives those that go on."""
        until = time.monotonic() + seconds
        for process in self.processes:
            process.join(max(0.0, until - time.monotonic()))
        return [process for process in self.processes if process.is_alive()]

    def _stop_others(self, grace_period: float | None) -> None:
        for process in self._join_all(grace_period or 0.0):
            _log.warning("Terminating process %d via signal SIGTERM", process.pid)
            process.terminate()
        for process in self._join_all(30.0 if grace_period is None else grace_period):
            _log.warning("Killing process %d, which SIGTERM did not end", process.pid)
            process.kill()
            process.join()

    def _wait(self, timeout: float | None) -> list:
        """Sentinels of processes that have ended; none when the time is over.

        Tracebacks are read as they come: a long one does not fit into its pipe, and
        its process waits until it is taken.
        """
        until = None if timeout is None else time.monotonic() + timeout
        while True:
            rest = None if until is None else max(0.0, until - time.monotonic())
            ready = connection.wait([*self.sentinels, *self._pipes], rest)
            for pipe in [end for end in ready if end in self._pipes]:
                self._read(pipe)
            ended = [end for end in ready if end in self.sentinels]
            if ended or not ready:
                return ended

    def _read(self, pipe) -> None:
        index = self._pipes.pop(pipe)
        with contextlib.suppress(EOFError), pipe:
            self._errors[index] = pipe.recv()

    def join(
        self, timeout: float | None = None, grace_period: float | None = None
    ) -> bool:
        """Waits until one process ends or the time is over.

        Args:
            timeout: seconds; None waits as long as it takes.
            grace_period: seconds for the others to end when one failed, before they
                are asked to (SIGTERM), and again before they are killed. None asks
                at once, and waits for 30 seconds.

        Returns:
            Whether all processes have ended well.

        Raises:
            ProcessRaisedException: the function raised.
            ProcessExitedException: a process ended otherwise; the others are stopped.
        """
        if not self.sentinels:
            return True
        failed = None
        for sentinel in self._wait(timeout):
            index = self.sentinels.pop(sentinel)
            self.processes[index].join()
            if self.processes[index].exitcode != 0:
                failed = index
                break
        if failed is None:
            return not self.sentinels
        self._stop_others(grace_period)
        self._report(failed)

    def _report(self, index: int) -> None:
        process = self.processes[index]
        for pipe in [end for end, owner in self._pipes.items() if owner == index]:
            self._read(pipe)
        if index in self._errors:
            text = f"\n\n-- Process {index} terminated with the following error:\n"
            text += self._errors[index]
            raise ProcessRaisedException(text, index, process.pid)
        code = process.exitcode
        if code < 0:
            try:
                name = signal.Signals(-code).name
            except ValueError:
                name = f"<Unknown signal {-code}>"
            text = f"process {index} terminated with signal {name}"
            raise ProcessExitedException(text, index, process.pid, code, name)
        text = f"process {index} terminated with exit code {code}"
        raise ProcessExitedException(text, index, process.pid, code)


SpawnContext = ProcessContext


def start_processes(
    fn,
    args: tuple = (),
    nprocs: int = 1,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
) -> ProcessContext | None:
    """Starts processes that call `fn(i, *args)`.

    Args:
        fn: a function that can be pickled.
        args: its arguments after the process's number.
        nprocs: how many.
        join: wait for them here.
        daemon: whether they end with this process.
        start_method: "spawn", "fork" or "forkserver"; processes of the last are
            started side by side where TORCH_MP_PARALLEL_START is 1.

    Returns:
        None after waiting, else what can be waited for.
    """
    context = multiprocessing.get_context(start_method)

    def start(index: int) -> tuple:
        ours, theirs = context.Pipe(duplex=False)
        process = context.Process(
            target=_run, args=(fn, index, args, theirs), daemon=daemon
        )
        process.start()
        theirs.close()  # its end is seen once the process has ended
        return process, ours

    if start_method == "forkserver" and os.environ.get(ENV_VAR_PARALLEL_START) == "1":
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(max_workers=max(nprocs, 1)) as pool:
            pairs = list(pool.map(start, range(nprocs)))
    else:
        pairs = [start(index) for index in range(nprocs)]
    started = ProcessContext([p for p, _ in pairs], [pipe for _, pipe in pairs])
    if not join:
        return started
    while not started.join():
        pass
    return None


def spawn(
    fn,
    args: tuple = (),
    nprocs: int = 1,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
) -> ProcessContext | None:
    """As `start_processes`, in fresh interpreters."""
    if start_method != "spawn":
        import warnings

        warnings.warn(
            f"spawn: start_method={start_method!r} is ignored; use start_processes",
            stacklevel=2,
        )
    return start_processes(fn, args, nprocs, join, daemon, "spawn")
