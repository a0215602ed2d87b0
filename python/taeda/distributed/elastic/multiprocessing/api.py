"""Starts processes of a function or of a command and waits for them together."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from .errors import ProcessFailure
from .logs import LogsSpecs, Tail

__all__ = [
    "MultiprocessContext",
    "PContext",
    "RunProcsResult",
    "SignalException",
    "SubprocessContext",
    "start_processes",
]


class SignalException(Exception):
    """This process was told to end.

    Args:
        msg: what happened.
        sigval: the signal.
    """

    def __init__(self, msg: str, sigval: signal.Signals) -> None:
        super().__init__(msg)
        self.sigval = sigval


@dataclass
class RunProcsResult:
    """What became of the processes, by local rank."""

    return_values: dict[int, Any] = field(default_factory=dict)
    failures: dict[int, ProcessFailure] = field(default_factory=dict)
    stdouts: dict[int, str] = field(default_factory=dict)
    stderrs: dict[int, str] = field(default_factory=dict)

    def is_failed(self) -> bool:
        """Whether one failed."""
        return bool(self.failures)


def _end_with_parent() -> None:
    """Has the system end this process when its launcher is killed."""
    import ctypes

    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(1, signal.SIGTERM, 0, 0, 0)


class PContext(ABC):
    """Processes that run together.

    Args:
        name: of the job.
        entrypoint: a function or a command.
        args: of each process, by local rank.
        envs: variables of each process, by local rank.
        logs_specs: where output goes.
        log_line_prefixes: of lines that are shown, by local rank.
    """

    def __init__(
        self,
        name: str,
        entrypoint: Callable | str,
        args: dict[int, tuple],
        envs: dict[int, dict[str, str]],
        logs_specs: LogsSpecs,
        log_line_prefixes: dict[int, str] | None = None,
        duplicate_stdout_filters: list[str] | None = None,
        duplicate_stderr_filters: list[str] | None = None,
    ) -> None:
        if set(args) != set(range(len(args))) or set(envs) != set(args):
            raise RuntimeError(
                f"{name}: expected arguments and variables of the local ranks from 0, "
                f"got {sorted(args)} and {sorted(envs)}"
            )
        self.name, self.entrypoint, self.args, self.envs = name, entrypoint, args, envs
        self.nprocs = len(args)
        self.dest = logs_specs.reify(envs)
        self._prefixes = log_line_prefixes or {
            rank: f"[{name}{rank}]:" for rank in args
        }
        self._tails: list[Tail] = []

    def start(self) -> None:
        """Starts them."""
        self._start()
        pairs = (
            (self.dest.tee_stdouts, sys.stdout),
            (self.dest.tee_stderrs, sys.stderr),
        )
        self._tails = [Tail(files, self._prefixes, to) for files, to in pairs]

    @abstractmethod
    def _start(self) -> None: ...

    @abstractmethod
    def _poll(self) -> RunProcsResult | None:
        """The result if all have ended well or one has failed."""

    @abstractmethod
    def pids(self) -> dict[int, int]:
        """The processes' ids, by local rank."""

    @abstractmethod
    def _signal(self, number: int) -> bool:
        """Sends a signal to those that run; whether there were any."""

    def wait(self, timeout: float = -1, period: float = 1) -> RunProcsResult | None:
        """Waits until all have ended well or one has failed; then all are ended.

        Args:
            timeout: seconds; 0 looks once, a negative number waits on.
            period: the longest time between two looks, in seconds.

        Returns:
            The result, None while they run.
        """
        end = time.monotonic() + timeout
        pause = min(period, 0.05)
        while True:
            result = self._poll()
            if result is not None:
                if result.is_failed():
                    self.close()
                else:
                    self._close_tails()
                return result
            if timeout == 0 or (timeout > 0 and time.monotonic() >= end):
                return None
            time.sleep(pause)
            pause = min(period, pause * 2)

    def close(self, death_sig: signal.Signals | None = None, timeout: int = 30) -> None:
        """Ends the processes: by a signal (SIGTERM), after the timeout by SIGKILL."""
        if self._signal(death_sig or signal.SIGTERM):
            end = time.monotonic() + timeout
            while time.monotonic() < end and self._signal(0):
                time.sleep(0.02)
            if self._signal(signal.SIGKILL):
                while self._signal(0):
                    time.sleep(0.01)
        self._close_tails()

    def _close_tails(self) -> None:
        for tail in self._tails:
            tail.close()
        self._tails = []

    def _failed(self, rank: int, pid: int, code: int) -> ProcessFailure:
        return ProcessFailure(rank, pid, code, self.dest.error_files[rank])

    def _result(self, values: dict, failures: dict) -> RunProcsResult:
        return RunProcsResult(values, failures, self.dest.stdouts, self.dest.stderrs)


class SubprocessContext(PContext):
    """Processes of a command."""

    def __init__(
        self,
        name: str,
        entrypoint: str,
        args: dict[int, tuple],
        envs: dict[int, dict[str, str]],
        logs_specs: LogsSpecs,
        log_line_prefixes: dict[int, str] | None = None,
        numa_options=None,
        duplicate_stdout_filters: list[str] | None = None,
        duplicate_stderr_filters: list[str] | None = None,
    ) -> None:
        super().__init__(name, entrypoint, args, envs, logs_specs, log_line_prefixes)
        self._processes: dict[int, subprocess.Popen] = {}

    def _start(self) -> None:
        for rank in range(self.nprocs):
            with contextlib.ExitStack() as files:
                outputs = {}
                for name in ("stdout", "stderr"):
                    path = getattr(self.dest, f"{name}s")[rank]
                    if path:
                        outputs[name] = files.enter_context(open(path, "wb"))
                self._processes[rank] = subprocess.Popen(
                    [str(self.entrypoint), *map(str, self.args[rank])],
                    env={**os.environ, **self.envs[rank]},
                    preexec_fn=_end_with_parent,
                    **outputs,
                )

    def pids(self) -> dict[int, int]:
        return {rank: p.pid for rank, p in self._processes.items()}

    def _poll(self) -> RunProcsResult | None:
        codes = {rank: p.poll() for rank, p in self._processes.items()}
        failures = {
            rank: self._failed(rank, self._processes[rank].pid, code)
            for rank, code in codes.items()
            if code
        }
        if failures:
            return self._result({}, failures)
        if any(code is None for code in codes.values()):
            return None
        return self._result(dict.fromkeys(codes), {})

    def _signal(self, number: int) -> bool:
        running = [p for p in self._processes.values() if p.poll() is None]
        for process in running:
            if number:
                process.send_signal(number)
        return bool(running)


def _call(entrypoint, args, env, outputs, results) -> None:
    """A process of a function."""
    from .errors import get_error_handler, record

    _end_with_parent()
    os.environ.update(env)
    for number, path in outputs.items():
        if path:
            file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
            os.dup2(file, number)
            os.close(file)
    get_error_handler().initialize()
    results.put(record(entrypoint)(*args))


class MultiprocessContext(PContext):
    """Processes of a function, with what it returns."""

    def __init__(
        self,
        name: str,
        entrypoint: Callable,
        args: dict[int, tuple],
        envs: dict[int, dict[str, str]],
        start_method: str,
        logs_specs: LogsSpecs,
        log_line_prefixes: dict[int, str] | None = None,
        numa_options=None,
        duplicate_stdout_filters: list[str] | None = None,
        duplicate_stderr_filters: list[str] | None = None,
    ) -> None:
        super().__init__(name, entrypoint, args, envs, logs_specs, log_line_prefixes)
        import multiprocessing

        self.start_method = start_method
        self._context = multiprocessing.get_context(start_method)
        self._processes: dict[int, Any] = {}
        self._results: dict[int, Any] = {}
        self._values: dict[int, Any] = {}

    def _start(self) -> None:
        for rank in range(self.nprocs):
            results = self._context.SimpleQueue()
            outputs = {1: self.dest.stdouts[rank], 2: self.dest.stderrs[rank]}
            told = (self.entrypoint, self.args[rank], self.envs[rank], outputs, results)
            process = self._context.Process(target=_call, args=told, daemon=False)
            process.start()
            self._processes[rank], self._results[rank] = process, results

    def pids(self) -> dict[int, int]:
        return {rank: int(p.pid) for rank, p in self._processes.items()}

    def _poll(self) -> RunProcsResult | None:
        failures, running = {}, False
        for rank, process in self._processes.items():
            # A large result fills the pipe, and the process waits for its reader.
            if rank not in self._values and not self._results[rank].empty():
                self._values[rank] = self._results[rank].get()
            code = process.exitcode
            if code is None:
                running = True
            elif code != 0:
                failures[rank] = self._failed(rank, process.pid, code)
            elif rank not in self._values:
                running = not self._results[rank].empty() or running
        if failures:
            return self._result({}, failures)
        return None if running else self._result(dict(self._values), {})

    def _signal(self, number: int) -> bool:
        running = [p for p in self._processes.values() if p.is_alive()]
        for process in running:
            if number:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process.pid, number)
        return bool(running)


def start_processes(
    name: str,
    entrypoint: Callable | str,
    args: dict[int, tuple],
    envs: dict[int, dict[str, str]],
    logs_specs: LogsSpecs,
    log_line_prefixes: dict[int, str] | None = None,
    start_method: str = "spawn",
    numa_options=None,
    duplicate_stdout_filters: list[str] | None = None,
    duplicate_stderr_filters: list[str] | None = None,
) -> PContext:
    """Starts processes on this machine.

    Args:
        name: of the job.
        entrypoint: a function, or the path of a program.
        args: of each process, by local rank from 0.
        envs: variables of each process, by local rank.
        logs_specs: where output goes.
        log_line_prefixes: of lines that are shown, by local rank.
        start_method: "spawn", "fork" or "forkserver", of functions.
        numa_options: not there.
        duplicate_stdout_filters, duplicate_stderr_filters: not there.

    Returns:
        The processes.
    """
    if numa_options is not None:
        raise NotImplementedError("start_processes: numa_options")
    if isinstance(entrypoint, str):
        context: PContext = SubprocessContext(
            name, entrypoint, args, envs, logs_specs, log_line_prefixes
        )
    else:
        context = MultiprocessContext(
            name, entrypoint, args, envs, start_method, logs_specs, log_line_prefixes
        )
    try:
        context.start()
    except BaseException:
        context.close()
        raise
    return context
