"""Processes of one job on this machine, with their logs and results."""

from __future__ import annotations

from taeda._lazy import attributes

_NAMES = {
    "api": "MultiprocessContext PContext RunProcsResult SignalException"
    " SubprocessContext start_processes",
    "logs": "DefaultLogsSpecs LogsDest LogsSpecs Std to_map",
    "errors": "ProcessFailure",
}
_PUBLIC = {name: module for module in _NAMES for name in _NAMES[module].split()}
__all__ = sorted(_PUBLIC)
__getattr__ = attributes(__name__, _PUBLIC, ("api", "errors", "logs"))
