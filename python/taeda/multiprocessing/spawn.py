"""Processes that run one function with their number as first argument."""

from __future__ import annotations

import multiprocessing
import signal
import sys
import time
from multiprocessing import connection

__all__ = [
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
    try:
        function(index, *args)
    except KeyboardInterrupt:
        pass
    except Exception:
        import traceback

        errors.put(traceback.format_exc())
        sys.exit(1)


class ProcessContext:
    """The processes that `start_processes` started.

    Args:
        processes: the processes.
        error_queues: for each, where it puts its traceback.
    """

    def __init__(self, processes: list, error_queues: list) -> None:
        self.processes, self.error_queues = processes, error_queues
        self.sentinels = {p.sentinel: i for i, p in enumerate(processes)}

    def pids(self) -> list[int]:
        """The processes' ids."""
        return [int(process.pid) for process in self.processes]

    def _stop_others(self, grace_period: float | None) -> None:
        for process in self.processes:
            if process.is_alive():
                process.terminate()
        until = time.monotonic() + (30 if grace_period is None else grace_period)
        for process in self.processes:
            process.join(max(0.0, until - time.monotonic()))
            if process.is_alive():
                process.kill()
                process.join()

    def join(
        self, timeout: float | None = None, grace_period: float | None = None
    ) -> bool:
        """Waits until one process ends or the time is over.

        Args:
            timeout: seconds; None waits as long as it takes.
            grace_period: seconds for the others to end when one failed.

        Returns:
            Whether all processes have ended well.

        Raises:
            ProcessRaisedException: the function raised.
            ProcessExitedException: a process ended otherwise; the others are stopped.
        """
        if not self.sentinels:
            return True
        failed = None
        for sentinel in connection.wait(self.sentinels.keys(), timeout=timeout):
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
        process, errors = self.processes[index], self.error_queues[index]
        if not errors.empty():
            text = f"\n\n-- Process {index} terminated with the following error:\n"
            raise ProcessRaisedException(text + errors.get(), index, process.pid)
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
        start_method: "spawn", "fork" or "forkserver".

    Returns:
        None after waiting, else what can be waited for.
    """
    context = multiprocessing.get_context(start_method)
    processes, queues = [], []
    for index in range(nprocs):
        queue = context.SimpleQueue()
        process = context.Process(
            target=_run, args=(fn, index, args, queue), daemon=daemon
        )
        process.start()
        processes.append(process)
        queues.append(queue)
    started = ProcessContext(processes, queues)
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
