"""What this build computes with, and switches of libraries.

A switch is either read by kernels (`mkldnn.enabled`, the kinds of attention), or a
permission that programs give beforehand and that kernels of this build never use, such
as TF32 products on a GPU: each module says which.
"""

from __future__ import annotations

from taeda._lazy import attributes

from ._switches import frozen as _frozen
from ._switches import own_precision as _own_precision
from ._switches import properties as _properties

__all__ = [
    "cpu",
    "cuda",
    "cudnn",
    "cusparselt",
    "disable_global_flags",
    "flags",
    "flags_frozen",
    "kleidiai",
    "mha",
    "miopen",
    "mkl",
    "mkldnn",
    "mps",
    "nnpack",
    "openmp",
    "opt_einsum",
    "quantized",
    "set_flags",
]
__getattr__ = attributes(__name__, submodules=__all__)


def set_flags(_fp32_precision: str = "none") -> tuple[str]:
    """Set the precision of float32 computations for all backends; returns the old one.

    Args:
        _fp32_precision: "ieee", "tf32", "bf16" or "none".
    """
    before = (_own_precision("generic").read(),)
    _own_precision("generic").write(_fp32_precision)
    return before


def flags(fp32_precision: str = "none"):
    """The same for the length of a `with` block."""
    from ._switches import Scope

    return Scope(set_flags, (fp32_precision,))


def disable_global_flags() -> None:
    """Refuse assignments to switches from now on, so that none is forgotten.

    `flags()` of a backend still sets them for the length of a `with` block.
    """
    _frozen.write(True)


def flags_frozen() -> bool:
    """Whether `disable_global_flags` was called.

    Example:
        >>> taeda.backends.flags_frozen()
        False
    """
    return _frozen.read()


_properties(__name__, fp32_precision=_own_precision("generic"))
