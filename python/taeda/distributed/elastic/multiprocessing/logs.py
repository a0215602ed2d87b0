"""Where processes' output goes: folders, files, and what is shown as well."""

from __future__ import annotations

import os
import tempfile
import threading
import time
from dataclasses import dataclass, field
from enum import IntFlag

__all__ = ["DefaultLogsSpecs", "LogsDest", "LogsSpecs", "Std", "Tail", "to_map"]


class Std(IntFlag):
    """Standard output, standard error, both or none."""

    NONE = 0
    OUT = 1
    ERR = 2
    ALL = OUT | ERR

    @classmethod
    def from_str(cls, vm: str) -> Std | dict[int, Std]:
        """Reads "3", or "0:1,1:2" for each local rank.

        Raises:
            ValueError: another text.
        """

        def one(text: str) -> Std:
            if text not in ("0", "1", "2", "3"):
                raise ValueError(f"{vm!r} does not match: <0-3>, or <rank:0-3>,...")
            return cls(int(text))

        if ":" not in vm:
            return one(vm)
        found = {}
        for pair in vm.split(","):
            rank, _, text = pair.partition(":")
            if not rank.strip().isdigit():
                raise ValueError(f"{vm!r} does not match: <0-3>, or <rank:0-3>,...")
            found[int(rank)] = one(text.strip())
        return found


def to_map(val_or_map: Std | dict[int, Std], local_world_size: int) -> dict[int, Std]:
    """A value for each local rank; NONE for those that a mapping leaves out."""
    if isinstance(val_or_map, Std):
        return dict.fromkeys(range(local_world_size), val_or_map)
    return {i: val_or_map.get(i, Std.NONE) for i in range(local_world_size)}


@dataclass
class LogsDest:
    """Files by local rank; "" is the launcher's own output."""

    stdouts: dict[int, str] = field(default_factory=dict)  # of each worker
    stderrs: dict[int, str] = field(default_factory=dict)
    tee_stdouts: dict[int, str] = field(default_factory=dict)  # shown too
    tee_stderrs: dict[int, str] = field(default_factory=dict)
    error_files: dict[int, str] = field(default_factory=dict)  # what raised
    filtered_stdout: str = ""
    filtered_stderr: str = ""


class LogsSpecs:
    """What is written into files and what is shown.

    Args:
        log_dir: below which folders are made.
        redirects: what goes to files.
        tee: what goes to files and is shown.
        local_ranks_filter: whose output is shown at all.
    """

    def __init__(
        self,
        log_dir: str | None = None,
        redirects: Std | dict[int, Std] = Std.NONE,
        tee: Std | dict[int, Std] = Std.NONE,
        local_ranks_filter: set[int] | None = None,
    ) -> None:
        self._root_log_dir, self._redirects, self._tee = log_dir, redirects, tee
        self._local_ranks_filter = local_ranks_filter

    def reify(self, envs: dict[int, dict[str, str]]) -> LogsDest:
        """The files of one start of the processes."""
        raise NotImplementedError("LogsSpecs.reify is a subclass's")

    @property
    def root_log_dir(self) -> str | None:
        """The folder of this job, None before the first start."""
        raise NotImplementedError("LogsSpecs.root_log_dir is a subclass's")


class DefaultLogsSpecs(LogsSpecs):
    """Folders `log_dir/job_x/attempt_0/0/` with stdout.log, stderr.log, error.json."""

    def __init__(
        self,
        log_dir: str | None = None,
        redirects: Std | dict[int, Std] = Std.NONE,
        tee: Std | dict[int, Std] = Std.NONE,
        local_ranks_filter: set[int] | None = None,
    ) -> None:
        if (
            log_dir is not None
            and os.path.exists(log_dir)
            and not os.path.isdir(log_dir)
        ):
            raise NotADirectoryError(f"log_dir: {log_dir} is a file")
        super().__init__(log_dir, redirects, tee, local_ranks_filter)
        self._run_log_dir: str | None = None
        self._temporary = log_dir is None

    def __eq__(self, other) -> bool:
        if not isinstance(other, DefaultLogsSpecs):
            return NotImplemented
        return vars(self) == vars(other)

    @property
    def root_log_dir(self) -> str | None:
        return self._run_log_dir

    def _folder(self, run_id: str) -> str:
        if self._run_log_dir is None:
            if self._root_log_dir is not None:
                os.makedirs(self._root_log_dir, exist_ok=True)
            else:
                self._root_log_dir = tempfile.mkdtemp(prefix="torchelastic_")
            self._run_log_dir = tempfile.mkdtemp(
                prefix=f"{run_id}_", dir=self._root_log_dir
            )
        return self._run_log_dir

    def reify(self, envs: dict[int, dict[str, str]]) -> LogsDest:
        count = len(envs)
        first = envs.get(0, {})
        attempt = first.get("TORCHELASTIC_RESTART_COUNT", "0")
        base = os.path.join(
            self._folder(first.get("TORCHELASTIC_RUN_ID", "test_run_id")),
            f"attempt_{attempt}",
        )
        redirects, tee = to_map(self._redirects, count), to_map(self._tee, count)
        dest = LogsDest()
        for rank in range(count):
            folder = os.path.join(base, str(rank))
            os.makedirs(folder, exist_ok=True)
            hidden = (
                self._local_ranks_filter is not None
                and rank not in self._local_ranks_filter
            )
            for std, name in ((Std.OUT, "stdout"), (Std.ERR, "stderr")):
                path = os.path.join(folder, f"{name}.log")
                taken = bool((redirects[rank] | tee[rank]) & std) or hidden
                getattr(dest, f"{name}s")[rank] = path if taken else ""
                shown = bool(tee[rank] & std) and not hidden
                getattr(dest, f"tee_{name}s")[rank] = path if shown else ""
            dest.error_files[rank] = os.path.join(folder, "error.json")
            envs[rank]["TORCHELASTIC_ERROR_FILE"] = dest.error_files[rank]
        return dest

    def remove_temporary(self) -> None:
        """Removes a folder that nobody asked for."""
        if self._temporary and self._root_log_dir:
            import shutil

            shutil.rmtree(self._root_log_dir, ignore_errors=True)


class Tail:
    """A thread that shows what is added to files.

    Args:
        files: path by local rank; "" for none.
        prefixes: what each line begins with, by local rank.
        to: where it is shown.
    """

    def __init__(self, files: dict[int, str], prefixes: dict[int, str], to) -> None:
        self._files = {rank: path for rank, path in files.items() if path}
        self._prefixes, self._to = prefixes, to
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        if self._files:
            self._thread = threading.Thread(target=self._run, daemon=True)
            self._thread.start()

    def _run(self) -> None:
        opened: dict = {}
        rest = dict.fromkeys(self._files, "")
        while True:
            stopping = self._stop.is_set()
            moved = False
            for rank, path in self._files.items():
                if rank not in opened:
                    if not os.path.exists(path):
                        continue
                    opened[rank] = open(path, errors="replace")
                text = opened[rank].read()
                moved = moved or bool(text)
                *lines, rest[rank] = (rest[rank] + text).split("\n")
                self._show(rank, lines)
            if stopping:
                break
            if not moved:
                time.sleep(0.05)
        for rank, file in opened.items():
            if rest[rank]:
                self._show(rank, [rest[rank]])
            file.close()

    def _show(self, rank: int, lines: list[str]) -> None:
        prefix = self._prefixes.get(rank, "")
        for line in lines:
            self._to.write(f"{prefix}{line}\n")
        if lines:
            self._to.flush()

    def close(self) -> None:
        """Shows what is left and ends."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
