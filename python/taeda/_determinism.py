"""Settings about reproducible results and precision, kept as programs set them.

Every operator of this build is deterministic and float32 products are exact float32, so
the settings have nothing to switch.
"""

from __future__ import annotations

_state = {"deterministic": False, "warn_only": False, "precision": "highest"}
_warnings = {"always": False}
_MODES = ("default", "warn", "error")


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Ask for deterministic algorithms; all are.

    Args:
        mode: whether it is asked.
        warn_only: whether an operator without one would warn rather than fail.
    """
    _state.update(deterministic=bool(mode), warn_only=bool(warn_only))


def are_deterministic_algorithms_enabled() -> bool:
    """What `use_deterministic_algorithms` was last told."""
    return _state["deterministic"]


def is_deterministic_algorithms_warn_only_enabled() -> bool:
    """The `warn_only` of the last `use_deterministic_algorithms`."""
    return _state["deterministic"] and _state["warn_only"]


def set_deterministic_debug_mode(debug_mode: int | str) -> None:
    """The same setting as a word ("default", "warn", "error") or number."""
    if isinstance(debug_mode, str):
        if debug_mode not in _MODES:
            raise RuntimeError(
                f"invalid value of debug_mode, expected one of {_MODES}, "
                f"got {debug_mode!r}"
            )
        debug_mode = _MODES.index(debug_mode)
    if debug_mode not in (0, 1, 2):
        raise RuntimeError(
            f"invalid value of debug_mode, expected 0, 1, or 2, got {debug_mode}"
        )
    use_deterministic_algorithms(debug_mode > 0, warn_only=debug_mode == 1)


def get_deterministic_debug_mode() -> int:
    """0, 1 or 2 for "default", "warn" and "error"."""
    if not _state["deterministic"]:
        return 0
    return 1 if _state["warn_only"] else 2


def get_float32_matmul_precision() -> str:
    """ "highest", "high" or "medium"."""
    return _state["precision"]


def set_float32_matmul_precision(precision: str) -> None:
    """How much precision float32 products may give up; none is given up on CPUs.

    Args:
        precision: "highest", "high" or "medium".
    """
    if precision not in ("highest", "high", "medium"):
        raise RuntimeError(f"{precision} is not one of 'highest', 'high', or 'medium'")
    _state["precision"] = precision


def set_warn_always(b: bool, /) -> None:
    """Whether warnings that appear once would appear every time."""
    _warnings["always"] = bool(b)


def is_warn_always_enabled() -> bool:
    """What `set_warn_always` was last told."""
    return _warnings["always"]


def set_flush_denormal(mode: bool) -> bool:
    """Denormal numbers are always kept; returns whether flushing could be set."""
    return False
