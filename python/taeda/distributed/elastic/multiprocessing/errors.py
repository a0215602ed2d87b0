"""How a worker's failure reaches its launcher, and how that tells it.

A worker writes what it died of into the file that TORCHELASTIC_ERROR_FILE names; the
launcher reads it when the process has ended.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import time
import traceback
from collections.abc import Callable
from functools import wraps
from typing import Any

__all__ = [
    "ChildFailedError",
    "ErrorHandler",
    "ProcessFailure",
    "get_error_handler",
    "record",
]

_FILE = "TORCHELASTIC_ERROR_FILE"


class ErrorHandler:
    """Writes a process's error into its file."""

    def _path(self) -> str | None:
        return os.environ.get(_FILE)

    def initialize(self) -> None:
        """Makes deadly signals print where each thread stands."""
        import faulthandler

        try:
            faulthandler.enable(all_threads=True)
        except (OSError, ValueError, RuntimeError):
            pass  # standard error is closed or is no file

    def record_exception(self, e: BaseException) -> None:
        """Writes an exception with its traceback and the time."""
        path = self._path()
        if not path:
            return
        text = "".join(traceback.format_exception(e))
        told = {
            "message": f"{type(e).__name__}: {e}",
            "extraInfo": {"py_callstack": text, "timestamp": str(int(time.time()))},
        }
        with open(path, "w") as file:
            json.dump({"message": told}, file)

    def override_error_code_in_rootcause_data(
        self, rootcause_error_file: str, rootcause_error: dict, error_code: int = 0
    ) -> None:
        """Puts an exit code into what a file says."""
        if isinstance(rootcause_error.get("message"), dict):
            rootcause_error["message"]["errorCode"] = error_code

    def dump_error_file(self, rootcause_error_file: str, error_code: int = 0) -> None:
        """Passes the file of a child's failure on as this process's own."""
        with open(rootcause_error_file) as file:
            told = json.load(file)
        if error_code:
            self.override_error_code_in_rootcause_data(
                rootcause_error_file, told, error_code
            )
        path = self._path()
        if path:
            with open(path, "w") as file:
                json.dump(told, file)


def get_error_handler() -> ErrorHandler:
    """The handler of this process."""
    return ErrorHandler()


class ProcessFailure:
    """A process that ended badly.

    Args:
        local_rank: its number on this machine.
        pid: its id.
        exitcode: its status; negative for a signal.
        error_file: where it may have told why.
    """

    def __init__(
        self, local_rank: int, pid: int, exitcode: int, error_file: str
    ) -> None:
        self.local_rank, self.pid, self.exitcode = local_rank, pid, exitcode
        self.error_file, self.error_file_data = "<N/A>", {"message": "<NONE>"}
        self.message, self.timestamp = "", int(time.time())
        if os.path.isfile(error_file):
            self._read(error_file)
        if not self.message:
            self.message = self._message_of_status()

    def __eq__(self, other) -> bool:
        if not isinstance(other, ProcessFailure):
            return NotImplemented
        return vars(self) == vars(other)

    def _read(self, path: str) -> None:
        try:
            with open(path) as file:
                self.error_file_data = json.load(file)
            told: Any = self.error_file_data["message"]
            self.error_file = path
        except (ValueError, KeyError, OSError):
            return  # it died while it wrote
        if isinstance(told, str):
            self.message = told
            return
        extra = told.get("extraInfo", {})
        self.message = extra.get("py_callstack") or told.get("message", "")
        self.timestamp = int(extra.get("timestamp", self.timestamp))

    def _message_of_status(self) -> str:
        if self.exitcode < 0:
            return (
                f"Signal {-self.exitcode} ({self.signal_name()}) received by PID "
                + str(self.pid)
            )
        return "the process told nothing; decorate its main function with @record"

    def signal_name(self) -> str:
        """The signal's name, "<N/A>" where none ended it."""
        if self.exitcode >= 0:
            return "<N/A>"
        try:
            return signal.Signals(-self.exitcode).name
        except ValueError:
            return f"<Unknown signal {-self.exitcode}>"

    def timestamp_isoformat(self) -> str:
        """When it was noticed."""
        return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(self.timestamp))


class ChildFailedError(Exception):
    """Processes of a job failed; the text tells each, the first one in full.

    Args:
        name: of the job's program.
        failures: by global rank.
    """

    def __init__(self, name: str, failures: dict[int, ProcessFailure]) -> None:
        self.name, self.failures = name, failures
        assert failures
        super().__init__(self.format_msg())

    def __reduce__(self):
        return type(self), (self.name, self.failures)

    def get_first_failure(self) -> tuple[int, ProcessFailure]:
        """The rank that failed first, and how."""
        return min(self.failures.items(), key=lambda item: item[1].timestamp)

    def format_msg(self, boarder_delim: str = "=", section_delim: str = "-") -> str:
        """The report."""
        first = self.get_first_failure()[0]
        others = [
            self._told(i, rank)
            for i, rank in enumerate(sorted(self.failures), 1)
            if rank != first
        ]
        parts = [
            boarder_delim * 60,
            f"{self.name} FAILED",
            section_delim * 60,
            "First failure:",
            self._told(0, first),
            section_delim * 60,
            "Later failures:" if others else "No other failures.",
            *others,
            boarder_delim * 60,
        ]
        return "\n".join(parts)

    def _told(self, number: int, rank: int) -> str:
        failure = self.failures[rank]
        rows = {
            "time": failure.timestamp_isoformat(),
            "host": socket.gethostname(),
            "rank": f"{rank} (local_rank: {failure.local_rank})",
            "exitcode": f"{failure.exitcode} (pid: {failure.pid})",
            "error_file": failure.error_file,
            "traceback": failure.message.replace("\n", "\n    "),
        }
        lines = [f"  {name:<10}: {value}" for name, value in rows.items()]
        return "\n".join([f"[{number}]:", *lines])


def record(fn: Callable, error_handler: ErrorHandler | None = None) -> Callable:
    """A main function whose exception its launcher hears of.

    Args:
        fn: the function.
        error_handler: what writes it.

    Returns:
        A function that does the same; the exception is raised on. That of children goes
        on with their exit code.
    """
    handler = error_handler or get_error_handler()

    @wraps(fn)
    def wrapped(*args, **kwargs):
        handler.initialize()
        try:
            return fn(*args, **kwargs)
        except SystemExit as end:
            # Those of argparse and sys.exit(0) are no failures to tell.
            if end.code not in (0, None):
                handler.record_exception(end)
            raise
        except ChildFailedError as error:
            failure = error.get_first_failure()[1]
            if failure.error_file != "<N/A>":
                handler.dump_error_file(failure.error_file, failure.exitcode)
            raise
        except Exception as error:
            handler.record_exception(error)
            raise

    return wrapped
