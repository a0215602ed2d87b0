"""Recorded work of GPUs, and parts of them: not there yet.

Without a GPU making one raises what PyTorch's build without CUDA raises.
"""

from __future__ import annotations

from taeda._compat.unmade import unmade_class
from taeda.cuda import graph_pool_handle, is_current_stream_capturing

__all__ = [
    "CUDAGraph",
    "GreenContext",
    "graph",
    "graph_pool_handle",
    "is_current_stream_capturing",
]


def _fail(name: str, without: str):
    """What making one does: `without` says it where there is no GPU."""

    def fail():
        from taeda import cuda

        if cuda.is_available():
            raise NotImplementedError(f"cuda.{name} is not there yet")
        raise RuntimeError(without)

    return fail


CUDAGraph = unmade_class(
    "cuda.CUDAGraph",
    _fail("CUDAGraph", "Tried to instantiate dummy base class CUDAGraph: no GPU"),
)
graph = unmade_class(
    "cuda.graph", _fail("graph", "taeda.cuda.graph requires CUDA support: no GPU")
)
GreenContext = unmade_class(
    "cuda.GreenContext",
    _fail("GreenContext", "Taeda was not built with Green Context support!"),
)
