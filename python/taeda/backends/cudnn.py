"""cuDNN, which computes the convolutions of a GPU where it is installed.

Programs set these switches without asking for a GPU first, so they are kept on every
machine.
"""

from __future__ import annotations

from . import _switches
from ._switches import (
    Kept,
    Operation,
    Precision,
    flag_functions,
    own_precision,
    properties,
)

__all__ = ["conv", "flags", "is_acceptable", "is_available", "rnn", "set_flags"]


class _Told(Kept):
    """A switch that the convolutions of a GPU follow from the next call on."""

    def write(self, value) -> None:
        super().write(value)
        _tell()


_INSIDE = {
    "enabled": False,
    "benchmark": False,
    "benchmark_limit": 10,
    "deterministic": False,
    "allow_tf32": True,
}
_own = {
    name: _Told(f"backends.cudnn.{name}", value or name == "enabled")
    for name, value in _INSIDE.items()
}


def _tell() -> None:
    from taeda import _cuda

    read = {name: switch.read() for name, switch in _own.items()}
    tf32 = read.pop("allow_tf32") and Precision("cuda", "conv").read() == "tf32"
    _cuda.set_convolution_choices(*read.values(), tf32)


_switches.listeners.append(_tell)
_named = {**_own, "fp32_precision": own_precision("cuda")}
set_flags, flags = flag_functions(_named, {**_INSIDE, "fp32_precision": "none"})
conv, rnn = Operation("cuda", "conv"), Operation("cuda", "rnn")


def is_available() -> bool:
    """Whether cuDNN can be used: there is a GPU, and the library is installed."""
    return version() is not None


def version() -> int | None:
    """The version of cuDNN (90100 is 9.1); None where it cannot be used."""
    import taeda

    if not taeda.cuda.is_available():
        return None
    from taeda.cuda._devices import _driver

    return _driver().cudnn_version() or None


def is_acceptable(tensor) -> bool:
    """Whether cuDNN computes on this tensor.

    Args:
        tensor: one on a GPU, of float32, float64, float16 or bfloat16.
    """
    import taeda

    dtypes = (taeda.float32, taeda.float64, taeda.float16, taeda.bfloat16)
    usable = _own["enabled"].read() and tensor.is_cuda
    return usable and tensor.dtype in dtypes and is_available()


properties(__name__, **_named)
