"""cuDNN, which this build does not have.

Programs set these switches without asking for a GPU first. They are kept for the CUDA
build, which is to read them; nothing of this build has a use for them.
"""

from __future__ import annotations

from ._switches import Kept, Operation, flag_functions, own_precision, properties

__all__ = ["conv", "flags", "is_acceptable", "is_available", "rnn", "set_flags"]
_INSIDE = {
    "enabled": False,
    "benchmark": False,
    "benchmark_limit": 10,
    "deterministic": False,
    "allow_tf32": True,
}
_switches = {
    name: Kept(f"backends.cudnn.{name}", value or name == "enabled")
    for name, value in _INSIDE.items()
}
_switches["fp32_precision"] = own_precision("cuda")
set_flags, flags = flag_functions(_switches, {**_INSIDE, "fp32_precision": "none"})
conv, rnn = Operation("cuda", "conv"), Operation("cuda", "rnn")


def is_available() -> bool:
    """Whether cuDNN can be used."""
    return False


def version() -> int | None:
    """The version of cuDNN; None without it."""
    return None


def is_acceptable(tensor) -> bool:
    """Whether cuDNN computes on this tensor."""
    return False


properties(__name__, **_switches)
