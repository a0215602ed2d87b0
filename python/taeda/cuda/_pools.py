"""Pools of GPU memory and allocators of other libraries, as `cuda.memory` shows them.

Without a GPU they refuse as PyTorch's build without CUDA does, and what changes nothing
then does nothing.
"""

from __future__ import annotations

import contextlib

from taeda.cuda._devices import _driver, index_of, is_available, is_initialized

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

__all__ = [
    "CUDAPluggableAllocator",
    "MemPool",
    "caching_allocator_disabled",
    "caching_allocator_enable",
    "change_current_allocator",
    "list_gpu_processes",
    "use_mem_pool",
]


class _PlugIn:
    """Functions of a shared library, as the native part knows them."""

    def __init__(self, allocate: int, free: int) -> None:
        self.number = _driver().new_plug_in(allocate, free)


class CUDAPluggableAllocator:
    """An allocator of GPU memory, of a shared library's functions.

    Args:
        path_to_so_file: the library.
        alloc_fn_name: its `void* f(ssize_t size, int device, cudaStream_t stream)`.
        free_fn_name: its `void f(void*, ssize_t size, int device, cudaStream_t)`.

    Raises:
        OSError: the library cannot be loaded.
        AttributeError: it has no such function.
        AssertionError: there is no GPU.

    Example:
        >>> taeda.cuda.is_available()
        False
    """

    def __init__(
        self, path_to_so_file: str, alloc_fn_name: str, free_fn_name: str
    ) -> None:
        import ctypes

        # Kept: the functions are called for as long as memory of theirs is in use.
        self._library = ctypes.CDLL(path_to_so_file)
        addresses = [
            ctypes.cast(getattr(self._library, name), ctypes.c_void_p).value or 0
            for name in (alloc_fn_name, free_fn_name)
        ]
        self._plug_in = _PlugIn(*addresses)

    def allocator(self) -> _PlugIn:
        """What `MemPool` takes."""
        return self._plug_in


def change_current_allocator(allocator: CUDAPluggableAllocator) -> None:
    """Take all GPU memory from another library, without our own cache.

    Raises:
        RuntimeError: memory was taken already.
    """
    _driver().change_allocator(allocator.allocator().number)


class MemPool:
    """Memory that is kept apart: see `use_mem_pool`. It goes back to the driver when
    the object and all tensors in it are gone.

    Args:
        allocator: what its segments come from, a `CUDAPluggableAllocator`'s
            `allocator()`; the driver by default.
        use_on_oom: whether others may take its free blocks when nothing else is left.
        no_split: whether its blocks stay whole.

    Raises:
        RuntimeError: there is no GPU.

    Example:
        >>> taeda.cuda.is_available()
        False
    """

    def __init__(
        self,
        allocator: _PlugIn | None = None,
        use_on_oom: bool = False,
        no_split: bool = False,
    ) -> None:
        if not is_available():
            raise RuntimeError("Tried to instantiate dummy base class MemPool: no GPU")
        self._allocator = allocator
        number = 0 if allocator is None else allocator.number
        self._pool = _driver().new_pool(number, use_on_oom, no_split)

    def __del__(self) -> None:
        if getattr(self, "_pool", 0):
            _driver().release_pool(self._pool)

    @property
    def id(self) -> tuple[int, int]:
        """Its name among pools."""
        return 0, self._pool

    @property
    def allocator(self) -> _PlugIn | None:
        """What its segments come from; None for the driver."""
        return self._allocator

    def use_count(self) -> int:
        """How many use it: this object, each `use_mem_pool`, each graph."""
        return _driver().users_of_pool(self._pool)

    def snapshot(self, include_traces: bool = True) -> list[dict[str, Any]]:
        """Its segments, as `memory_snapshot` has them."""
        from taeda.cuda.memory import memory_snapshot

        return memory_snapshot(self.id, include_traces)


@contextlib.contextmanager
def use_mem_pool(pool: MemPool, device: Any = None) -> Iterator[None]:
    """Takes this thread's memory of a GPU from a pool inside `with`.

    Args:
        pool: a `MemPool`.
        device: the GPU; the current one by default.

    Raises:
        AssertionError: on entering, without a GPU.
    """
    functions = _driver()
    index = index_of(device)
    number = pool.id[1]
    functions.retain_pool(number)
    before = functions.use_pool(index, number)
    try:
        yield
    finally:
        functions.use_pool(index, before)
        functions.release_pool(number)


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
