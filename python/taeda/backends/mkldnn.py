"""oneDNN, which runs convolutions and large products.

`enabled` is read by every product and convolution: without oneDNN they go to OpenBLAS
and to loops of this library. What oneDNN computes is deterministic anyway, so that
`deterministic` asks for what there is. `allow_tf32` and the precisions are permissions
that no CPU kernel of this build uses.
"""

from __future__ import annotations

from taeda import _C

from ._switches import Kept, Operation, flag_functions, own_precision, properties

__all__ = ["conv", "flags", "is_available", "matmul", "rnn", "set_flags"]


class _Enabled:
    read = staticmethod(_C._dnn_enabled)
    write = staticmethod(_C._enable_dnn)


_switches = {
    "enabled": _Enabled,
    "deterministic": Kept("backends.mkldnn.deterministic", False),
    "allow_tf32": Kept("backends.mkldnn.allow_tf32", True),
    "fp32_precision": own_precision("mkldnn"),
}
set_flags, flags = flag_functions(
    _switches,
    {
        "enabled": False,
        "deterministic": False,
        "allow_tf32": True,
        "fp32_precision": "none",
    },
)
matmul, conv, rnn = (Operation("mkldnn", name) for name in ("matmul", "conv", "rnn"))


def is_available() -> bool:
    """Whether the build has oneDNN.

    Example:
        >>> with taeda.backends.mkldnn.flags(enabled=False):
        ...     taeda.backends.mkldnn.enabled
        False
    """
    return True


properties(__name__, **_switches)
