"""Sums and copies between GPUs by NCCL: not there yet."""

from __future__ import annotations

from taeda.cuda import _absent

_REFUSED = (
    "all_gather all_reduce broadcast init_rank reduce reduce_scatter unique_id version"
)
__all__ = sorted(f"is_available {_REFUSED}".split())
globals().update((name, _absent(f"nccl.{name}")) for name in _REFUSED.split())


def is_available(tensors) -> bool:
    """False, with a warning: there is no NCCL to work on these tensors."""
    import warnings

    warnings.warn("Taeda is not compiled with NCCL support", stacklevel=2)
    return False
