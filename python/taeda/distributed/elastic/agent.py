"""The agent of one node: starts workers, watches them, starts them again."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from .meeting import Meeting, MeetingOptions, Round
from .multiprocessing.api import (
    PContext,
    RunProcsResult,
    SignalException,
    start_processes,
)
from .multiprocessing.errors import ProcessFailure
from .multiprocessing.logs import DefaultLogsSpecs, LogsSpecs

__all__ = ["Agent", "WorkerSpec"]


@dataclass
class WorkerSpec:
    """What the workers are."""

    role: str
    local_world_size: int
    entrypoint: Callable | str
    args: tuple = ()
    max_restarts: int = 0
    monitor_interval: float = 0.1
    start_method: str = "spawn"
    logs_specs: LogsSpecs = field(default_factory=DefaultLogsSpecs)
    log_line_prefix_template: str | None = None
    signals: str = "SIGTERM,SIGINT,SIGHUP,SIGQUIT"
    shutdown_timeout: int | None = None
    virtual_local_rank: bool = False


class Agent:
    """Runs a node's workers until they have ended well, or too often badly.

    Args:
        spec: the workers.
        options: where the nodes meet.
    """

    def __init__(self, spec: WorkerSpec, options: MeetingOptions) -> None:
        self.spec, self.options = spec, options
        self.meeting: Meeting | None = None
        self.restarts = 0
        self._processes: PContext | None = None

    def run(self) -> tuple[dict[int, Any], dict[int, ProcessFailure]]:
        """The workers' results by global rank, and the failures if they failed.

        Raises:
            SignalException: this process was told to end; the workers are ended first.
        """
        before = self._take_signals()
        try:
            return self._run()
        except SignalException as told:
            self._stop(told.sigval)
            raise
        finally:
            self._stop(signal.SIGTERM)
            for number, handler in before.items():
                signal.signal(number, handler)
            if isinstance(self.spec.logs_specs, DefaultLogsSpecs):
                self.spec.logs_specs.remove_temporary()

    def _take_signals(self) -> dict:
        def told(number, _frame):
            name = signal.Signals(number).name
            raise SignalException(
                f"Process {os.getpid()} got signal: {name}", signal.Signals(number)
            )

        before = {}
        for name in self.spec.signals.split(","):
            number = getattr(signal, name.strip(), None)
            if number is None:
                continue
            try:
                before[number] = signal.signal(number, told)
            except ValueError:
                return before  # not the main thread
        return before

    def _stop(self, number: signal.Signals) -> None:
        if self._processes is not None:
            limit = self.spec.shutdown_timeout
            self._processes.close(number, 30 if limit is None else limit)
            self._processes = None

    def _run(self):
        self.meeting = Meeting(self.options)
        while True:
            place = self.meeting.join(self.spec.local_world_size)
            self._start(place)
            result = self._watch()
            if result is not None and not result.is_failed():
                if self.meeting.leave():
                    return self._by_rank(place, result.return_values), {}
                result = None
            elif result is not None:
                self.meeting.tell_failure()
            self._stop(signal.SIGTERM)
            if self.restarts >= self.spec.max_restarts:
                failures = result.failures if result is not None else {}
                return {}, self._by_rank(place, failures)
            self.restarts += 1
            self.meeting.next_round()

    def _watch(self) -> RunProcsResult | None:
        """The workers' result, None where another node failed."""
        assert self._processes is not None and self.meeting is not None
        period = min(self.spec.monitor_interval, 0.05)
        looked = time.monotonic()
        while True:
            result = self._processes.wait(0)
            if result is not None:
                return result
            if time.monotonic() - looked >= self.spec.monitor_interval:
                looked = time.monotonic()
                if self.meeting.others_failed():
                    return None
            time.sleep(period)

    def _first_rank(self, place: Round) -> int:
        return sum(place.local_sizes[: place.group_rank])

    def _by_rank(self, place: Round, found: dict) -> dict:
        first = self._first_rank(place)
        return {first + local: value for local, value in found.items()}

    def _start(self, place: Round) -> None:
        spec, count = self.spec, self.spec.local_world_size
        first, world = self._first_rank(place), sum(place.local_sizes)
        envs, prefixes = {}, {}
        for local in range(count):
            envs[local] = self._environment(place, local, first + local, world)
            prefixes[local] = f"[{spec.role}{first + local}]:"
            if spec.log_line_prefix_template:
                template = spec.log_line_prefix_template
                for name, value in (
                    ("role_name", spec.role),
                    ("local_rank", local),
                    ("rank", first + local),
                ):
                    template = template.replace("${" + name + "}", str(value))
                prefixes[local] = template
        args = {local: self._arguments(envs[local]) for local in range(count)}
        self._processes = start_processes(
            spec.role,
            spec.entrypoint,
            args,
            envs,
            spec.logs_specs,
            prefixes,
            spec.start_method,
        )

    def _arguments(self, env: dict[str, str]) -> tuple:
        """The arguments; "${local_rank}" in a text becomes the worker's number."""

        def one(value):
            if not isinstance(value, str):
                return value
            return value.replace("${local_rank}", env["LOCAL_RANK"])

        return tuple(map(one, self.spec.args))

    def _environment(
        self, place: Round, local: int, rank: int, world: int
    ) -> dict[str, str]:
        spec, count = self.spec, self.spec.local_world_size
        shown = 0 if spec.virtual_local_rank else local
        env = {
            "LOCAL_RANK": shown,
            "RANK": rank,
            "GROUP_RANK": place.group_rank,
            "ROLE_RANK": rank,
            "ROLE_NAME": spec.role,
            "LOCAL_WORLD_SIZE": count,
            "WORLD_SIZE": world,
            "GROUP_WORLD_SIZE": len(place.local_sizes),
            "ROLE_WORLD_SIZE": world,
            "MASTER_ADDR": place.host,
            "MASTER_PORT": place.port,
            "TORCHELASTIC_RESTART_COUNT": self.restarts,
            "TORCHELASTIC_MAX_RESTARTS": spec.max_restarts,
            "TORCHELASTIC_RUN_ID": self.options.run_id,
            "TORCHELASTIC_USE_AGENT_STORE": True,
            "TORCH_NCCL_ASYNC_ERROR_HANDLING": os.getenv(
                "TORCH_NCCL_ASYNC_ERROR_HANDLING", "1"
            ),
        }
        if spec.virtual_local_rank:
            env["CUDA_VISIBLE_DEVICES"] = local
        if "OMP_NUM_THREADS" in os.environ:
            env["OMP_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"]
        elif count > 1:
            env["OMP_NUM_THREADS"] = 1
        return {name: str(value) for name, value in env.items()}
