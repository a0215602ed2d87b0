"""Pools of GPU memory and allocators of other libraries, as `cuda.memory` shows them.

Neither is there yet where there is a GPU; without one they refuse as PyTorch's build
without CUDA does, and what changes nothing then does nothing.
"""

from __future__ import annotations

from taeda._compat.unmade import unmade_class
from taeda.cuda._devices import _driver, is_initialized
from taeda.cuda.graphs import _fail

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = [
    "CUDAPluggableAllocator",
    "MemPool",
    "caching_allocator_disabled",
    "caching_allocator_enable",
    "list_gpu_processes",
    "use_mem_pool",
]

MemPool = unmade_class(
    "cuda.memory.MemPool",
    _fail("MemPool", "Tried to instantiate dummy base class MemPool: no GPU"),
)


class CUDAPluggableAllocator:
    """An allocator of GPU memory, of a shared library's functions.

    Args:
        path_to_so_file: the library.
        alloc_fn_name, free_fn_name: its functions.

    Raises:
        OSError: the library cannot be loaded.
        AttributeError: it has no such function.
        AssertionError: there is no GPU.
        NotImplementedError: there is one, whose memory only our own allocator gives.
    """

    def __init__(
        self, path_to_so_file: str, alloc_fn_name: str, free_fn_name: str
    ) -> None:
        import ctypes

        library = ctypes.CDLL(path_to_so_file)
        for name in (alloc_fn_name, free_fn_name):
            getattr(library, name)
        self.allocator()

    def allocator(self) -> None:
        """The native object; none is made."""
        _driver()
        raise NotImplementedError("cuda.CUDAPluggableAllocator is not there yet")


class use_mem_pool:
    """Takes memory from a pool inside `with`.

    Raises:
        AssertionError: on entering, without a GPU.
        NotImplementedError: on entering, with one.
    """

    def __init__(self, pool: Any, device: Any = None) -> None:
        self.pool, self.device = pool, device

    def __enter__(self) -> None:
        _driver()
        raise NotImplementedError("cuda.use_mem_pool is not there yet")

    def __exit__(self, *exc_info: Any) -> None:
        return None


def caching_allocator_enable(value: bool = True) -> None:
    """Whether freed memory of GPUs is kept for the next tensor.

    Raises:
        NotImplementedError: False, once a GPU is in use.
    """
    if not value and is_initialized():
        raise NotImplementedError("cuda.caching_allocator_enable(False)")


class caching_allocator_disabled:
    """Keeps no freed memory of GPUs inside `with`; see `caching_allocator_enable`."""

    def __enter__(self) -> None:
        caching_allocator_enable(False)

    def __exit__(self, *exc_info: Any) -> None:
        caching_allocator_enable(True)


def list_gpu_processes(device: Any = None) -> str:
    """The processes that use a GPU with their memory, a line each; needs `pynvml`.

    Args:
        device: the GPU; the current one by default.

    Returns:
        The lines, or a sentence that says what is missing.
    """
    try:
        import pynvml
    except ModuleNotFoundError:
        return "pynvml module not found, please install nvidia-ml-py"
    from taeda.cuda._devices import index_of

    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError_DriverNotLoaded:
        return "cuda driver can't be loaded, is cuda enabled?"
    index = index_of(device)
    handle = pynvml.nvmlDeviceGetHandleByIndex(index)
    found = pynvml.nvmlDeviceGetComputeRunningProcesses(handle)
    lines = [f"GPU:{index}", *([] if found else ["no processes are running"])]
    lines += [
        f"process {p.pid:>10d} uses {p.usedGpuMemory / 2**20:>12.3f} MB GPU memory"
        for p in found
    ]
    return "\n".join(lines)
