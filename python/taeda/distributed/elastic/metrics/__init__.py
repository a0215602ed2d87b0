"""Numbers that launchers and programs tell of themselves, and who takes them."""

from __future__ import annotations

from taeda._lazy import attributes

_PUBLIC = dict.fromkeys(
    (
        "ConsoleMetricHandler MetricData MetricHandler MetricStream MetricsConfig"
        " NullMetricHandler configure getStream get_elapsed_time_ms prof profile"
        " publish_metric put_metric"
    ).split(),
    "api",
)
__all__ = [*_PUBLIC, "initialize_metrics"]
__getattr__ = attributes(__name__, _PUBLIC, ("api",))


def initialize_metrics(cfg=None) -> None:
    """Nothing is to be set up; `configure` says where numbers go.

    Args:
        cfg: a `MetricsConfig`.
    """
