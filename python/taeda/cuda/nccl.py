"""Sums and copies between GPUs by NCCL, which take a CUDA build."""

from __future__ import annotations

from taeda.cuda import _no_device

__all__ = ["all_gather", "all_reduce", "broadcast", "init_rank", "is_available"]
__all__ += ["reduce", "reduce_scatter", "unique_id", "version"]


def is_available(tensors) -> bool:
    """False, with a warning: this build has no NCCL to work on these tensors."""
    import warnings

    warnings.warn("Taeda is not compiled with NCCL support", stacklevel=2)
    return False


all_gather = all_reduce = broadcast = init_rank = _no_device
reduce = reduce_scatter = unique_id = version = _no_device
