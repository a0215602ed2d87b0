"""Metrics: a number, its name and group, and when it was told."""

from __future__ import annotations

import abc
import functools
import time
from typing import Any, NamedTuple

__all__ = [
    "ConsoleMetricHandler",
    "MetricData",
    "MetricHandler",
    "MetricStream",
    "MetricsConfig",
    "NullMetricHandler",
    "configure",
    "getStream",
    "get_elapsed_time_ms",
    "prof",
    "profile",
    "publish_metric",
    "put_metric",
]


class MetricData(NamedTuple):
    """A metric that was told.

    Args:
        timestamp: seconds since 1970.
        group_name: whose it is.
        name: its name there.
        value: the number.
    """

    timestamp: float
    group_name: str
    name: str
    value: Any


class MetricsConfig:
    """Values by name, for handlers.

    Args:
        params (dict): what a handler is told, by name.
    """

    __slots__ = ("params",)

    def __init__(self, params: dict[str, str] | None = None) -> None:
        self.params = params if params is not None else {}


class MetricHandler(abc.ABC):
    """Takes metrics."""

    @abc.abstractmethod
    def emit(self, metric_data: MetricData) -> None:
        """Takes one."""


class ConsoleMetricHandler(MetricHandler):
    """Prints metrics."""

    def emit(self, metric_data: MetricData) -> None:
        when, group, name, value = metric_data
        print(f"[{when}][{group}]: {name}={value}")


class NullMetricHandler(MetricHandler):
    """Drops metrics."""

    def emit(self, metric_data: MetricData) -> None:
        return None


class MetricStream:
    """The metrics of one group.

    Args:
        group_name: the group's.
        handler: takes them.
    """

    def __init__(self, group_name: str, handler: MetricHandler) -> None:
        self.group_name, self.handler = group_name, handler

    def add_value(self, metric_name: str, metric_value: int) -> None:
        """Tells a number of now."""
        told = MetricData(time.time(), self.group_name, metric_name, metric_value)
        self.handler.emit(told)


# Group -> handler, None for all others; set by `configure` alone.
_handlers: dict[str | None, MetricHandler] = {None: NullMetricHandler()}


def configure(handler: MetricHandler, group: str | None = None) -> None:
    """Says who takes a group's metrics; None for all groups without their own."""
    _handlers[group] = handler


def getStream(group: str) -> MetricStream:
    """A group's metrics."""
    return MetricStream(group, _handlers.get(group, _handlers[None]))


def put_metric(
    metric_name: str, metric_value: int, metric_group: str = "torchelastic"
) -> None:
    """Tells a number.

    Args:
        metric_name: what it says.
        metric_value: the number.
        metric_group: whose it is.
    """
    getStream(metric_group).add_value(metric_name, metric_value)


def publish_metric(metric_group: str, metric_name: str, metric_value: int) -> None:
    """`put_metric` with the group first."""
    put_metric(metric_name, metric_value, metric_group)


def get_elapsed_time_ms(start_time_in_seconds: float) -> int:
    """Whole milliseconds since a time of `time.time()`."""
    return int((time.time() - start_time_in_seconds) * 1000)


def prof(fn=None, group: str = "torchelastic"):
    """A function that tells `name.success` or `name.failure`, and `name.duration.ms`.

    The name is that of the class and method, or of the module and function. It is a
    decorator with and without arguments.

    Example:
        >>> from taeda.distributed.elastic import metrics
        >>> @metrics.prof(group="agent")
        ... def step():
        ...     return 1
        >>> step()
        1
    """
    if fn is None:
        return functools.partial(prof, group=group)
    name = _name_of(fn)

    @functools.wraps(fn)
    def measured(*args, **kwargs):
        started, outcome = time.time(), "failure"
        try:
            result = fn(*args, **kwargs)
            outcome = "success"
            return result
        finally:
            put_metric(f"{name}.{outcome}", 1, group)
            put_metric(f"{name}.duration.ms", get_elapsed_time_ms(started), group)

    return measured


def profile(group: str | None = None):
    """`prof` for a group; the older name."""
    return functools.partial(prof, group=group or "torchelastic")


def _name_of(fn) -> str:
    if "." in fn.__qualname__ or not fn.__module__:
        return fn.__qualname__
    return f"{fn.__module__.rpartition('.')[2]}.{fn.__qualname__}"
