"""Anomaly mode: a failing backward names the line of the forward call."""

from __future__ import annotations

import traceback
import warnings

from taeda import _C

__all__ = ["detect_anomaly", "set_anomaly_enabled", "set_detect_anomaly"]


def set_anomaly_enabled(enabled: bool, check_nan: bool = True) -> None:
    """Switches anomaly mode, for good.

    Args:
        enabled: whether nodes remember where they were made.
        check_nan: whether NaN in a gradient is an error.
    """
    _C.set_anomaly_enabled(enabled, check_nan)


class set_detect_anomaly:
    """Switches anomaly mode at once; as a context manager, for its length.

    Args:
        mode (bool): whether nodes remember where they were made.
        check_nan (bool): whether NaN in a gradient is an error.
    """

    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        self.prev = (_C.is_anomaly_enabled(), _C.is_anomaly_check_nan_enabled())
        _C.set_anomaly_enabled(mode, check_nan)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *error) -> None:
        _C.set_anomaly_enabled(*self.prev)


class detect_anomaly:
    """Inside, nodes remember where they were made, and backward looks for NaN.

    For debugging only: everything becomes slow.
    """

    def __init__(self, check_nan: bool = True) -> None:
        self.check_nan = check_nan
        warnings.warn(
            "Anomaly Detection has been enabled. This mode will increase the runtime "
            "and should only be enabled for debugging.",
            stacklevel=2,
        )

    def __enter__(self) -> None:
        self.prev = (_C.is_anomaly_enabled(), _C.is_anomaly_check_nan_enabled())
        _C.set_anomaly_enabled(True, self.check_nan)

    def __exit__(self, *error) -> None:
        _C.set_anomaly_enabled(*self.prev)


def _stack() -> list:
    """Where the running call was made."""
    return traceback.format_stack()[:-1]


def _report(chain: list) -> None:
    """Called by the engine when a node fails.

    Args:
        chain: (name, lines of the call that made it or None) of the node, and of the
            nodes whose backward calls made the one before, in anomaly mode.
    """
    said, what = "Error detected in", "caused the error"
    for name, stack in chain:
        if stack is None:
            text = (
                "No forward pass information available: anomaly detection was off when "
                "it was made."
            )
        else:
            text = f"Traceback of forward call that {what}:\n{''.join(stack)}"
        warnings.warn(f"{said} {name}. {text}", stacklevel=1)
        said = "Previous calculation was induced by"
        what = "induced the previous calculation"
