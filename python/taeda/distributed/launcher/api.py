"""Starts a job's workers on this node from Python."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ..elastic.agent import Agent, WorkerSpec
from ..elastic.meeting import MeetingOptions
from ..elastic.multiprocessing.errors import ChildFailedError
from ..elastic.multiprocessing.logs import DefaultLogsSpecs, LogsSpecs

__all__ = ["LaunchConfig", "elastic_launch", "launch_agent"]


@dataclass
class LaunchConfig:
    """How a job is launched.

    `rdzv_backend` is "static" or "c10d"; `rdzv_configs` may have "timeout",
    "last_call_timeout", "is_host" and "rank".
    """

    min_nodes: int  # fewest agents that a round begins with
    max_nodes: int
    nproc_per_node: int  # workers of each agent
    logs_specs: LogsSpecs | None = None
    run_id: str = ""  # the job's name; drawn if empty
    role: str = "default_role"
    rdzv_endpoint: str = ""  # host:port of the store
    rdzv_backend: str = "etcd"
    rdzv_configs: dict[str, Any] = field(default_factory=dict)
    rdzv_timeout: int = -1  # seconds; -1 leaves it to the configuration
    max_restarts: int = 3  # rounds after the first
    monitor_interval: float = 0.1  # seconds between looks at the workers
    start_method: str = "spawn"
    log_line_prefix_template: str | None = None  # before lines that are shown
    metrics_cfg: dict[str, str] = field(default_factory=dict)
    local_addr: str | None = None  # of this agent, for the others
    event_log_handler: str = "null"
    numa_options: Any = None
    signals_to_handle: str = "SIGTERM,SIGINT,SIGHUP,SIGQUIT"  # to hand on
    duplicate_stdout_filters: list[str] | None = None  # texts of lines to show again
    duplicate_stderr_filters: list[str] | None = None
    virtual_local_rank: bool = False  # all workers are 0
    shutdown_timeout: int | None = None  # seconds until workers are killed

    def __post_init__(self) -> None:
        if self.logs_specs is None:
            self.logs_specs = DefaultLogsSpecs()
        if self.rdzv_timeout != -1:
            self.rdzv_configs["timeout"] = self.rdzv_timeout
        self.rdzv_configs.setdefault("timeout", 900)


class elastic_launch:
    """A launcher of a function or a command.

    Args:
        config: how.
        entrypoint: the function, or the path of a program.

    Calling it with arguments starts the workers and returns their results by rank.
    """

    def __init__(
        self,
        config: LaunchConfig,
        entrypoint: Callable | str | None,
        health_check_server: Any = None,
    ) -> None:
        self._config, self._entrypoint = config, entrypoint
        self._server = health_check_server

    def __call__(self, *args) -> dict[int, Any]:
        return launch_agent(self._config, self._entrypoint, list(args), self._server)


def _flag(value) -> bool | None:
    if value is None:
        return None
    return str(value).lower() in ("1", "true", "t", "yes", "y")


def _meeting(config: LaunchConfig) -> MeetingOptions:
    if config.rdzv_backend not in ("static", "c10d"):
        raise ValueError(
            f"rdzv_backend: expected 'static' or 'c10d', got {config.rdzv_backend!r}"
        )
    host, _, port = config.rdzv_endpoint.rpartition(":")
    if not host:
        host, port = config.rdzv_endpoint, ""
    default = 29500 if config.rdzv_backend == "static" else 29400
    configs = config.rdzv_configs
    is_static = config.rdzv_backend == "static"
    return MeetingOptions(
        backend=config.rdzv_backend,
        run_id=config.run_id or "none",
        host=host or "localhost",
        port=int(port) if port else default,
        min_nodes=config.max_nodes if is_static else config.min_nodes,
        max_nodes=config.max_nodes,
        node_rank=int(configs["rank"]) if "rank" in configs else None,
        is_host=_flag(configs.get("is_host")),
        timeout=float(configs.get("timeout", 900)),
        last_call=float(configs.get("last_call_timeout", 30)),
        shown_host=config.local_addr or host or "localhost",
    )


def launch_agent(
    config: LaunchConfig,
    entrypoint: Callable | str | None,
    args: list[Any],
    health_check_server: Any = None,
) -> dict[int, Any]:
    """Runs this node's agent until the job has ended.

    Args:
        config: how.
        entrypoint: the function, or the path of a program.
        args: of each worker.
        health_check_server: not there.

    Returns:
        What the functions of this node returned, by global rank.

    Raises:
        ChildFailedError: workers failed, and too often.
        SignalException: this process was told to end.
    """
    if entrypoint is None:
        raise ValueError("launch_agent: expected a function or a program, got None")
    for name, value in (
        ("numa_options", config.numa_options),
        ("health_check_server", health_check_server),
    ):
        if value is not None:
            raise NotImplementedError(f"launch_agent: {name}")
    assert config.logs_specs is not None
    kept = (
        "role max_restarts monitor_interval start_method logs_specs"
        " log_line_prefix_template shutdown_timeout virtual_local_rank"
    ).split()
    spec = WorkerSpec(
        local_world_size=config.nproc_per_node,
        entrypoint=entrypoint,
        args=tuple(args),
        signals=config.signals_to_handle,
        **{name: getattr(config, name) for name in kept},
    )
    values, failures = Agent(spec, _meeting(config)).run()
    if failures:
        raise ChildFailedError(_name_of(entrypoint, args), failures)
    if not values:
        raise RuntimeError("launch_agent: the workers of another node failed")
    return values


def _name_of(entrypoint: Callable | str, args: list[Any]) -> str:
    """What a report calls the job."""
    if callable(entrypoint):
        return getattr(entrypoint, "__qualname__", repr(entrypoint))
    own = os.path.basename(sys.executable)
    if os.path.basename(entrypoint) != own:
        return os.path.basename(entrypoint)
    named = [str(a) for a in args if not str(a).startswith("-")]
    return named[0] if named else entrypoint
